// The table of what is to be reviewed as a terminal shows it, in 80 columns: a row for each definition, and below it what
// a reader must not miss. Everything from an upstream is escaped. docs/guides/reviewing-drift.md.

import type { ReviewRow } from '../../pins/review-table.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { countOf, wrapText } from '../../text/wording.js';
import { digestText } from './lock-files.js';

const MAX_NAME_WIDTH = 32;
const COLUMNS = [8, 4, 10, 6] as const;

/** The rows, and a last line with what the definitions lack; nothing without rows. */
export function reviewTableText(rows: readonly ReviewRow[]): string {
  if (rows.length === 0) return '';
  const names = rows.map(({ name }) => escapeForTerminal(name).length);
  const width = Math.max(
    'NAME'.length,
    Math.min(
      MAX_NAME_WIDTH,
      names.reduce((one, other) => Math.max(one, other), 0),
    ),
  );
  const head = lineOf('NAME', ['EFFECT', 'TEXT', 'FINDINGS', 'SIZE', 'STATE'], width);
  const lines = rows.flatMap((row) => [rowLine(row, width), ...remarksOn(row)]);
  return `${[head, ...lines, ...summaryOf(rows)].join('\n')}\n`;
}

function rowLine(row: ReviewRow, width: number): string {
  const name = escapeForTerminal(row.name);
  const cells = cellsOf(row);
  // Two long names may differ only at their ends, so that none is cut.
  if (name.length <= width) return lineOf(name, cells, width);
  return [...wrapText(name, ''), lineOf('', cells, width)].join('\n');
}

/** What each row says, in the order of the columns. */
export function cellsOf(row: ReviewRow): readonly string[] {
  const { kind, effect, freeText, size, isChanged } = row;
  const text = freeText === 0 ? '-' : String(freeText);
  return [effect ?? kind, text, findingsIn(row), sizeText(size), isChanged ? 'changed' : 'new'];
}

function lineOf(name: string, cells: readonly string[], width: number): string {
  const padded = cells.map((cell, at) => cell.padEnd(COLUMNS[at] ?? 0));
  return [name.padEnd(width), ...padded].join('  ').trimEnd();
}

function findingsIn({ findings: { block, review } }: ReviewRow): string {
  if (block > 0) return `${block} block`;
  return review > 0 ? `${review} review` : '-';
}

function sizeText(characters: number): string {
  return characters < 1_000 ? String(characters) : `${(characters / 1_000).toFixed(1)}k`;
}

function remarksOn({ shownAs, contradiction, isChanged, changes, digest }: ReviewRow): string[] {
  return [
    ...(contradiction === undefined ? [] : wrapText(`contradiction: ${escapeForTerminal(contradiction)}`)),
    ...(shownAs === undefined ? [] : wrapText(`clients know it as ${escapeForTerminal(shownAs)}`)),
    ...(isChanged && changes.length > 0 ? wrapText(`changed: ${changes.join(', ')}`) : []),
    ...(isChanged ? [`  -> ${digestText(digest)}`] : []),
  ];
}

/** What the rows have in common, in lines of 80 columns. */
function summaryOf(rows: readonly ReviewRow[]): readonly string[] {
  const notes = new Map<string, number>();
  for (const note of rows.flatMap((row) => row.notes)) {
    const what = /parameters?$/.test(note) ? 'many parameters' : note.replace(/^\d+ parameters? /, 'parameters ');
    notes.set(what, (notes.get(what) ?? 0) + 1);
  }
  const listed = [...notes].map(([what, count]) => `${count} ${what}`);
  const writing = rows.filter(({ effect }) => effect === 'writes').length;
  const unclear = rows.filter(({ effect }) => effect === 'unclear').length;
  const counts = `${countOf(rows.length, 'definition')}: ${writing} writing, ${unclear} unclear`;
  return [...wrapText(counts, ''), ...(listed.length === 0 ? [] : wrapText(`notes: ${listed.join('; ')}`, ''))];
}
