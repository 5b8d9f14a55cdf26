// Finds data in text: JSON as tools write it, fenced, after a word, one value a line, cut off, or with what only some
// readers accept (single quotes, a comma too many, comments, raw controls in strings, the literals of Python). Reports
// where each value stands. It never decides what JSON is: what is parsed is read by json.ts, which is strict.
// Source: RFC 8259; the JSON modules of Python and JavaScript; JSON5 §7; YAML 1.2 §6.6.

/** A value in a text. `start` and `end` are UTF-16 offsets; those of a string include its quotes. */
export type DataNode = {
  readonly kind: 'object' | 'array' | 'string' | 'scalar';
  readonly start: number;
  readonly end: number;
  readonly items: readonly DataItem[];
};

/** `name`: the string of a member's name. Absent in an array. */
type DataItem = { readonly name?: DataNode; readonly value: DataNode };

const NO_ITEMS: readonly DataItem[] = [];
/** What may stand between the parts of data. A text may have a blank or a control that only some readers skip. */
const BLANK = /[\s\p{Cc}\p{Cf}]*/uy;
const SCALAR = /[-+]?[\w.]+(?:[-+]\d+)?/y;
const BARE_NAME = /[\p{L}\p{M}\p{N}\p{Pc}\p{Cf}$-]+/uy;
const OPENING = /[[{]/g;

/** An object or array whose end is not read yet. */
type OpenContainer = {
  readonly isObject: boolean;
  readonly start: number;
  readonly items: DataItem[];
  /** The name of the next value. */
  name: DataNode | undefined;
  needsComma: boolean;
};

type Reader = {
  readonly text: string;
  readonly skipsComments: boolean;
  at: number;
  readonly open: OpenContainer[];
  /** The string that was read last, if nothing was read behind it. */
  last: DataNode | undefined;
};

/** Begins what some readers of data skip as a comment. */
const COMMENT = /#|\/[/*]/;
const LINE_END = /[\n\r\u2028\u2029]/g;

/**
 * The outermost objects and arrays in a text that have anything in them, in order. Where something else follows than data
 * allows, all that is open ends, and the search goes on there. A text in which there may be comments is read twice, as
 * only some readers skip them, and others find data in them. Linear.
 */
export function findData(text: string): readonly DataNode[] {
  const found = findDataAs(text, false);
  return COMMENT.test(text) ? [...found, ...findDataAs(text, true)] : found;
}

function findDataAs(text: string, skipsComments: boolean): readonly DataNode[] {
  const found: DataNode[] = [];
  for (let at = nextOpening(text, 0); at < text.length; ) {
    const reader: Reader = { text, skipsComments, at, open: [], last: undefined };
    const node = readOutermost(reader);
    if (node.items.length > 0) found.push(node);
    // What was taken for a string may lie between the end of one string and the start of the next.
    const inner = reader.last === undefined ? text.length : nextOpening(text, reader.last.start);
    at = inner < (reader.last?.end ?? 0) ? inner : nextOpening(text, Math.max(reader.at, at + 1));
  }
  return found;
}

function nextOpening(text: string, from: number): number {
  OPENING.lastIndex = from;
  return OPENING.exec(text)?.index ?? text.length;
}

function readOutermost(reader: Reader): DataNode {
  openContainer(reader);
  for (;;) {
    skipBlank(reader);
    const outermost = closeInnermost(reader);
    if (outermost === 'open') continue;
    if (outermost !== undefined) return outermost;
    if (!readPart(reader)) return endAll(reader);
  }
}

/** Closes the innermost container if its closing sign is next. Returns the outermost one once it is closed. */
function closeInnermost(reader: Reader): DataNode | 'open' | undefined {
  if (reader.text[reader.at] !== (reader.open.at(-1)?.isObject === true ? '}' : ']')) return undefined;
  move(reader, reader.at + 1);
  return endInnermost(reader) ?? 'open';
}

function openContainer(reader: Reader): void {
  const start = reader.at;
  const isObject = reader.text[start] === '{';
  reader.open.push({ isObject, start, items: [], name: undefined, needsComma: false });
  move(reader, start + 1);
}

function move(reader: Reader, at: number): void {
  reader.at = at;
  reader.last = undefined;
}

/** Ends the innermost container, and returns it if it was the outermost. */
function endInnermost(reader: Reader): DataNode | undefined {
  const container = reader.open.pop();
  if (container === undefined) return undefined;
  const { isObject, start, items } = container;
  const node: DataNode = { kind: isObject ? 'object' : 'array', start, end: reader.at, items };
  const outer = reader.open.at(-1);
  if (outer === undefined) return node;
  addValue(outer, node);
  return undefined;
}

function endAll(reader: Reader): DataNode {
  for (;;) {
    const outermost = endInnermost(reader);
    if (outermost !== undefined) return outermost;
  }
}

function addValue(container: OpenContainer, value: DataNode): void {
  const { name } = container;
  container.items.push(name === undefined ? { value } : { name, value });
  container.name = undefined;
  container.needsComma = true;
}

/** Reads a comma, a name or a value. False where it does not stand here. */
function readPart(reader: Reader): boolean {
  const container = reader.open.at(-1);
  const sign = reader.text[reader.at];
  if (container === undefined || sign === undefined) return false;
  if (container.needsComma) {
    if (sign !== ',') return false;
    container.needsComma = false;
    move(reader, reader.at + 1);
    return true;
  }
  if (container.isObject && container.name === undefined) return readName(reader, container);
  if (sign === '{' || sign === '[') {
    openContainer(reader);
    return true;
  }
  const value = readString(reader) ?? readPlain(reader, SCALAR);
  if (value !== undefined) addValue(container, value);
  return value !== undefined;
}

function readName(reader: Reader, container: OpenContainer): boolean {
  const name = readString(reader) ?? readPlain(reader, BARE_NAME);
  if (name === undefined) return false;
  const { last } = reader;
  skipBlank(reader);
  if (reader.text[reader.at] !== ':') {
    reader.last = last;
    return false;
  }
  move(reader, reader.at + 1);
  container.name = name;
  return true;
}

/** A string up to its quote, or to the end of a text that cuts it off. */
function readString(reader: Reader): DataNode | undefined {
  const { text, at: start } = reader;
  const quote = text[start];
  if (quote !== '"' && quote !== "'") return undefined;
  let end = text.indexOf(quote, start + 1);
  while (end >= 0 && isEscaped(text, start, end)) end = text.indexOf(quote, end + 1);
  reader.at = end < 0 ? text.length : end + 1;
  reader.last = { kind: 'string', start, end: reader.at, items: NO_ITEMS };
  return reader.last;
}

function isEscaped(text: string, start: number, at: number): boolean {
  let slashes = 0;
  while (at - slashes > start + 1 && text[at - slashes - 1] === '\\') slashes++;
  return slashes % 2 === 1;
}

/** A number, a literal or a name without quotes. */
function readPlain(reader: Reader, pattern: RegExp): DataNode | undefined {
  const start = reader.at;
  pattern.lastIndex = start;
  if (!pattern.test(reader.text)) return undefined;
  move(reader, pattern.lastIndex);
  return { kind: 'scalar', start, end: reader.at, items: NO_ITEMS };
}

function skipBlank(reader: Reader): void {
  const next = reader.text.charCodeAt(reader.at);
  // Nearly always nothing is skipped, which is found out without a pattern.
  if (next > 0x20 && next < 0x7f && !(reader.skipsComments && (next === 0x23 || next === 0x2f))) return;
  do {
    BLANK.lastIndex = reader.at;
    BLANK.test(reader.text);
    reader.at = BLANK.lastIndex;
  } while (reader.skipsComments && skipComment(reader));
}

/** Skips a comment, which may be cut off. False where there is none. */
function skipComment(reader: Reader): boolean {
  const { text, at } = reader;
  const isLine = text[at] === '#' || text.startsWith('//', at);
  if (!isLine && !text.startsWith('/*', at)) return false;
  LINE_END.lastIndex = at;
  const end = isLine ? LINE_END.exec(text)?.index : text.indexOf('*/', at + 2);
  reader.at = end === undefined || end < 0 ? text.length : isLine ? end : end + 2;
  return true;
}
