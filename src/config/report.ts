// Shows faults: as lines for people, as JSON, and as SARIF 2.1.0 for code scanning.
// Renders only; what a fault may say is decided where it is found. Contract §1 fixes the line.

import { isAbsolute, relative, sep } from 'node:path';
import type { Diagnostic } from './fault.js';

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
