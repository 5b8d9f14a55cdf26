// Finds the stretches of a Markdown text that every renderer shows as code: fenced blocks whose fences begin in
// the first column, and code spans within one line. In case of doubt a stretch is not code and is neutralized.
// Source: CommonMark 0.31 §2.1 (lines, blanks), §4.5 (fenced code), §4.6 (HTML blocks), §4.7 (definitions), §6.1
// (code spans), §6.3 (links); GFM §4.10 (tables), §6.9 (autolink literals).

/** A stretch of code. Lists of regions are in order and do not overlap. */
type Region = { readonly start: number; readonly end: number };

type Fence = { readonly sign: string; readonly length: number };

// The state after a line. `plain`: all backticks are paired and nothing is open. `unsure`: a later backtick of
// the same paragraph may close a pair, or belong to a tag or target. `raw`: nothing that follows is certain to be
// Markdown.
type Trust = 'plain' | 'unsure' | 'raw';

type Line = { readonly start: number; readonly end: number; readonly next: number };

const BLANK = /^[ \t]*$/;
/** A run that may open or close a fence for some renderer: nothing that is certainly text precedes it. */
const FENCE_LIKE = /^[^\p{L}`~]*(?:\[\^[^[\]]*\]:[^\p{L}`~]*)?(?:`{3,}|~{3,})/u;
const WITHOUT_LETTERS = /^[^\p{L}`~]*$/u;
/** Container marks beyond this length are not read. */
const MAX_MARKS_CHARS = 256;
const OPENING = /^(?:(`{3,})[^`]*|(~{3,}).*)$/s;
/** Tags after which Markdown is not parsed, even across blank lines. */
const RAW_HTML = /<(?:pre|textarea|script|style|!|\?)/i;
/** Unclosed tags, targets and labels, which may include a backtick that then begins no code span. */
const SWALLOWING = /<[A-Za-z/!?]|\]\(|\]\[/;
const LINK_TARGET = /\]\((?:<[^<>\\`"'\r\n]*>|[^\s()<>\\`"']*)\)|\]\[[^[\]\\`]*\](?![([])/g;
/** Where a title may begin, which may continue over lines and in some renderers over blank lines. */
const TITLE_START = /^[^A-Za-z]*["'(]/;

/** Progress through a text, and the state that it leaves for the next line. */
type State = {
  readonly text: string;
  readonly regions: Region[];
  readonly lastDefinition: number;
  trust: Trust;
  isBehindDefinition: boolean;
};

/** The code of a text. Linear. */
export function findCode(text: string): Region[] {
  const regions: Region[] = [];
  if (!text.includes('`') && !text.includes('~~~')) return regions;
  const lastDefinition = text.lastIndexOf(']:');
  const state: State = { text, regions, lastDefinition, trust: 'plain', isBehindDefinition: false };
  let at: number | undefined = 0;
  while (at !== undefined && at < text.length) at = readNext(state, readLine(text, at));
  return regions;
}

// Reads a line or the fence that it opens. Returns where to continue, undefined where nothing more is certain.
function readNext(state: State, lineSpan: Line): number | undefined {
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

function readFence(state: State, line: string, { next }: Line): number | undefined {
  const fence = state.trust === 'plain' ? openFence(line) : undefined;
  if (fence === undefined) return undefined;
  const closing = findClosing(state.text, next, fence);
  // What follows the fence in its line is no code: with one more text behind it, the line may open none.
  state.regions.push({ start: Math.min(next, closing.end), end: closing.end });
  return closing.isSure ? closing.next : undefined;
}

function trustAfter(state: State, line: string, offset: number): Trust {
  if (BLANK.test(line)) return 'plain';
  if (state.trust === 'unsure') return RAW_HTML.test(line) ? 'raw' : 'unsure';
  // In a note or a paragraph a definition is prose, in which a tag or a target may begin.
  return state.isBehindDefinition ? trustBehind(line) : readSpans(line, offset, state.regions);
}

const LINE_END = /\r\n?|\n/g;

/** Lines end with a line feed, a carriage return, or both (CommonMark 0.31 §2.1). */
function readLine(text: string, start: number): Line {
  LINE_END.lastIndex = start;
  const match = LINE_END.exec(text);
  if (match === null) return { start, end: text.length, next: text.length };
  return { start, end: match.index, next: LINE_END.lastIndex };
}

// Whether the line begins a link reference definition: `whole` if it ends with the line, `open` if its label,
// target or title may continue, in some renderers across fences.
function readDefinition(line: string, mayDefine: boolean): 'none' | 'whole' | 'open' {
  if (!mayDefine || !/^[^A-Za-z[\]`]*\[/.test(line)) return 'none';
  const label = LABEL.exec(line)?.[0];
  if (label === undefined) {
    const labelEnd = line.indexOf(']', line.indexOf('['));
    return labelEnd < 0 || line.includes(']:') ? 'open' : 'none';
  }
  const rest = line.slice(label.length).replace(/^[ \t]+/, '');
  if (COMPLETE_TARGET.test(rest)) return 'whole';
  return NO_TITLE.test(rest) ? 'none' : 'open';
}

const LABEL = /^[^A-Za-z[\]`]*\[[^[\]\\]+\]:(?=[ \t])/;
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
  const match = OPENING.exec(line);
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
    const run = runOf(text, start, end, fence.sign);
    if (run === undefined || run.end - run.start < fence.length) continue;
    const rest = text.slice(run.end, end);
    if (run.start === start && /^ *$/.test(rest)) return { end, next, isSure: true };
    // Only blanks may follow a closing fence. With letters after it, every renderer takes the line for code.
    if (!/[\p{L}\p{N}]/u.test(rest)) return { end: start, next: start, isSure: false };
  }
  return { end: text.length, next: text.length, isSure: true };
}

/** The run of a fence's sign at the start of a line, after blanks of any kind. */
function runOf(text: string, start: number, end: number, sign: string): Region | undefined {
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
function readSpans(line: string, offset: number, regions: Region[]): Trust {
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
