// Makes active Markdown and HTML inert by the smallest edit that loses no character: the `<` of a tag that runs, loads,
// posts or redirects becomes `&lt;`, the `![` of an image from elsewhere becomes `!\\[`, the colon of a script link is put
// in brackets, and so are those of addresses that a drawn diagram would load. Everything else stays byte for byte:
// links, relative targets, comments, code. Tokens are scanned with an explicit stack, so nesting does not affect the
// linear time.
// Source: CommonMark 0.31 §4.7, §6.3 to §6.7; GFM §6.9; HTML §13.2.5 (tokenization).

import type { Span } from '../../text/span.js';
import { sureCommentEnd } from './comments.js';
import { findDrawnAddresses } from './drawn-fences.js';
import { createTagReading, type HtmlTag, readHtmlTag, type TagReading } from './markup.js';
import { isElsewhere, scriptColon } from './targets.js';

/** A span and its replacement. */
export type Replacement = {
  readonly kind: 'image' | 'link' | 'html' | 'script-url';
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The end of what the edit makes inert. */
  readonly reach: number;
};

/** `markdown`: code is kept. `value`: a string of structured content, whose rendering is unknown. */
export type TextFormat = 'markdown' | 'value';

/** What the markup of a text does, and how much of it a reader does not see. */
export type ActiveContent = {
  /** In order and without overlaps. */
  readonly found: readonly Replacement[];
  readonly comments: number;
  readonly hiddenElements: number;
};

const MAY_BE_ACTIVE = /<[a-z!]|!\\{0,3}\[|\](?:\(|:)|<(?:java|vb|live)script:|`{3}|~{3}|:{3}/i;
// Images begin with `![` in every renderer; behind backslashes only in one, which drops them from a link text and
// reads it again. Blank lines end paragraphs, and with them every bracket that is open.
const TOKEN = /!\\{0,3}\[|\[|\]|<|`|(?:\r\n|\r(?!\n)|\n)[ \t>]*(?=[\r\n])/g;

/** The opening of an image that is not surely closed. */
type ImageOpener = {
  readonly at: number;
  /** Brackets that were surely open when it began, its own included. */
  readonly depth: number;
  /** Brackets that may be none, met before it. */
  readonly doubtful: number;
};

/** The opening of an image behind backslashes, of which a renderer may drop one with each link around it. */
type EscapedOpener = { readonly at: number; readonly depth: number; isArmed: boolean };

type Scan = {
  readonly text: string;
  readonly code: readonly Span[];
  readonly found: Map<number, Replacement>;
  readonly tags: TagReading;
  /** Open images in the order of their depth. */
  openers: ImageOpener[];
  escaped: EscapedOpener[];
  /** Brackets that may be open, brackets that are open as they are written, and brackets so far that may be none. */
  depth: number;
  written: number;
  doubtful: number;
  /** A backtick or a tag in this paragraph may include the brackets behind it. */
  isDoubtful: boolean;
  hasBacktick: boolean;
  /** Labels of definitions that lead elsewhere; computed when an image needs them. */
  labels: ReadonlySet<string> | 'any' | undefined;
  /** The end of the last tag that was read, and of every one before. */
  tagsEnd: number;
  /** Where the search for schemes in tags has ended. */
  brokenUntil: number;
  /** The raw-text element that is open. */
  rawElement: string | undefined;
  readonly firstDefinition: number;
  comments: number;
  hiddenElements: number;
};

/** Finds all active content of a text. Linear. */
export function findActiveContent(text: string, code: readonly Span[]): ActiveContent {
  if (!MAY_BE_ACTIVE.test(text)) return NOTHING;
  const scan: Scan = {
    ...{ text, code, found: new Map(), tags: createTagReading(text) },
    firstDefinition: text.indexOf(']:'),
    ...{ openers: [], escaped: [], depth: 0, written: 0, doubtful: 0, isDoubtful: false },
    ...{ hasBacktick: false },
    ...{
      labels: undefined,
      tagsEnd: 0,
      brokenUntil: 0,
      rawElement: undefined,
      comments: 0,
      hiddenElements: 0,
    },
  };
  for (const address of findDrawnAddresses(text, code)) add(scan, 'link', address, address.end);
  let region = 0;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    while ((code[region]?.end ?? Number.POSITIVE_INFINITY) <= match.index) region++;
    const stretch = code[region];
    if (stretch !== undefined && stretch.start <= match.index) {
      TOKEN.lastIndex = stretch.end;
      continue;
    }
    // A line end that is not consumed may begin the next blank line.
    TOKEN.lastIndex = readToken(scan, match[0], match.index);
  }
  const found = [...scan.found.values()].sort((one, other) => one.start - other.start);
  return { found, comments: scan.comments, hiddenElements: scan.hiddenElements };
}

const NOTHING: ActiveContent = { found: [], comments: 0, hiddenElements: 0 };

/** Maximum number of rounds: an edit may reveal a token. */
const MAX_ROUNDS = 16;

/** Finds the code of a text, which is kept. */
type FindCode = (text: string) => readonly Span[];

/** Makes all active content inert. Returns the text, the edits made, and what is hidden in the text as it was. */
export function neutralize(text: string, findKept: FindCode): ActiveContent & { readonly text: string } {
  const first = findActiveContent(text, findKept(text));
  const all = [...first.found];
  let inert = replaceAll(text, first.found);
  for (let round = 1; round < MAX_ROUNDS && inert !== text; round++) {
    const { found } = findActiveContent(inert, findKept(inert));
    if (found.length === 0) break;
    inert = replaceAll(inert, found);
    for (const one of found) all.push(one);
  }
  return { ...first, text: inert, found: all };
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

function add({ found, text }: Scan, kind: Replacement['kind'], { start, end }: Span, reach: number): void {
  const written = text.slice(start, end);
  const replacement = kind === 'html' ? '&lt;' : kind === 'image' ? `${written}\\` : `[${written}]`;
  found.set(start, { kind, start, end, text: replacement, reach });
}

/** Reads one token and returns where to continue. */
function readToken(scan: Scan, token: string, at: number): number {
  const after = at + token.length;
  switch (token) {
    case '[':
      openBracket(scan, at);
      return after;
    case ']':
      closeBracket(scan, at);
      return after;
    case '<':
      return readTag(scan, at);
    case '`':
      scan.isDoubtful = true;
      scan.hasBacktick = true;
      return after;
    default:
      if (token.startsWith('!')) openImage(scan, token, at);
      else endParagraph(scan);
      return after;
  }
}

function endParagraph(scan: Scan): void {
  scan.openers = [];
  scan.escaped = [];
  scan.depth = 0;
  scan.written = 0;
  scan.isDoubtful = false;
  scan.hasBacktick = false;
}

function openBracket(scan: Scan, at: number): void {
  const isBackslashed = isEscaped(scan.text, at);
  scan.depth++;
  if (!isBackslashed) scan.written++;
  if (scan.isDoubtful || isBackslashed) scan.doubtful++;
}

function openImage(scan: Scan, token: string, at: number): void {
  if (token.length > 2 && scan.written > 0) {
    scan.escaped.push({ at, depth: scan.written, isArmed: false });
  }
  scan.depth++;
  if (!isEscaped(scan.text, at + token.length - 1)) scan.written++;
  if (token.length > 2) {
    scan.doubtful++;
    return;
  }
  if (isShortReference(scan, at)) add(scan, 'image', { start: at, end: at + 1 }, at + 2);
  else scan.openers.push({ at, depth: scan.depth, doubtful: scan.doubtful });
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - slashes - 1) === BACKSLASH) slashes++;
  return slashes % 2 === 1;
}

const BACKSLASH = 0x5c;

/** An image whose text is its label, unless something else that it may have behind it is read. */
const SHORT_REFERENCE = /!\[((?:\\[\s\S]|[^[\]\\]){1,999})\]/y;

function isShortReference(scan: Scan, at: number): boolean {
  SHORT_REFERENCE.lastIndex = at;
  const match = SHORT_REFERENCE.exec(scan.text);
  return match !== null && isLoadingLabel(scan, match[1] ?? '');
}

/** Reads what follows a closing bracket: a target, a reference, a definition, or something else. */
function closeBracket(scan: Scan, at: number): void {
  const { text } = scan;
  const isBackslashed = isEscaped(text, at);
  const isSure = !scan.isDoubtful && !isBackslashed;
  if (!isSure) scan.doubtful++;
  const sign = text.startsWith('\\[', at + 1) ? '[' : text[at + 1];
  if (sign === '(') readInline(scan, at, isBackslashed);
  else if (sign === '[') readReference(scan, at, isBackslashed);
  else if (sign === ':') breakScript(scan, readTarget(text, at + 2), DEFINITION_END);
  if (!isBackslashed) {
    fireEscaped(scan);
    scan.written = Math.max(0, scan.written - 1);
  }
  if (!isSure) return;
  scan.depth = Math.max(0, scan.depth - 1);
  while ((scan.openers.at(-1)?.depth ?? 0) > scan.depth) scan.openers.pop();
}

function readInline(scan: Scan, at: number, isBackslashed: boolean): void {
  const target = readTarget(scan.text, at + 2);
  const isImage = !scan.isDoubtful && !isBackslashed && scan.openers.at(-1)?.depth === scan.depth;
  // In an image a document as data neither runs nor loads.
  if (!isImage || !isData(target)) breakScript(scan, target, undefined);
  if (scan.openers.length === 0 && scan.escaped.length === 0) return;
  if (target.readings.some(isElsewhere)) closeImages(scan, target.end, isBackslashed);
}

function isData({ readings }: Target): boolean {
  return readings.every((target) => /^data:/i.test(target));
}

function readReference(scan: Scan, at: number, isBackslashed: boolean): void {
  if (scan.openers.length === 0 && scan.escaped.length === 0) return;
  const from = scan.text.indexOf('[', at) + 1;
  const label = /^(?:\\[\s\S]|[^[\]\\]){1,999}/.exec(scan.text.slice(from, from + 1000))?.[0];
  if (label !== undefined && isLoadingLabel(scan, label)) closeImages(scan, from + label.length, isBackslashed);
}

/** Breaks up every image that may end here, and notes the escaped ones that a renderer may read as such. */
function closeImages(scan: Scan, reach: number, isBackslashed: boolean): void {
  for (const one of scan.escaped) one.isArmed ||= isBackslashed || scan.hasBacktick || one.depth > 1;
  if (isBackslashed && !scan.isDoubtful) return;
  const { openers } = scan;
  while (openers.length > 0 && openers.at(-1)?.depth === scan.depth) breakImage(scan, openers.pop(), reach);
  if ((openers[0]?.doubtful ?? scan.doubtful) === scan.doubtful) return;
  const sure = openers.findIndex(({ doubtful }) => doubtful === scan.doubtful);
  const ended = openers.splice(0, sure < 0 ? openers.length : sure);
  for (const one of ended) breakImage(scan, one, reach);
}

function breakImage(scan: Scan, opener: { readonly at: number } | undefined, reach: number): void {
  if (opener !== undefined) add(scan, 'image', { start: opener.at, end: opener.at + 1 }, reach);
}

/** At the end of a link: an image in its text may be read without its backslash. */
function fireEscaped(scan: Scan): void {
  if (scan.escaped.length === 0) return;
  for (const one of scan.escaped) if (one.isArmed) breakImage(scan, one, one.at + 2);
  scan.escaped = scan.escaped.filter(({ isArmed }) => !isArmed);
}

type Target = {
  /** The offset of the target. */
  readonly start: number;
  /** The end of the target as most renderers read it. */
  readonly end: number;
  /** The target up to a control or blank, and up to a blank or line end. */
  readonly readings: readonly string[];
};

const TARGET_START = /[\s>]*/y;
/** No renderer needs more of a target to know where it leads. */
const MAX_TARGET_CHARS = 2048;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a target ends at every control
const TARGET = /<((?:\\.|[^>\r\n])*)>?|([^\x00-\x20\x7f]*)/y;
const TO_BLANK = /[^ \r\n\\]*(?:\\(?:\r\n|[\r\n])?[^ \r\n\\]*)*/y;

/** The target that begins here or after blanks, line ends and quote marks, without its title. */
function readTarget(text: string, from: number): Target {
  TARGET_START.lastIndex = from;
  TARGET_START.test(text);
  const at = TARGET_START.lastIndex;
  const slice = text.slice(at, at + MAX_TARGET_CHARS + 1);
  TARGET.lastIndex = 0;
  const match = TARGET.exec(slice);
  const isBracketed = match?.[1] !== undefined;
  const target = match?.[1] ?? match?.[2] ?? '';
  const start = isBracketed ? at + 1 : at;
  const end = at + (match?.[0].length ?? 0);
  const behind = slice[match?.[0].length ?? 0] ?? ' ';
  // Some renderers end a target at a tab, others drop the tab; a line end behind a backslash does not count.
  if (isBracketed || behind === ' ' || (/[\r\n]/.test(behind) && !target.endsWith('\\')))
    return { start, end, readings: [target] };
  TO_BLANK.lastIndex = 0;
  return { start, end, readings: [target, TO_BLANK.exec(slice)?.[0] ?? ''] };
}

/** Puts the colon of a script link in brackets. `behind`: what must follow the target for it to be a link. */
function breakScript(scan: Scan, { start, end, readings }: Target, behind: RegExp | undefined): void {
  if (behind !== undefined && !behind.test(scan.text.slice(end, end + 80))) return;
  const [target = '', toBlank] = readings;
  const colon = scriptColon(target) ?? (toBlank === undefined ? undefined : scriptColon(toBlank));
  if (colon === undefined) return;
  add(scan, 'link', { start: start + colon.start, end: start + colon.end }, end);
}

/** Only a title may follow the target of a definition. */
const DEFINITION_END = /^>?[ \t]*(?:$|[\r\n"'(])/;

/** Whether a label names a definition that leads elsewhere. */
function isLoadingLabel(scan: Scan, label: string): boolean {
  scan.labels ??= loadingLabels(scan);
  return scan.labels === 'any' || (scan.labels.size > 0 && scan.labels.has(labelKey(label)));
}

// Renderers differ about case, blanks and escapes in labels; letters and digits are what counts here.
function labelKey(label: string): string {
  return label
    .normalize('NFKC')
    .toLowerCase()
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
}

const MAX_LABEL_CHARS = 1000;
/** A label may hold escaped brackets. */
const MAX_LABEL_BRACKETS = 3;
/** How many times the labels of a text may be read over. Beyond that, any label counts as one that leads elsewhere. */
const LABEL_READS = 8;

function loadingLabels({ text, code }: Scan): ReadonlySet<string> | 'any' {
  const labels = new Set<string>();
  let region = 0;
  let budget = LABEL_READS * (text.length + MAX_LABEL_CHARS);
  for (const { index } of text.matchAll(/\]:/g)) {
    while ((code[region]?.end ?? Number.POSITIVE_INFINITY) <= index) region++;
    const isCode = (code[region]?.start ?? text.length) <= index;
    if (isCode || !readTarget(text, index + 2).readings.some(isElsewhere)) continue;
    budget -= addLabels(text.slice(Math.max(0, index - MAX_LABEL_CHARS), index), labels);
    if (budget < 0) return 'any';
  }
  return labels;
}

/** Adds the labels that may end at the end of this text. Returns how many characters were read. */
function addLabels(before: string, labels: Set<string>): number {
  let read = 0;
  let open = before.lastIndexOf('[');
  for (let brackets = 0; open >= 0 && brackets < MAX_LABEL_BRACKETS; brackets++) {
    labels.add(labelKey(before.slice(open + 1)));
    read += before.length - open;
    open = open === 0 ? -1 : before.lastIndexOf('[', open - 1);
  }
  return read;
}

const RAW_ELEMENTS: ReadonlySet<string> = new Set(
  'script style textarea title xmp iframe noembed noframes noscript plaintext'.split(' '),
);
// biome-ignore lint/suspicious/noControlCharactersInRegex: an autolink ends at every control
const AUTOLINK = /<([a-z][a-z0-9+.-]{1,31}:[^\x00-\x20<>]{0,2048})>/iy;
const CLOSING_TAG = /<\/([a-z]+)/iy;

/** Breaks up autolinks to scripts and active tags, and skips the comments that every renderer takes for such. */
function readTag(scan: Scan, at: number): number {
  const { text } = scan;
  if (text.startsWith('<!--', at)) {
    scan.comments++;
    const isOutside = at >= scan.tagsEnd && scan.rawElement === undefined;
    return (isOutside ? sureCommentEnd(text, at, scan.firstDefinition) : undefined) ?? at + 4;
  }
  AUTOLINK.lastIndex = at;
  const target = AUTOLINK.exec(text)?.[1];
  if (target !== undefined) {
    breakScript(scan, { start: at + 1, end: at + 1 + target.length, readings: [target] }, undefined);
    return at + 1;
  }
  CLOSING_TAG.lastIndex = at;
  const closed = CLOSING_TAG.exec(text)?.[1];
  if (closed !== undefined && closed.toLowerCase() === scan.rawElement) scan.rawElement = undefined;
  const tag = readHtmlTag(at, scan.tags);
  if (tag !== undefined) readElement(scan, tag, at);
  if (tag !== undefined || /[/!?]/.test(text[at + 1] ?? '')) scan.isDoubtful = true;
  return at + 1;
}

function readElement(scan: Scan, tag: HtmlTag, at: number): void {
  const { text } = scan;
  const end = tag.end ?? text.length;
  scan.tagsEnd = Math.max(scan.tagsEnd, end);
  if (tag.isHidden) scan.hiddenElements++;
  if (RAW_ELEMENTS.has(tag.element)) scan.rawElement ??= tag.element;
  if (!tag.isActive) return;
  add(scan, 'html', { start: at, end: at + 1 }, end);
  if (!tag.hasScriptLink) return;
  // The scheme is broken as well, so that nobody copies and opens it.
  SCHEME.lastIndex = Math.max(at, scan.brokenUntil);
  for (let match = SCHEME.exec(text); match !== null && match.index < end; match = SCHEME.exec(text)) {
    add(scan, 'link', { start: SCHEME.lastIndex - 1, end: SCHEME.lastIndex }, end);
  }
  scan.brokenUntil = end;
}

const SCHEME = /(?:java|vb|live)script:|data:(?=\s*(?:text\/html|image\/svg|[\w.+/-]*xml))/gi;
