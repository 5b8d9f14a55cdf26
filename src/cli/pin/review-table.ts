// The table of what is to be reviewed as a terminal shows it, in 80 columns: a row for each definition, and below it what
// a reader must not miss. Everything from an upstream is escaped. docs/guides/reviewing-drift.md.

import { cellsOf, type ReviewRow } from '../../pins/review-table.js';
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

function lineOf(name: string, cells: readonly string[], width: number): string {
  const padded = cells.map((cell, at) => cell.padEnd(COLUMNS[at] ?? 0));
  return [name.padEnd(width), ...padded].join('  ').trimEnd();
}

function remarksOn({ shownAs, contradiction, isChanged, changes, digest }: ReviewRow): string[] {
  return [
    ...(contradiction === undefined ? [] : wrapText(`contradiction: ${escapeForTerminal(contradiction)}`)),
    ...(shownAs === undefined ? [] : shownLines(shownAs)),
    ...(isChanged && changes.length > 0 ? wrapText(`changed: ${changes.join(', ')}`) : []),
    ...(isChanged ? [`  -> ${digestText(digest)}`] : []),
  ];
}

function shownLines(shownAs: string): readonly string[] {
  return wrapText(`clients know it as ${escapeForTerminal(shownAs)}`);
}

/** The line below a tool that clients know by another name. */
export function shownAsText(name: string, shownAs: string | undefined): string {
  return shownAs === undefined || shownAs === name ? '' : `${shownLines(shownAs).join('\n')}\n`;
}

/** What the definitions lack and what is unusual about them, in lines of 80 columns; none if nothing is. */
export function notesText(rows: readonly Pick<ReviewRow, 'notes'>[]): readonly string[] {
  const notes = new Map<string, number>();
  for (const note of rows.flatMap((row) => row.notes)) {
    const what = /parameters?$/.test(note) ? 'many parameters' : note.replace(/^\d+ parameters? /, 'parameters ');
    notes.set(what, (notes.get(what) ?? 0) + 1);
  }
  const listed = [...notes].map(([what, count]) => `${count} ${what}`);
  return listed.length === 0 ? [] : wrapText(`notes: ${listed.join('; ')}`, '');
}

/** What the rows have in common, in lines of 80 columns. */
function summaryOf(rows: readonly ReviewRow[]): readonly string[] {
  const writing = rows.filter(({ effect }) => effect === 'writes').length;
  const unclear = rows.filter(({ effect }) => effect === 'unclear').length;
  const counts = `${countOf(rows.length, 'definition')}: ${writing} writing, ${unclear} unclear`;
  return [...wrapText(counts, ''), ...notesText(rows)];
}
