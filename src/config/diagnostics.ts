// Shows faults: as lines for people, as JSON, and as SARIF 2.1.0 for code scanning.
// Renders only; what a fault may say is decided where it is found. docs/contract.md §1 fixes the line.

import { isAbsolute, relative, sep } from 'node:path';

// A mistake in a file that an operator wrote: where, how bad, what, and what was perhaps meant.
// A fault never quotes a secret, and never a value from a place where a secret could stand.
// docs/contract.md §1 (`validate`) fixes how faults are shown; report.ts renders them.

/** What kind of mistake it is: the rule id of machine-readable reports. Closed and append-only. */
type DiagnosticRule =
  | 'unreadable'
  | 'yaml'
  | 'unknown-key'
  | 'missing-key'
  | 'wrong-value'
  | 'not-available'
  | 'unknown-name'
  | 'secret'
  | 'unsafe'
  | 'conflict'
  | 'policy'
  | 'lock'
  | 'certificate';

export type Severity = 'error' | 'warning';

export type Diagnostic = {
  readonly file: string;
  /** Both count from 1. A fault of a whole file stands at 1:1. */
  readonly line: number;
  readonly column: number;
  readonly severity: Severity;
  readonly rule: DiagnosticRule;
  readonly message: string;
  readonly suggestion?: string;
};

/** A place in a YAML document: member names and list positions from the root. */
export type FilePath = readonly (string | number)[];

/** A mistake found in the values of a file, before it is given its line and column. */
export type PathDiagnostic = {
  readonly path: FilePath;
  /** Whether the mistake is the key or its value. */
  readonly at: 'key' | 'value';
  readonly severity: Severity;
  readonly rule: DiagnosticRule;
  readonly message: string;
  readonly suggestion?: string;
};

/** How a check reports: the place, the words, and what differs from an error of a value. */
export type Report = (
  path: FilePath,
  message: string,
  more?: Partial<Pick<PathDiagnostic, 'at' | 'severity' | 'rule' | 'suggestion'>>,
) => void;

/** A fault of a whole file. */
export function fileDiagnostic(file: string, rule: DiagnosticRule, message: string): Diagnostic {
  return { file, line: 1, column: 1, severity: 'error', rule, message };
}

/** True when at least one fault forbids using what was read. */
export function hasErrors(diagnostics: readonly { readonly severity: Severity }[]): boolean {
  return diagnostics.some((diagnostic) => diagnostic.severity === 'error');
}

/** In the order a reader meets them: by file, line, column, then text. */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return [...diagnostics].sort(
    (a, b) =>
      compare(a.file, b.file) ||
      a.line - b.line ||
      a.column - b.column ||
      compare(a.message, b.message),
  );
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export type ReportFormat = 'text' | 'json' | 'sarif';
export const REPORT_FORMATS: readonly ReportFormat[] = ['text', 'json', 'sarif'];

/** Faults in a format. Files below `folder` are named relative to it. Ends with a line feed unless empty. */
export function renderDiagnostics(
  diagnostics: readonly Diagnostic[],
  format: ReportFormat,
  folder: string,
): string {
  const named = diagnostics.map((diagnostic) => ({
    ...diagnostic,
    file: nameFile(diagnostic.file, folder),
  }));
  switch (format) {
    case 'text':
      return named.map((diagnostic) => `${renderLine(diagnostic)}\n`).join('');
    case 'json':
      return `${JSON.stringify({ faults: named }, null, 2)}\n`;
    case 'sarif':
      return `${JSON.stringify(renderSarif(named), null, 2)}\n`;
  }
}

/** `file:line:col error text; did you mean "…"?` */
export function renderLine(diagnostic: Diagnostic): string {
  const { file, line, column, severity, message, suggestion } = diagnostic;
  const suggestionText = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`;
  return escapeControls(`${file}:${line}:${column} ${severity} ${message}${suggestionText}`);
}

/** Files name themselves, and names may hold anything: a line stays one line and moves no cursor. */
function escapeControls(line: string): string {
  return line.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

function nameFile(file: string, folder: string): string {
  if (!isAbsolute(file)) return file;
  const path = relative(folder, file);
  return path === '' || path === '..' || path.startsWith(`..${sep}`) ? file : path;
}

function renderSarif(diagnostics: readonly Diagnostic[]): object {
  const ids = [...new Set(diagnostics.map((diagnostic) => diagnostic.rule))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'sallyport', rules: ids.map((id) => ({ id })) } },
        columnKind: 'utf16CodeUnits',
        results: diagnostics.map((diagnostic) => ({
          ruleId: diagnostic.rule,
          ruleIndex: ids.indexOf(diagnostic.rule),
          level: diagnostic.severity,
          message: { text: textOf(diagnostic) },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: uriOf(diagnostic.file) },
                region: { startLine: diagnostic.line, startColumn: diagnostic.column },
              },
            },
          ],
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
