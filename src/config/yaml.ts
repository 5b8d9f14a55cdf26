// Reads the YAML of a file that an operator wrote, with diagnostics in place of mistakes. text/yaml.ts has what
// is accepted. docs/contract.md §3.

import { type Locate, readYaml, type YamlLimits } from '../text/yaml.js';
import { type Diagnostic, fileDiagnostic, type PathDiagnostic } from './diagnostics.js';
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
  const { path, at, refersTo: _, ...rest } = diagnostic;
  return { file, ...locate(path, at), ...rest };
}
