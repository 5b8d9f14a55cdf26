// Diagnostics: errors, warnings and notes about files that an operator wrote, each with position, rule, message
// and suggestion, and their rendering as text, JSON and SARIF 2.1.0. A diagnostic never quotes a secret,
// nor a value from a position where a secret could be. docs/reference/commands.md#validate fixes the format.

import { isAbsolute, relative, sep } from 'node:path';
import { toVisibleJson } from '../text/escaping.js';
import { countOf } from '../text/wording.js';
import type { Position, YamlPath } from '../text/yaml.js';

/** The kind of mistake: the rule id of machine-readable reports. Append-only. */
type DiagnosticRule =
  | 'unreadable'
  | 'yaml'
  | 'unknown-key'
  | 'missing-key'
  | 'wrong-value'
  | 'unknown-name'
  | 'secret'
  | 'unsafe'
  | 'conflict'
  | 'policy'
  | 'lock'
  | 'certificate'
  | 'online';

/** A note changes no exit code, also with `--strict`. */
export type Severity = 'error' | 'warning' | 'note';

type Finding = {
  readonly severity: Severity;
  readonly rule: DiagnosticRule;
  readonly message: string;
  readonly suggestion?: string | undefined;
};

/** A diagnostic of a whole file has the position 1:1. */
export type Diagnostic = Finding & Position & { readonly file: string };

/** A path in a YAML document: keys and list indexes from the root. */
export type FilePath = YamlPath;

/** A diagnostic that has a path but no line and column yet. */
export type PathDiagnostic = Finding & {
  readonly path: FilePath;
  /** Whether the key or its value is wrong. */
  readonly at: 'key' | 'value';
};

/** How a check reports an error at a path. Without a rule, it is a wrong value. */
export type ReportDiagnostic = (
  path: FilePath,
  message: string,
  rule?: DiagnosticRule,
  more?: {
    readonly at?: PathDiagnostic['at'];
    readonly severity?: Severity;
    readonly suggestion?: string | undefined;
  },
) => void;

/** A diagnostic of a whole file. */
export function fileDiagnostic(file: string, rule: DiagnosticRule, message: string): Diagnostic {
  return { file, line: 1, column: 1, severity: 'error', rule, message };
}

export function errorsOf(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return diagnostics.filter(({ severity }) => severity === 'error');
}

/** True if at least one diagnostic is an error, so that what was read must not be used. */
export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return errorsOf(diagnostics).length > 0;
}

/** Sorts by file, line, column and message. */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return [...diagnostics].sort(
    (a, b) => compare(a.file, b.file) || a.line - b.line || a.column - b.column || compare(a.message, b.message),
  );
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** `1 error, 2 warnings`, and how many notes if there are any. */
export function countDiagnostics(diagnostics: readonly Diagnostic[]): string {
  const count = (severity: Severity): number =>
    diagnostics.filter((diagnostic) => diagnostic.severity === severity).length;
  const notes = count('note');
  const counts = [countOf(count('error'), 'error'), countOf(count('warning'), 'warning')];
  return [...counts, ...(notes === 0 ? [] : [countOf(notes, 'note')])].join(', ');
}

export type ReportFormat = 'text' | 'json' | 'sarif';
export const REPORT_FORMATS: readonly ReportFormat[] = ['text', 'json', 'sarif'];

/**
 * Renders diagnostics. Files below `folder` are shown relative to it. Ends with a line feed unless empty. `more`: members
 * that JSON has besides.
 */
export function renderDiagnostics(
  diagnostics: readonly Diagnostic[],
  format: ReportFormat,
  folder: string,
  more: object = {},
): string {
  const named = diagnostics.map((diagnostic) => ({
    ...diagnostic,
    file: nameFile(diagnostic.file, folder),
  }));
  switch (format) {
    case 'text':
      return named.map((diagnostic) => `${renderLine(diagnostic)}\n`).join('');
    case 'json':
      return `${toVisibleJson({ faults: named, ...more })}\n`;
    case 'sarif':
      return `${toVisibleJson(renderSarif(named))}\n`;
  }
}

/** `file:line:col error text; did you mean "…"?` */
function renderLine(diagnostic: Diagnostic): string {
  const { file, line, column, severity } = diagnostic;
  return escapeControls(`${file}:${line}:${column} ${severity} ${textOf(diagnostic)}`);
}

/** File names can hold any character: control and line separators are escaped, so that a line stays one line. */
function escapeControls(line: string): string {
  return line.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** A file below `folder` relative to it. */
export function nameFile(file: string, folder: string): string {
  if (!isAbsolute(file)) return file;
  const path = relative(folder, file);
  return path === '' || path === '..' || path.startsWith(`..${sep}`) ? file : path;
}

function renderSarif(diagnostics: readonly Diagnostic[]): object {
  const results = diagnostics.map((diagnostic): SarifResult => {
    const { file, line, column, rule, severity: level } = diagnostic;
    return { file, line, column, rule, level, text: textOf(diagnostic) };
  });
  return sarifLog(results);
}

export type SarifResult = Position & {
  /** Absolute, or relative to the folder that the reader knows. */
  readonly file: string;
  readonly rule: string;
  readonly level: Severity;
  readonly text: string;
  /** Equal in the reports of two runs that found the same. */
  readonly fingerprint?: string;
  /** Of any shape, for machines. */
  readonly properties?: object;
};

/** A SARIF 2.1.0 log of one run. `descriptions` has a sentence for rules that need one. */
export function sarifLog(
  results: readonly SarifResult[],
  descriptions: { readonly [rule: string]: string } = {},
): object {
  const ids = [...new Set(results.map(({ rule }) => rule))].sort();
  const rules = ids.map((id) => {
    const text = descriptions[id];
    return text === undefined ? { id } : { id, shortDescription: { text } };
  });
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'sallyport', rules } },
        columnKind: 'utf16CodeUnits',
        results: results.map(({ rule, level, text, file, line, column, ...more }) => ({
          ruleId: rule,
          ruleIndex: ids.indexOf(rule),
          level,
          message: { text },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: uriOf(file) },
                region: { startLine: line, startColumn: column },
              },
            },
          ],
          ...(more.fingerprint === undefined ? {} : { partialFingerprints: { 'sallyport/v1': more.fingerprint } }),
          ...(more.properties === undefined ? {} : { properties: more.properties }),
        })),
      },
    ],
  };
}

function textOf({ message, suggestion }: Diagnostic): string {
  return suggestion === undefined ? message : `${message}; did you mean "${suggestion}"?`;
}

function uriOf(file: string): string {
  const path = file.split(sep).map(encodeURIComponent).join('/');
  return isAbsolute(file) ? `file://${path}` : path;
}
