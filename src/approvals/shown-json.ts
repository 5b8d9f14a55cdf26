// JSON as a person reads it who has to approve it: exactly what is written, indented, with what cannot be seen as escapes
// and with letters that look like others marked. A page has a bound; whatever is left out on it is named with its size and
// a link to a page of its own, so that nothing is shortened unsaid. Made from the text by spans, never from a parsed value,
// so that numbers and the order of members are those that are sent. RFC 8259; RFC 6901; Unicode TR 39.

import { type Html, html } from '../http/html.js';
import { isConfusable } from '../inspection/detectors/unicode.js';
import { elementSpans, memberSpans } from '../protocol/json/json.js';
import { escapeForTerminal, makeVisible } from '../text/escaping.js';
import { pointerTo } from '../text/json-members.js';
import type { Span } from '../text/span.js';
import { countOf } from '../text/wording.js';
import { spanAt } from './masking.js';

export type ShownText = {
  readonly text: string;
  /** JSON pointers to what is hidden, with everything below; empty once the person has asked for it. */
  readonly hidden: readonly string[];
  /** Notes at values, by pointer. */
  readonly notes: ReadonlyMap<string, readonly string[]>;
  /** The link to a page of one value, whose members begin at `from`. */
  readonly linkTo: (pointer: string, from?: number) => string;
  /** The link to the same page with what is hidden. */
  readonly revealed: string;
};

/** Members and items that one page shows, at most. */
const MAX_ROWS = 400;
/** Characters of all texts of one page together, and of one text on a page that is not its own. */
const MAX_CHARACTERS = 60_000;
const MAX_TEXT = 2_000;
/** Members or items of a value inside another one: more would push what follows it out of sight. */
const MAX_NESTED_ROWS = 50;
/** Levels that one page shows. */
const MAX_DEPTH = 24;

type Budget = { rows: number; characters: number };

/** A value of the text; `undefined` where the pointer leads nowhere. `from`: the first member of a value with a page of its own. */
export function shownJson(shown: ShownText, pointer = '', from = 0): Html | undefined {
  const span = spanAt(shown.text, pointer);
  if (span === undefined) return undefined;
  const budget = { rows: MAX_ROWS, characters: MAX_CHARACTERS };
  const place = { span, pointer, depth: 0, from, isAlone: pointer !== '' };
  const body = isHidden(shown, pointer) ? hiddenValue(shown, span) : shownValue(shown, place, budget);
  return html`<pre class="whole" tabindex="0">${body}${notesAt(shown, pointer)}</pre>`;
}

/** What a value is and how long, as a phrase. */
export function sizeText(text: string, pointer = ''): string | undefined {
  const span = spanAt(text, pointer);
  return span && describe(text, span);
}

type Place = {
  readonly span: Span;
  readonly pointer: string;
  readonly depth: number;
  readonly from: number;
  /** The whole text, however long. */
  readonly isAlone: boolean;
};

function shownValue(shown: ShownText, place: Place, budget: Budget): Html {
  const { text } = shown;
  const { span, pointer } = place;
  const length = span.end - span.start;
  switch (text[span.start]) {
    case '{': {
      const members = memberSpans(text, span).map(({ name, value }) => ({
        span: value,
        pointer: pointerTo(pointer, name),
        label: html`<bdi>${marked(quoted(name))}</bdi>: `,
        labelLength: name.length,
      }));
      return childrenOf(shown, place, members, ['{', '}'], budget);
    }
    case '[': {
      const items = elementSpans(text, span).map((item, at) => ({
        span: item,
        pointer: pointerTo(pointer, String(at)),
        label: undefined,
        labelLength: 0,
      }));
      return childrenOf(shown, place, items, ['[', ']'], budget);
    }
    default:
      if (!place.isAlone && (length > MAX_TEXT || length > budget.characters)) return elsewhere(shown, span, pointer);
      budget.characters -= length;
      return scalarValue(text, place);
  }
}

type Child = {
  readonly span: Span;
  readonly pointer: string;
  readonly label: Html | undefined;
  readonly labelLength: number;
};

function childrenOf(
  shown: ShownText,
  { pointer, depth, from }: Place,
  children: readonly Child[],
  [open, close]: readonly [string, string],
  budget: Budget,
): Html {
  if (children.length === 0) return html`${open}${close}`;
  const indent = '  '.repeat(depth + 1);
  const rows: Html[] = [];
  let at = from;
  for (; at < children.length && hasRoom(budget); at += 1) {
    const child = children[at];
    if (child === undefined) break;
    budget.rows -= 1;
    budget.characters -= child.labelLength;
    rows.push(html`${indent}${child.label}${childValue(shown, child, depth + 1, budget)}${at + 1 < children.length ? ',' : ''}${notesAt(shown, child.pointer)}
`);
  }
  const before = from === 0 ? undefined : rest(shown, pointer, 0, from, children.length, indent);
  const after = at >= children.length ? undefined : rest(shown, pointer, at, children.length, children.length, indent);
  return html`${open}
${before}${rows}${after}${'  '.repeat(depth)}${close}`;
}

function hasRoom({ rows, characters }: Budget): boolean {
  return rows > 0 && characters > 0;
}

/** What of a list or an object stands on other pages. */
function rest(shown: ShownText, pointer: string, from: number, to: number, all: number, indent: string): Html {
  return html`${indent}<span class="elsewhere">… ${from + 1} to ${to} of ${all}: <a href="${shown.linkTo(pointer, from)}">show them</a></span>
`;
}

function childValue(shown: ShownText, { span, pointer }: Child, depth: number, budget: Budget): Html {
  if (isHidden(shown, pointer)) return hiddenValue(shown, span);
  const count = countIn(shown.text, span);
  if (count > MAX_NESTED_ROWS || (count > 0 && depth >= MAX_DEPTH)) return elsewhere(shown, span, pointer);
  return shownValue(shown, { span, pointer, depth, from: 0, isAlone: false }, budget);
}

function elsewhere(shown: ShownText, span: Span, pointer: string): Html {
  return html`<span class="elsewhere">${describe(shown.text, span)}: <a href="${shown.linkTo(pointer)}">show it whole</a></span>`;
}

function scalarValue(text: string, { span, isAlone }: Place): Html {
  if (text[span.start] !== '"') return html`${text.slice(span.start, span.end)}`;
  const literal = marked(quoted(decode(text, span)));
  // Where it stands alone, a line of the text begins a line of the page; the escape still says that there is one.
  return html`<bdi>${isAlone ? brokenLines(literal) : literal}</bdi>`;
}

function hiddenValue(shown: ShownText, span: Span): Html {
  return html`<span class="elsewhere">hidden, because it is marked as sensitive (${describe(shown.text, span)}): <a href="${shown.revealed}">show what is hidden</a></span>`;
}

function notesAt({ notes }: ShownText, pointer: string): Html | undefined {
  const found = notes.get(pointer);
  return found && html` <strong class="note">← ${found.join('; ')}</strong>`;
}

function isHidden({ hidden }: ShownText, pointer: string): boolean {
  return hidden.some((one) => pointer === one || pointer.startsWith(`${one}/`));
}

/** How many members or items a value has. */
function countIn(text: string, span: Span): number {
  if (text[span.start] === '{') return memberSpans(text, span).length;
  return text[span.start] === '[' ? elementSpans(text, span).length : 0;
}

function decode(text: string, { start, end }: Span): string {
  return String(JSON.parse(text.slice(start, end)));
}

function describe(text: string, span: Span): string {
  switch (text[span.start]) {
    case '{':
      return `an object with ${countOf(countIn(text, span), 'member')}, ${countOf(span.end - span.start, 'character')} as JSON`;
    case '[':
      return `a list with ${countOf(countIn(text, span), 'item')}, ${countOf(span.end - span.start, 'character')} as JSON`;
    case '"': {
      const value = decode(text, span);
      return `a text of ${countOf(value.length, 'character')} in ${countOf(value.split('\n').length, 'line')}`;
    }
    default:
      return `a value of ${countOf(span.end - span.start, 'character')}`;
  }
}

/** Marks that pile up over a letter hide what is beside it. */
const PILED_MARKS = /\p{M}{3,}/gu;

/** A text as JSON has it, with what cannot be seen as escapes: a backslash of the text itself is always doubled. */
function quoted(text: string): string {
  const visible = makeVisible(escapeForTerminal(JSON.stringify(text)));
  return visible.replace(PILED_MARKS, (marks) => [...marks].map(escaped).join(''));
}

function escaped(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

const TOKEN = /[\p{L}\p{N}_]+/gu;

/** Letters of other scripts that look like Latin ones, with their code points beside them. */
function marked(literal: string): readonly (Html | string)[] {
  const parts: (Html | string)[] = [];
  let at = 0;
  for (const { 0: token, index } of literal.matchAll(TOKEN)) {
    if (!isMistakable(token)) continue;
    parts.push(literal.slice(at, index), ...[...token].map(markedLetter));
    at = index + token.length;
  }
  parts.push(literal.slice(at));
  return parts;
}

/** A word that mixes Latin letters with such ones, or has no others. */
function isMistakable(token: string): boolean {
  const letters = [...token].filter((letter) => /\p{L}/u.test(letter));
  const foreign = letters.filter(looksLatin);
  return foreign.length > 0 && letters.every((letter) => letter <= '\u007f' || looksLatin(letter));
}

function looksLatin(letter: string): boolean {
  const code = letter.codePointAt(0) ?? 0;
  return code > 0x7f && isConfusable(code);
}

function markedLetter(letter: string): Html | string {
  if (!looksLatin(letter)) return letter;
  const code = (letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return html`<mark>${letter}</mark><span class="code-point">U+${code}</span>`;
}

function brokenLines(parts: readonly (Html | string)[]): readonly (Html | string)[] {
  return parts.map((part) => (typeof part === 'string' ? part.replace(LINE_END, (end) => `${end}\n`) : part));
}

/** An escaped line end, not one behind a doubled backslash. */
const LINE_END = /(?<!\\)(?:\\\\)*\\n/g;
