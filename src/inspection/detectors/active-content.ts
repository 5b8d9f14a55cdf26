// Makes active Markdown and HTML inert while the reader still sees text. Images, comments and HTML that runs,
// loads or frames something are removed. Links with a quiet target stay (markup.ts: plain http, https, mailto, tel
// or relative, without user name or long query); other links keep their text only; script URLs lose their scheme.
// Code is kept. Tokens are scanned with an explicit stack, so nesting does not affect the linear time.
// Source: CommonMark 0.31 §6.3 to §6.7; GFM §6.9; HTML §13.2.5 (tokenization).

import {
  createTagReading,
  defangTarget,
  findHtml,
  isQuietTarget,
  MAX_QUIET_QUERY_CHARS,
  MAX_TARGET_CHARS,
  type TagReading,
} from './markup.js';

/** A span and its replacement. */
export type Replacement = {
  readonly kind: 'image' | 'link' | 'html' | 'script-url';
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** A bare address, which is plain text to renderers that do not autolink. */
  readonly isBare?: true;
};

/** A stretch of code, which is kept. Lists of stretches are in order and do not overlap. */
export type CodeStretch = { readonly start: number; readonly end: number };

/** `markdown`: code is kept. `value`: a string of structured content, whose rendering is unknown. */
export type TextFormat = 'markdown' | 'value';

const MAY_BE_ACTIVE =
  /[\]<]|!\\{0,3}\[|script:|data:|[?#;]\S{60}|(?::\/\/|www\.)(?:[^\s/@&]{2049}|[^\s/@&]{0,2048}[@&])/i;
// A backslash hides no token, because not every renderer treats it as an escape everywhere. After `!` backslashes
// are matched, because one renderer drops them from a link text and parses it again.
const TOKEN =
  /!\\{0,3}\[|\[|\]|<|(?:java|vb|live)script:(?=[^\s])|data:(?=\s{0,4}(?:text\/html|image\/svg|application\/(?:xhtml|javascript|xml)|text\/(?:xml|javascript)))|[?#](?=[\S\ufeff]{65})|&(?:#|quest;|num;)(?=[\S\ufeff]{65})|(?::\/\/|www\.)(?=[^\s/?#@&]{2049}|[^\s/?#@&]{0,2048}[@&])/gi;

/** `image` is the index in `found` of the opening of an image; undefined for other brackets. */
type Opener = { readonly at: number; readonly image: number | undefined };

type Scan = {
  readonly text: string;
  readonly reading: TextFormat;
  readonly found: Replacement[];
  readonly openers: Opener[];
  readonly tags: TagReading;
  /** Set once no comment ends after this point, so that the search is not repeated. */
  hasNoCommentEnd: boolean;
  /** The last bracket, if it begins its line and no other followed it: a definition may begin there. */
  label: number | undefined;
  /** Targets and tags that contain addresses and were already checked, in the order of their ends. */
  readonly targets: CodeStretch[];
  /** How many of them end before the last address that was checked. */
  passedTargets: number;
  /** Where the last link text began: a link around another one is no link. */
  lastText: number;
  /** The last word that was searched as the target of a definition. */
  wordStart: number;
  wordEnd: number;
  /** The word around the last position that needed an address search. */
  word: Word | undefined;
};

/** Characters without white space, which may hold addresses. */
type Word = {
  readonly end: number;
  /** Positions that end an address for every renderer, in order. */
  readonly walls: readonly number[];
  /** How many of these precede the last position that was searched. */
  passedWalls: number;
  /** How far the word was searched for addresses. */
  searched: number;
};

/** A target with deeper nested parentheses is no target. */
const MAX_TARGET_NESTING = 8;

/** Finds all active content of a text, in order and without overlaps. Linear. */
export function findActiveContent(
  text: string,
  reading: TextFormat,
  code: readonly CodeStretch[],
): Replacement[] {
  if (!MAY_BE_ACTIVE.test(text)) return [];
  const scan: Scan = {
    text,
    reading,
    found: [],
    openers: [],
    tags: createTagReading(text),
    hasNoCommentEnd: false,
    label: undefined,
    targets: [],
    passedTargets: 0,
    lastText: -1,
    wordStart: 0,
    wordEnd: 0,
    word: undefined,
  };
  let region = 0;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    while ((code[region]?.end ?? Number.POSITIVE_INFINITY) <= match.index) region++;
    const stretch = code[region];
    if (stretch !== undefined && stretch.start <= match.index) {
      TOKEN.lastIndex = stretch.end;
      continue;
    }
    TOKEN.lastIndex = readToken(scan, match[0], match.index);
  }
  return scan.found.sort((one, other) => one.start - other.start);
}

/** Maximum number of rounds: a removal may reveal a token that was hidden by the removed one. */
const MAX_ROUNDS = 16;

/** Finds the code of a text, which is kept. */
type FindCode = (text: string) => readonly CodeStretch[];

/** Replaces all active content. Returns the text and the replacements made. */
export function neutralize(
  text: string,
  reading: TextFormat,
  findKept: FindCode,
): { readonly text: string; readonly found: readonly Replacement[] } {
  const all: Replacement[] = [];
  let inert = text;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = findActiveContent(inert, reading, findKept(inert));
    if (found.length === 0) break;
    inert = replaceAll(inert, found);
    for (const one of found) all.push(one);
  }
  return { text: inert, found: all };
}

function replaceAll(text: string, found: readonly Replacement[]): string {
  let inert = '';
  let at = 0;
  for (const { start, end, text: replacement } of found) {
    inert += text.slice(at, start) + replacement;
    at = end;
  }
  return inert + text.slice(at);
}

/** Reads one token and returns where to continue. */
function readToken(scan: Scan, token: string, at: number): number {
  const { text } = scan;
  const after = at + token.length;
  const sign = token.startsWith('!') ? '![' : token.toLowerCase();
  switch (sign) {
    case '![':
      scan.openers.push({ at, image: scan.found.length });
      // Broken up at once, so that it is no image whatever follows; closeBracket adds more where it was one.
      scan.found.push({ kind: 'image', start: at, end: after, text: '! [' });
      scan.label = undefined;
      return after;
    case '[':
      scan.openers.push({ at, image: undefined });
      scan.lastText = at;
      if (startsLine(text, at)) scan.label = at;
      else if (text[at - 1] !== '\\') scan.label = undefined;
      return after;
    case ']':
      return closeBracket(scan, at);
    case '<':
      return readTag(scan, at);
    case '?':
    case '#':
    case '://':
    case 'www.':
    case '&#':
    case '&quest;':
    case '&num;':
      return readAddress(scan, token, at);
    default:
      scan.found.push({ kind: 'script-url', start: at, end: after, text: '(removed script URL) ' });
      return after;
  }
}

/** Reads what follows a closing bracket: a target, a reference, a definition, or none of them. */
function closeBracket(scan: Scan, at: number): number {
  const { text } = scan;
  const opener = scan.openers.pop();
  const sign = text[at + 1];
  if (sign === '(') return closeWithTarget(scan, opener, at);
  if (sign === '[' && opener?.image !== undefined) {
    const close = text.indexOf(']', at + 2);
    if (close >= 0 && close - at < MAX_TARGET_CHARS)
      return removeImage(scan, opener.image, at, close + 1);
  }
  if (sign === ':' && scan.label !== undefined) return readDefinition(scan, at);
  return at + 1;
}

function closeWithTarget(scan: Scan, opener: Opener | undefined, at: number): number {
  const target = readInlineTarget(scan.text, at + 2);
  if (opener?.image !== undefined)
    return removeImage(scan, opener.image, at, target?.end ?? at + 2);
  if (target === undefined) {
    // Its end may lie beyond the limit read here, so the opening is broken: then no client reads a target.
    scan.found.push({ kind: 'link', start: at, end: at + 2, text: '] (' });
    return at + 2;
  }
  // Some renderers end a target at a tab, others drop the tab.
  if (isQuietTarget(target.text) && isQuietTarget(target.toBlank)) {
    // Autolinked, an address without a scheme leads elsewhere than the same text as a link target.
    const isAddress = /^www\./i.test(target.text);
    const inner = scan.text.slice(at + 2, target.end);
    if (
      !isAddress &&
      opener?.at === scan.lastText &&
      isLinkText(scan.text, opener.at, at) &&
      ONE_TARGET.test(inner)
    ) {
      const start = scan.text.indexOf(target.text, at + 2);
      trustTarget(scan, start, start + target.text.length);
    }
    return at + 2;
  }
  scan.found.push({ kind: 'link', start: at, end: target.end, text: removedLink(target.text) });
  return target.end;
}

/** A target and its title, in the form that all renderers read alike. */
const ONE_TARGET =
  /^(?:<[^<>\\\r\n]*>|(?:[^\s()<>\\]|\([^\s()<>\\]*\))*)(?:[ \t]+(?:"[^"\\\r\n]*"|'[^'\\\r\n]*'))?\)$/;

/**
 * Whether the text between two brackets is a link text to all renderers: on one line, in one cell, and without a
 * sign at which a span, a tag or a title may end that includes the first bracket.
 */
function isLinkText(text: string, from: number, to: number): boolean {
  return text[from - 1] !== '\\' && !/[\r\n|`>)]/.test(text.slice(from, to));
}

const ANOTHER_ADDRESS = /.(?:(?:https?|ftp):\/\/|(?<!^https?:\/\/)www\.)/is;

// Marks a target as checked, unless another address begins inside it: that is a link of its own where the whole
// turns out to be none.
function trustTarget(scan: Scan, start: number, end: number): void {
  if (!ANOTHER_ADDRESS.test(scan.text.slice(start, end))) addTarget(scan, start, end);
}

function addTarget({ targets }: Scan, start: number, end: number): void {
  if (end > (targets.at(-1)?.end ?? 0)) targets.push({ start, end });
}

/** Marks the opening of an image as removed. Its index is known, which avoids a search for each image. */
function removeImage({ found }: Scan, image: number, at: number, end: number): number {
  const opening = found[image];
  if (opening !== undefined) found[image] = { ...opening, text: '(removed image, ' };
  found.push({ kind: 'image', start: at, end, text: ')' });
  return end;
}

function removedLink(target: string): string {
  const defanged = defangTarget(target);
  return defanged === '' ? '] (removed link)' : `] (removed link ${defanged})`;
}

type Target = {
  readonly text: string;
  /** Up to an unescaped blank or line end, controls included. */
  readonly toBlank: string;
  /** The offset after the closing parenthesis. */
  readonly end: number;
};

/** Reads `(target "title")` from after the parenthesis, with the nested parentheses that a target may hold. */
function readInlineTarget(text: string, from: number): Target | undefined {
  const limit = Math.min(text.length, from + MAX_TARGET_CHARS);
  let depth = 0;
  for (let at = from; at < limit; at++) {
    const unit = text[at];
    if (unit === '\\') at++;
    else if (unit === '(' && ++depth > MAX_TARGET_NESTING) return undefined;
    else if (unit === ')' && depth-- === 0) {
      const inner = text.slice(from, at).trimStart();
      const toBlank = /^(?:\\(?:\r\n|[\r\n])|[^ \r\n])*/.exec(inner)?.[0] ?? '';
      return { text: targetAt(text, from), toBlank, end: at + 1 };
    }
  }
  return undefined;
}

const TARGET_START = /[\s>]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a target ends at every control
const TARGET = /<((?:\\.|[^>\r\n])*)>?|([^\x00-\x20\x7f]*)/y;

/** The target that begins here or after blanks, line ends and quote marks, without its title. */
function targetAt(text: string, from: number): string {
  TARGET_START.lastIndex = from;
  TARGET_START.test(text);
  const slice = text.slice(TARGET_START.lastIndex, TARGET_START.lastIndex + MAX_TARGET_CHARS + 1);
  TARGET.lastIndex = 0;
  const match = TARGET.exec(slice);
  return match?.[1] ?? match?.[2] ?? '';
}

/** Reads `[label]: target`, with the target on this line or the next. A quiet target stays. */
function readDefinition(scan: Scan, at: number): number {
  const { text } = scan;
  TARGET_START.lastIndex = at + 2;
  TARGET_START.test(text);
  const start = TARGET_START.lastIndex;
  const isBracketed = text[start] === '<';
  const target = isBracketed ? targetAt(text, start) : text.slice(start, wordEnd(scan, start));
  const end = start + target.length + (isBracketed ? 1 : 0);
  if (target === '' || !DEFINITION_END.test(text.slice(end, end + 80))) return at + 1;
  if (isQuietTarget(target)) return at + 1;
  const afterTarget = text[end] === '>' ? end + 1 : end;
  scan.found.push({ kind: 'link', start: at, end: afterTarget, text: removedLink(target) });
  return afterTarget;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: a target ends at every control
const WORD = /[^\x00-\x20\x7f]*/y;

/** End of the word at an offset, searched once per word. */
function wordEnd(scan: Scan, at: number): number {
  if (at >= scan.wordEnd || at < scan.wordStart) {
    scan.wordStart = at;
    WORD.lastIndex = at;
    WORD.test(scan.text);
    scan.wordEnd = WORD.lastIndex;
  }
  return scan.wordEnd;
}

/** Only a title may follow the target of a definition. */
const DEFINITION_END = /^>?[ \t]*(?:$|[\r\n"'(])/;

/** Removes autolinks with a target that is not quiet, comments, and active tags. */
function readTag(scan: Scan, at: number): number {
  const { text } = scan;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an autolink ends at every control
  const auto = /^<([a-z][a-z0-9+.-]{1,31}:[^\x00-\x20<>]{0,2048})>/i.exec(
    text.slice(at, at + 2100),
  )?.[1];
  if (auto !== undefined) {
    const end = at + auto.length + 2;
    if (isQuietTarget(auto)) {
      scan.lastText = at;
      // Behind a backslash it is none, but an address by itself.
      if (text[at - 1] !== '\\') trustTarget(scan, at + 1, end - 1);
      return at + 1;
    }
    scan.found.push({ kind: 'link', start: at, end, text: removedAddress(auto) });
    return end;
  }
  if (text.startsWith('<!--', at)) return removeComment(scan, at);
  const html = findHtml(at, scan.tags);
  if (html === undefined) return at + 1;
  if ('shown' in html) {
    scan.found.push({ kind: 'html', start: at, end: html.end, text: html.shown });
    return html.end;
  }
  const { quietEnd } = html;
  if (quietEnd !== undefined && text[at - 1] !== '\\' && PLAIN_TAG.test(text.slice(at, quietEnd))) {
    addTarget(scan, at, quietEnd);
  }
  return at + 1;
}

/**
 * A tag to every renderer, so that an address inside it is not autolinked: on one line, in one cell, and without a
 * sign at which another tag, a span, a target or a label may end that includes its beginning.
 */
const PLAIN_TAG =
  /^<[a-z][a-z0-9-]*(?:[ \t]+[a-z_:][\w.:-]*(?:=(?:"[^"<>`)\]|\r\n]*"|'[^'<>`)\]|\r\n]*'))?)*[ \t]*\/?>$/i;

/** Removes a comment with its content, or only its opening where it does not end. */
function removeComment(scan: Scan, at: number): number {
  const close = scan.hasNoCommentEnd ? -1 : scan.text.indexOf('-->', at + 4);
  if (close < 0) scan.hasNoCommentEnd = true;
  const end = close < 0 ? at + 4 : close + 3;
  scan.found.push({ kind: 'html', start: at, end, text: '(removed comment)' });
  return end;
}

function removedAddress(target: string): string {
  const defanged = defangTarget(target);
  return defanged === '' ? '(removed link)' : `(removed link ${defanged})`;
}

/** Starts of addresses that renderers turn into links by themselves. */
const ADDRESS =
  /(?:https?|ftp):\/\/|(?<![:/])\/\/|(?:mailto|xmpp):|www\.|[\p{L}\p{N}]\.\p{L}{2}/giu;
const HOST = /[\p{L}\p{N}.-]+/uy;
const HOST_UNIT = /[\p{L}\p{N}.-]/u;
/** After these characters a host without a scheme belongs to something else. */
const NO_HOST_BEHIND = /[:/\\@]/;

// Breaks a bare address, which some renderers turn into a link, where it has a user name or a long query. It
// stays readable, but its start is rewritten so that it is not a link.
function readAddress(scan: Scan, token: string, at: number): number {
  const { found, targets } = scan;
  const after = at + token.length;
  if (scan.reading === 'value') return after;
  if (token === '://' || /^www/i.test(token)) {
    if (at >= (targets.at(-1)?.end ?? 0)) breakUserName(scan, at);
  } else {
    const word = wordAround(scan, at);
    const end = word.walls[word.passedWalls] ?? word.end;
    if (end - after > MAX_QUIET_QUERY_CHARS) breakAddresses(scan, word, at);
  }
  return Math.max(after, found.at(-1)?.end ?? 0);
}

function breakUserName({ text, found }: Scan, at: number): void {
  const start = at - schemeBefore(text, at).length;
  if (start < (found.at(-1)?.end ?? 0) || !hasUserName(text, at)) return;
  found.push({ kind: 'link', start, ...breakAddress(text, start), isBare: true });
}

/** Any of the addresses that precede the query may become the link, so all are broken. */
function breakAddresses(scan: Scan, word: Word, at: number): void {
  const { text, found, targets } = scan;
  let from = Math.max(word.searched, found.at(-1)?.end ?? 0);
  for (let one = nextAddress(text, from, at); one !== undefined; ) {
    while ((targets[scan.passedTargets]?.end ?? text.length) <= one) scan.passedTargets++;
    const target = targets[scan.passedTargets];
    if (target !== undefined && target.start <= one) {
      from = target.end;
    } else {
      const broken = breakAddress(text, one);
      found.push({ kind: 'link', start: one, ...broken, isBare: true });
      from = Math.max(one + 1, broken.end);
    }
    one = nextAddress(text, from, at);
  }
  word.searched = Math.max(from, at);
}

const SCHEME_BEFORE = /(?:https?|ftp)$/i;

function schemeBefore(text: string, at: number): string {
  if (text[at] !== ':') return '';
  return SCHEME_BEFORE.exec(text.slice(Math.max(0, at - 5), at))?.[0] ?? '';
}

/**
 * Whether a user name precedes the host after the `://` or `www.` at `at`. The beginning of a tag may be part of
 * it, because some renderers look for addresses before they look for tags.
 */
function hasUserName(text: string, at: number): boolean {
  const isScheme = text[at] === ':';
  if (isScheme && schemeBefore(text, at) === '') return false;
  const from = isScheme ? at + 3 : at;
  const authority = /^[^\s/?#]*/.exec(text.slice(from, from + MAX_TARGET_CHARS + 1))?.[0] ?? '';
  return !isQuietTarget(`http://${authority}`);
}

/** The start of an address in a form that is readable but not a link. */
function breakAddress(
  text: string,
  start: number,
): { readonly end: number; readonly text: string } {
  const scheme = /^(?:https?|ftp|mailto|xmpp):/i.exec(text.slice(start, start + 7))?.[0];
  if (scheme !== undefined) {
    const broken = scheme.startsWith('h') || scheme.startsWith('H') ? `hxxp${scheme.slice(4)}` : '';
    return { end: start + scheme.length, text: broken || `${scheme.slice(0, -1)} :` };
  }
  if (text.startsWith('//', start)) return { end: start + 2, text: '/ /' };
  HOST.lastIndex = start;
  const host = HOST.exec(text)?.[0].replace(/\.+$/, '') ?? '';
  // What follows `www.` may be no host.
  if (!host.includes('.')) return { end: start + 4, text: `${text.slice(start, start + 3)}[.]` };
  return { end: start + host.length, text: host.replaceAll('.', '[.]') };
}

/** The word around a position; `searched` moves past the last wall before it. Positions only ascend. */
function wordAround(scan: Scan, at: number): Word {
  if (scan.word === undefined || at >= scan.word.end) scan.word = readWord(scan, at);
  const { word } = scan;
  for (let wall = word.walls[word.passedWalls]; wall !== undefined && wall < at; ) {
    word.searched = Math.max(word.searched, wall + 1);
    wall = word.walls[++word.passedWalls];
  }
  return word;
}

/** White space that ends an address; a byte order mark does not. */
const BLANK = /[^\S\ufeff]/;

function readWord({ text, found }: Scan, at: number): Word {
  const least = found.at(-1)?.end ?? 0;
  let start = at;
  while (start > least && !BLANK.test(text[start - 1] ?? '')) start--;
  const length = text.slice(at).search(BLANK);
  const end = length < 0 ? text.length : at + length;
  return { end, walls: findBoundaries(text, start, end), passedWalls: 0, searched: start };
}

const OPENING_SIGNS = `([{"'`;
const CLOSING_SIGNS = `)]}"'`;

/**
 * Where a `<` ends an address for every renderer. Inside parentheses, brackets, braces and quotes it does not: one
 * renderer treats what they hold as part of the address, tags and links included.
 */
function findBoundaries(text: string, start: number, end: number): readonly number[] {
  const word = text.slice(start, end);
  const walls: number[] = [];
  if (!word.includes('<')) return walls;
  const kinds = [...OPENING_SIGNS].map((sign, kind) => {
    const closing = CLOSING_SIGNS.charAt(kind);
    return { sign, closing, last: word.lastIndexOf(closing), depth: 0 };
  });
  for (const { 0: sign, index } of word.matchAll(/[<()[\]{}"']/g)) {
    if (sign === '<') {
      if (!kinds.some(({ depth, last }) => depth > 0 && last > index)) walls.push(start + index);
      continue;
    }
    // An open quote stays open, because which one closes it depends on where the address begins.
    const opened = kinds.find((kind) => kind.sign === sign);
    const closed = kinds.find((kind) => kind.closing === sign);
    if (opened !== undefined) opened.depth++;
    else if (closed !== undefined) closed.depth = Math.max(0, closed.depth - 1);
  }
  return walls;
}

/** The start of the next address in a range. */
function nextAddress(text: string, from: number, to: number): number | undefined {
  const run = text.slice(0, to);
  let hostEnd = from;
  ADDRESS.lastIndex = from;
  for (let match = ADDRESS.exec(run); match !== null; match = ADDRESS.exec(run)) {
    if (/[:/]$|^www/i.test(match[0])) return match.index;
    // Another address may begin within what looks like a host.
    ADDRESS.lastIndex = match.index + 1;
    if (match.index < hostEnd) continue;
    const first = hostStart(text, from, match.index);
    if (!NO_HOST_BEHIND.test(text[first - 1] ?? '')) return first;
    HOST.lastIndex = first;
    hostEnd = HOST.test(text) ? HOST.lastIndex : first;
  }
  return undefined;
}

function hostStart(text: string, from: number, at: number): number {
  let first = at;
  while (first > from && HOST_UNIT.test(text[first - 1] ?? '')) first--;
  return first;
}

const CONTAINER_MARK = /[ \t>*+\-0-9.)\ufeff]/;

/** Whether only blanks and the marks of quotes, lists and notes precede `at` on its line. */
function startsLine(text: string, at: number): boolean {
  let before = at - 1;
  while (before >= 0 && CONTAINER_MARK.test(text[before] ?? '')) before--;
  const unit = text[before];
  if (unit === undefined || unit === '\n' || unit === '\r') return true;
  return unit === ':' && text[before - 1] === ']';
}
