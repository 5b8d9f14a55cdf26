// Decides whether an HTML tag is active: whether it runs, loads, frames, submits, restyles or hides something;
// and whether a link target may stay. Tags that only mark up text stay. Attributes are read as an HTML tokenizer
// does, and once more without the marks that a Markdown container puts before each of its lines.
// Source: HTML §13.2.5 (tokenization), §4.8 and §4.12; SVG 2 §11; CommonMark 0.31 §2.5, §4.6, §5.1, §6.3; WHATWG
// URL §4.4 (tabs, line ends and leading controls are dropped).

import { decodeEscapes, foldText } from './normalized-text.js';

/** A query or fragment up to this length counts as part of an address, not as a message. */
export const MAX_QUIET_QUERY_CHARS = 64;
/** Maximum length of a target. A longer one is never kept as a link. */
export const MAX_TARGET_CHARS = 2048;

const QUIET_SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'mailto', 'tel']);

/**
 * Whether a target may stay: plain http(s), mail, telephone or relative, without a long query, by which data
 * leaves with a click, and without a user name, which disguises the host. Reads the whole target as browsers do,
 * blanks included.
 */
export function isQuietTarget(target: string): boolean {
  if (target.length > MAX_TARGET_CHARS) return false;
  if (!hasQuietHost(target)) return false;
  const read = readTarget(target);
  const first = /^[^/?#\\]*/.exec(read)?.[0] ?? '';
  // An unknown reference may stand for any character of the scheme.
  if (/&[a-z][a-z0-9]{0,31};/i.test(first)) return false;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(first)?.[1]?.toLowerCase();
  if (scheme === undefined ? first.includes(':') : !QUIET_SCHEMES.has(scheme)) return false;
  const query = read.search(/[?#]/);
  return query < 0 || read.length - query - 1 <= MAX_QUIET_QUERY_CHARS;
}

const REFERENCE = /&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,16});?/g;

// Whether a target has no user name in any reading of its host. Browsers split an address before they decode
// percent triplets and fold look-alikes, so neither ends a user name; and a backslash is no escape in an
// attribute.
function hasQuietHost(target: string): boolean {
  if (!/[@&%\\]|[^!-~]/.test(target)) return true;
  const folded = foldText(target).text;
  const written = folded === target ? [target] : [target, folded];
  const readings = written.flatMap((text) => {
    const once = text.replace(REFERENCE, readReference);
    return [text, once, once.replace(REFERENCE, readReference)];
  });
  return [...readings, readTarget(target)].every(
    (text) => !hasUserName(trimTarget(text)) && !hasUserName(trimTarget(unescapeSigns(text))),
  );
}

function readReference(reference: string): string {
  return decodeEscapes({ text: reference, map: undefined }).text;
}

/**
 * Browsers drop surplus slashes before the host and add missing ones. A backslash ends the host only where it is
 * written as it is: renderers of Markdown encode it, which makes it a part of the user name.
 */
function hasUserName(read: string): boolean {
  const host = /^(?:https?:[\\/]*|[\\/]{2,})([^/?#]*)/i.exec(read)?.[1];
  return host?.includes('@') === true;
}

/** A target as a browser reads it: references, escapes and invisible characters resolved. */
function readTarget(target: string): string {
  let normalized = decodeEscapes(decodeEscapes(foldText(target)));
  if (normalized.text.includes('%')) normalized = decodeEscapes(normalized);
  return trimTarget(unescapeSigns(normalized.text));
}

function unescapeSigns(text: string): string {
  return text.replace(/\\([!-/:-@[-`{-~])/g, '$1');
}

/** Drops what browsers drop: line ends and tabs anywhere, controls and blanks at both ends. */
function trimTarget(text: string): string {
  return text
    .replace(/[\t\n\r]/g, '')
    .replace(/^[\0-\x20]+/, '')
    .trim();
}

/** A readable target that is not a link: scheme broken, query cut. */
export function defangTarget(target: string): string {
  const read = readTarget(target)
    .replace(/[^\x21-\x7e]/g, '')
    .replace(/[<>()[\]`"'|!]/g, '');
  const bare = read.split(/[?#]/, 1)[0] ?? '';
  const http = /^http(s?):[\\/]*(?:[^/@]*@)?([^@:&]{0,120})/i.exec(bare);
  return http === null ? '' : `hxxp${http[1] ?? ''}://${http[2] ?? ''}`;
}

/** A tag to be removed: where it ends and what replaces it. */
type ActiveHtml = { readonly end: number; readonly shown: string };

/** A tag that stays, and where it ends, if that is known. */
type QuietHtml = { readonly quietEnd: number | undefined };

/** Maximum number of characters read of a tag. A longer tag counts as active. */
const MAX_TAG_CHARS = 4096;

/** Elements that are active whatever their attributes. */
const ACTIVE_ELEMENTS: ReadonlySet<string> = new Set(
  (
    'script style iframe frame frameset object embed applet img image picture source audio video track ' +
    'svg math link meta base form input button textarea select option template slot portal dialog ' +
    'marquee bgsound layer ilayer foreignobject animate animatetransform animatemotion set use feimage ' +
    'noscript noembed noframes plaintext xmp isindex keygen canvas title fencedframe webview model'
  ).split(' '),
);
const ACTIVE_ATTRIBUTES: ReadonlySet<string> = new Set(
  (
    'src srcset imagesrcset srcdoc style background poster action formaction ping lowsrc dynsrc manifest ' +
    'codebase profile cite longdesc usemap data archive classid attributionsrc base icon'
  ).split(' '),
);
const NAME = /<\/?([a-z][^\t\n\f\r />]{0,64})/iy;
/** No element has a longer name, so its end is not searched. */
const MAX_NAME_CHARS = 64;

/** What is known of a text's tags, and the remaining reading budget. */
export type TagReading = {
  readonly text: string;
  /** Offset of the last `>`. */
  readonly lastClose: number;
  budget: number;
  /** Where HTML blocks may begin, with the blank line that ends each; computed on first use. */
  blocks: readonly HtmlBlock[] | undefined;
};

type HtmlBlock = { readonly start: number; readonly end: number };

/** How many times the tags of a text may be read over. Beyond that, a tag counts as active. */
const READS_A_CHAR = 8;

/** Prepares the reading of a text's tags, with a budget that keeps it linear in the text. */
export function createTagReading(text: string): TagReading {
  const budget = READS_A_CHAR * text.length + MAX_TAG_CHARS;
  return { text, lastClose: text.lastIndexOf('>'), budget, blocks: undefined };
}

/** Classifies the `<` at `at`: an active tag, a tag that stays, or undefined where it is no tag. */
export function findHtml(at: number, tags: TagReading): ActiveHtml | QuietHtml | undefined {
  const { text } = tags;
  NAME.lastIndex = at;
  const name = NAME.exec(text)?.[1]?.toLowerCase();
  if (name === undefined) return undefined;
  const behindName = at + name.length + (text[at + 1] === '/' ? 2 : 1);
  const element = bareName(name);
  const isReadable = at <= tags.lastClose && tags.budget > 0;
  const tag = isReadable ? readTag(behindName, tags, false) : UNREAD;
  const end = tag.end ?? behindName;
  if (ACTIVE_ELEMENTS.has(element)) return { end, shown: `(removed html ${element})` };
  if (
    name.length > MAX_NAME_CHARS ||
    tags.budget <= 0 ||
    tag.isActive ||
    mayContinue(at, tag, tags) ||
    hidesAttribute(behindName, tag, tags)
  ) {
    return { end, shown: '(removed html)' };
  }
  if (tag.end === undefined) return undefined;
  return { quietEnd: tag.hasMarks || tag.hasBlankLine ? undefined : tag.end };
}

// Whether a tag without an end, or with a blank line in it, may still act. It is text, unless it is in an HTML
// block, where it continues into whatever the renderer writes next.
function mayContinue(at: number, tag: Tag, tags: TagReading): boolean {
  if (tag.end !== undefined && !tag.hasBlankLine) return false;
  return tag.isTooLong || mayBeInBlock(at, tags);
}

/** Whether the tag is active once the marks of a quote are removed from it. */
function hidesAttribute(behindName: number, tag: Tag, tags: TagReading): boolean {
  return tag.end !== undefined && tag.hasMarks && readTag(behindName, tags, true).isActive;
}

/** A name without its prefix: `svg:script` is a script. */
function bareName(name: string): string {
  return name.slice(name.lastIndexOf(':') + 1);
}

type Tag = {
  /** The offset after its closing `>`. */
  readonly end: number | undefined;
  readonly isTooLong: boolean;
  readonly isActive: boolean;
  readonly hasBlankLine: boolean;
  /** One of its lines begins like a line of a quote. */
  readonly hasMarks: boolean;
};

const UNREAD: Tag = {
  end: undefined,
  isTooLong: false,
  isActive: false,
  hasBlankLine: false,
  hasMarks: false,
};

// Exactly the white space of HTML: any other character would end a value too early.
const ATTRIBUTE_NAME = /[^\t\n\f\r />][^\t\n\f\r />=]*/y;
const SPACES = /[\t\n\f\r /]*/y;
const BLANKS = /[\t\n\f\r ]*/y;
const UNQUOTED = /[^\t\n\f\r >]*/y;
const BLANK_LINE = /(?:\r\n?|\n)[ \t>]*[\r\n]/;
const MARKED_LINE = /[\r\n][ \t]*>/;
const LINE_MARKS = /(\r\n?|\n)(?:[ \t]*>)+/g;

/** Reads the attributes of a tag from after its name. */
function readTag(from: number, tags: TagReading, isUnmarked: boolean): Tag {
  const slice = tags.text.slice(from, from + MAX_TAG_CHARS);
  const text = isUnmarked ? slice.replace(LINE_MARKS, '$1') : slice;
  let isActive = false;
  let at = matchEnd(SPACES, text, 0);
  while (at < text.length && text[at] !== '>') {
    const attribute = readAttribute(text, at);
    isActive ||=
      attribute.value !== undefined && isActiveAttribute(attribute.name, attribute.value);
    at = matchEnd(SPACES, text, attribute.end);
  }
  const end = text[at] === '>' ? at + 1 : undefined;
  tags.budget -= end ?? text.length;
  return {
    end: end === undefined ? undefined : from + end,
    isTooLong: end === undefined && from + MAX_TAG_CHARS < tags.text.length,
    isActive,
    hasBlankLine: BLANK_LINE.test(text.slice(0, end)),
    hasMarks: MARKED_LINE.test(slice.slice(0, end)),
  };
}

type Attribute = {
  readonly name: string;
  readonly value: string | undefined;
  readonly end: number;
};

function readAttribute(text: string, at: number): Attribute {
  const nameEnd = matchEnd(ATTRIBUTE_NAME, text, at);
  const name = text.slice(at, nameEnd).toLowerCase();
  const sign = matchEnd(BLANKS, text, nameEnd);
  if (text[sign] !== '=') return { name, value: undefined, end: sign };
  const start = matchEnd(BLANKS, text, sign + 1);
  const quote = text[start];
  if (quote !== '"' && quote !== "'") {
    const end = matchEnd(UNQUOTED, text, start);
    return { name, value: text.slice(start, end), end };
  }
  const close = text.indexOf(quote, start + 1);
  const valueEnd = close < 0 ? text.length : close;
  return { name, value: text.slice(start + 1, valueEnd), end: Math.min(valueEnd + 1, text.length) };
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

function isActiveAttribute(written: string, value: string): boolean {
  const name = bareName(written).replace(/^["'=\\]+/, '');
  if (/^on[a-z]/.test(name) || ACTIVE_ATTRIBUTES.has(name)) return true;
  return name === 'href' && !isQuietTarget(value);
}

const LINE = /[^\r\n]*(?:\r\n?|\n|$)/y;
/** A line that begins with a tag, a declaration or an instruction, after any container marks. */
const TAG_LINE = /^[^A-Za-z<]*(?:\[\^[^[\]]*\]:[^A-Za-z<]*)?<[A-Za-z/!?]/;
/** Blocks that no blank line ends. After some of these tags one renderer writes raw text, even within a line. */
const LONG_BLOCK = /<(?:[!?]|(?:pre|script|style|textarea|code|kbd)\b)/i;

function mayBeInBlock(at: number, tags: TagReading): boolean {
  tags.blocks ??= findBlocks(tags.text);
  let low = 0;
  let high = tags.blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tags.blocks[middle]?.end ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  const block = tags.blocks[low];
  return block !== undefined && block.start <= at;
}

/** The spans from each line that begins with a tag to the next blank line or the end of the text. */
function findBlocks(text: string): readonly HtmlBlock[] {
  const blocks: HtmlBlock[] = [];
  let start: number | undefined;
  for (let at = 0; at < text.length; ) {
    const next = Math.max(at + 1, matchEnd(LINE, text, at));
    const line = text.slice(at, next);
    if (LONG_BLOCK.test(line)) {
      start ??= at;
      break;
    }
    if (TAG_LINE.test(line)) start ??= at;
    else if (start !== undefined && line.trim() === '' && /^[ \t\r\n]*$/.test(line)) {
      blocks.push({ start, end: at });
      start = undefined;
    }
    at = next;
  }
  if (start !== undefined) blocks.push({ start, end: text.length });
  return blocks;
}
