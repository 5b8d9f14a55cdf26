// The lines that `dev` prints while it runs: one for each decision and each change of a definition, coloured by verdict and
// cut to the width of the terminal, where there is one. docs/reference/commands.md#dev.

import { type AuditRecord, requiredText, valueAt } from '../audit/chain.js';
import { describeCause, describeFindings } from '../audit/query.js';
import { isReason, REASONS } from '../policy/reasons.js';
import { cleanForeign } from '../text/escaping.js';
import { createPaint, hangingLines, type Paint } from '../text/terminal.js';
import { firstOf } from '../text/wording.js';

/** How lines are printed. */
export type LineView = {
  readonly hasColor: boolean;
  /** Columns of the terminal; absent where there is none, so that a line stays one. */
  readonly columns?: number | undefined;
  /** Whether lines name the server. */
  readonly namesServers: boolean;
  /** The rule that grants everything, which says nothing about a call. */
  readonly ownRule: string;
  /** The names that are hidden at a server, by kind. */
  hiddenAt(server: string, kind: string): readonly string[];
};

const VERBS: { readonly [action: string]: string } = {
  forwarded: 'allowed',
  refused: 'refused',
  withheld: 'withheld',
};
const VERB_WIDTH = 8;
const TARGET_WIDTH = 36;
const TIME_WIDTH = 8;
const GAP = '  ';
/** Where what a line is about begins, and where its other lines do. */
const INDENT = TIME_WIDTH + VERB_WIDTH + 2 * GAP.length;
/** Of a narrower column behind the target, the reason goes to a line of its own. */
const MIN_REASON_WIDTH = 44;
/** A line that is longer says nothing more to a person. */
const MAX_CAUSE_CHARACTERS = 300;
const MAX_HIDDEN = 8;

type Parts = { readonly verb: string; readonly target: string; readonly why: string };

/**
 * What is printed for an event that is a decision or a change of a definition, with what others wrote made visible;
 * `undefined` for events that are neither.
 */
export function decisionLine(event: AuditRecord, view: LineView): string | undefined {
  const parts = partsOf(event, view);
  if (parts === undefined) return undefined;
  const time = visibleAt(event, 'time').slice(11, 19);
  const paint = createPaint(view.hasColor);
  const verb = styleOf(parts.verb, paint)(parts.verb.padEnd(VERB_WIDTH));
  return `${paint.dim(time)}${GAP}${verb}${GAP}${fitted(parts, view.columns)}`.trimEnd();
}

function styleOf(verb: string, paint: Paint): (text: string) => string {
  if (verb === 'allowed') return paint.good;
  return verb === 'altered' || verb === 'changed' ? paint.warn : paint.bad;
}

/** The target and the reason beside it, or below it where they do not fit in a line. */
function fitted({ target, why }: Parts, columns: number | undefined): string {
  const padded = why === '' ? target : target.padEnd(TARGET_WIDTH);
  const line = `${padded}${GAP}${why}`.trimEnd();
  if (columns === undefined || INDENT + line.length <= columns) return line;
  const beside = INDENT + padded.length + GAP.length;
  const isBeside = columns - beside >= MIN_REASON_WIDTH;
  const [indent, lead] = isBeside ? [beside, `${padded}${GAP}`] : [INDENT, hanging(target, INDENT, columns)];
  if (why === '') return lead;
  return isBeside
    ? `${lead}${hanging(why, indent, columns)}`
    : `${lead}\n${' '.repeat(INDENT)}${hanging(why, indent, columns)}`;
}

function hanging(text: string, indent: number, columns: number): string {
  return hangingLines(text, indent, indent, columns).join(`\n${' '.repeat(indent)}`);
}

function partsOf(event: AuditRecord, view: LineView): Parts | undefined {
  const name = visibleAt(event, 'target', 'name');
  const server = view.namesServers ? visibleAt(event, 'target', 'upstream') : '';
  const of = (text: string): string => `${server} ${text}`.trim();
  if (event['type'] === 'pin.drift') {
    const what = `${visibleAt(event, 'target', 'kind')} ${name}: ${visibleAt(event, 'detail', 'change')}`;
    return { verb: 'changed', target: of(what), why: '' };
  }
  if (event['type'] !== 'mcp.outcome' && event['type'] !== 'auth.failure') return undefined;
  const isAltered = valueAt(event, 'result', 'altered') === true;
  const verb = isAltered ? 'altered' : (VERBS[visibleAt(event, 'decision', 'action')] ?? 'refused');
  const method = visibleAt(event, 'target', 'method') || 'request';
  return { verb, target: of(`${method} ${name}`.trim()), why: whyDecided(event, view) };
}

function visibleAt(event: AuditRecord, ...path: readonly string[]): string {
  return cleanForeign(requiredText(event, ...path));
}

/** What was altered, and why it was decided so. */
function whyDecided(event: AuditRecord, view: LineView): string {
  const [sent, received] = (['to-upstream', 'to-client'] as const).map((direction) =>
    describeFindings(event, direction),
  );
  const cut = sent === '' ? '' : `in the request: ${sent}`;
  return [whyActed(event, view), received, cut].filter((part) => part !== '').join('; ');
}

/** The reason of a refusal with its cause, else the rule that allowed it and how much of a list was shown. */
function whyActed(event: AuditRecord, view: LineView): string {
  const reasons = valueAt(event, 'decision', 'reasons');
  const [reason] = Array.isArray(reasons) ? reasons : [];
  const cause = cleanForeign(describeCause(event), undefined, MAX_CAUSE_CHARACTERS);
  if (typeof reason === 'string') {
    const text = isReason(reason) ? REASONS[reason].text : 'unknown reason';
    const message = cause === '' ? text : `${text.replace(/\.$/, '')}: ${cause}`;
    return `${cleanForeign(reason)}: ${message}`;
  }
  const [advertised, visible] = ['advertised', 'visible'].map((one) => valueAt(event, 'result', 'list', one));
  if (typeof advertised === 'number') {
    const hidden = advertised === visible ? '' : hiddenText(event, view);
    return [`shows ${String(visible)} of ${advertised}`, hidden, cause].filter((part) => part !== '').join('; ');
  }
  const rule = visibleAt(event, 'decision', 'rule');
  return rule === '' || rule.startsWith(view.ownRule) ? '' : `by rule ${rule}`;
}

const KIND_OF_LIST: { readonly [method: string]: string } = {
  'tools/list': 'tool',
  'prompts/list': 'prompt',
  'resources/templates/list': 'template',
};

/** What of a list is not approved, by name. */
function hiddenText(event: AuditRecord, view: LineView): string {
  const kind = KIND_OF_LIST[visibleAt(event, 'target', 'method')] ?? '';
  const names = view.hiddenAt(requiredText(event, 'target', 'upstream'), kind).map((name) => cleanForeign(name));
  return names.length === 0 ? '' : `hidden: ${firstOf(names, MAX_HIDDEN)}`;
}
