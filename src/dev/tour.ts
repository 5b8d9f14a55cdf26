// The scripted tour of the demo: announces real MCP calls through the gateway, makes them and compares the
// outcomes, then prints the notable lines of the audit log. Ends with the number of outcomes that were as
// announced and with where to go next. Control characters are removed from everything received before it is printed.

import { parseObject } from '../protocol/jsonrpc.js';
import { createPaint, hangingLines, type Paint } from '../text/terminal.js';
import { type Check, SCENES, type Scene, type TourEnvironment, valueAt } from './tour-scenes.js';

const MAX_SEEN = 120;
/** Kinds of findings that a row shows. */
const MAX_KINDS = 3;
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Makes received text safe to print: no control or format characters, at most one line long. */
export function stripControls(text: string): string {
  return text.replace(CONTROLS, '·').slice(0, MAX_SEEN);
}

/** The text printed before a scene. */
function announceScene(paint: Paint, number: number, scene: Scene, columns: number): string {
  const label = String(number).padStart(2);
  const expected = hanging(scene.expect, EXPECT_COLUMN, columns);
  return `\n${paint.dim(label)}  ${paint.bold(scene.title)}\n    ${paint.dim('expect')} ${expected}\n`;
}

/** Behind `expect` and a blank. */
const EXPECT_COLUMN = 11;

/** A text that begins at this column, in lines that fit, which begin there too. */
function hanging(text: string, column: number, columns: number): string {
  return hangingLines(text, column, column, columns).join(`\n${' '.repeat(column)}`);
}

/** One comparison, with what was observed if it fails. */
export function printCheck(paint: Paint, check: Check): string {
  if (check.holds) return `    ${paint.good('✓')} ${check.what}\n`;
  return `    ${paint.bad('✗')} ${check.what} ${paint.bad(`— seen: ${stripControls(check.seen)}`)}\n`;
}

type Row = { time: string; who: string; what: string; verdict: string; why: string; found: string };

function text(event: unknown, ...path: readonly string[]): string {
  const value = valueAt(event, ...path);
  return typeof value === 'string' ? stripControls(value) : '';
}

function list(event: unknown, ...path: readonly string[]): readonly unknown[] {
  const value = valueAt(event, ...path);
  return Array.isArray(value) ? value : [];
}

function findingsOf(event: unknown): string {
  const kinds = list(event, 'findings').map((one) => `${text(one, 'action')} ${text(one, 'detector')}`);
  const unique = [...new Set(kinds)];
  const more = unique.length - MAX_KINDS;
  const shown = unique.slice(0, MAX_KINDS).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function reasonsOf(event: unknown): string {
  return list(event, 'decision', 'reasons')
    .map((reason) => stripControls(String(reason)))
    .join(' ');
}

function decisionRow(event: unknown): Row {
  const rule = text(event, 'decision', 'rule');
  const name = text(event, 'target', 'name');
  return {
    time: text(event, 'time').slice(11, 19),
    who: text(event, 'actor', 'sub') || '-',
    what: `${text(event, 'target', 'method')} ${name}`.trim() || '-',
    verdict: text(event, 'decision', 'verdict'),
    why: reasonsOf(event) || rule,
    found: findingsOf(event),
  };
}

function otherRow(event: unknown, type: string): Row {
  const isDrift = type === 'pin.drift';
  return {
    time: text(event, 'time').slice(11, 19),
    who: '-',
    what: isDrift ? `drift ${text(event, 'target', 'name')}`.trim() : type,
    verdict: text(event, 'decision', 'verdict') || 'note',
    why: isDrift ? text(event, 'detail', 'change') : reasonsOf(event),
    found: '',
  };
}

const SHOWN: ReadonlySet<string> = new Set(['auth.failure', 'pin.drift']);

/** What a caller acts with; the rest are handshakes, lists and what keeps a session. */
const ACTS = /^(?:tools\/call|prompts\/get|resources\/read) /;
const MAX_ROWS = 10;
/** What handshakes with the source or the sink of a flow lose, as a rule. */
const CUT_TEXT = 'strip flow-text';

/**
 * At most ten rows: an ordinary call, and the first of each kind of refusal, redaction and drift that names its target.
 */
function notableRows(rows: readonly Row[]): readonly Row[] {
  const first = new Map<string, Row>();
  for (const row of rows) {
    const isPlain = row.verdict === 'allow' && (row.found === '' || row.found === CUT_TEXT);
    if (row.what === '-' || (isPlain && !ACTS.test(row.what))) continue;
    const kind = isPlain ? 'allow' : `${row.verdict} ${row.why} ${row.found}`;
    if (!first.has(kind)) first.set(kind, row);
  }
  return [...first.values()].slice(0, MAX_ROWS);
}

/** Rows of audit lines: one per request (its outcome if there is one), and one per other event. */
function rowsOf(lines: readonly string[]): Row[] {
  const rows = new Map<string, Row>();
  for (const [index, line] of lines.entries()) {
    const event = parseObject(line);
    const type = text(event, 'type');
    if (type === 'mcp.decision' || type === 'mcp.outcome') {
      const id = text(event, 'decision', 'id') || String(index);
      const row = decisionRow(event);
      // The rule stands in the line of the decision alone.
      rows.set(id, { ...row, why: row.why || (rows.get(id)?.why ?? '') });
    } else if (SHOWN.has(type)) rows.set(`event ${index}`, otherRow(event, type));
  }
  return [...rows.values()];
}

function paintVerdict(paint: Paint, verdict: string): string {
  const padded = verdict.padEnd(VERDICT_WIDTH);
  if (verdict === 'allow') return paint.good(padded);
  return verdict === 'deny' ? paint.bad(padded) : padded;
}

/** The notable lines of the audit log as a table. What does not fit beside the rest stands below it. */
export function printAudit(paint: Paint, lines: readonly string[], columns = Number.POSITIVE_INFINITY): string {
  const rows = notableRows(rowsOf(lines));
  const whoWidth = Math.max(3, ...rows.map((row) => row.who.length));
  const whatWidth = Math.max(4, ...rows.map((row) => shownTarget(row).length));
  const body = rows.map((row) => {
    const facts = `${row.who.padEnd(whoWidth)}  ${shownTarget(row).padEnd(whatWidth)}`;
    const head = `  ${paint.dim(row.time)}  ${paintVerdict(paint, row.verdict)}  ${facts}  ${row.why}`;
    const room = columns - AUDIT_COLUMN - VERDICT_WIDTH - facts.length - row.why.length - 6;
    if (row.found.length <= room) return `${head}${row.found === '' ? '' : paint.dim(`  ${row.found}`)}\n`;
    const below = hangingLines(row.found, AUDIT_COLUMN, AUDIT_COLUMN, columns);
    return `${head}\n${below.map((line) => `${' '.repeat(AUDIT_COLUMN)}${paint.dim(line)}\n`).join('')}`;
  });
  return body.join('');
}

/** Of a call, the tool alone. */
function shownTarget({ what }: Row): string {
  return what.replace(/^tools\/call /, '');
}

/** Where the verdicts begin. */
const AUDIT_COLUMN = 12;
const VERDICT_WIDTH = 5;

/** The stage of the tour, and its output. */
type TourPorts = TourEnvironment & {
  /** Every line of the audit log so far, without line feeds, oldest first. */
  readAudit(): Promise<readonly string[]>;
  write(text: string): void;
  /** False without a terminal or if NO_COLOR is set. */
  readonly hasColor: boolean;
  /** Columns of the terminal; absent where there is none, so that a line stays one. */
  readonly columns?: number | undefined;
};

/** Exit code: 0 if every outcome was as expected, else 1. */
type TourExit = 0 | 1;

async function play(scene: Scene, ports: TourPorts): Promise<readonly Check[]> {
  try {
    return await scene.run(ports);
  } catch (error) {
    const seen = error instanceof Error ? error.message : 'an unknown failure';
    return [{ what: 'the scene could be played', holds: false, seen }];
  }
}

function summary(paint: Paint, failed: readonly Scene[], total: number): string {
  if (failed.length === 0) {
    return `\n${paint.good('✓')} ${paint.bold(`${total} of ${total} outcomes as expected`)}\n`;
  }
  const titles = failed.map((scene) => `  ${paint.bad('✗')} ${scene.title}\n`).join('');
  return `\n${paint.bad(`${failed.length} of ${total} outcomes differ`)}\n${titles}`;
}

/** Where to go after the tour: pages of the repository, and the next command. */
const NEXT = `
Where to go next
  Try it with your own server   sallyport dev http://127.0.0.1:3001/mcp
  Install it or run containers  docs/guides/install.md
  Set it up for production      docs/guides/quickstart.md
  Understand a refusal          docs/guides/troubleshooting.md
`;

/**
 * Runs every scene, prints as it goes, and resets the upstream's behaviour at the end. Resolves with the exit
 * code; a scene that throws counts as an outcome that differs.
 */
export async function runTour(ports: TourPorts): Promise<TourExit> {
  const paint = createPaint(ports.hasColor);
  const { columns = Number.POSITIVE_INFINITY } = ports;
  const before = (await ports.readAudit()).length;
  ports.write(`${paint.bold('Sallyport')} at ${stripControls(ports.url)}\n`);
  const failed: Scene[] = [];
  for (const [index, scene] of SCENES.entries()) {
    ports.write(announceScene(paint, index + 1, scene, columns));
    const checks = await play(scene, ports);
    for (const check of checks) ports.write(printCheck(paint, check));
    if (checks.some((check) => !check.holds)) failed.push(scene);
  }
  ports.upstream.behave();
  const lines = (await ports.readAudit()).slice(before);
  ports.write(`\n${paint.bold('From the audit log')} ${paint.dim(`(a selection of its ${lines.length} lines)`)}\n`);
  ports.write(printAudit(paint, lines, columns));
  ports.write(summary(paint, failed, SCENES.length));
  ports.write(NEXT);
  return failed.length === 0 ? 0 : 1;
}
