// The pages controls, upstreams and blocks of the console. They show what the ports report and decide nothing; the form
// to block is read here and carried out by the API for revocations, which checks role and content.
// docs/contract.md §2 and §10.

import type { PlainResponse } from '../http/internal-server.js';
import type { ControlRow } from '../telemetry/controls.js';
import type { UpstreamLoad } from '../telemetry/metrics.js';
import { groupBy } from '../text/grouping.js';
import { countOf } from '../text/wording.js';
import { BLOCK_MEMBERS, type BlockKind, isBlockKind, type ShownRevocation } from './api.js';
import {
  type Frame,
  foreign,
  foreignName,
  formTokenField,
  type Html,
  html,
  page,
  rowsTable,
  stateText,
  timeText,
} from './html.js';

/** What is not armed comes first. */
const STATE_ORDER: readonly string[] = ['off', 'degraded', 'armed'];

/** The state of every control, those that are not armed first. */
export function controlsPage(controls: readonly ControlRow[], frame: Frame): PlainResponse {
  const counts = STATE_ORDER.map(
    (state) => [state, controls.filter((row) => row.state === state)] as const,
  );
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
  return page('Controls', main, { frame, current: '/' });
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
export type BlockTarget = { readonly target: string } & Readonly<Record<string, string>>;

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
export function blocksPage(
  revocations: readonly ShownRevocation[],
  known: KnownNames,
  frame: Frame,
): PlainResponse {
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
    ([name, value]) =>
      html`<br><span class="dim small">${name}:</span> ${foreignName(String(value))}`,
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
  const labels = TARGETS.filter(([target]) => targets.includes(target)).map(([, label]) =>
    label.toLowerCase(),
  );
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
  {
    status,
    frame,
    back,
  }: { readonly status: number; readonly frame: Frame; readonly back: string },
): PlainResponse {
  const main = html`<p class="panel ${status < 300 ? 'done' : 'error'}" role="${status < 300 ? 'status' : 'alert'}">${text}</p>
<p><a class="button" href="${back}">Back</a></p>`;
  return page(title, main, { frame, current: back, status });
}
