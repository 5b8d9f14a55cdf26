// Renders the difference of two definitions line by line, for a terminal or a report. Escapes control
// sequences and invisible characters. Pure, with bounded work.

import type { Json } from '../protocol/jsonrpc.js';
import { escapeForTerminal } from '../text/escaping.js';
import { sortMembers } from './schema-comparison.js';

/** Above this product of line counts, both sides are shown completely, one after the other. */
const MAX_TABLE_CELLS = 4_000_000;

export type DiffLine = { readonly sign: ' ' | '-' | '+'; readonly text: string };

/** The diff of both definitions, with sorted members and texts split at their own line ends. */
export function diffDefinitions(
  before: Json | undefined,
  after: Json | undefined,
): readonly DiffLine[] {
  return diffLines(definitionLines(before), definitionLines(after));
}

/** Only the changed lines, each with up to `context` unchanged lines around it. */
export function changedLines(lines: readonly DiffLine[], context: number): readonly DiffLine[] {
  const kept = new Set<number>();
  for (const [index, line] of lines.entries()) {
    if (line.sign === ' ') continue;
    for (let near = index - context; near <= index + context; near += 1) kept.add(near);
  }
  return lines.filter((_, index) => kept.has(index));
}

/** The line as printed: its sign and the escaped text. */
export function printDiffLine({ sign, text }: DiffLine): string {
  return `${sign} ${escapeForTerminal(text)}`;
}

function definitionLines(value: Json | undefined): readonly string[] {
  if (value === undefined) return [];
  const lines: string[] = [];
  writeLines('', '', sortMembers(value), lines);
  return lines;
}

function writeLines(indent: string, label: string, value: Json, lines: string[]): void {
  if (typeof value === 'string') {
    const [first = '', ...rest] = value.split('\n');
    lines.push(`${indent}${label}${first}`, ...rest.map((line) => `${indent}  ${line}`));
  } else if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
    lines.push(`${indent}${label}${JSON.stringify(value)}`);
  } else {
    writeMembers(indent, label, value, lines);
  }
}

function writeMembers(indent: string, label: string, value: object, lines: string[]): void {
  if (label !== '') lines.push(`${indent}${label.trimEnd()}`);
  const inner = label === '' ? indent : `${indent}  `;
  const isList = Array.isArray(value);
  for (const [key, child] of Object.entries(value)) {
    writeLines(inner, isList ? '- ' : `${key}: `, child, lines);
  }
}

/** The difference of two lists of lines. */
export function diffLines(
  before: readonly string[],
  after: readonly string[],
): readonly DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) {
    start += 1;
  }
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return [
    ...signed(' ', before.slice(0, start)),
    ...diffMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...signed(' ', before.slice(before.length - end)),
  ];
}

function signed(sign: DiffLine['sign'], texts: readonly string[]): readonly DiffLine[] {
  return texts.map((text) => ({ sign, text }));
}

/** Diffs by the longest common subsequence of lines (table of lengths). */
function diffMiddle(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  if (before.length * after.length > MAX_TABLE_CELLS) {
    return [...signed('-', before), ...signed('+', after)];
  }
  const width = after.length + 1;
  const table = new Uint32Array((before.length + 1) * width);
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      const below = table[(row + 1) * width + column] ?? 0;
      const right = table[row * width + column + 1] ?? 0;
      const isSame = before[row] === after[column];
      const diagonal = table[(row + 1) * width + column + 1] ?? 0;
      table[row * width + column] = isSame ? diagonal + 1 : Math.max(below, right);
    }
  }
  return walkTable(before, after, table, width);
}

function walkTable(
  before: readonly string[],
  after: readonly string[],
  table: Uint32Array,
  width: number,
): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < before.length && column < after.length) {
    const text = before[row] ?? '';
    if (text === after[column]) {
      lines.push({ sign: ' ', text });
      row += 1;
      column += 1;
    } else if ((table[(row + 1) * width + column] ?? 0) >= (table[row * width + column + 1] ?? 0)) {
      lines.push({ sign: '-', text });
      row += 1;
    } else {
      lines.push({ sign: '+', text: after[column] ?? '' });
      column += 1;
    }
  }
  return [...lines, ...signed('-', before.slice(row)), ...signed('+', after.slice(column))];
}
