// Makes active Markdown and HTML inert, so that the reader still sees text. The rule: images, comments and
// HTML that runs, loads or frames something are removed; links stay while their target is quiet (plain
// http, https, mailto, tel or relative, without user name or long query: targets.ts), else the text stays
// and the target goes; script URLs lose their scheme. Code spans and fenced code are kept. A linear scan of
// tokens with an explicit stack, so nesting costs nothing.
// Source: CommonMark 0.31 §6.3 to §6.7; GFM §6.9; HTML §13.2.5 (tokenization).

import {
  defangTarget,
  findHtml,
  isQuietTarget,
  MAX_TARGET_CHARS,
  startTags,
  type TagReading,
} from './html.js';

/** A stretch to be replaced. */
export type Replacement = {
  readonly kind: 'image' | 'link' | 'html' | 'script-url';
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The address of a bare link: text to those who do not make links of addresses. */
  readonly isBare?: true;
};

/** A stretch of code, which is kept. Stretches come in order and do not overlap. */
export type Kept = { readonly start: number; readonly end: number };

/** `markdown`: code is kept. `value`: a string of structured content, of which nobody knows the rendering. */
export type Reading = 'markdown' | 'value';

const MAY_BE_ACTIVE = /[\]<]|!\[|script:|data:|[?#;]\S{60}|(?::\/\/|www\.)[^\s/]*[@&]/i;
// No backslash hides a token: not every renderer of every place takes it for an escape.
// But behind `!`, where one renderer drops it from the text of a link and reads that once more.
const TOKEN =
  /!\\{0,3}\[|\[|\]|<|(?:java|vb|live)script:(?=[^\s])|data:(?=\s{0,4}(?:text\/html|image\/svg|application\/(?:xhtml|javascript|xml)|text\/(?:xml|javascript)))|[?#](?=[^\s<]{65})|&(?:#|quest;|num;)(?=[^\s<]{65})|(?::\/\/|www\.)(?=[^\s/?#<]*[@&])/gi;

/** `image`: where among what was found the opening of an image stands; absent where it opens none. */
type Opener = { readonly at: number; readonly image: number | undefined };

type Scan = {
  readonly text: string;
  readonly reading: Reading;
  readonly found: Replacement[];
  readonly openers: Opener[];
  readonly tags: TagReading;
  /** No comment ends behind here: said once, so that no search is made twice. */
  hasNoCommentEnd: boolean;
  /** The last bracket that no other has followed, if it begins its line: a definition may begin there. */
  label: number | undefined;
  /** Up to here addresses are targets, judged already. */
  targetsEnd: number;
  /** Where the text of a link began last: a link around another one is none. */
  lastText: number;
  /** The last word that was looked for as the target of a definition. */
  wordStart: number;
  wordEnd: number;
  /** The run around the last place that asked for one. */
  address: Address | undefined;
};

/** A run of characters in which addresses may stand, and up to where they were looked for. */
type Address = { readonly end: number; searched: number };

/** Parentheses in a target that nest deeper make it no target. */
const MAX_TARGET_NESTING = 8;

/** Everything active in a text, in order, not overlapping. Linear. */
export function findActiveContent(
  text: string,
  reading: Reading,
  code: readonly Kept[],
): Replacement[] {
  if (!MAY_BE_ACTIVE.test(text)) return [];
  const scan: Scan = {
    text,
    reading,
    found: [],
    openers: [],
    tags: startTags(text),
    hasNoCommentEnd: false,
    label: undefined,
    targetsEnd: 0,
    lastText: -1,
    wordStart: 0,
    wordEnd: 0,
    address: undefined,
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

/** What one token hides from the next can come to light when it is gone: so many rounds are made. */
const MAX_ROUNDS = 16;

/** Where a text shows code that is kept. */
export type FindKept = (text: string) => readonly Kept[];

/** The text with everything active replaced, and what was. */
export function neutralize(
  text: string,
  reading: Reading,
  findKept: FindKept,
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

/** Reads one token and answers where to go on. */
function readToken(scan: Scan, token: string, at: number): number {
  const { text } = scan;
  const after = at + token.length;
  const sign = token.startsWith('!') ? '![' : token.toLowerCase();
  switch (sign) {
    case '![':
      scan.openers.push({ at, image: scan.found.length });
      // Whatever follows, this is no image any more; closeBracket says more where it was one.
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

/** What stands behind a closing bracket: a target, a reference, a definition, or nothing. */
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
    // A target without an end that we can see is no target to anybody behind us.
    scan.found.push({ kind: 'link', start: at, end: at + 2, text: '] (' });
    return at + 2;
  }
  // A tab ends a target to some and is dropped by others.
  if (isQuietTarget(target.text) && isQuietTarget(target.toBlank)) {
    // Without a scheme it is another target where it is no target but an address by itself.
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

/** A target and its title, as all renderers read them. */
const ONE_TARGET =
  /^(?:<[^<>\\\r\n]*>|(?:[^\s()<>\\]|\([^\s()<>\\]*\))*)(?:[ \t]+(?:"[^"\\\r\n]*"|'[^'\\\r\n]*'))?\)$/;

/** Whether what stands between two brackets is the text of a link to all renderers: in one cell of one line. */
function isLinkText(text: string, from: number, to: number): boolean {
  return text[from - 1] !== '\\' && !/[\r\n|`]/.test(text.slice(from, to));
}

const ANOTHER_ADDRESS = /.(?:(?:https?|ftp):\/\/|(?<!^https?:\/\/)www\.)/is;

/** A target that was judged as a whole. What begins within it is one more where the whole is no link after all. */
function trustTarget(scan: Scan, start: number, end: number): void {
  if (end <= scan.targetsEnd || ANOTHER_ADDRESS.test(scan.text.slice(start, end))) return;
  scan.targetsEnd = end;
}

/** Says at its opening that an image was removed. Its place is known: a search would be made once an image. */
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
  /** Up to a blank or line end that is not escaped, controls included. */
  readonly toBlank: string;
  /** Behind the closing parenthesis. */
  readonly end: number;
};

/** `(target "title")` from behind the parenthesis, with the parentheses that a target may hold. */
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

/** The target that begins here or behind blanks, line ends and the marks of a quote, without its title. */
function targetAt(text: string, from: number): string {
  TARGET_START.lastIndex = from;
  TARGET_START.test(text);
  const slice = text.slice(TARGET_START.lastIndex, TARGET_START.lastIndex + MAX_TARGET_CHARS + 1);
  TARGET.lastIndex = 0;
  const match = TARGET.exec(slice);
  return match?.[1] ?? match?.[2] ?? '';
}

/** `[label]: target`, with the target on this line or the next. A quiet one stays. */
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
  const behind = text[end] === '>' ? end + 1 : end;
  scan.found.push({ kind: 'link', start: at, end: behind, text: removedLink(target) });
  return behind;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: a target ends at every control
const WORD = /[^\x00-\x20\x7f]*/y;

/** Where the word ends in which a place lies: looked for once a word. */
function wordEnd(scan: Scan, at: number): number {
  if (at >= scan.wordEnd || at < scan.wordStart) {
    scan.wordStart = at;
    WORD.lastIndex = at;
    WORD.test(scan.text);
    scan.wordEnd = WORD.lastIndex;
  }
  return scan.wordEnd;
}

/** Behind the target of a definition stands nothing but a title; what else there is makes it none. */
const DEFINITION_END = /^>?[ \t]*(?:$|[\r\n"'(])/;

/** Autolinks with a target that is not quiet, comments, and tags that do something. */
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
      trustTarget(scan, at + 1, end - 1);
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
    scan.targetsEnd = Math.max(scan.targetsEnd, quietEnd);
  }
  return at + 1;
}

/** A tag to every renderer, on one line and in one cell, so that an address in it is none by itself. */
const PLAIN_TAG =
  /^<[a-z][a-z0-9-]*(?:[ \t]+[a-z_:][\w.:-]*(?:=(?:"[^"|\r\n]*"|'[^'|\r\n]*'))?)*[ \t]*\/?>$/i;

/** A comment with what it hides; of one without an end, the opening only. */
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

/** The beginnings of what renderers make links of by themselves. */
const ADDRESS =
  /(?:https?|ftp):\/\/|(?<![:/])\/\/|(?:mailto|xmpp):|www\.|[\p{L}\p{N}]\.\p{L}{2}/giu;
const HOST = /[\p{L}\p{N}.-]+/uy;
const HOST_UNIT = /[\p{L}\p{N}.-]/u;
/** Behind these a host without a scheme is part of something else. */
const NO_HOST_BEHIND = /[:/\\@]/;

/**
 * An address by itself, which some renderers make a link of, at what makes it one that may not stay: a user
 * name or a long query. All of it stays to be read, but its beginning is written so that nothing follows it.
 */
function readAddress(scan: Scan, token: string, at: number): number {
  const { found } = scan;
  const after = at + token.length;
  if (scan.reading === 'value' || at < scan.targetsEnd) return after;
  if (scan.address === undefined || at >= scan.address.end) scan.address = addressAround(scan, at);
  if (token === '://' || /^www/i.test(token)) breakUserName(scan, at, scan.address.end);
  else breakAddresses(scan, scan.address, at);
  return Math.max(after, found.at(-1)?.end ?? 0);
}

function breakUserName({ text, found }: Scan, at: number, end: number): void {
  const start = at - schemeBefore(text, at).length;
  if (start < (found.at(-1)?.end ?? 0) || !hasUserName(text, at, end)) return;
  found.push({ kind: 'link', start, ...breakAddress(text, start), isBare: true });
}

/** Any of the addresses that run into the query may be the one that becomes a link. */
function breakAddresses({ text, found }: Scan, address: Address, at: number): void {
  let from = Math.max(address.searched, found.at(-1)?.end ?? 0);
  for (let one = nextAddress(text, from, at); one !== undefined; ) {
    const broken = breakAddress(text, one);
    found.push({ kind: 'link', start: one, ...broken, isBare: true });
    from = Math.max(one + 1, broken.end);
    one = nextAddress(text, from, at);
  }
  address.searched = at;
}

const SCHEME_BEFORE = /(?:https?|ftp)$/i;

function schemeBefore(text: string, at: number): string {
  if (text[at] !== ':') return '';
  return SCHEME_BEFORE.exec(text.slice(Math.max(0, at - 5), at))?.[0] ?? '';
}

/** Whether a user name stands before the host behind the `://` or `www.` at `at`. */
function hasUserName(text: string, at: number, end: number): boolean {
  const isScheme = text[at] === ':';
  if (isScheme && schemeBefore(text, at) === '') return false;
  const authority = /^[^/?#]*/.exec(text.slice(isScheme ? at + 3 : at, end))?.[0] ?? '';
  return !isQuietTarget(`http://${authority}`);
}

/** The beginning of an address as it can be read and not be followed. */
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
  return { end: start + host.length, text: host.replaceAll('.', '[.]') };
}

/** The run of characters around a place, as far as an address may go. */
function addressAround({ text, found, targetsEnd }: Scan, at: number): Address {
  const least = Math.max(found.at(-1)?.end ?? 0, targetsEnd);
  let searched = at;
  while (searched > least && !/[\s<]/.test(text[searched - 1] ?? '')) searched--;
  const rest = text.slice(at).search(/[\s<]/);
  return { searched, end: rest < 0 ? text.length : at + rest };
}

/** Where the next address begins, from here up to there. */
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

/** True where nothing but blanks and the marks of quotes, lists and notes stands before `at` on its line. */
function startsLine(text: string, at: number): boolean {
  let before = at - 1;
  while (before >= 0 && CONTAINER_MARK.test(text[before] ?? '')) before--;
  const unit = text[before];
  if (unit === undefined || unit === '\n' || unit === '\r') return true;
  return unit === ':' && text[before - 1] === ']';
}
