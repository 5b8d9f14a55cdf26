// Which stretches of a Markdown text every renderer shows as code: fenced blocks whose fences stand at the
// first column, and code spans within one line. In doubt a stretch is not code, and is neutralized.
// Source: CommonMark 0.31 §2.1 (lines, blanks), §4.5 (fenced code), §4.6 (HTML blocks), §4.7 (definitions),
// §6.1 (code spans), §6.3 (links); GFM §4.10 (tables), §6.9 (autolink literals).

/** Stretches in order, not overlapping. */
export type Region = { readonly start: number; readonly end: number };

type Fence = { readonly sign: string; readonly length: number };

/**
 * What a line leaves behind: `plain` pairs all its backticks and opens nothing; after an `unsure` one a
 * backtick of the same paragraph may be the second of a pair, or stand in a tag or target; after a
 * `raw` one nothing is surely Markdown.
 */
type Trust = 'plain' | 'unsure' | 'raw';

type Line = { readonly start: number; readonly end: number; readonly next: number };

const BLANK = /^[ \t]*$/;
/** A run that may open or close a fence for some renderer: nothing that is surely text stands before it. */
const FENCE_LIKE = /^[^\p{L}`~]*(?:\[\^[^[\]]*\]:[^\p{L}`~]*)?(?:`{3,}|~{3,})/u;
const WITHOUT_LETTERS = /^[^\p{L}`~]*$/u;
/** Marks of containers that are longer than this are not read. */
const MAX_MARKS_CHARS = 256;
const OPENING = /^(?:(`{3,})[^`]*|(~{3,}).*)$/s;
/** Tags behind which Markdown is not read, blank lines or not. */
const RAW_HTML = /<(?:pre|textarea|script|style|!|\?)/i;
/** What may hold a backtick that is none of a code span: tags, targets and labels that are not over. */
const SWALLOWING = /<[A-Za-z/!?]|\]\(|\]\[/;
const LINK_TARGET = /\]\((?:<[^<>\\`"'\r\n]*>|[^\s()<>\\`"']*)\)|\]\[[^[\]\\`]*\]/g;
/** Where a title may go on over lines, and over blank lines in some renderers. */
const TITLE_START = /^[^A-Za-z]*["'(]/;

/** How far a text was read, and what that leaves behind. */
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

/** Reads a line, or the fence that it opens, and answers where to go on; undefined where nothing more is sure. */
function readNext(state: State, place: Line): number | undefined {
  const line = state.text.slice(place.start, place.end);
  const definition = readDefinition(line, place.start <= state.lastDefinition);
  if (definition === 'open' || (state.isBehindDefinition && TITLE_START.test(line)))
    return undefined;
  state.isBehindDefinition = definition === 'whole';
  if (isFenceLike(line) && !isInlineRun(line)) {
    return state.isBehindDefinition ? undefined : readFence(state, line, place);
  }
  if (!state.isBehindDefinition) {
    state.trust = trustAfter(line, place.start, state.trust, state.regions);
    return state.trust === 'raw' ? undefined : place.next;
  }
  if (line.includes('`') || RAW_HTML.test(line)) state.trust = 'unsure';
  return place.next;
}

function readFence(state: State, line: string, { start, next }: Line): number | undefined {
  const fence = state.trust === 'plain' ? openFence(line) : undefined;
  if (fence === undefined) return undefined;
  const closing = findClosing(state.text, next, fence);
  state.regions.push({ start, end: closing.end });
  return closing.isSure ? closing.next : undefined;
}

function trustAfter(line: string, offset: number, before: Trust, regions: Region[]): Trust {
  if (BLANK.test(line)) return 'plain';
  if (before === 'plain') return readSpans(line, offset, regions);
  return RAW_HTML.test(line) ? 'raw' : 'unsure';
}

const LINE_END = /\r\n?|\n/g;

/** Lines end with a line feed, a carriage return, or both (CommonMark 0.31 §2.1). */
function readLine(text: string, start: number): Line {
  LINE_END.lastIndex = start;
  const match = LINE_END.exec(text);
  if (match === null) return { start, end: text.length, next: text.length };
  return { start, end: match.index, next: LINE_END.lastIndex };
}

/**
 * Whether the line begins a link reference definition: `whole` where it is over at its end, `open` where
 * its label, target or title may go on, over fences in some renderers.
 */
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
/** Words behind a target that are no title make the line no definition. */
const NO_TITLE = /^[^\s"'(<\\][^\s\\]*[ \t]+[^\s"'(]/;

function isFenceLike(line: string): boolean {
  const head = line.slice(0, MAX_MARKS_CHARS);
  return FENCE_LIKE.test(head) || (head.length < line.length && WITHOUT_LETTERS.test(head));
}

/** A run at the first column with another behind it is code within a line; no tilde is. */
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

/**
 * The end of the line that closes a fence; of the text, where none does. Not sure where a line closes it
 * for some renderers and not for others: the code ends before that line, and nothing behind it is sure.
 */
function findClosing(text: string, from: number, fence: Fence): Closing {
  for (let at = from; at < text.length; ) {
    const { start, end, next } = readLine(text, at);
    at = next;
    const run = runOf(text, start, end, fence.sign);
    if (run === undefined || run.end - run.start < fence.length) continue;
    const rest = text.slice(run.end, end);
    if (run.start === start && /^ *$/.test(rest)) return { end, next, isSure: true };
    // Behind a closing fence stand blanks alone; letters make it a line of code to everybody.
    if (!/[\p{L}\p{N}]/u.test(rest)) return { end: start, next: start, isSure: false };
  }
  return { end: text.length, next: text.length, isSure: true };
}

/** The run of a fence's sign that only blanks stand before on its line, blanks of any kind. */
function runOf(text: string, start: number, end: number, sign: string): Region | undefined {
  let first = start;
  while (first < end && text[first] !== sign && /[\s\p{Cf}\p{Cc}]/u.test(text[first] ?? ''))
    first++;
  let last = first;
  while (last < end && text[last] === sign) last++;
  return last === first ? undefined : { start: first, end: last };
}

const TICKS = /`+/g;
/** Longer runs are no code in some renderers. */
const MAX_RUN = 32;

/** Adds the code spans of one line, up to where a cell, a tag, a target or an escape makes them doubtful. */
function readSpans(line: string, offset: number, regions: Region[]): Trust {
  let done = 0;
  let open: { readonly at: number; readonly run: string } | undefined;
  const hasCells = line.includes('|');
  TICKS.lastIndex = 0;
  for (let match = TICKS.exec(line); match !== null; match = TICKS.exec(line)) {
    const run = match[0];
    if (open === undefined) {
      const before = line.slice(done, match.index);
      if (hasCells || run.length > MAX_RUN || maySwallow(before) || clings(before)) break;
      open = { at: match.index, run };
    } else if (open.run === run) {
      done = match.index + run.length;
      regions.push({ start: offset + open.at, end: offset + done });
      open = undefined;
    }
  }
  const rest = line.slice(done);
  if (RAW_HTML.test(rest)) return 'raw';
  return rest.includes('`') || maySwallow(rest) ? 'unsure' : 'plain';
}

function maySwallow(prose: string): boolean {
  return SWALLOWING.test(prose) && SWALLOWING.test(prose.replace(LINK_TARGET, ''));
}

/** Whether what stands right before a backtick may take it in: an escape, an address, an autolink. */
function clings(before: string): boolean {
  if (before.endsWith('\\')) return true;
  let start = before.length;
  while (start > 0 && !/[ \t]/.test(before[start - 1] ?? '')) start--;
  return /:\/\/|www\.|[<@]/i.test(before.slice(start));
}
