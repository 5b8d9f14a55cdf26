// Finds the stretches of Markdown that every renderer shows as code: fenced blocks, and code spans within one line. In
// case of doubt a stretch is not code, and what it holds is read like any other text.
// Source: CommonMark 0.31 §2.1 (lines, blanks), §2.5, §4.5 (fenced code), §4.6 (HTML blocks), §4.7 (definitions), §5.1,
// §6.1 (code spans), §6.3 (links); GFM §4.10 (tables), §6.9 (autolink literals).

import type { Span } from '../../text/span.js';
import { sureCommentEnd } from './comments.js';
import { drawnLanguage } from './drawn-fences.js';

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
  readonly regions: Span[];
  readonly firstDefinition: number;
  readonly lastDefinition: number;
  trust: Trust;
  isBehindDefinition: boolean;
  /** How far a fence on the next line may be indented for every renderer to take it for one, or for indented code. */
  maxIndent: number;
};

/** The code of a text. Linear. */
export function findMarkdownCode(text: string): Span[] {
  const regions: Span[] = [];
  if (!text.includes('`') && !text.includes('~~~')) return regions;
  const lastDefinition = text.lastIndexOf(']:');
  const state: CodeSearch = {
    ...{ text, regions, firstDefinition: text.indexOf(']:'), lastDefinition },
    ...{ trust: 'plain', isBehindDefinition: false, maxIndent: Number.POSITIVE_INFINITY },
  };
  let at: number | undefined = 0;
  while (at !== undefined && at < text.length) at = readCode(state, readLine(text, at));
  return regions;
}

// Reads a line or the fence that it opens. Returns where to continue, undefined where nothing more is certain.
function readCode(state: CodeSearch, lineSpan: LineSpan): number | undefined {
  const written = state.text.slice(lineSpan.start, lineSpan.end);
  const line = written.includes('<!--') ? written.replace(SURE_COMMENTS, blanksFor) : written;
  const definition = readDefinition(line, lineSpan.start <= state.lastDefinition);
  if (definition === 'open' || (state.isBehindDefinition && TITLE_START.test(line))) return undefined;
  state.isBehindDefinition = definition === 'whole';
  if (isFenceLike(line) && !isInlineRun(line)) {
    return state.isBehindDefinition ? undefined : readFence(state, line, lineSpan);
  }
  state.maxIndent = BLANKS_ONLY.test(line) ? Number.POSITIVE_INFINITY : contentOffset(line) + 3;
  const behind = line === written ? endOfComment(state, line, lineSpan) : undefined;
  if (behind !== undefined) return behind;
  state.trust = trustAfter(state, line, lineSpan.start);
  return state.trust === 'raw' ? undefined : lineSpan.next;
}

/** Comments within one line that every renderer takes for such: nothing behind them is swallowed. */
const SURE_COMMENTS = /(?<!\\)<!--(?!-?>)(?:(?!--)[^`|\r\n])*-->/g;

function blanksFor(comment: string): string {
  return ' '.repeat(comment.length);
}

const COMMENT_BLOCK = /^ {0,3}<!--/;

/** The next line behind a comment of several lines that begins here, and ends its last line. */
function endOfComment(
  { text, trust, firstDefinition }: CodeSearch,
  line: string,
  { start }: LineSpan,
): number | undefined {
  if (trust !== 'plain' || !COMMENT_BLOCK.test(line)) return undefined;
  const end = sureCommentEnd(text, start + line.indexOf('<'), firstDefinition);
  if (end === undefined) return undefined;
  const rest = readLine(text, end);
  return BLANKS_ONLY.test(text.slice(end, rest.end)) ? rest.next : undefined;
}

const LIST_ITEM = /^ *(?:[-*+]|\d{1,9}[.)]) {1,4}(?=[^ ])/;

/** The column at which the text of a list item begins; 0 for any other line. */
function contentOffset(line: string): number {
  return LIST_ITEM.exec(line)?.[0].length ?? 0;
}

const INDENTED_FENCE = /^( {1,64})(`{3,}[^`]*|~{3,}.*)$/s;

// An indented fence whose lines are all indented as far, and which is closed in the same column: fenced code, in a list
// or not, or indented code, to every renderer. Returns the offset behind it.
function readIndentedFence(state: CodeSearch, line: string, next: number): number | undefined {
  const [, indent = '', opening = ''] = INDENTED_FENCE.exec(line) ?? [];
  const fence = openFence(opening);
  if (state.trust !== 'plain' || fence === undefined || indent.length > state.maxIndent) return undefined;
  const closing = indentedClosing(state.text, next, indent, fence);
  if (closing !== undefined && drawnLanguage(opening.slice(fence.length)) === undefined) {
    state.regions.push({ start: next, end: closing.end });
  }
  return closing?.next;
}

function indentedClosing(text: string, from: number, indent: string, { sign, length }: Fence): LineSpan | undefined {
  for (let at = from; at < text.length; ) {
    const span = readLine(text, at);
    at = span.next;
    const line = text.slice(span.start, span.end);
    if (BLANKS_ONLY.test(line)) continue;
    if (!line.startsWith(indent)) return undefined;
    const run = fenceRunOf(text, span.start, span.end, sign);
    if (run === undefined || run.end - run.start < 3) continue;
    const isLongEnough = run.end - run.start >= length;
    const isPlaced = run.start - span.start === indent.length;
    return isLongEnough && isPlaced && /^ *$/.test(text.slice(run.end, span.end)) ? span : undefined;
  }
  return undefined;
}

function readFence(state: CodeSearch, line: string, { next }: LineSpan): number | undefined {
  if (line.startsWith(' ')) return readIndentedFence(state, line, next);
  const fence = state.trust === 'plain' ? openFence(line) : undefined;
  if (fence === undefined) return undefined;
  const closing = findClosing(state.text, next, fence);
  // What follows the fence in its line is no code: with one more text behind it, the line may open none. Nor is what
  // hosts draw.
  if (drawnLanguage(line.slice(fence.length)) === undefined) {
    state.regions.push({ start: Math.min(next, closing.end), end: closing.end });
  }
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
function fenceRunOf(text: string, start: number, end: number, sign: string): Span | undefined {
  let first = start;
  while (first < end && text[first] !== sign && /[\s\p{Cf}\p{Cc}]/u.test(text[first] ?? '')) first++;
  let last = first;
  while (last < end && text[last] === sign) last++;
  return last === first ? undefined : { start: first, end: last };
}

const TICKS = /`+/g;
/** Some renderers do not accept longer runs. */
const MAX_RUN = 32;

/** Adds the code spans of a line up to the first cell, tag, target or escape about which renderers differ. */
function readSpans(line: string, offset: number, regions: Span[]): Trust {
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
