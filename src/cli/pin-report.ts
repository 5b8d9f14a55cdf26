// Prints what the `pin` commands found, for people and as JSON. Names, texts and definitions come from
// upstreams: everything printed for people is escaped for terminals.

import { escapeForTerminal } from '../pins/characters.js';
import { changedLines, diffDefinitions, printDiffLine } from '../pins/diff.js';
import type { Difference } from '../pins/drift.js';

/** Unchanged lines shown around a changed one. */
const CONTEXT_LINES = 2;

export type UpstreamDifferences = {
  readonly upstream: string;
  readonly differences: readonly Difference[];
};

/** One line a difference: what it is about, its classes, and both digests. */
export function differenceLine(upstream: string, difference: Difference): string {
  const { kind, name, changes, before, after } = difference;
  const what = `${upstream} ${kind} ${escapeForTerminal(name)}`;
  return `${what}: ${changes.join(', ')} (${digestText(before)} -> ${digestText(after)})\n`;
}

/** A digest as commands take it. */
export function digestText(digest: string | undefined): string {
  return digest === undefined ? 'none' : `sha256:${digest}`;
}

/** The difference and its changed lines, indented below it. */
export function differenceText(upstream: string, difference: Difference): string {
  const lines = differenceLines(difference).map((line) => `  ${printDiffLine(line)}\n`);
  return differenceLine(upstream, difference) + lines.join('');
}

function differenceLines({ beforeDefinition, afterDefinition }: Difference) {
  return changedLines(diffDefinitions(beforeDefinition, afterDefinition), CONTEXT_LINES);
}

/** All differences as one JSON document. Control characters are escaped by JSON itself. */
export function differencesJson(found: readonly UpstreamDifferences[], withLines: boolean): string {
  const upstreams = found.map(({ upstream, differences }) => ({
    upstream,
    differences: differences.map((difference) => ({
      kind: difference.kind,
      name: difference.name,
      change: difference.change,
      changes: difference.changes,
      before: difference.before ?? null,
      after: difference.after ?? null,
      ...(withLines ? { lines: differenceLines(difference) } : {}),
    })),
  }));
  return `${JSON.stringify({ upstreams }, null, 2)}\n`;
}
