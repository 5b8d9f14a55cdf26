// Which stretches of a Markdown text every renderer shows as code: fenced blocks whose fences stand at the
// first column, and code spans within one line. In doubt a stretch is not code, and is neutralized.
// Source: CommonMark 0.31 §4.5 (fenced code), §4.6 (HTML blocks), §6.1 (code spans); GFM §4.10 (tables).

/** Stretches in order, not overlapping. */
export type Region = { readonly start: number; readonly end: number };

type Fence = { readonly sign: string; readonly length: number };

/**
 * What a line leaves behind: `plain` pairs all its backticks; after an `unsure` one a backtick of the same
 * paragraph may be the second of a pair; after a `raw` one nothing is surely Markdown.
 */
type Trust = 'plain' | 'unsure' | 'raw';

const FENCE_RUN = /`{3,}|~{3,}/g;
/** Tags behind which Markdown is not read, blank lines or not. */
const RAW_HTML = /<(?:pre|textarea|script|style|!|\?)/i;
const ANY_HTML = /<[A-Za-z/]/;
const HTML_LINE = /^ {0,3}<[A-Za-z/]/;

/** The code of a text. Linear. */
export function findCode(text: string): Region[] {
  const regions: Region[] = [];
  if (!text.includes('`') && !text.includes('~~~')) return regions;
  // An unsure paragraph may be an HTML block, in which a fence is text.
  const mayFence = hasOnlyPlainFences(text);
  let trust: Trust = 'plain';
  for (let at = 0; at < text.length; ) {
    const end = lineEnd(text, at);
    const line = text.slice(at, end);
    const fence = mayFence && trust === 'plain' ? openFence(line) : undefined;
    if (fence !== undefined) {
      const close = closingEnd(text, end + 1, fence);
      regions.push({ start: at, end: close });
      trust = 'plain';
      at = close + 1;
      continue;
    }
    trust = trustAfter(line, at, trust, regions);
    if (trust === 'raw') return regions;
    at = end + 1;
  }
  return regions;
}

function trustAfter(line: string, offset: number, before: Trust, regions: Region[]): Trust {
  if (line.trim() === '') return 'plain';
  if (before === 'plain' && !HTML_LINE.test(line)) return readSpans(line, offset, regions);
  // Whether a fence opens inside what may be HTML decides how every later fence is read.
  return RAW_HTML.test(line) || openFence(line) !== undefined ? 'raw' : 'unsure';
}

function lineEnd(text: string, from: number): number {
  const feed = text.indexOf('\n', from);
  return feed < 0 ? text.length : feed;
}

/** False where a fence stands anywhere but at the first column: in lists and quotes renderers differ. */
function hasOnlyPlainFences(text: string): boolean {
  if (/\r(?!\n)/.test(text)) return false;
  FENCE_RUN.lastIndex = 0;
  for (let run = FENCE_RUN.exec(text); run !== null; run = FENCE_RUN.exec(text)) {
    if (run.index > 0 && text[run.index - 1] !== '\n') return false;
  }
  return true;
}

function openFence(line: string): Fence | undefined {
  const run = /^(?:`{3,}|~{3,})/.exec(line)?.[0];
  const sign = run?.[0];
  if (run === undefined || sign === undefined) return undefined;
  if (sign === '`' && line.includes('`', run.length)) return undefined;
  return { sign, length: run.length };
}

/** The end of the line that closes a fence; of the text, where none does. */
function closingEnd(text: string, from: number, fence: Fence): number {
  for (let at = from; at < text.length; ) {
    const end = lineEnd(text, at);
    let length = 0;
    while (text[at + length] === fence.sign) length++;
    if (length >= fence.length && text.slice(at + length, end).trim() === '') return end;
    at = end + 1;
  }
  return text.length;
}

const TICKS = /`+/g;

/** Adds the code spans of one line, up to where a cell, a tag or an escape makes them doubtful. */
function readSpans(line: string, offset: number, regions: Region[]): Trust {
  let done = 0;
  let open: { readonly at: number; readonly run: string } | undefined;
  TICKS.lastIndex = 0;
  for (let match = TICKS.exec(line); match !== null; match = TICKS.exec(line)) {
    const run = match[0];
    if (open === undefined) {
      const before = line.slice(done, match.index);
      if (ANY_HTML.test(before) || before.endsWith('\\') || line.includes('|')) break;
      open = { at: match.index, run };
    } else if (open.run === run) {
      done = match.index + run.length;
      regions.push({ start: offset + open.at, end: offset + done });
      open = undefined;
    }
  }
  const rest = line.slice(done);
  if (RAW_HTML.test(rest)) return 'raw';
  return rest.includes('`') || ANY_HTML.test(rest) ? 'unsure' : 'plain';
}
