// What `sallyport assure` says: each row of risks with the state of its controls, as text, JSON and Markdown. It names
// controls and what they leave open, and never a level or a standard as reached. Pure.

import { escapeForTerminal, makeVisible } from '../../text/escaping.js';
import { groupBy } from '../../text/grouping.js';
import { countOf } from '../../text/wording.js';
import { type ControlKind, RISK_ROWS, RISK_SOURCES, type RiskRow, type RiskSource } from './risk-rows.js';

/** A control as the API of the admin listener, or the configuration, has it. Read with care: any server may have sent it. */
export type ControlState = { readonly control: string; readonly state: string; readonly reason: string };

/** Where the states come from. */
export type Basis =
  | { readonly kind: 'live'; readonly origin: string }
  /** No gateway was asked: what the files say, whatever runs. */
  | { readonly kind: 'configured'; readonly file: string };

export type Report = {
  readonly basis: Basis;
  /** RFC 3339. */
  readonly at: string;
  readonly version: string;
  readonly controls: readonly ControlState[];
  readonly rows: readonly (Omit<RiskRow, 'controls'> & { readonly controls: readonly RowControl[] })[];
};

/** A kind of control of a row, with the controls of that kind. */
type RowControl = { readonly kind: ControlKind; readonly states: readonly ControlState[] };

export function assess(
  controls: readonly ControlState[],
  about: Pick<Report, 'basis' | 'at' | 'version'>,
  source?: RiskSource,
): Report {
  const byKind = groupBy(controls, ({ control }) => control.split(':', 1)[0] ?? '');
  const rows = RISK_ROWS.filter((row) => source === undefined || row.source === source).map((row) => ({
    ...row,
    controls: row.controls.map((kind) => ({ kind, states: byKind.get(kind) ?? [] })),
  }));
  return { ...about, controls, rows };
}

export const NO_LEVEL =
  'The rows name controls, their state and the tests that attack them. They do not say that a level, a profile or a standard is reached.';

function basisText({ basis, at, version }: Report): string {
  return basis.kind === 'live'
    ? `State of the controls as the gateway at ${basis.origin} reported it at ${at}; rows of Sallyport ${version}.`
    : `As ${basis.file} configures it at ${at}: no gateway was asked, so what is reached is taken to answer; rows of Sallyport ${version}.`;
}

const STATES = ['armed', 'degraded', 'off'] as const;

function countsText(controls: readonly ControlState[]): string {
  const counts = STATES.map((state) => `${controls.filter((one) => one.state === state).length} ${state}`);
  return `${countOf(controls.length, 'control')}: ${counts.join(', ')}.`;
}

/** What a reader has to know first: the controls that are weaker than configured, with their reasons. */
function degradedTexts(controls: readonly ControlState[]): readonly string[] {
  return controls.filter(({ state }) => state === 'degraded').map(stateText);
}

function stateText({ control, state, reason }: ControlState): string {
  return reason === '' || state === 'armed' ? `${control}: ${state}` : `${control}: ${state} (${reason})`;
}

/** States of one kind in a few words; those that are not armed with their reason. */
function statesOf({ kind, states }: RowControl): readonly string[] {
  if (states.length === 0) return [`${kind}: nothing of this kind is configured`];
  return states.map(stateText);
}

function testsOf({ tests }: Pick<RiskRow, 'tests'>): string {
  return tests.map((name) => `test/${name}.test.ts`).join(', ');
}

function orNone(texts: readonly string[]): string {
  return texts.length === 0 ? 'none' : texts.join(', ');
}

/** Lines for a terminal. */
export function renderText(report: Report): string {
  const degraded = degradedTexts(report.controls).map((text) => `  ${text}`);
  const lines = [basisText(report), countsText(report.controls), ...degraded, NO_LEVEL];
  for (const row of report.rows) {
    lines.push('', `${row.source} ${row.id}: ${row.risk}`, `  answer    ${row.answer}`);
    for (const text of row.controls.flatMap(statesOf)) lines.push(`  control   ${text}`);
    lines.push(`  settings  ${orNone(row.settings)}`, `  tests     ${testsOf(row)}`, `  open      ${row.open}`);
  }
  return `${lines.map(escapeForTerminal).join('\n')}\n`;
}

/** Text in a cell of a table of Markdown. */
function cell(text: string): string {
  return makeVisible(text)
    .replaceAll('\\', '\\\\')
    .replaceAll('|', String.raw`\|`)
    .replaceAll(/[\r\n]+/g, ' ')
    .replaceAll('<', '&lt;');
}

export function renderMarkdown(report: Report): string {
  const degraded = degradedTexts(report.controls).map((text) => `- ${cell(text)}\n`);
  const list = degraded.length === 0 ? '' : `\n${degraded.join('')}`;
  const parts = [`# Controls\n\n${cell(basisText(report))} ${countsText(report.controls)}\n${list}\n${NO_LEVEL}\n`];
  for (const [source, title] of Object.entries(RISK_SOURCES)) {
    const rows = report.rows.filter((row) => row.source === source);
    if (rows.length === 0) continue;
    parts.push(`\n## ${title}\n\n| id | risk | answer | controls | tests | not covered |\n|---|---|---|---|---|---|\n`);
    for (const row of rows) {
      const cells = [row.id, row.risk, row.answer, row.controls.flatMap(statesOf).join('; '), testsOf(row), row.open];
      parts.push(`| ${cells.map(cell).join(' | ')} |\n`);
    }
  }
  return parts.join('');
}
