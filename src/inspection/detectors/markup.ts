// Reads the markup of a text as renderers do. Decides whether an HTML tag is active: whether it runs, loads, frames,
// submits, restyles or hides something; and whether a link target may stay. Tags that only mark up text stay.
// Attributes are read as an HTML tokenizer does, and once more without the marks that a Markdown container puts
// before each of its lines. Finds the stretches of Markdown that every renderer shows as code: fenced blocks whose
// fences begin in the first column, and code spans within one line. In case of doubt a stretch is not code, and what
// it holds is neutralized.
// Source: HTML §13.2.5 (tokenization), §4.8 and §4.12; SVG 2 §11; WHATWG URL §4.4 (tabs, line ends and leading
// controls are dropped); CommonMark 0.31 §2.1 (lines, blanks), §2.5, §4.5 (fenced code), §4.6 (HTML blocks), §4.7
// (definitions), §5.1, §6.1 (code spans), §6.3 (links); GFM §4.10 (tables), §6.9 (autolink literals).

import { decodeEscapes, foldText } from './decoded-text.js';

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
const TAG_NAME = /<\/?([a-z][^\t\n\f\r />]{0,64})/iy;
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
  TAG_NAME.lastIndex = at;
  const name = TAG_NAME.exec(text)?.[1]?.toLowerCase();
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

const LINE_WITH_END = /[^\r\n]*(?:\r\n?|\n|$)/y;
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
    const next = Math.max(at + 1, matchEnd(LINE_WITH_END, text, at));
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

/** A stretch of code. Lists of regions are in order and do not overlap. */
type CodeRegion = { readonly start: number; readonly end: number };

type Fence = { readonly sign: string; readonly length: number };

// The state after a line. `plain`: all backticks are paired and nothing is open. `unsure`: a later backtick of
// the same paragraph may close a pair, or belong to a tag or target. `raw`: nothing that follows is certain to be
// Markdown.
type Trust = 'plain' | 'unsure' | 'raw';

type LineSpan = { readonly start: number; readonly end: number; readonly next: number };

const BLANKS_ONLY = /^[ \t]*$/;
/** A run that may open or close a fence for some renderer: nothing that is certainly text precedes it. */
const FENCE_LIKE = /^[^\p{L}`~]*(?:\[\^[^[\]]*\]:[^\p{L}`~]*)?(?:`{3,}|~{3,})/u;
const WITHOUT_LETTERS = /^[^\p{L}`~]*$/u;
/** Container marks beyond this length are not read. */
const MAX_MARKS_CHARS = 256;
const FENCE = /^(?:(`{3,})[^`]*|(~{3,}).*)$/s;
/** Tags after which Markdown is not parsed, even across blank lines. */
const RAW_HTML = /<(?:pre|textarea|script|style|!|\?)/i;
/** Unclosed tags, targets and labels, which may include a backtick that then begins no code span. */
const SWALLOWING = /<[A-Za-z/!?]|\]\(|\]\[/;
const LINK_TARGET = /\]\((?:<[^<>\\`"'\r\n]*>|[^\s()<>\\`"']*)\)|\]\[[^[\]\\`]*\](?![([])/g;
/** Where a title may begin, which may continue over lines and in some renderers over blank lines. */
const TITLE_START = /^[^A-Za-z]*["'(]/;

/** Progress through a text, and the state that it leaves for the next line. */
type CodeSearch = {
  readonly text: string;
  readonly regions: CodeRegion[];
  readonly lastDefinition: number;
  trust: Trust;
  isBehindDefinition: boolean;
};

/** The code of a text. Linear. */
export function findMarkdownCode(text: string): CodeRegion[] {
  const regions: CodeRegion[] = [];
  if (!text.includes('`') && !text.includes('~~~')) return regions;
  const lastDefinition = text.lastIndexOf(']:');
  const state: CodeSearch = {
    text,
    regions,
    lastDefinition,
    trust: 'plain',
    isBehindDefinition: false,
  };
  let at: number | undefined = 0;
  while (at !== undefined && at < text.length) at = readCode(state, readLine(text, at));
  return regions;
}

// Reads a line or the fence that it opens. Returns where to continue, undefined where nothing more is certain.
function readCode(state: CodeSearch, lineSpan: LineSpan): number | undefined {
  const line = state.text.slice(lineSpan.start, lineSpan.end);
  const definition = readDefinition(line, lineSpan.start <= state.lastDefinition);
  if (definition === 'open' || (state.isBehindDefinition && TITLE_START.test(line)))
    return undefined;
  state.isBehindDefinition = definition === 'whole';
  if (isFenceLike(line) && !isInlineRun(line)) {
    return state.isBehindDefinition ? undefined : readFence(state, line, lineSpan);
  }
  state.trust = trustAfter(state, line, lineSpan.start);
  return state.trust === 'raw' ? undefined : lineSpan.next;
}

function readFence(state: CodeSearch, line: string, { next }: LineSpan): number | undefined {
  const fence = state.trust === 'plain' ? openFence(line) : undefined;
  if (fence === undefined) return undefined;
  const closing = findClosing(state.text, next, fence);
  // What follows the fence in its line is no code: with one more text behind it, the line may open none.
  state.regions.push({ start: Math.min(next, closing.end), end: closing.end });
  return closing.isSure ? closing.next : undefined;
}

function trustAfter(state: CodeSearch, line: string, offset: number): Trust {
  if (BLANKS_ONLY.test(line)) return 'plain';
  if (state.trust === 'unsure') return RAW_HTML.test(line) ? 'raw' : 'unsure';
  // In a note or a paragraph a definition is prose, in which a tag or a target may begin.
  return state.isBehindDefinition ? trustBehind(line) : readSpans(line, offset, state.regions);
}

const LINE_END = /\r\n?|\n/g;

/** Lines end with a line feed, a carriage return, or both (CommonMark 0.31 §2.1). */
function readLine(text: string, start: number): LineSpan {
  LINE_END.lastIndex = start;
  const match = LINE_END.exec(text);
  if (match === null) return { start, end: text.length, next: text.length };
  return { start, end: match.index, next: LINE_END.lastIndex };
}

// Whether the line begins a link reference definition: `whole` if it ends with the line, `open` if its label,
// target or title may continue, in some renderers across fences.
function readDefinition(line: string, mayDefine: boolean): 'none' | 'whole' | 'open' {
  if (!mayDefine || !/^[^A-Za-z[\]`]*\[/.test(line)) return 'none';
  const label = DEFINITION_LABEL.exec(line)?.[0];
  if (label === undefined) {
    const labelEnd = line.indexOf(']', line.indexOf('['));
    return labelEnd < 0 || line.includes(']:') ? 'open' : 'none';
  }
  const rest = line.slice(label.length).replace(/^[ \t]+/, '');
  if (COMPLETE_TARGET.test(rest)) return 'whole';
  return NO_TITLE.test(rest) ? 'none' : 'open';
}

const DEFINITION_LABEL = /^[^A-Za-z[\]`]*\[[^[\]\\]+\]:(?=[ \t])/;
const COMPLETE_TARGET = /^[^\s"'(<\\][^\s\\]*(?:[ \t]+(?:"[^"\\]*"|'[^'\\]*'))?[ \t]*$/;
/** Text after a target that is no title: the line is no definition. */
const NO_TITLE = /^[^\s"'(<\\][^\s\\]*[ \t]+[^\s"'(]/;

function isFenceLike(line: string): boolean {
  const head = line.slice(0, MAX_MARKS_CHARS);
  return FENCE_LIKE.test(head) || (head.length < line.length && WITHOUT_LETTERS.test(head));
}

/** A backtick run in the first column with another one after it is inline code. Tildes never are. */
function isInlineRun(line: string): boolean {
  return /^`{3,}[^`]+`/.test(line);
}

function openFence(line: string): Fence | undefined {
  const match = FENCE.exec(line);
  const run = match?.[1] ?? match?.[2];
  const sign = run?.[0];
  return run === undefined || sign === undefined ? undefined : { sign, length: run.length };
}

type Closing = { readonly end: number; readonly next: number; readonly isSure: boolean };

// The end of the line that closes a fence, or the end of the text if no line does. If renderers differ about a
// line, the code ends before it and nothing after it is certain.
function findClosing(text: string, from: number, fence: Fence): Closing {
  for (let at = from; at < text.length; ) {
    const { start, end, next } = readLine(text, at);
    at = next;
    const run = fenceRunOf(text, start, end, fence.sign);
    if (run === undefined || run.end - run.start < fence.length) continue;
    const rest = text.slice(run.end, end);
    if (run.start === start && /^ *$/.test(rest)) return { end, next, isSure: true };
    // Only blanks may follow a closing fence. With letters after it, every renderer takes the line for code.
    if (!/[\p{L}\p{N}]/u.test(rest)) return { end: start, next: start, isSure: false };
  }
  return { end: text.length, next: text.length, isSure: true };
}

/** The run of a fence's sign at the start of a line, after blanks of any kind. */
function fenceRunOf(
  text: string,
  start: number,
  end: number,
  sign: string,
): CodeRegion | undefined {
  let first = start;
  while (first < end && text[first] !== sign && /[\s\p{Cf}\p{Cc}]/u.test(text[first] ?? ''))
    first++;
  let last = first;
  while (last < end && text[last] === sign) last++;
  return last === first ? undefined : { start: first, end: last };
}

const TICKS = /`+/g;
/** Some renderers do not accept longer runs. */
const MAX_RUN = 32;

/** Adds the code spans of a line up to the first cell, tag, target or escape about which renderers differ. */
function readSpans(line: string, offset: number, regions: CodeRegion[]): Trust {
  let done = 0;
  let open: { readonly at: number; readonly run: string } | undefined;
  TICKS.lastIndex = 0;
  for (let match = TICKS.exec(line); match !== null; match = TICKS.exec(line)) {
    const run = match[0];
    if (open === undefined) {
      if (isDoubtful(line, done, match.index, run)) break;
      open = { at: match.index, run };
    } else if (open.run === run) {
      // One renderer looks for the end of a label before it looks for spans.
      if (closesLabel(line.slice(open.at, match.index))) break;
      done = match.index + run.length;
      regions.push({ start: offset + open.at, end: offset + done });
      open = undefined;
    }
  }
  return trustBehind(line.slice(done));
}

function trustBehind(rest: string): Trust {
  if (RAW_HTML.test(rest)) return 'raw';
  return rest.includes('`') || maySwallow(rest) ? 'unsure' : 'plain';
}

function isDoubtful(line: string, from: number, at: number, run: string): boolean {
  if (run.length > MAX_RUN || line.includes('|')) return true;
  const before = line.slice(from, at);
  return maySwallow(before) || clings(before);
}

/** Whether a bracket that was opened before the span would end in it, with a target or a label behind it. */
function closesLabel(span: string): boolean {
  if (!/\][([]/.test(span)) return false;
  let depth = 0;
  for (const { 0: sign } of span.matchAll(/\[|\][([]?/g)) {
    depth += sign === '[' ? 1 : -1;
    if (depth < 0 && sign.length > 1) return true;
    if (sign === '][') depth++;
  }
  return false;
}

function maySwallow(prose: string): boolean {
  return SWALLOWING.test(prose) && SWALLOWING.test(prose.replace(LINK_TARGET, ''));
}

/** Whether an escape, an address or an autolink directly before a backtick may include it. */
function clings(before: string): boolean {
  if (before.endsWith('\\')) return true;
  let start = before.length;
  while (start > 0 && !/[ \t]/.test(before[start - 1] ?? '')) start--;
  return /:\/\/|www\.|[<@]/i.test(before.slice(start));
}
