// Shows faults: as lines for people, as JSON, and as SARIF 2.1.0 for code scanning.
// Renders only; what a fault may say is decided where it is found. Contract §1 fixes the line.

import { isAbsolute, relative, sep } from 'node:path';
import type { Fault } from './fault.js';

export type ReportFormat = 'text' | 'json' | 'sarif';
export const REPORT_FORMATS: readonly ReportFormat[] = ['text', 'json', 'sarif'];

/** Faults in a format. Files below `folder` are named relative to it. Ends with a line feed unless empty. */
export function renderFaults(
  faults: readonly Fault[],
  format: ReportFormat,
  folder: string,
): string {
  const named = faults.map((fault) => ({ ...fault, file: nameFile(fault.file, folder) }));
  switch (format) {
    case 'text':
      return named.map((fault) => `${renderLine(fault)}\n`).join('');
    case 'json':
      return `${JSON.stringify({ faults: named }, null, 2)}\n`;
    case 'sarif':
      return `${JSON.stringify(renderSarif(named), null, 2)}\n`;
  }
}

/** `file:line:col error text; did you mean "…"?` */
export function renderLine(fault: Fault): string {
  const { file, line, column, severity, message, suggestion } = fault;
  const question = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`;
  return escapeControls(`${file}:${line}:${column} ${severity} ${message}${question}`);
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

function renderSarif(faults: readonly Fault[]): object {
  const ids = [...new Set(faults.map((fault) => fault.rule))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'sallyport', rules: ids.map((id) => ({ id })) } },
        columnKind: 'utf16CodeUnits',
        results: faults.map((fault) => ({
          ruleId: fault.rule,
          ruleIndex: ids.indexOf(fault.rule),
          level: fault.severity,
          message: { text: textOf(fault) },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: uriOf(fault.file) },
                region: { startLine: fault.line, startColumn: fault.column },
              },
            },
          ],
        })),
      },
    ],
  };
}

function textOf({ message, suggestion }: Fault): string {
  return suggestion === undefined ? message : `${message}; did you mean "${suggestion}"?`;
}

function uriOf(file: string): string {
  const path = file.split(sep).map(encodeURIComponent).join('/');
  return isAbsolute(file) ? `file://${path}` : path;
}
