// The page decisions: the last ones as the audit log records them, filtered, each with why it was made. Reads records of
// the audit log and trusts nothing in them. docs/contract.md §2 and §8.

import { type AuditRecord, requiredText, valueAt } from '../audit/chain.js';
import { renderAuditRecord } from '../audit/query.js';
import type { PlainResponse } from '../http/internal-server.js';
import { isReason, REASONS } from '../policy/reasons.js';
import {
  type Frame,
  foreign,
  foreignName,
  type Html,
  html,
  page,
  rowsTable,
  timeText,
} from './html.js';

/** What the rules about the target of a decision say of it. */
export type DecisionExplanation = {
  readonly rules: readonly {
    readonly id: string;
    readonly effect: string;
    readonly state: string;
    /** The clauses that do not hold, or are not known to. */
    readonly clauses: readonly {
      readonly path: string;
      readonly pointer: string | undefined;
      readonly result: string;
      readonly text: string;
    }[];
  }[];
  /** The policies in force are those that decided. */
  readonly isCurrent: boolean;
};

/** `undefined` if rules did not decide, or the record does not say enough. */
export type ExplainDecision = (
  record: AuditRecord,
  all: readonly AuditRecord[],
) => DecisionExplanation | undefined;

const ROWS_PER_PAGE = 100;
/** Longer filters match nothing that is shown. */
const MAX_FILTER = 200;
/** Options of a select. */
const MAX_OPTIONS = 200;

/** The filters by their names in the query, with where a record has the value. */
const FILTERS = {
  upstream: { label: 'Upstream', at: ['target', 'upstream'] },
  subject: { label: 'Subject', at: ['actor', 'sub'] },
  verdict: { label: 'Verdict', at: ['decision', 'verdict'] },
  reason: { label: 'Reason', at: ['decision', 'reasons'] },
  method: { label: 'Method', at: ['target', 'method'] },
  name: { label: 'Name', at: ['target', 'name'] },
} as const;
type FilterName = keyof typeof FILTERS;
const FILTER_NAMES = Object.keys(FILTERS) as readonly FilterName[];
/** What is typed rather than chosen: there are many, and a part is enough. */
const TYPED: ReadonlySet<FilterName> = new Set(['subject', 'name']);

type Filter = ReadonlyMap<FilterName, string>;

function readFilter(query: URLSearchParams): Filter {
  const given = FILTER_NAMES.map(
    (name) => [name, query.get(name)?.trim().slice(0, MAX_FILTER) ?? ''] as const,
  );
  return new Map(given.filter(([, value]) => value !== ''));
}

function textsAt(record: AuditRecord, name: FilterName): readonly string[] {
  const value = valueAt(record, ...FILTERS[name].at);
  return [value].flat().filter((one): one is string => typeof one === 'string');
}

function isMatch(record: AuditRecord, filter: Filter): boolean {
  return [...filter].every(([name, wanted]) =>
    textsAt(record, name).some((text) =>
      TYPED.has(name) ? text.toLowerCase().includes(wanted.toLowerCase()) : text === wanted,
    ),
  );
}

/** The decisions that match the filter of a query, newest first, a page at a time. */
export function decisionsPage(
  all: readonly AuditRecord[],
  query: URLSearchParams,
  frame: Frame,
): PlainResponse {
  const filter = readFilter(query);
  const found = all.filter((record) => isMatch(record, filter));
  const asked = Number(query.get('from') ?? 0);
  const from = Number.isInteger(asked) && asked > 0 ? Math.min(asked, found.length) : 0;
  const shown = found.slice(from, from + ROWS_PER_PAGE);
  const columns = ['Time', 'Caller', 'Upstream', 'Request', 'Decision', 'Why'];
  const which =
    shown.length === 0
      ? 'No decision matches.'
      : `${from + 1} to ${from + shown.length} of ${found.length} decisions at this replica, newest first.`;
  const main = html`${filterForm(all, filter)}
${shown.length === 0 ? html`<p>${which}</p>` : rowsTable(which, columns, shown.map(rowOf))}
${pager(from, found.length, filter)}`;
  return page('Decisions', main, { frame, current: '/decisions' });
}

function filterForm(all: readonly AuditRecord[], filter: Filter): Html {
  const fields = FILTER_NAMES.map((name) => {
    const { label } = FILTERS[name];
    const value = filter.get(name) ?? '';
    const id = `filter-${name}`;
    const field = TYPED.has(name)
      ? html`<input id="${id}" name="${name}" value="${value}" maxlength="${MAX_FILTER}" autocomplete="off">`
      : html`<select id="${id}" name="${name}"><option value="">any</option>${optionsOf(all, name, value)}</select>`;
    return html`<div><label for="${id}">${label}</label>${field}</div>`;
  });
  return html`<form class="fields" method="get" action="/decisions" role="search" aria-label="Filter decisions">${fields}<button>Filter</button></form>`;
}

function optionsOf(all: readonly AuditRecord[], name: FilterName, chosen: string): readonly Html[] {
  const values = new Set(all.flatMap((record) => textsAt(record, name)));
  if (chosen !== '') values.add(chosen);
  return [...values]
    .sort()
    .slice(0, MAX_OPTIONS)
    .map(
      (value) =>
        html`<option value="${value}"${value === chosen ? html` selected` : undefined}>${foreign(value, 60)}</option>`,
    );
}

function pager(from: number, total: number, filter: Filter): Html | undefined {
  const link = (start: number, text: string, rel: string): Html => {
    const query = new URLSearchParams([...filter, ['from', String(start)]]);
    return html`<a class="button" rel="${rel}" href="/decisions?${query.toString()}">${text}</a> `;
  };
  const links = [
    ...(from > 0 ? [link(Math.max(0, from - ROWS_PER_PAGE), 'Newer', 'prev')] : []),
    ...(from + ROWS_PER_PAGE < total ? [link(from + ROWS_PER_PAGE, 'Older', 'next')] : []),
  ];
  return links.length === 0 ? undefined : html`<nav aria-label="More decisions">${links}</nav>`;
}

function rowOf(record: AuditRecord): readonly (Html | string)[] {
  const id = requiredText(record, 'decision', 'id');
  const name = requiredText(record, 'target', 'name');
  return [
    html`<a href="/decisions/${id}">${timeText(requiredText(record, 'time'))}</a>`,
    html`${foreign(requiredText(record, 'actor', 'sub') || 'not verified')}<br><span class="dim small">${foreign(requiredText(record, 'actor', 'client_id'))}</span>`,
    foreign(requiredText(record, 'target', 'upstream') || '–'),
    html`${foreign(requiredText(record, 'target', 'method') || '–')}${name === '' ? undefined : html`<br>${foreignName(name)}`}`,
    verdictText(record),
    whyText(record),
  ];
}

/** A forwarded request was allowed and not withheld later. */
function verdictText(record: AuditRecord): Html {
  const verdict = requiredText(record, 'decision', 'verdict');
  const action = requiredText(record, 'decision', 'action');
  const shown = verdict === 'allow' && action !== 'forwarded' ? `${verdict}, ${action}` : verdict;
  const state = verdict === 'allow' && action !== 'forwarded' ? action : verdict;
  return html`<span class="state ${state}">${shown}</span>`;
}

/** The rule that allowed, or the reasons that refused with what they mean. */
function whyText(record: AuditRecord): Html {
  const reasons = textsAt(record, 'reason');
  const rule = ruleText(record);
  const named = reasons.map(
    (reason) =>
      html`<code>${foreign(reason)}</code> <span class="small">${isReason(reason) ? REASONS[reason].text : ''}</span><br>`,
  );
  return html`${named}${rule}`;
}

function ruleText(record: AuditRecord): Html | undefined {
  const rule = requiredText(record, 'decision', 'rule');
  if (rule === '') return undefined;
  const policy = requiredText(record, 'decision', 'policy');
  return html`rule <code>${foreign(policy)}/${foreign(rule)}</code>`;
}

/** One decision with everything that the audit log has of it; `undefined` if it is not among those that are kept. */
export function decisionPage(
  all: readonly AuditRecord[],
  id: string,
  explain: ExplainDecision,
  frame: Frame,
): PlainResponse | undefined {
  const record = all.find((one) => requiredText(one, 'decision', 'id') === id);
  if (record === undefined) return undefined;
  const facts: readonly (readonly [string, Html | string])[] = [
    [
      'Decision',
      html`${verdictText(record)}, at the stage <code>${requiredText(record, 'decision', 'stage') || 'forward'}</code>`,
    ],
    ['Why', whyText(record)],
    [
      'Caller',
      html`${foreign(requiredText(record, 'actor', 'sub') || 'not verified')} ${foreign(requiredText(record, 'actor', 'iss'))}`,
    ],
    ['Client', foreign(requiredText(record, 'actor', 'client_id'))],
    ['Address', foreign(requiredText(record, 'client', 'ip'))],
    ['Upstream', foreign(requiredText(record, 'target', 'upstream'))],
    ['Request', html`${foreign(requiredText(record, 'target', 'method'))} ${nameOf(record)}`],
    ['Result', foreign(requiredText(record, 'result', 'status'))],
    ['Time', timeText(requiredText(record, 'time'))],
  ];
  const shown = facts.filter(([, value]) => value.toString().trim() !== '');
  const main = html`<p class="dim"><code>${id}</code></p>
<dl class="facts">${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
${clausesSection(explain(record, all))}
<h2>What the audit log has of it</h2>
<pre class="code" tabindex="0" aria-label="Audit event">${renderAuditRecord(record)}</pre>
<p><a class="button" href="/decisions">All decisions</a></p>`;
  return page('Decision', main, { frame, current: '/decisions' });
}

const RESULTS: Readonly<Record<string, string>> = {
  fails: 'does not hold',
  error: 'error',
  unknown: 'not known',
};
const STATES: Readonly<Record<string, string>> = { ...RESULTS, holds: 'holds' };

/** The rules about the target with the clauses that fail. Nothing is completed that the record does not say. */
function clausesSection(explanation: DecisionExplanation | undefined): Html | undefined {
  if (explanation === undefined) return undefined;
  const { rules, isCurrent } = explanation;
  const changed = isCurrent
    ? undefined
    : html`<p class="panel">The policies were changed after this decision. These are the rules in force now.</p>`;
  const rows = rules.flatMap(({ id, effect, state, clauses }) => {
    const rule = html`<code>${foreign(id)}</code> <span class="small">${effect}, ${STATES[state] ?? state}</span>`;
    if (clauses.length === 0) return [[rule, '–', '']];
    return clauses.map(({ path, pointer, result, text }) => [
      rule,
      html`<code>${foreign(path)}</code>${pointer === undefined ? undefined : html` <code>${foreign(pointer)}</code>`}`,
      `${RESULTS[result] ?? result}: ${foreign(text, 500)}`,
    ]);
  });
  const columns = ['Rule', 'Failing clause', 'Why'];
  return html`<h2>What the rules say about this request</h2>
${changed}${rules.length === 0 ? html`<p>No rule is about this target.</p>` : rowsTable('The rules about this target, with each clause that does not hold.', columns, rows)}`;
}

function nameOf(record: AuditRecord): Html | undefined {
  const name = requiredText(record, 'target', 'name');
  return name === '' ? undefined : foreignName(name);
}
