// Makes active Markdown and HTML inert, so that the reader still sees text. The rule: images, comments and
// HTML that runs, loads or frames something are removed; links stay while their target is quiet (plain
// http, https, mailto, tel or relative, without user name or long query: targets.ts), else the text stays
// and the target goes; script URLs lose their scheme. Code spans and fenced code are kept. A linear scan of
// tokens with an explicit stack, so nesting costs nothing.
// Source: CommonMark 0.31 §6.3 to §6.7; GFM §6.9; HTML §13.2.5 (tokenization).

import { findCode } from './code-regions.js';
import { findHtml, startTags, type TagReading } from './html.js';
import { defangTarget, isQuietTarget, MAX_TARGET_CHARS } from './targets.js';

/** A stretch to be replaced. */
export type Replacement = {
  readonly kind: 'image' | 'link' | 'html' | 'script-url';
  readonly start: number;
  readonly end: number;
  readonly text: string;
};

/** `markdown`: code is kept. `value`: a string of structured content, of which nobody knows the rendering. */
export type Reading = 'markdown' | 'value';

const MAY_BE_ACTIVE = /[\]<]|!\[|script:|data:/i;
const TOKEN =
  /\\[![\]\\]|!\[|\[|\]|<|(?:java|vb|live)script:(?=[^\s])|data:(?=\s{0,4}(?:text\/html|image\/svg|application\/(?:xhtml|javascript|xml)|text\/(?:xml|javascript)))/gi;

/** `image`: where among what was found the opening of an image stands; absent where it opens none. */
type Opener = { readonly at: number; readonly image: number | undefined };

type Scan = {
  readonly text: string;
  readonly found: Replacement[];
  readonly openers: Opener[];
  readonly tags: TagReading;
  /** No comment ends behind here: said once, so that no search is made twice. */
  hasNoCommentEnd: boolean;
};

/** Parentheses in a target that nest deeper make it no target. */
const MAX_TARGET_NESTING = 8;

/** Everything active in a text, in order, not overlapping. Linear. */
export function findActiveContent(text: string, reading: Reading = 'markdown'): Replacement[] {
  if (!MAY_BE_ACTIVE.test(text)) return [];
  const code = reading === 'markdown' ? findCode(text) : [];
  const scan: Scan = {
    text,
    found: [],
    openers: [],
    tags: startTags(text),
    hasNoCommentEnd: false,
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

/** The text with everything active replaced, and what was. */
export function neutralize(
  text: string,
  reading: Reading = 'markdown',
): { readonly text: string; readonly found: readonly Replacement[] } {
  const all: Replacement[] = [];
  let inert = text;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = findActiveContent(inert, reading);
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
  const after = at + token.length;
  switch (token) {
    case '![':
      scan.openers.push({ at, image: scan.found.length });
      // Whatever follows, this is no image any more; closeBracket says more where it was one.
      scan.found.push({ kind: 'image', start: at, end: after, text: '! [' });
      return after;
    case '[':
      scan.openers.push({ at, image: undefined });
      return after;
    case ']':
      return closeBracket(scan, at);
    case '<':
      return readTag(scan, at);
    default:
      if (!token.startsWith('\\')) {
        scan.found.push({
          kind: 'script-url',
          start: at,
          end: after,
          text: '(removed script URL) ',
        });
      }
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
  if (sign === ':' && opener !== undefined && startsLine(text, opener.at)) {
    return readDefinition(scan, at);
  }
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
  if (isQuietTarget(target.text)) return target.scanFrom;
  scan.found.push({ kind: 'link', start: at, end: target.end, text: removedLink(target.text) });
  return target.end;
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
  /** Behind the closing parenthesis, and behind the opening one: a kept target is read on. */
  readonly end: number;
  readonly scanFrom: number;
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
      const inner = text.slice(from, at).trim();
      return { text: targetOf(inner), end: at + 1, scanFrom: from };
    }
  }
  return undefined;
}

/** The target without angle brackets and title. */
function targetOf(inner: string): string {
  if (inner.startsWith('<')) return inner.slice(1).split('>', 1)[0] ?? '';
  return inner.replace(/\s+["'(].*$/s, '');
}

/** `[label]: target`, with the target on this line or the next. A quiet one stays. */
function readDefinition(scan: Scan, at: number): number {
  const { text } = scan;
  const match = /^[ \t]{0,64}(?:\r?\n[ \t]{0,64})?<?([^\s>]{1,2048})>?/.exec(
    text.slice(at + 2, at + 2 + 2200),
  );
  const target = match?.[1];
  if (target === undefined || match === null || isQuietTarget(target)) return at + 1;
  if (!/^[a-z][a-z0-9+.&#;%-]{1,60}:|[?@]/i.test(target)) return at + 1;
  const end = at + 2 + match[0].length;
  scan.found.push({ kind: 'link', start: at, end, text: removedLink(target) });
  return end;
}

/** Autolinks with a target that is not quiet, comments, and tags that do something. */
function readTag(scan: Scan, at: number): number {
  const { text } = scan;
  const auto = /^<([a-z][a-z0-9+.-]{1,31}:[^\s<>]{0,2048})>/i.exec(text.slice(at, at + 2100))?.[1];
  if (auto !== undefined) {
    const end = at + auto.length + 2;
    if (isQuietTarget(auto)) return end;
    const defanged = defangTarget(auto);
    const shown = defanged === '' ? '(removed link)' : `(removed link ${defanged})`;
    scan.found.push({ kind: 'link', start: at, end, text: shown });
    return end;
  }
  if (text.startsWith('<!--', at)) return removeComment(scan, at);
  const html = findHtml(text, at, scan.tags);
  if (html === undefined) return at + 1;
  scan.found.push({ kind: 'html', start: at, end: html.end, text: html.shown });
  return html.end;
}

/** A comment with what it hides; of one without an end, the opening only. */
function removeComment(scan: Scan, at: number): number {
  const close = scan.hasNoCommentEnd ? -1 : scan.text.indexOf('-->', at + 4);
  if (close < 0) scan.hasNoCommentEnd = true;
  const end = close < 0 ? at + 4 : close + 3;
  scan.found.push({ kind: 'html', start: at, end, text: '(removed comment)' });
  return end;
}

/** True where nothing but blanks and the marks of quotes and lists stands before `at` on its line. */
function startsLine(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 64), at);
  return /(?:^|\n)[ \t>*+\d.)-]*$/.test(before);
}
