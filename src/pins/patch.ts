// A change of a lock file as a patch that `git apply` and `patch -p1` take. Lock files have one member per line and no
// invisible characters, so a patch of one can be read and copied. Pure.
// Unified format: GNU diffutils manual, "Detailed Description of Unified Format".

import { type DiffLine, diffLines } from './diff.js';

const CONTEXT_LINES = 3;

/** The patch from `before` (`undefined`: no such file) to `after`, which differ and end with a line end. */
export function unifiedPatch(path: string, before: string | undefined, after: string): string {
  const lines = diffLines(before === undefined ? [] : linesOf(before), linesOf(after));
  const from = before === undefined ? '/dev/null' : `a/${path}`;
  return [`--- ${from}`, `+++ b/${path}`, ...hunksOf(lines), ''].join('\n');
}

function linesOf(text: string): readonly string[] {
  return text.replace(/\n$/, '').split('\n');
}

/** The changed lines with their context; changes that are near each other share a hunk. */
function hunksOf(lines: readonly DiffLine[]): readonly string[] {
  const shown: string[] = [];
  let [oldLine, newLine, end] = [1, 1, 0];
  for (const [start, last] of spansOf(lines)) {
    const skipped = start - end;
    const hunk = lines.slice(start, last);
    const [removed, added] = [countOf(hunk, '-'), countOf(hunk, '+')];
    const [oldCount, newCount] = [hunk.length - added, hunk.length - removed];
    oldLine += skipped;
    newLine += skipped;
    shown.push(
      `@@ -${rangeOf(oldLine, oldCount)} +${rangeOf(newLine, newCount)} @@`,
      ...hunk.map(({ sign, text }) => sign + text),
    );
    oldLine += oldCount;
    newLine += newCount;
    end = last;
  }
  return shown;
}

/** An empty range names the line before it. */
function rangeOf(line: number, count: number): string {
  return `${count === 0 ? line - 1 : line},${count}`;
}

function countOf(lines: readonly DiffLine[], wanted: DiffLine['sign']): number {
  return lines.filter(({ sign }) => sign === wanted).length;
}

/** From and to of each hunk in `lines`. */
function spansOf(lines: readonly DiffLine[]): readonly (readonly [number, number])[] {
  const spans: [number, number][] = [];
  for (const [index, { sign }] of lines.entries()) {
    if (sign === ' ') continue;
    const from = Math.max(0, index - CONTEXT_LINES);
    const to = Math.min(lines.length, index + 1 + CONTEXT_LINES);
    const before = spans.at(-1);
    if (before !== undefined && from <= before[1]) before[1] = to;
    else spans.push([from, to]);
  }
  return spans;
}
