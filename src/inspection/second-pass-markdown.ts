// Finds Markdown code and images for the second pass. What renderers may disagree about is not code.
// INVARIANT: shares no Markdown parsing with the first pass, so that both cannot make the same mistake.
// Source: CommonMark 0.31 §4.4 to §4.7, §6.1, §6.4; GFM §4.10, §6.9.

/** A span that every renderer treats as code. */
type Stretch = { readonly start: number; readonly end: number };

/** A line of the text. `nextStart` is the offset at which the next line begins. */
type Row = { readonly text: string; readonly start: number; readonly nextStart: number };

function rowsOf(text: string): readonly Row[] {
  const rows: Row[] = [];
  let start = 0;
  for (const { 0: end, index } of text.matchAll(/\r\n|\r|\n/g)) {
    const nextStart = index + end.length;
    rows.push({ text: text.slice(start, index), start, nextStart });
    start = nextStart;
  }
  rows.push({ text: text.slice(start), start, nextStart: text.length });
  return rows;
}

/** Declarations, processing instructions, comments, raw-text elements: what follows may not be Markdown. */
const RAW_HTML = /<(?:[!?]|(?:script|style|pre|textarea)\b)/i;
/** Lines are classified by this many leading characters. */
const HEAD_CHARS = 256;

/** Progress of reading the lines. */
type Progress = {
  readonly rows: readonly Row[];
  readonly sure: Stretch[];
  /** False while the paragraph has an unclosed construct; until its blank line nothing in it counts as code. */
  isCalm: boolean;
  followsDefinition: boolean;
};

/** The code spans and blocks of a Markdown text that every renderer agrees on. Linear. */
export function findSureCode(text: string): Stretch[] {
  const sure: Stretch[] = [];
  if (!/`|~~~/.test(text)) return sure;
  const rows = rowsOf(text);
  const lastDefinition = text.lastIndexOf(']:');
  const progress: Progress = { rows, sure, isCalm: true, followsDefinition: false };
  let at = 0;
  for (let row = rows[0]; row !== undefined; row = rows[at]) {
    const kind = kindOf(row.text, row.start <= lastDefinition);
    const next =
      kind === 'fence' ? readFence(progress, at) : readRow(progress, row, kind) ? at + 1 : 0;
    if (next === 0) break;
    at = next;
  }
  return sure;
}

/** Adds a fenced block. Returns the index of the line after it, or 0 where nothing after it is certain. */
function readFence(progress: Progress, at: number): number {
  const { rows, sure, isCalm, followsDefinition } = progress;
  const opening = rows[at];
  // A line that may be the title of a link definition is not a fence.
  if (!isCalm || opening === undefined) return 0;
  if (followsDefinition && MAY_BE_TITLE.test(opening.text)) return 0;
  progress.followsDefinition = false;
  const { last, isClosed } = lastOfFence(rows, at);
  const closing = rows[Math.min(last, rows.length - 1)];
  if (closing === undefined) return 0;
  const reachesEnd = isClosed || last >= rows.length;
  // The row that opens it is read as prose: it is no fence where something else follows in that row.
  const end = closing.start + (reachesEnd ? closing.text.length : 0);
  if (end > opening.nextStart) sure.push({ start: opening.nextStart, end });
  return isClosed ? last + 1 : 0;
}

const MAY_BE_TITLE = /^\P{L}*["'(]/u;

/** Reads a line that opens no fence. Returns false where nothing after it is certain. */
function readRow(progress: Progress, row: Row, kind: Kind): boolean {
  const { sure, isCalm, followsDefinition } = progress;
  if (kind === 'doubt' || (followsDefinition && MAY_BE_TITLE.test(row.text))) return false;
  progress.followsDefinition = kind === 'definition';
  if (kind === 'blank') progress.isCalm = true;
  else if (isCalm) progress.isCalm = kind === 'text' ? addSpans(row, sure) : !mayOpen(row.text);
  return progress.isCalm || !RAW_HTML.test(withoutCode(row, sure));
}

/** Whether something may go on in the next line where a definition is prose after all. */
function mayOpen(definition: string): boolean {
  return /[`<]/.test(definition) || hasOpenMark(definition);
}

/** A line without the code that was just found in it. */
function withoutCode(row: Row, sure: readonly Stretch[]): string {
  const last = sure.at(-1);
  return last === undefined || last.end <= row.start
    ? row.text
    : row.text.slice(last.end - row.start);
}

type Kind = 'blank' | 'fence' | 'definition' | 'text' | 'doubt';

function kindOf(row: string, mayDefine: boolean): Kind {
  if (/^[ \t]*$/.test(row)) return 'blank';
  const head = row.slice(0, HEAD_CHARS);
  const marks = /^(?:\P{L}*?\[\^[^[\]]*\]:)?[^\p{L}`~]*/u.exec(head)?.[0] ?? '';
  if (marks.length === HEAD_CHARS && row.length > HEAD_CHARS) return 'doubt';
  const rest = row.slice(marks.length);
  const run = /^(?:`{3,}|~{3,})/.exec(rest)?.[0];
  if (run !== undefined) return marks === '' ? kindOfRun(run, rest.slice(run.length)) : 'doubt';
  return mayDefine ? definitionOf(row) : 'text';
}

/** A run in the first column opens a fence, or begins inline code where another run follows in its line. */
function kindOfRun(run: string, info: string): Kind {
  if (run.startsWith('~') || !info.includes('`')) return 'fence';
  return /^[^`]+`/.test(info) ? 'text' : 'doubt';
}

/** Whether a line is a link reference definition; `doubt` where the definition may continue in the next line. */
function definitionOf(row: string): Kind {
  const bracket = /^[^A-Za-z[\]`]*\[/.exec(row)?.[0].length;
  if (bracket === undefined) return 'text';
  const close = row.indexOf(']', bracket);
  if (close < 0) return 'doubt';
  const label = row.slice(bracket, close);
  if (row[close + 1] !== ':' || /^$|[[\\]/.test(label))
    return row.includes(']:') ? 'doubt' : 'text';
  return targetOf(row.slice(close + 2));
}

/** Classifies the destination and title after a label and its colon. */
function targetOf(rest: string): Kind {
  const target = /^[ \t]+([^\s"'(<\\][^\s\\]*)(?![^ \t])/.exec(rest);
  if (target === null) return 'doubt';
  const title = rest.slice(target[0].length).trim();
  if (title === '') return 'definition';
  if (!/^["'(]/.test(title)) return 'text';
  return /^(?:"[^"\\]*"|'[^'\\]*')$/.test(title) ? 'definition' : 'doubt';
}

function lengthOf(run: RegExp, row: string): number {
  return run.exec(row)?.[0].length ?? 0;
}

/** The line that closes a fence. `isClosed` is false where renderers differ about it. */
function lastOfFence(
  rows: readonly Row[],
  opened: number,
): { readonly last: number; readonly isClosed: boolean } {
  const fence = rows[opened]?.text ?? '';
  const run = fence.startsWith('`') ? /^`+/ : /^~+/;
  const least = lengthOf(run, fence);
  for (let at = opened + 1; at < rows.length; at++) {
    const row = rows[at]?.text ?? '';
    const inner = row.replace(/^[\s\p{C}]+/u, '');
    const length = lengthOf(run, inner);
    if (length < least) continue;
    const tail = inner.slice(length);
    if (/^ *$/.test(tail) && inner.length === row.length) return { last: at, isClosed: true };
    if (!/[\p{L}\p{N}]/u.test(tail)) return { last: at, isClosed: false };
  }
  return { last: rows.length, isClosed: true };
}

const MAX_TICKS = 32;

/** Adds the code spans of a line whose paragraph has nothing open. Returns whether nothing is open after it. */
function addSpans(row: Row, sure: Stretch[]): boolean {
  // The pieces with odd indexes are the runs of backticks.
  const pieces = row.text.split(/(`+)/);
  if (pieces.length > 1 && row.text.includes('|')) return false;
  let prose = pieces[0] ?? '';
  let at = row.start + prose.length;
  for (let index = 1; index < pieces.length; ) {
    const ticks = pieces[index] ?? '';
    const close = pieces.indexOf(ticks, index + 1);
    if (close < 0 || ticks.length > MAX_TICKS || mayEnclose(prose)) return false;
    const code = pieces.slice(index, close + 1).join('');
    if (endsLabel(code)) return false;
    sure.push({ start: at, end: at + code.length });
    prose = pieces[close + 1] ?? '';
    at += code.length + prose.length;
    index = close + 2;
  }
  return !hasOpenMark(prose);
}

/** Whether the code closes more labels than it opens, one of them before a target: it may be read as a link. */
function endsLabel(code: string): boolean {
  if (!/\][([]/.test(code)) return false;
  let open = 0;
  for (let at = 0; at < code.length; at++) {
    if (code[at] === '[') open++;
    else if (code[at] === ']' && --open < 0) return true;
  }
  return false;
}

/** Whether a tag, a link destination or a label begins here that may not be closed. */
function hasOpenMark(prose: string): boolean {
  if (/<[a-z/!?]/i.test(prose)) return true;
  for (const { 0: mark, index } of prose.matchAll(/\][([]/g)) {
    const end = prose.indexOf(mark === '](' ? ')' : ']', index + 2);
    if (end < 0) return true;
    const inner = prose.slice(index + 2, end);
    if (/[[\\]/.test(inner) || (mark === '](' && !/^(?:<[^<>"']*>|[^\s()<>"']*)$/.test(inner))) {
      return true;
    }
  }
  return false;
}

/** Whether an unclosed construct, an address, an autolink or an escape before a backtick may include it. */
function mayEnclose(prose: string): boolean {
  const word = prose.slice(1 + Math.max(prose.lastIndexOf(' '), prose.lastIndexOf('\t')));
  return hasOpenMark(prose) || word.endsWith('\\') || /[<@]|:\/\/|www\./i.test(word);
}

/** Whether an image that clients fetch stands outside code. Linear. */
export function hasImage(text: string, code: readonly Stretch[]): boolean {
  const isDefining = text.includes(']:');
  const closing = createFinder(text, /\][([]/g);
  const blank = createFinder(text, /(?:\r\n?|\n)[ \t>]*[\r\n]/g);
  for (const { index } of matchesOutside(text, /!\\{0,3}\[/g, code)) {
    if (isDefining || closing(index) < blank(index)) return true;
  }
  return false;
}

const LOADING_TAG =
  /<(?:[a-z]{1,16}:)?(?:script|style|iframe|frame|img|image|picture|source|svg|math|object|embed|applet|audio|video|track|link|meta|base|form|input)(?=[\t\n\f\r />]|$)/gi;

const MAX_ADDRESS_CHARS = 72;

// Tags and links whose addresses are no bare ones. Nothing that began before them may end within them.
const SURE_TAG =
  /(?<!\\)<[a-z][a-z\d-]*(?:[ \t]+[a-z_:][\w:.-]*(?:=(?:"[^"<>|`)\]\r\n]*"|'[^'<>|`)\]\r\n]*'))?)*[ \t]*\/?>/gi;
const SURE_AUTOLINK = /(?<!\\)<[a-z][a-z\d+.-]+:(?:\/\/)?(?:(?!\/\/)[^\s<>])*>/gi;
const SURE_LINK = /(?<!\\)\[[^[\]|`>)\r\n]*\]\((?:<[^<>\s]*>|[^\s()<>]*)\)/g;

/**
 * Whether a bare address outside code names a user or carries a long query. Addresses in tags and link
 * destinations are not checked here. Continues past `<` once a bracket or a quote is open. Linear.
 */
export function hasLeakingAddress(text: string, code: readonly Stretch[]): boolean {
  if (!/:\/\/|www\.|\/\//i.test(text)) return false;
  const prose = withoutStretches(text, code)
    .replace(SURE_TAG, '<')
    .replace(SURE_AUTOLINK, '<')
    .replace(SURE_LINK, '[]()');
  if (/(?:https?|ftp):\/\/[^\s/?#@]{0,2048}@/i.test(prose)) return true;
  for (const { 0: word } of prose.matchAll(/\S+/g)) {
    if (word.length > MAX_ADDRESS_CHARS && carriesMuch(word)) return true;
  }
  return false;
}

function withoutStretches(text: string, code: readonly Stretch[]): string {
  let rest = '';
  let at = 0;
  for (const { start, end } of code) {
    rest += `${text.slice(at, start)} `;
    at = end;
  }
  return rest + text.slice(at);
}

/** Whether an address in these characters, which hold no white space, has a long query or fragment. */
function carriesMuch(word: string): boolean {
  const mark = createFinder(word, /[?#]|&(?:#|quest;|num;)/gi);
  const opening = createFinder(word, /[([{"']/g);
  const wall = createFinder(word, /</g);
  const lastClosing = Math.max(...[')', ']', '}', '"', "'"].map((sign) => word.lastIndexOf(sign)));
  const wallBehind = boundaryAfter(word, lastClosing);
  for (const { index } of word.matchAll(/(?:https?|ftp):\/\/|(?<![:/])\/\/|www\./gi)) {
    const first = wall(index);
    const end = opening(index) < first && first < lastClosing ? wallBehind : first;
    if (Math.min(end, word.length) - mark(index) > MAX_ADDRESS_CHARS) return true;
  }
  return false;
}

function boundaryAfter(word: string, at: number): number {
  const wall = word.indexOf('<', at + 1);
  return wall < 0 ? word.length : wall;
}

/** Whether a tag that loads or runs something stands outside code. Linear. */
export function hasLoadingTag(text: string, code: readonly Stretch[]): boolean {
  for (const _tag of matchesOutside(text, LOADING_TAG, code)) return true;
  return false;
}

function* matchesOutside(
  text: string,
  pattern: RegExp,
  code: readonly Stretch[],
): Generator<{ readonly index: number }> {
  let next = 0;
  for (const { index } of text.matchAll(pattern)) {
    while ((code[next]?.end ?? Number.POSITIVE_INFINITY) <= index) next++;
    if ((code[next]?.start ?? Number.POSITIVE_INFINITY) > index) yield { index };
  }
}

// Finds the next match of a pattern at or after an offset. Offsets must ascend, which keeps the search linear.
function createFinder(text: string, pattern: RegExp): (from: number) => number {
  let found = -1;
  return (from) => {
    if (found < from) {
      pattern.lastIndex = from;
      found = pattern.exec(text)?.index ?? Number.POSITIVE_INFINITY;
    }
    return found;
  };
}
