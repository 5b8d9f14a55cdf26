// The pages controls, upstreams, blocks and decisions of the console. They show what the ports report and what the audit
// log recorded, trust nothing in a record, and decide nothing. The form to block is read here and carried out by the API
// for revocations, which checks role and content. docs/reference/listeners.md#the-console; docs/reference/audit.md;
// docs/reference/state.md#revoking-and-blocking.

import { type AuditRecord, requiredText, valueAt } from '../audit/chain.js';
import { renderAuditRecord } from '../audit/query.js';
import type { PlainResponse } from '../http/app.js';
import { foreign, foreignName, formTokenField, type Html, html, rowsTable, stateText, timeText } from '../http/html.js';
import { isReason, REASONS } from '../policy/reasons.js';
import type { ControlRow } from '../telemetry/controls.js';
import type { UpstreamLoad } from '../telemetry/metrics.js';
import { groupBy } from '../text/grouping.js';
import { countOf } from '../text/wording.js';
import { BLOCK_MEMBERS, type BlockKind, isBlockKind, type ShownRevocation } from './api.js';
import { type Frame, page } from './page-frame.js';

/** What is not armed comes first. */
const STATE_ORDER: readonly string[] = ['off', 'degraded', 'armed'];

/** The state of every control, those that are not armed first. */
export function controlsPage(controls: readonly ControlRow[], frame: Frame): PlainResponse {
  const counts = STATE_ORDER.map((state) => [state, controls.filter((row) => row.state === state)] as const);
  const summary = [...counts].reverse().map(([state, rows]) => `${rows.length} ${state}`);
  const rows = counts.flatMap(([, found]) =>
    found.map(({ control, state, reason, since }) => [
      html`<code>${control}</code>`,
      stateText(state),
      foreign(reason, 500),
      timeText(since),
    ]),
  );
  const main = html`<p>A control that is <em>degraded</em> protects less than configured; one that is <em>off</em> was turned off by the configuration.</p>
${rowsTable(`${countOf(controls.length, 'control')}: ${summary.join(', ')}.`, ['Control', 'State', 'Reason', 'Since'], rows)}`;
  return page('Controls', main, { frame, current: '/controls' });
}

/** One upstream and what is known of it. */
export type UpstreamRow = {
  readonly name: string;
  /** Where clients reach it. */
  readonly url: string;
  readonly isUp: boolean;
  /** Whether its definitions were verified within `pinning.maxAge`. */
  readonly isFresh: boolean;
  readonly pinning: string;
  /** The revisions that it speaks. */
  readonly protocols: readonly string[];
  /** Definitions by the state of their pin. */
  readonly states: ReadonlyMap<string, number>;
  readonly load: UpstreamLoad;
};

export function upstreamsPage(upstreams: readonly UpstreamRow[], frame: Frame): PlainResponse {
  const rows = upstreams.map(({ name, url, isUp, isFresh, pinning, protocols, states, load }) => [
    html`${name}<br><span class="dim small">${url}</span>`,
    html`<span class="state ${isUp ? 'armed' : 'off'}">${isUp ? 'reachable' : 'not reachable'}</span>${isFresh ? undefined : html`<br><span class="degraded">definitions not verified in time</span>`}`,
    protocols.map((version) => foreign(version, 20)).join(', ') || 'unknown',
    html`${pinning}<br><span class="small">${[...states].map(([state, count]) => `${count} ${state}`).join(', ') || 'no definitions'}</span>`,
    String(load.requests),
    String(load.errors),
    html`${secondsText(load.p50)} / ${secondsText(load.p99)}`,
  ]);
  const columns = ['Upstream', 'State', 'Revisions', 'Pins', 'Requests', 'Errors', 'p50 / p99'];
  const main = html`<p>Requests, errors and times are those of this replica since it started. A time is the upper bound of the bucket of <code>mcp_client_operation_duration_seconds</code> that holds it.</p>
${rowsTable(`${countOf(upstreams.length, 'upstream')}.`, columns, rows)}`;
  return page('Upstreams', main, { frame, current: '/upstreams' });
}

function secondsText(bound: number | undefined): string {
  if (bound === undefined) return '–';
  if (!Number.isFinite(bound)) return 'over 300 s';
  return bound < 1 ? `≤ ${Math.round(bound * 1000)} ms` : `≤ ${bound} s`;
}

/** What a form can block. */
const TARGETS: readonly (readonly [BlockKind, label: string])[] = [
  ['tool', 'A tool'],
  ['prompt', 'A prompt'],
  ['template', 'A resource template'],
  ['resource', 'A resource'],
  ['upstream', 'An upstream'],
  ['subject', 'A subject'],
  ['client', 'A client'],
  ['everything', 'Everything'],
];

const FIELD_LABELS: Readonly<Record<string, string>> = {
  upstream: 'Upstream',
  name: 'Name (of a resource its URI, of a template its URI template)',
  issuer: 'Issuer',
  subject: 'Subject',
  client: 'Client',
};

/** What a block names, as far as a page knows it. */
type BlockTarget = { readonly target: string } & Readonly<Record<string, string>>;

/** The names that a form may offer. */
export type KnownNames = {
  readonly upstreams: readonly string[];
  readonly issuers: readonly string[];
};

/**
 * The order that a form states, in the form that the API takes. What is missing or wrong in it is found there: it is
 * parsed by the same code as a request to the API.
 */
export function blockOrderOf(form: ReadonlyMap<string, string>): string {
  const target = form.get('target') ?? '';
  const names = isBlockKind(target) ? BLOCK_MEMBERS[target] : [];
  const named = names.map((name) => [name, form.get(name) ?? ''] as const);
  return JSON.stringify({
    block: { target, ...Object.fromEntries(named) },
    note: form.get('note') ?? '',
  });
}

/** A block of one thing that the page already names: only the reason is asked. */
export function blockButton(target: BlockTarget, what: string, frame: Frame): Html {
  const hidden = Object.entries(target).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  return html`<form class="stack" method="post" action="/block">${formTokenField(frame.formToken)}${hidden}
<div><label for="note">Why ${what} is blocked (kept in the audit log)</label><input id="note" name="note" required maxlength="500" autocomplete="off"></div>
<button class="danger">Block now</button></form>`;
}

/** The blocks and revocations in force, with the forms to make and to lift one. */
export function blocksPage(revocations: readonly ShownRevocation[], known: KnownNames, frame: Frame): PlainResponse {
  const mayLift = frame.roles.includes('admin');
  const mayBlock = mayLift || frame.roles.includes('reviewer');
  const rows = revocations.map((shown) => [
    targetText(shown),
    foreign(shown.note, 500),
    html`${foreign(shown.by)}<br><span class="dim small">${timeText(shown.at)}</span>`,
    shown.expires === undefined ? 'lifted' : timeText(shown.expires),
    mayLift ? liftForm(shown.id, frame) : '',
  ]);
  const columns = ['What', 'Why', 'By', 'Until', ...(mayLift ? ['Action'] : [])];
  const cells = mayLift ? rows : rows.map((row) => row.slice(0, -1));
  const main = html`<p>A block is in force at every replica within two seconds, also for open streams. It lasts until it is lifted. A revocation ends tokens or sessions that exist, and ends with them.</p>
${revocations.length === 0 ? html`<p>Nothing is blocked or revoked.</p>` : rowsTable(`Blocks and revocations in force: ${revocations.length}.`, columns, cells)}
${mayBlock ? blockForms(known, frame) : undefined}`;
  return page('Blocks', main, { frame, current: '/blocks' });
}

function targetText(shown: ShownRevocation): Html {
  const { id: _, kind, by: _by, note: _note, at: _at, expires: _expires, ...members } = shown;
  const named = Object.entries(members).map(
    ([name, value]) => html`<br><span class="dim small">${name}:</span> ${foreignName(String(value))}`,
  );
  return html`<strong>${kind}</strong>${named}`;
}

function liftForm(id: string, frame: Frame): Html {
  return html`<form method="post" action="/lift">${formTokenField(frame.formToken)}<input type="hidden" name="id" value="${id}"><button>Lift</button></form>`;
}

/** A form for each set of names, because without script a form cannot change its fields. */
function blockForms(known: KnownNames, frame: Frame): Html {
  const kinds = TARGETS.map(([target]) => target);
  const sets = groupBy(kinds, (target) => BLOCK_MEMBERS[target].join());
  const forms = [...sets.values()].map((targets) => {
    const [id] = targets;
    const fields = BLOCK_MEMBERS[id];
    return html`<details><summary>Block ${titleOf(targets)}</summary>
<form class="stack" method="post" action="/block">${formTokenField(frame.formToken)}
${targets.length === 1 ? html`<input type="hidden" name="target" value="${id}">` : selectField(`${id}-target`, 'target', 'What', targets)}
${fields.map((field) => fieldOf(`${id}-${field}`, field, known))}
<div><label for="${id}-note">Why (kept in the audit log)</label><input id="${id}-note" name="note" required maxlength="500" autocomplete="off"></div>
<button class="danger">Block now</button></form></details>`;
  });
  return html`<h2>Block</h2>${forms}`;
}

function titleOf(targets: readonly string[]): string {
  const labels = TARGETS.filter(([target]) => targets.includes(target)).map(([, label]) => label.toLowerCase());
  const last = labels.at(-1) ?? '';
  return labels.length === 1 ? last : `${labels.slice(0, -1).join(', ')} or ${last}`;
}

function fieldOf(id: string, field: string, { upstreams, issuers }: KnownNames): Html {
  const label = FIELD_LABELS[field] ?? field;
  if (field === 'upstream') return selectField(id, field, label, upstreams);
  if (field === 'issuer') return selectField(id, field, label, issuers);
  return html`<div><label for="${id}">${label}</label><input id="${id}" name="${field}" required maxlength="1024" autocomplete="off"></div>`;
}

function selectField(id: string, name: string, label: string, options: readonly string[]): Html {
  return html`<div><label for="${id}">${label}</label><select id="${id}" name="${name}">${options.map((option) => html`<option>${option}</option>`)}</select></div>`;
}

/** What became of a form, with the way back. */
export function resultPage(
  title: string,
  text: string,
  { status, frame, back }: { readonly status: number; readonly frame: Frame; readonly back: string },
): PlainResponse {
  const main = html`<p class="panel ${status < 300 ? 'done' : 'error'}" role="${status < 300 ? 'status' : 'alert'}">${text}</p>
<p><a class="button" href="${back}">Back</a></p>`;
  return page(title, main, { frame, current: back, status });
}

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
export type ExplainDecision = (record: AuditRecord, all: readonly AuditRecord[]) => DecisionExplanation | undefined;

const DECISIONS_PER_PAGE = 100;
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

type DecisionFilter = ReadonlyMap<FilterName, string>;

function readFilter(query: URLSearchParams): DecisionFilter {
  const given = FILTER_NAMES.map((name) => [name, query.get(name)?.trim().slice(0, MAX_FILTER) ?? ''] as const);
  return new Map(given.filter(([, value]) => value !== ''));
}

function textsAt(record: AuditRecord, name: FilterName): readonly string[] {
  const value = valueAt(record, ...FILTERS[name].at);
  return [value].flat().filter((one): one is string => typeof one === 'string');
}

function isMatch(record: AuditRecord, filter: DecisionFilter): boolean {
  return [...filter].every(([name, wanted]) =>
    textsAt(record, name).some((text) =>
      TYPED.has(name) ? text.toLowerCase().includes(wanted.toLowerCase()) : text === wanted,
    ),
  );
}

/** The decisions that match the filter of a query, newest first, a page at a time. */
export function decisionsPage(all: readonly AuditRecord[], query: URLSearchParams, frame: Frame): PlainResponse {
  const filter = readFilter(query);
  const found = all.filter((record) => isMatch(record, filter));
  const asked = Number(query.get('from') ?? 0);
  const from = Number.isInteger(asked) && asked > 0 ? Math.min(asked, found.length) : 0;
  const shown = found.slice(from, from + DECISIONS_PER_PAGE);
  const columns = ['Time', 'Caller', 'Upstream', 'Request', 'Decision', 'Why'];
  const which =
    shown.length === 0
      ? 'No decision matches.'
      : `${from + 1} to ${from + shown.length} of ${found.length} decisions at this replica, newest first.`;
  const main = html`${filterForm(all, filter)}
${shown.length === 0 ? html`<p>${which}</p>` : rowsTable(which, columns, shown.map(decisionRow))}
${pager(from, found.length, filter)}`;
  return page('Decisions', main, { frame, current: '/decisions' });
}

function filterForm(all: readonly AuditRecord[], filter: DecisionFilter): Html {
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

function pager(from: number, total: number, filter: DecisionFilter): Html | undefined {
  const link = (start: number, text: string, rel: string): Html => {
    const query = new URLSearchParams([...filter, ['from', String(start)]]);
    return html`<a class="button" rel="${rel}" href="/decisions?${query.toString()}">${text}</a> `;
  };
  const links = [
    ...(from > 0 ? [link(Math.max(0, from - DECISIONS_PER_PAGE), 'Newer', 'prev')] : []),
    ...(from + DECISIONS_PER_PAGE < total ? [link(from + DECISIONS_PER_PAGE, 'Older', 'next')] : []),
  ];
  return links.length === 0 ? undefined : html`<nav aria-label="More decisions">${links}</nav>`;
}

function decisionRow(record: AuditRecord): readonly (Html | string)[] {
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

/** The approval that was used, that is waited for, or because of which it was refused. */
function approvalLink(record: AuditRecord): Html | undefined {
  const id = requiredText(record, 'decision', 'approval');
  return id === '' ? undefined : html`<a href="/approvals/${id}"><code>${id}</code></a>`;
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
    ['Approval', approvalLink(record) ?? ''],
    [
      'Caller',
      html`${foreign(requiredText(record, 'actor', 'sub') || 'not verified')} ${foreign(requiredText(record, 'actor', 'iss'))}`,
    ],
    ['Client', foreign(requiredText(record, 'actor', 'client_id'))],
    ['Address', foreign(requiredText(record, 'client', 'ip'))],
    ['Upstream', foreign(requiredText(record, 'target', 'upstream'))],
    ['Request', html`${foreign(requiredText(record, 'target', 'method'))} ${targetName(record)}`],
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

const CLAUSE_RESULTS: Readonly<Record<string, string>> = {
  fails: 'does not hold',
  error: 'error',
  unknown: 'not known',
};
const RULE_STATES: Readonly<Record<string, string>> = { ...CLAUSE_RESULTS, holds: 'holds' };

/** The rules about the target with the clauses that fail. Nothing is completed that the record does not say. */
function clausesSection(explanation: DecisionExplanation | undefined): Html | undefined {
  if (explanation === undefined) return undefined;
  const { rules, isCurrent } = explanation;
  const changed = isCurrent
    ? undefined
    : html`<p class="panel">The policies were changed after this decision. These are the rules in force now.</p>`;
  const rows = rules.flatMap(({ id, effect, state, clauses }) => {
    const rule = html`<code>${foreign(id)}</code> <span class="small">${effect}, ${RULE_STATES[state] ?? state}</span>`;
    if (clauses.length === 0) return [[rule, '–', '']];
    return clauses.map(({ path, pointer, result, text }) => [
      rule,
      html`<code>${foreign(path)}</code>${pointer === undefined ? undefined : html` <code>${foreign(pointer)}</code>`}`,
      `${CLAUSE_RESULTS[result] ?? result}: ${foreign(text, 500)}`,
    ]);
  });
  const columns = ['Rule', 'Failing clause', 'Why'];
  return html`<h2>What the rules say about this request</h2>
${changed}${rules.length === 0 ? html`<p>No rule is about this target.</p>` : rowsTable('The rules about this target, with each clause that does not hold.', columns, rows)}`;
}

function targetName(record: AuditRecord): Html | undefined {
  const name = requiredText(record, 'target', 'name');
  return name === '' ? undefined : foreignName(name);
}
