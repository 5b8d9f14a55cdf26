// What `sallyport access` prints: a table with a column for each caller while all of them fit a terminal, otherwise a list
// by caller, in both cases with the rules below; and the same as CSV. docs/reference/commands.md#access.

import type { AccessRule } from '../../policy/access.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { TERMINAL_WIDTH, wrapText } from '../../text/wording.js';
import type { ToolAccess } from './callers.js';

export type AccessReport = {
  readonly callers: readonly { readonly issuer: string; readonly group?: string }[];
  /** The caller was described, and stands for nobody else. */
  readonly isOne: boolean;
  readonly tools: readonly {
    readonly upstream: string;
    readonly tool: string;
    /** The name by which clients know it. */
    readonly shownAs?: string;
    /** By caller, in their order. */
    readonly access: readonly ToolAccess[];
  }[];
};

const GAP = '  ';

/** Every line has at most 80 columns, unless a name alone is longer. */
export function tableText(report: AccessReport): string {
  if (report.tools.length === 0) return 'No tool is known: the lock files have none.\n';
  return columnsText(report) ?? listText(report);
}

/** Undefined where it does not fit. */
function columnsText(report: AccessReport): string | undefined {
  const notes = new Notes();
  const rows = [
    ['TOOL', ...callersText(report)],
    ...report.tools.map((tool) => [labelOf(tool), ...tool.access.map((one) => notes.cellOf(one))]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  if (widths.reduce((sum, one) => sum + GAP.length + one) > TERMINAL_WIDTH) return undefined;
  const lines = rows.map((row) => {
    return row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd();
  });
  return `${[...lines, ...notes.lines()].join('\n')}\n`;
}

/** By caller, what it may use; what the rules give it nothing of is counted. */
function listText(report: AccessReport): string {
  const { tools } = report;
  const notes = new Notes();
  const lines = callersText(report).flatMap((name, column) => {
    const shown = tools.flatMap((tool) => {
      const access = tool.access[column];
      return access === undefined || isRefusedByRules(access)
        ? []
        : [`  ${labelOf(tool)}${GAP}${notes.cellOf(access)}`];
    });
    const rest = tools.length - shown.length;
    if (rest === 0) return [name, ...shown];
    return [name, ...shown, `  ${shown.length === 0 ? 'no tool' : `none of the other ${rest}`}`];
  });
  return `${[...lines, ...notes.lines()].join('\n')}\n`;
}

function labelOf({ upstream, tool, shownAs }: AccessReport['tools'][number]): string {
  return escapeForTerminal(`${upstream}/${tool}${shownAs === undefined ? '' : ` (shown as ${shownAs})`}`);
}

function isRefusedByRules(access: ToolAccess): boolean {
  return access.access === 'no' && (access.reason === 'no-matching-allow' || access.reason === 'denied-by-rule');
}

function callersText({ callers, isOne }: AccessReport): readonly string[] {
  if (isOne) return ['ACCESS'];
  const hasIssuers = new Set(callers.map(({ issuer }) => issuer)).size > 1;
  return callers.map(({ issuer, group }) => {
    return `${hasIssuers ? `${issuer}/` : ''}${group === undefined ? 'everybody' : escapeForTerminal(group)}`;
  });
}

const NOTHING = '-';

/** The rules below a table, each combination of them once. */
class Notes {
  readonly #numbers = new Map<string, { readonly number: number; readonly access: ToolAccess }>();

  cellOf(access: ToolAccess): string {
    if (access.access === 'no' && access.reason === 'no-matching-allow') return NOTHING;
    const key = JSON.stringify(access);
    const known = this.#numbers.get(key) ?? { number: this.#numbers.size + 1, access };
    this.#numbers.set(key, known);
    return `${access.access === 'no' ? NOTHING : access.access} ${known.number}`;
  }

  lines(): readonly string[] {
    if (this.#numbers.size === 0) return [];
    const lines = [...this.#numbers.values()].flatMap(({ number, access }) => {
      const texts =
        access.access === 'no'
          ? [[`no: ${reasonText(access.reason)}`, ...access.rules.map(({ id }) => id)].join(', by ')]
          : access.rules.map(ruleText);
      return texts.flatMap((text, index) => {
        const [first = '', ...more] = wrapText(escapeForTerminal(text), '    ');
        return index === 0 ? [`${String(number).padEnd(3)} ${first.trimStart()}`, ...more] : [first, ...more];
      });
    });
    return ['', ...lines];
  }
}

function reasonText(reason: string): string {
  return reason === 'issuer' ? 'the server does not accept tokens of this issuer' : reason;
}

function ruleText({ id, effect, conditions, approval }: AccessRule): string {
  const all = conditions.join('; ');
  const when = all === '' ? '' : `, if ${all}`;
  if (approval !== undefined) return `after an approval: ${id}${effect === 'flow' ? ` ${all}` : when} (${approval})`;
  if (effect === 'allow') return `${id}${when}`;
  if (effect === 'flow') return `refused by the flow ${id} ${all}`;
  return effect === 'deny' ? `refused by ${id}${when}` : `subject to ${id}: ${all}`;
}

const COLUMNS = ['issuer', 'group', 'upstream', 'tool', 'shown_as', 'access', 'reason', 'rules', 'conditions'];

/** A row for each caller and tool (RFC 4180). */
export function csvText({ callers, tools }: AccessReport): string {
  const rows = tools.flatMap(({ upstream, tool, shownAs = '', access }) =>
    access.map((one, index) => {
      const { issuer = '', group = '' } = callers[index] ?? {};
      const reason = one.access === 'no' ? one.reason : '';
      const conditions = one.rules.filter((rule) => rule.conditions.length > 0 || rule.approval !== undefined);
      const texts = [one.rules.map(({ id }) => id).join(' '), conditions.map(ruleText).join('\n')];
      return [issuer, group, upstream, tool, shownAs, one.access, reason, ...texts];
    }),
  );
  return [COLUMNS, ...rows].map((row) => `${row.map(csvField).join(',')}\r\n`).join('');
}

/** A spreadsheet reads a value that begins so as a formula; a quotation mark before it makes it text. */
const FORMULA = /^[=+\-@\t\r]/;

function csvField(value: string): string {
  const visible = value.split('\n').map(escapeForTerminal).join('\n');
  const text = FORMULA.test(visible) ? `'${visible}` : visible;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
