// What the second check takes for code and for an image. Written apart from the first pass on purpose, and
// strict: it shares no reading of Markdown with it, so that neither is blind where the other one is.
// Source: CommonMark 0.31 §4.4 to §4.7, §6.1, §6.4; GFM §4.10, §6.9.

/** From here up to there stands code for every renderer. */
type Stretch = { readonly start: number; readonly end: number };

/** A line of the text; `behind` is where the next one begins. */
type Row = { readonly text: string; readonly start: number; readonly behind: number };

function rowsOf(text: string): readonly Row[] {
  const rows: Row[] = [];
  let start = 0;
  for (const { 0: end, index } of text.matchAll(/\r\n|\r|\n/g)) {
    const behind = index + end.length;
    rows.push({ text: text.slice(start, index), start, behind });
    start = behind;
  }
  rows.push({ text: text.slice(start), start, behind: text.length });
  return rows;
}

/** Declarations, instructions, comments and elements of raw text: nothing behind them is surely Markdown. */
const WILD = /<(?:[!?]|(?:script|style|pre|textarea)\b)/i;
/** Rows are told apart by so many of their first characters. */
const HEAD_CHARS = 256;

/** The code of a Markdown text, as far as it is beyond doubt. Linear. */
export function findSureCode(text: string): Stretch[] {
  const sure: Stretch[] = [];
  if (!/`|~~~/.test(text)) return sure;
  const rows = rowsOf(text);
  const lastDefinition = text.lastIndexOf(']:');
  // A paragraph in which something is open has no code behind that, up to its blank line.
  let isCalm = true;
  let followsDefinition = false;
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at];
    if (row === undefined) break;
    const kind = kindOf(row.text, row.start <= lastDefinition);
    if (kind === 'doubt' || (followsDefinition && /^\P{L}*["'(]/u.test(row.text))) break;
    followsDefinition = kind === 'definition';
    if (kind === 'fence') {
      const last = isCalm ? lastOfFence(rows, at) : undefined;
      if (last === undefined) break;
      const end = rows[last.at];
      sure.push({
        start: row.start,
        end: end === undefined ? text.length : end.start + (last.isWhole ? end.text.length : 0),
      });
      if (!last.isWhole) break;
      at = last.at;
    } else if (kind === 'blank') isCalm = true;
    else if (isCalm) isCalm = kind === 'text' ? addSpans(row, sure) : !/[`<]/.test(row.text);
    if (!isCalm && kind !== 'fence' && WILD.test(withoutCode(row, sure))) break;
  }
  return sure;
}

/** A row without the code that was just found in it. */
function withoutCode(row: Row, sure: readonly Stretch[]): string {
  const last = sure.at(-1);
  return last === undefined || last.end <= row.start
    ? row.text
    : row.text.slice(last.end - row.start);
}

function kindOf(
  row: string,
  mayDefine: boolean,
): 'blank' | 'fence' | 'definition' | 'text' | 'doubt' {
  if (/^[ \t]*$/.test(row)) return 'blank';
  const head = row.slice(0, HEAD_CHARS);
  const marks = /^(?:\P{L}*?\[\^[^[\]]*\]:)?[^\p{L}`~]*/u.exec(head)?.[0] ?? '';
  if (marks.length === HEAD_CHARS && row.length > HEAD_CHARS) return 'doubt';
  const rest = row.slice(marks.length);
  const run = /^(?:`{3,}|~{3,})/.exec(rest)?.[0];
  if (run !== undefined) {
    const info = rest.slice(run.length);
    const isInline = run.startsWith('`') && info.includes('`');
    if (marks === '' && !isInline) return 'fence';
    return marks === '' && /^[^`]+`/.test(info) ? 'text' : 'doubt';
  }
  return mayDefine ? definitionOf(row) : 'text';
}

/** Whether a row defines the target of a reference; in doubt where that may go on in the next row. */
function definitionOf(row: string): 'definition' | 'text' | 'doubt' {
  const bracket = /^[^A-Za-z[\]`]*\[/.exec(row)?.[0].length;
  if (bracket === undefined) return 'text';
  const close = row.indexOf(']', bracket);
  if (close < 0) return 'doubt';
  const label = row.slice(bracket, close);
  if (row[close + 1] !== ':' || /[[\\]/.test(label) || label === '') {
    return row.includes(']:') ? 'doubt' : 'text';
  }
  const words = row
    .slice(close + 2)
    .split(/[ \t]+/)
    .filter((word) => word !== '');
  const [target = '', next] = words;
  if (!/^[ \t]/.test(row.slice(close + 2)) || /^["'(<]|^$/.test(target) || target.includes('\\'))
    return 'doubt';
  if (next === undefined) return 'definition';
  if (!/^["'(]/.test(next)) return 'text';
  const title = row.slice(row.indexOf(next, close + 2 + target.length)).replace(/[ \t]+$/, '');
  return /^(?:"[^"\\]*"|'[^'\\]*')$/.test(title) ? 'definition' : 'doubt';
}

/** The row that closes a fence; `isWhole` is false where renderers differ about it. */
function lastOfFence(rows: readonly Row[], opened: number): { at: number; isWhole: boolean } {
  const sign = rows[opened]?.text[0] ?? '`';
  const run = sign === '`' ? /^`+/ : /^~+/;
  const least = run.exec(rows[opened]?.text ?? '')?.[0].length ?? 0;
  for (let at = opened + 1; at < rows.length; at++) {
    const row = rows[at]?.text ?? '';
    const inner = row.replace(/^[\s\p{C}]+/u, '');
    const length = run.exec(inner)?.[0].length ?? 0;
    if (length < least) continue;
    const tail = inner.slice(length);
    if (/^ *$/.test(tail) && inner.length === row.length) return { at, isWhole: true };
    if (!/[\p{L}\p{N}]/u.test(tail)) return { at, isWhole: false };
  }
  return { at: rows.length, isWhole: true };
}

/** Adds the spans of a row whose paragraph has nothing open; answers whether the row leaves nothing open. */
function addSpans(row: Row, sure: Stretch[]): boolean {
  const pieces = row.text.split(/(`+)/);
  let at = row.start;
  let prose = '';
  for (let index = 0; index < pieces.length; index++) {
    const piece = pieces[index] ?? '';
    if (index % 2 === 0) {
      prose += piece;
      at += piece.length;
      continue;
    }
    const close = pieces.indexOf(piece, index + 1);
    if (close % 2 !== 1 || row.text.includes('|') || piece.length > 32 || hasOpenMark(prose, true))
      return false;
    const code = pieces.slice(index, close + 1).join('');
    sure.push({ start: at, end: at + code.length });
    at += code.length;
    index = close;
    prose = '';
  }
  return !hasOpenMark(prose, false);
}

/** Whether a tag, a target, a label, an address or an escape may reach from here over a backtick. */
function hasOpenMark(prose: string, isBeforeCode: boolean): boolean {
  if (/<[a-z/!?]/i.test(prose)) return true;
  for (const { 0: mark, index } of prose.matchAll(/\][([]/g)) {
    const end = prose.indexOf(mark === '](' ? ')' : ']', index + 2);
    const inner = prose.slice(index + 2, end < 0 ? undefined : end);
    if (end < 0 || /[[\\]/.test(inner)) return true;
    if (mark === '](' && !/^(?:<[^<>"']*>|[^\s()<>"']*)$/.test(inner)) return true;
  }
  if (!isBeforeCode) return false;
  const word = prose.slice(1 + Math.max(prose.lastIndexOf(' '), prose.lastIndexOf('\t')));
  return word.endsWith('\\') || /[<@]|:\/\/|www\./i.test(word);
}

/** Whether an image that is fetched stands outside the code. Linear. */
export function hasImage(text: string, code: readonly Stretch[]): boolean {
  const isDefining = text.includes(']:');
  const closing = createFinder(text, /\][([]/g);
  const blank = createFinder(text, /(?:\r\n?|\n)[ \t>]*[\r\n]/g);
  for (const { index } of outside(text, /!\[/g, code)) {
    if (isDefining || closing(index) < blank(index)) return true;
  }
  return false;
}

const LOADING_TAG =
  /<(?:[a-z]{1,16}:)?(?:script|style|iframe|frame|img|image|picture|source|svg|math|object|embed|applet|audio|video|track|link|meta|base|form|input)(?=[\t\n\f\r />]|$)/gi;

/** Whether a tag that loads or runs something stands outside the code. Linear. */
export function hasLoadingTag(text: string, code: readonly Stretch[]): boolean {
  for (const _tag of outside(text, LOADING_TAG, code)) return true;
  return false;
}

function* outside(
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

/** Where the pattern stands next, asked for at places that only ascend. */
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
