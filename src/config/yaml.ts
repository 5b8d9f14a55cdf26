// Reads the YAML of a file that an operator wrote, with diagnostics in place of mistakes; and looks up values
// in trees whose shape may be wrong. text/yaml.ts has what is accepted. docs/contract.md §3.

import { type Locate, readYaml, type YamlLimits } from '../text/yaml.js';
import {
  type Diagnostic,
  type FilePath,
  fileDiagnostic,
  type PathDiagnostic,
} from './diagnostics.js';
import { decodeUtf8 } from './files.js';

export const MAX_FILE_BYTES = 1024 * 1024;
export const MAX_VALUES = 100_000;
const LIMITS: YamlLimits = { maxDepth: 64, maxValues: MAX_VALUES, isGenerated: false };

type YamlFile = { readonly value: unknown; readonly locate: Locate };

/**
 * The plain values of a YAML file. `source` is `undefined` if there is any error; `diagnostics` then has
 * the errors.
 */
export function readYamlFile(
  file: string,
  bytes: Uint8Array,
): { readonly source: YamlFile | undefined; readonly diagnostics: readonly Diagnostic[] } {
  const refuse = (message: string) => ({
    source: undefined,
    diagnostics: [fileDiagnostic(file, 'yaml', message)],
  });
  if (bytes.byteLength > MAX_FILE_BYTES) {
    return refuse(`the file is larger than ${MAX_FILE_BYTES} bytes`);
  }
  const text = decodeUtf8(bytes);
  if (text === undefined) return refuse('the file is not UTF-8 text');
  const reading = readYaml(text, LIMITS);
  if (reading.ok) return { source: reading, diagnostics: [] };
  const diagnostics = reading.mistakes.map((mistake): Diagnostic => {
    const { line, column, message } = mistake;
    return { file, line, column, severity: 'error', rule: 'yaml', message };
  });
  return { source: undefined, diagnostics };
}

/** Gives a diagnostic that has a path its file, line and column. */
export function locateDiagnostic(
  file: string,
  locate: Locate,
  diagnostic: PathDiagnostic,
): Diagnostic {
  const { path, at, ...rest } = diagnostic;
  return { file, ...locate(path, at), ...rest };
}

type Tree = { readonly [key: string]: unknown };

/**
 * The map at a path, or an empty one. This and the following lookups skip values of the wrong shape, so that
 * one run of the checks finds every mistake.
 */
export function mapAt(root: unknown, path: FilePath): Tree {
  const value = valueAt(root, path);
  return isTree(value) ? value : {};
}

/** The text items of the list at a path, with their indexes. */
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

/** The value at a path, or `undefined` if the path does not exist. */
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
