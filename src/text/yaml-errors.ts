// Describes the syntax error of a YAML text in plain English: its most likely cause and what to do. After one syntax
// error a parser guesses, and most of what it reports then is a consequence, so only the first cause is described.
// Never quotes a value, which could be a secret.

import type { ErrorCode, YAMLError } from 'yaml';

export type SyntaxError = { readonly offset: number; readonly message: string };

export const TAGS_REFUSED = 'tags (!) are not accepted; put a value that begins with ! into quotes';
/** Errors that leave no doubt about the rest of the text: each of them is described. */
const LOCAL: ReadonlySet<ErrorCode> = new Set([
  ...(['MULTIPLE_DOCS', 'TAG_RESOLVE_FAILED', 'BAD_COLLECTION_TYPE'] as const),
  ...(['NON_STRING_KEY', 'BAD_DIRECTIVE'] as const),
]);

const MISPLACED = 'an anchor or a tag is misplaced; remove it';
const UNREADABLE = 'the file cannot be read as YAML';
const SPACE_AFTER_COLON = 'a space is missing after the colon';
const LACKS_COLON = 'expected "key: value", found text without a colon';
const LACKS_SPACE = /^\s*(?:- +)*[A-Za-z_][\w.-]*:[^\s:]/;

type Describe = (text: string, error: YAMLError) => SyntaxError;

/** The same message wherever the error is. */
function always(message: string): Describe {
  return (_, { pos: [offset] }) => ({ offset, message });
}

/** How each error of the parser is described; none is passed on in the parser's own words. */
const DESCRIPTIONS: Readonly<Record<ErrorCode, Describe>> = {
  ALIAS_PROPS: always(MISPLACED),
  BAD_ALIAS: always('an unquoted * or & begins an alias or an anchor; put the value into quotes'),
  BAD_COLLECTION_TYPE: always(TAGS_REFUSED),
  BAD_DIRECTIVE: always('directives (%YAML, %TAG) are not accepted'),
  BAD_DQ_ESCAPE: describeEscape,
  BAD_INDENT: describeIndent,
  BAD_PROP_ORDER: always(MISPLACED),
  BAD_SCALAR_START: describeStart,
  BLOCK_AS_IMPLICIT_KEY: describeNested,
  BLOCK_IN_FLOW: always('inside brackets, write {key: value} instead of indented lines'),
  DUPLICATE_KEY: always('duplicate key'),
  IMPOSSIBLE: always(UNREADABLE),
  KEY_OVER_1024_CHARS: always('this key is longer than 1024 characters'),
  MISSING_CHAR: describeMissing,
  MULTILINE_IMPLICIT_KEY: describeMultiline,
  MULTIPLE_ANCHORS: always(MISPLACED),
  MULTIPLE_DOCS: always('the file holds more than one YAML document'),
  MULTIPLE_TAGS: always(MISPLACED),
  NON_STRING_KEY: always('a key must be plain text'),
  RESOURCE_EXHAUSTION: always(UNREADABLE),
  TAB_AS_INDENT: always('a tab is used for indentation; use spaces'),
  TAG_RESOLVE_FAILED: always(TAGS_REFUSED),
  UNEXPECTED_TOKEN: describeUnexpected,
};

/** The cause of the first syntax error, or every error that is none of syntax. */
export function describeYamlErrors(
  text: string,
  errors: readonly YAMLError[],
): { readonly isSyntax: boolean; readonly found: readonly SyntaxError[] } {
  const syntax = errors.filter(({ code }) => !LOCAL.has(code));
  const [first] = [...syntax].sort((a, b) => a.pos[0] - b.pos[0]);
  if (first === undefined) {
    const found = errors.map((error) => DESCRIPTIONS[error.code](text, error));
    return { isSyntax: false, found };
  }
  const cause =
    findConflictMarker(text) ??
    findTab(text, first) ??
    findUnclosed(text, first.pos[0]) ??
    DESCRIPTIONS[first.code](text, first);
  return { isSyntax: true, found: [cause] };
}

const MARKER = /^(?:<{7}|={7}|>{7}|\|{7})(?= |\r?$)/m;

function findConflictMarker(text: string): SyntaxError | undefined {
  const found = MARKER.exec(text);
  if (found === null) return undefined;
  const message = `the marker "${found[0]}" of an unresolved merge; choose one of the versions and remove all markers`;
  return { offset: found.index, message };
}

/** The first tab in the indentation of the line of the error. */
function findTab(text: string, { pos: [offset] }: YAMLError): SyntaxError | undefined {
  const start = lineStart(text, offset);
  const [indent = ''] = /^[ \t]*/.exec(text.slice(start)) ?? [];
  const tab = indent.indexOf('\t');
  if (tab === -1) return undefined;
  return { offset: start + tab, message: 'a tab is used for indentation; use spaces' };
}

type Open = { readonly mark: string; readonly offset: number; readonly column: number };

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['[', ']'],
  ['{', '}'],
]);

/** A bracket or a quote that opens before the error and is not closed before the map around it goes on. */
function findUnclosed(text: string, before: number): SyntaxError | undefined {
  const open: Open[] = [];
  const describe = ({ mark, offset }: Open): SyntaxError | undefined => {
    const name = CLOSING.has(mark) ? 'bracket' : 'quote';
    return offset > before
      ? undefined
      : { offset, message: `the ${name} ${mark} is opened here and never closed` };
  };
  let offset = 0;
  for (const line of text.split('\n')) {
    const column = keyColumn(line);
    const last = open.at(-1);
    if (last !== undefined && line.trim() !== '' && column <= last.column && isEntry(line)) {
      return describe(last);
    }
    const unclosed = scanLine(line, offset, column, open);
    if (unclosed !== undefined) return describe(unclosed);
    offset += line.length + 1;
  }
  const last = open.at(-1);
  return last && describe(last);
}

/**
 * A quote or a bracket where a value may begin, a closing bracket, or a comment. What stands before is looked at last, so
 * that a long run of spaces is not looked at again from each of them.
 */
const TOKEN = /["'[{](?<=(?:^\s*|[[{,]\s*|[:?-]\s+).)|[\]}]|#(?<=(?:^|\s)#)/g;

/**
 * Follows quotes and brackets through one line, and returns a bracket in the place of whose end another one is closed. A
 * quote in `open` is the last entry.
 */
function scanLine(line: string, start: number, column: number, open: Open[]): Open | undefined {
  let at = closeQuote(line, 0, open);
  while (at !== undefined) {
    TOKEN.lastIndex = at;
    const { 0: mark = '#', index = 0 } = TOKEN.exec(line) ?? {};
    if (mark === '#') return undefined;
    if (mark === ']' || mark === '}') {
      const closed = open.pop();
      if (closed !== undefined && CLOSING.get(closed.mark) !== mark) return closed;
    } else open.push({ mark, offset: start + index, column });
    at = closeQuote(line, index + 1, open);
  }
  return undefined;
}

/** Where to go on: behind the end of the quote that is open, if one is, or not in this line. */
function closeQuote(line: string, from: number, open: Open[]): number | undefined {
  const mark = open.at(-1)?.mark;
  if (mark === undefined || CLOSING.has(mark)) return from;
  const end = endOfQuote(line, from, mark);
  if (end !== undefined) open.pop();
  return end;
}

/** The index behind the closing quote, if it is in the line. */
function endOfQuote(line: string, from: number, mark: string): number | undefined {
  const content = mark === '"' ? /(?:\\.|[^"\\])*"/y : /[^']*'/y;
  content.lastIndex = from;
  return content.test(line) ? content.lastIndex : undefined;
}

/** The column of the key of a line, behind the dashes of lists. */
function keyColumn(line: string): number {
  return (/^\s*(?:- +)*/.exec(line)?.[0] ?? '').length;
}

/** A line that begins an entry of a map or of a list. */
function isEntry(line: string): boolean {
  return /^\s*(?:- |[A-Za-z_][\w.-]*:(?:\s|$))/.test(line);
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}

function lineAt(text: string, offset: number): string {
  const start = lineStart(text, offset);
  const end = text.indexOf('\n', start);
  return text.slice(start, end === -1 ? undefined : end);
}

const SAME_ITEM_COLUMN = 'the items of one list must start in the same column';
const SAME_COLUMN = 'the keys of one map must start in the same column';

/** A map or a list where only one line may stand: a colon too many, or wrong indentation. */
function describeNested(text: string, error: YAMLError): SyntaxError {
  const [offset] = error.pos;
  const start = lineStart(text, offset);
  const line = lineAt(text, offset);
  if (/^\s*- /.test(line)) {
    return { offset: start + line.search(/\S/), message: `wrong indentation: ${SAME_ITEM_COLUMN}` };
  }
  if (!/:(?:\s|$)/.test(line.slice(offset - start))) return describeMultiline(text, error);
  const message =
    'a value that contains a colon and a space must be in quotes, because ": " begins a map';
  return { offset, message };
}

/** A value that goes on in the next line as if it were a key: the next line is indented more than its own key. */
function describeMultiline(text: string, { pos: [offset] }: YAMLError): SyntaxError {
  const line = lineAt(text, offset);
  const next = lineStart(text, offset) + line.length + 1;
  if (LACKS_SPACE.test(line)) return { offset, message: SPACE_AFTER_COLON };
  if (!line.includes(':')) return { offset, message: LACKS_COLON };
  const indent = keyColumn(line);
  const below = keyColumn(lineAt(text, next));
  const [, key] = /^\s*(?:- +)*([A-Za-z_][\w.-]{0,63}):\s/.exec(line) ?? [];
  if (key === undefined || below <= indent || next >= text.length) {
    return { offset, message: `wrong indentation: a key must be in one line, and ${SAME_COLUMN}` };
  }
  const message = `wrong indentation: this line is indented by ${spaces(below)}, but the key "${key}" above, indented by ${spaces(indent)}, has a value already; ${SAME_COLUMN}`;
  return { offset: next + below, message };
}

function spaces(count: number): string {
  return count === 1 ? '1 space' : `${count} spaces`;
}

function describeIndent(text: string, { pos: [offset], message }: YAMLError): SyntaxError {
  const line = lineAt(text, offset);
  const at = line.trim() === '' ? offset : lineStart(text, offset) + keyColumn(line);
  const found = (why: string): SyntaxError => ({
    offset: at,
    message: `wrong indentation: ${why}`,
  });
  if (/sequence items/.test(message)) return found(SAME_ITEM_COLUMN);
  if (/block scalar/i.test(message)) return found('a text after | or > must be indented evenly');
  return found(SAME_COLUMN);
}

function describeEscape(text: string, { pos: [offset] }: YAMLError): SyntaxError {
  const message = `the escape ${text.slice(offset, offset + 2)} does not exist in double quotes; write the backslash twice, or use single quotes`;
  return { offset, message };
}

function describeStart(text: string, { pos: [offset] }: YAMLError): SyntaxError {
  return {
    offset,
    message: `a value must not begin with ${text.charAt(offset)}; put it into quotes`,
  };
}

function describeMissing(text: string, { pos: [offset], message }: YAMLError): SyntaxError {
  const line = lineAt(text, offset);
  const found = (why: string): SyntaxError => ({ offset, message: why });
  if (/^Comments/.test(message)) {
    return found('a space is missing before #; put a value that contains # into quotes');
  }
  if (/^Missing space after :/.test(message)) return found(SPACE_AFTER_COLON);
  if (/^Missing ,/.test(message)) return found('a comma is missing before this');
  if (/^Missing closing/.test(message)) return found('the closing quote is missing');
  if (/must end with/.test(message)) return found('the closing bracket is missing');
  if (/^Sequence item/.test(message)) {
    return found('this line must begin with "- ", like the items of the list above');
  }
  if (LACKS_SPACE.test(line)) return found(SPACE_AFTER_COLON);
  if (/^Implicit map keys/.test(message)) {
    return found(LACKS_COLON);
  }
  return found('a space or a separator is missing here');
}

function describeUnexpected(text: string, { pos: [offset], message }: YAMLError): SyntaxError {
  const mark = text.charAt(offset);
  const found = (why: string): SyntaxError => ({ offset, message: why });
  if (mark === ']' || mark === '}') return found(`the bracket ${mark} closes nothing; remove it`);
  if (mark === ',') return found('a comma has nothing to separate; remove it');
  if (/^Block scalar header/.test(message)) {
    return found('unexpected text after | or >; the text begins in the next line');
  }
  return found('unexpected text after the value; put the whole value into one pair of quotes');
}
