// Where a value stands in its YAML file: line and column by path, for every fault of every check.
// Only looks up; reading and refusing is yaml.ts. Positions count from 1.

import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type Node } from 'yaml';
import type { Diagnostic, FilePath, PathDiagnostic } from './fault.js';

export type Position = { readonly line: number; readonly column: number };

/** Finds the place of a path; of a path that is not in the file, the place of its nearest parent. */
export type Locate = (path: FilePath, at: 'key' | 'value') => Position;

const START: Position = { line: 1, column: 1 };

/** A lookup over one parsed document. Follows aliases to what they name. */
export function locateIn(document: Document, lines: LineCounter): Locate {
  return (path, at) => {
    let node: unknown = document.contents;
    let key: unknown;
    for (const step of path) {
      const next = descend(document, node, step);
      if (next === undefined) return place(lines, key ?? document.contents);
      key = next.key;
      node = next.value;
    }
    return place(lines, at === 'value' ? (node ?? key) : (key ?? node));
  };
}

/** Gives a fault of a path its file, line and column. */
export function placeDiagnostic(
  file: string,
  locate: Locate,
  diagnostic: PathDiagnostic,
): Diagnostic {
  const { path, at, ...rest } = diagnostic;
  return { file, ...locate(path, at), ...rest };
}

function descend(
  document: Document,
  parent: unknown,
  step: string | number,
): { key: unknown; value: unknown } | undefined {
  const node = isAlias(parent) ? parent.resolve(document) : parent;
  if (isMap(node)) {
    const pair = node.items.find((item) => isScalar(item.key) && item.key.value === String(step));
    return pair === undefined ? undefined : { key: pair.key, value: pair.value };
  }
  if (isSeq(node) && typeof step === 'number') {
    const item = node.items[step];
    return item === undefined ? undefined : { key: item, value: item };
  }
  return undefined;
}

function place(lines: LineCounter, node: unknown): Position {
  const range = (node as Node | null | undefined)?.range;
  if (!range) return START;
  const { line, col } = lines.linePos(range[0]);
  return line === 0 ? START : { line, column: col };
}
