// A mistake in a file that an operator wrote: where, how bad, what, and what was perhaps meant.
// A fault never quotes a secret, and never a value from a place where a secret could stand.
// Contract §1 (`validate`) fixes how faults are shown; report.ts renders them.

/** What kind of mistake it is: the rule id of machine-readable reports. Closed and append-only. */
export type DiagnosticRule =
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
