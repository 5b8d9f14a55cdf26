// What a person is shown of a request that needs an approval, on the caller's page and on a reviewer's: what is asked, why,
// by whom, with exactly which arguments, and what this caller has received before. Callers, models, servers and clients
// choose most of it, so every text of theirs is escaped and says what it is. docs/reference/approvals.md#what-the-person-sees.

import { foreign, foreignName, type Html, html, rowsTable, stateText, timeText } from '../http/html.js';
import {
  type Approval,
  type ApprovalContent,
  type ApprovalParty,
  openParties,
  type ShownApproval,
  stateOf,
} from '../policy/approval.js';
import type { Finding } from '../policy/record.js';
import { fullDurationText } from '../text/wording.js';
import { type ShownText, shownJson, sizeText } from './shown-json.js';

/** What of an approval a page shows: everything, or one value with all of its text. */
export type ViewQuery = {
  /** With the values that are marked as sensitive. */
  readonly isRevealed: boolean;
  readonly part:
    | { readonly of: 'arguments' | 'definition'; readonly pointer: string; readonly from: number }
    | undefined;
};

const REVEALED = 'sensitive';
const OF_DEFINITION = 'definition';
const MAX_FROM = 10_000_000;

/** Reads the query of a page; what it does not know of is left out. */
export function readViewQuery(query: URLSearchParams): ViewQuery {
  const pointer = query.get('part');
  const from = Number(query.get('from') ?? 0);
  const isPart = pointer !== null && (pointer === '' || pointer.startsWith('/'));
  return {
    isRevealed: query.get('show') === REVEALED,
    part: isPart
      ? {
          of: query.get('of') === OF_DEFINITION ? OF_DEFINITION : 'arguments',
          pointer,
          from: Number.isInteger(from) && from >= 0 && from < MAX_FROM ? from : 0,
        }
      : undefined,
  };
}

/** The same page with another query. Relative, so that it serves wherever the page is. */
function linkOf({ isRevealed, part }: ViewQuery): string {
  const query = new URLSearchParams();
  if (part !== undefined) {
    if (part.of === OF_DEFINITION) query.set('of', OF_DEFINITION);
    query.set('part', part.pointer);
    if (part.from > 0) query.set('from', String(part.from));
  }
  if (isRevealed) query.set('show', REVEALED);
  return `?${query.toString()}`;
}

/** The paths that findings in arguments have before them. */
const ARGUMENT_PATHS = ['/params/arguments', '/params', ''];

function argumentsOf({ args, sensitive, findings }: ApprovalContent, query: ViewQuery): ShownText {
  const notes = new Map<string, readonly string[]>();
  for (const finding of findings) {
    const beginning = ARGUMENT_PATHS.find((path) => finding.path === path || finding.path.startsWith(`${path}/`));
    const pointer = finding.path.slice(beginning?.length ?? 0);
    notes.set(pointer, [...(notes.get(pointer) ?? []), findingText(finding)]);
  }
  return {
    text: args,
    hidden: query.isRevealed ? [] : sensitive,
    notes,
    linkTo: (pointer, from = 0) => linkOf({ ...query, part: { of: 'arguments', pointer, from } }),
    revealed: linkOf({ ...query, isRevealed: true }),
  };
}

function definitionOf(definition: NonNullable<ApprovalContent['definition']>, query: ViewQuery): ShownText {
  return {
    text: JSON.stringify(definition),
    hidden: [],
    notes: new Map(),
    linkTo: (pointer, from = 0) => linkOf({ ...query, part: { of: OF_DEFINITION, pointer, from } }),
    revealed: '',
  };
}

function findingText({ detector, count, action }: Finding): string {
  return `${detector}${count === 1 ? '' : ` (${count} times)`}: ${action}`;
}

/** The page of one value; `undefined` where it is not there. */
export function partView({ content }: ShownApproval, query: ViewQuery): Html | undefined {
  const { part } = query;
  if (part === undefined || content === undefined) return undefined;
  const isDefinition = part.of === OF_DEFINITION;
  if (isDefinition && content.definition === undefined) return undefined;
  const shown =
    isDefinition && content.definition !== undefined
      ? definitionOf(content.definition, query)
      : argumentsOf(content, query);
  const body = shownJson(shown, part.pointer, part.from);
  if (body === undefined) return undefined;
  const where = part.pointer === '' ? undefined : html` at ${foreignName(part.pointer)}`;
  return html`<p>Part of the ${part.of === OF_DEFINITION ? 'definition' : 'arguments'}${where}: ${sizeText(shown.text, part.pointer)}.</p>
${body}
<p><a class="button" href="${linkOf({ ...query, part: undefined })}">Back to the whole request</a></p>`;
}

/** Everything that a person has to see, without the forms. */
export function approvalView(approval: ShownApproval, query: ViewQuery, nowMs: number): Html {
  const { subject, demand, content } = approval;
  return html`<p>${foreignName(subject.caller.client)} asks, for ${foreignName(subject.caller.subject)}, to send this request to ${foreignName(subject.upstream)}. ${consequence(approval)}</p>
<h2>What is asked</h2>
<dl class="facts">
<dt>Upstream</dt><dd>${foreignName(subject.upstream)}</dd>
<dt>Request</dt><dd><code>${foreign(subject.method)}</code>${subject.isTask === true ? ', as a task' : ''}</dd>
<dt>${nounOf(subject.method)}</dt><dd>${nameText(subject.name)}${subject.shownAs === undefined ? undefined : html`, which clients know as ${foreignName(subject.shownAs)}`}</dd>
<dt>Why a person is asked</dt><dd>${demand.reasons.length === 0 ? 'The rule gives no reason.' : listOf(demand.reasons.map((reason) => foreign(reason, LONG)))}</dd>
<dt>Rules</dt><dd>${listOf(demand.rules.map((rule) => html`<code>${foreign(rule, LONG)}</code>`))}</dd>
</dl>
<h2>The arguments, as they would be sent</h2>
${content === undefined ? NOT_KEPT : argumentsView(content, query)}
${content === undefined ? undefined : findingsView(content)}
<h2>Who asks</h2>
${callerView(approval)}
<h2>What this caller has received before</h2>
${content === undefined ? NOT_KEPT : labelsView(content)}
<h2>The definition that was approved</h2>
${content === undefined ? NOT_KEPT : definitionView(content, query)}
<h2>Times</h2>
${timesView(approval, nowMs)}`;
}

/** Texts that are shown to their end, whatever the length of one that is still a name. */
const LONG = 4_000;
const NOT_KEPT = html`<p class="panel">It is not kept any more.</p>`;

function consequence({ demand: { caller, useMs } }: Approval): string {
  const again = caller?.remember;
  const within = `A yes holds for exactly this request, once, within ${fullDurationText(useMs)}.`;
  if (again === undefined) return within;
  const equal =
    again.same === undefined || again.same.length === 0
      ? again.same && 'whatever its arguments are'
      : `as long as these arguments stay the same: ${again.same.map((pointer) => foreign(pointer, LONG)).join(', ')}`;
  return `A yes holds for this request within ${fullDurationText(useMs)}. For ${fullDurationText(again.forMs)} it also holds for every request of the same agent to the same tool ${equal ?? 'with the same arguments'}.`;
}

const NOUNS: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'Tool'],
  ['prompts/get', 'Prompt'],
  ['resources/read', 'Resource'],
]);

function nounOf(method: string): string {
  return NOUNS.get(method) ?? 'Kind';
}

function nameText(name: string): Html {
  return name.length > LONG ? html`<code>${foreign(name, name.length)}</code>` : foreignName(name);
}

function listOf(items: readonly (Html | string)[]): Html {
  const [only] = items;
  if (items.length === 1) return html`${only}`;
  return html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`;
}

function argumentsView(content: ApprovalContent, query: ViewQuery): Html {
  const shown = argumentsOf(content, query);
  const hides = !query.isRevealed && content.sensitive.length > 0;
  const reveal = html`<p><a href="${shown.revealed}">Show what is marked as sensitive</a></p>`;
  const conceal = html`<p><a href="${linkOf({ ...query, isRevealed: false })}">Hide what is marked as sensitive</a></p>`;
  return html`<p>They are ${sizeText(shown.text)}. Line ends, invisible characters and direction marks are written as escapes; letters that look like others are followed by their code points.</p>
${hides ? reveal : query.isRevealed && content.sensitive.length > 0 ? conceal : undefined}
${shownJson(shown) ?? html`<pre class="whole" tabindex="0">${foreign(content.args, content.args.length)}</pre>`}`;
}

function findingsView({ findings }: ApprovalContent): Html | undefined {
  if (findings.length === 0) return undefined;
  const rows = findings.map(({ detector, path, count, action }) => [
    html`<code>${foreign(detector)}</code>`,
    html`<code>${foreign(path, LONG)}</code>`,
    String(count),
    action,
  ]);
  return html`<h3>Found in them</h3>
${rowsTable('What inspection has found, and what it does about it.', ['Detector', 'Where', 'Times', 'Action'], rows)}`;
}

function callerView({ subject: { caller }, ...approval }: ShownApproval): Html {
  const { content } = approval;
  const reported = content?.selfReported;
  const actors = caller.actors.map(
    ({ issuer, subject }) => html`${foreignName(subject)} of <code>${foreign(issuer)}</code>`,
  );
  return html`<dl class="facts">
<dt>For whom</dt><dd>${foreignName(caller.subject)} of <code>${foreign(caller.issuer)}</code></dd>
<dt>Client</dt><dd>${foreignName(caller.client)}</dd>
<dt>Acting for the caller</dt><dd>${actors.length === 0 ? 'nobody else' : listOf(actors)}</dd>
<dt>What the client calls itself</dt><dd>${reported === undefined ? 'nothing' : html`${foreignName(reported.name)} ${foreign(reported.version)} <span class="dim small">(its own words, not verified)</span>`}</dd>
</dl>`;
}

function labelsView({ labels }: ApprovalContent): Html {
  if (labels === 'unknown')
    return html`<p>Not known: no flow looks for what this caller receives, or what was kept of it cannot be read.</p>`;
  if (labels.length === 0) return html`<p>Nothing that carries a label.</p>`;
  return html`<p>Results with these labels, in this history: ${labels.map((label, at) => html`${at === 0 ? '' : ', '}<code>${foreign(label)}</code>`)}.</p>`;
}

function definitionView({ definition }: ApprovalContent, query: ViewQuery): Html {
  if (definition === undefined) return html`<p>Nothing is pinned: nobody has approved what the server says of it.</p>`;
  const { title, description } = definition;
  const shown = definitionOf(definition, query);
  return html`<dl class="facts">
<dt>Title</dt><dd>${typeof title === 'string' ? foreign(title, LONG) : 'none'}</dd>
<dt>Description</dt><dd>${typeof description === 'string' ? foreign(description, LONG) : 'none'}</dd>
</dl>
<details><summary>All of it, with its schema (${sizeText(shown.text)})</summary>
${shownJson(shown)}</details>`;
}

const PARTY_TEXTS: Readonly<Record<ApprovalParty, string>> = { caller: 'the caller', reviewer: 'a reviewer' };

function timesView(approval: ShownApproval, nowMs: number): Html {
  const { id, createdAtMs, expiresAtMs, usableUntilMs, decisionId, shown } = approval;
  const state = stateOf(approval, nowMs);
  const open = openParties(approval).map((party) => PARTY_TEXTS[party]);
  return html`<dl class="facts">
<dt>State</dt><dd>${stateText(state)}${state === 'waiting' && open.length > 0 ? ` for ${open.join(' and ')}` : undefined}</dd>
<dt>Asked</dt><dd>${timeOf(createdAtMs)}</dd>
<dt>Can be answered until</dt><dd>${timeOf(expiresAtMs)}</dd>
${usableUntilMs === undefined ? undefined : html`<dt>Can be used until</dt><dd>${timeOf(usableUntilMs)}</dd>`}
<dt>Decision</dt><dd><code>${decisionId}</code></dd>
<dt>Approval</dt><dd><code>${id}</code></dd>
<dt>Digest of what is shown</dt><dd><code>${shown}</code></dd>
</dl>`;
}

function timeOf(ms: number): Html {
  return timeText(new Date(ms).toISOString());
}
