// Careful reading of a file whose shape may be wrong: checks look at what is right and skip the rest,
// so that one run finds every mistake. Never throws, never guesses.

import type { FilePath } from './fault.js';

export type Tree = { readonly [key: string]: unknown };

/** The map at a path, or an empty one. */
export function mapAt(root: unknown, path: FilePath): Tree {
  const value = valueAt(root, path);
  return isTree(value) ? value : {};
}

/** The texts of the list at a path, with their positions in the list. */
export function textsAt(root: unknown, path: FilePath): readonly (readonly [number, string])[] {
  const value = valueAt(root, path);
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index) =>
    typeof item === 'string' ? [[index, item] as const] : [],
  );
}

/** The text at a path, if it is text and not empty. */
export function textAt(root: unknown, path: FilePath): string | undefined {
  const value = valueAt(root, path);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Whatever stands at a path; `undefined` where the path leads nowhere. */
export function valueAt(root: unknown, path: FilePath): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
      return undefined;
    value = (value as Readonly<Record<string | number, unknown>>)[step];
  }
  return value;
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
