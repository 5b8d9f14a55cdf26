// The pages of approvals: what waits, by caller; one request, where it is read and answered; and what became of the others.
// Callers, models and servers choose most of what is shown. The forms are read here and carried out as the API does, which
// checks role and person. docs/reference/listeners.md#the-console; docs/reference/approvals.md#reviewers.

import { approvalView, partView, type ViewQuery } from '../approvals/view.js';
import type { PlainResponse } from '../http/app.js';
import { foreign, foreignName, formTokenField, type Html, html, rowsTable, stateText, timeText } from '../http/html.js';
import { type Approval, type ApprovalCaller, openParties, type ShownApproval, stateOf } from '../policy/approval.js';
import { countOf } from '../text/wording.js';
import type { CallerQuestions, obstacleOf, WaitingList } from './approvals.js';
import { describeRefusal } from './approvals-api.js';
import { type Frame, page } from './page-frame.js';

export const APPROVALS_PATH = '/approvals';
export const HISTORY_PATH = '/approvals/history';

function timeOf(ms: number): Html {
  return timeText(new Date(ms).toISOString());
}

function callerText({ issuer, subject, client, actors }: ApprovalCaller): Html {
  const acting =
    actors.length === 0 ? undefined : html`, acted for by ${actors.map((actor) => foreign(actor.subject)).join(', ')}`;
  return html`${foreignName(subject)} <span class="dim small">of ${foreign(issuer)} by ${foreignName(client)}${acting}</span>`;
}

function requestText({ subject }: Approval): Html {
  const { method, name, shownAs } = subject;
  const known = shownAs === undefined ? undefined : html` <span class="dim small">known as ${foreign(shownAs)}</span>`;
  return html`${foreign(method)}<br>${foreignName(name)}${known}`;
}

const PARTY_TEXTS = { caller: 'the caller', reviewer: 'a reviewer' } as const;

/** What waits, with at most some requests of each caller. `undefined`: the store cannot be read. */
export function waitingPage(list: WaitingList | undefined, frame: Frame): PlainResponse {
  const main =
    list === undefined
      ? html`<p class="panel error" role="alert">The shared store is unreachable, so it is not known what waits.</p>`
      : html`<p>A call that policies put to a reviewer waits here until it is answered or expires. A yes is for exactly the call that is shown, and for one use.</p>
${list.callers.length === 0 ? html`<p>Nothing waits.</p>` : list.callers.map(callerSection)}
${list.unlisted === 0 ? undefined : html`<p class="panel">${countOf(list.unlisted, 'request')} of other callers ${list.unlisted === 1 ? 'is' : 'are'} not listed. They follow as these are answered.</p>`}`;
  return page(
    'Approvals',
    html`${main}
<p><a class="button" href="${HISTORY_PATH}">History</a></p>`,
    { frame, current: APPROVALS_PATH },
  );
}

function callerSection({ caller, shown, more }: CallerQuestions): Html {
  const rows = shown.map((approval) => [
    html`<a href="${APPROVALS_PATH}/${approval.id}">${requestText(approval)}</a>`,
    approval.subject.upstream,
    foreign(approval.demand.rules.join(', '), 500),
    openParties(approval)
      .map((party) => PARTY_TEXTS[party])
      .join(' and '),
    timeOf(approval.expiresAtMs),
  ]);
  const rest = more === 0 ? '' : ` ${more} more of this caller ${more === 1 ? 'is' : 'are'} not listed.`;
  return html`<h2>${callerText(caller)}</h2>
${rowsTable(`${countOf(shown.length + more, 'request')}.${rest}`, ['Request', 'Upstream', 'Rules', 'Waits for', 'Until'], rows)}`;
}

/** What became of the others, the newest first. */
export function historyPage(
  list: { readonly shown: readonly Approval[]; readonly more: number } | undefined,
  nowMs: number,
  frame: Frame,
): PlainResponse {
  const rows = (list?.shown ?? []).map((approval) => [
    html`<a href="${APPROVALS_PATH}/${approval.id}">${requestText(approval)}</a>`,
    approval.subject.upstream,
    callerText(approval.subject.caller),
    stateText(stateOf(approval, nowMs)),
    answersText(approval),
    timeOf(approval.createdAtMs),
  ]);
  const rest =
    list === undefined || list.more === 0 ? '' : ` ${list.more} older ones are not listed; the audit log has them.`;
  const columns = ['Request', 'Upstream', 'Caller', 'State', 'Answers', 'Asked'];
  const main =
    list === undefined
      ? html`<p class="panel error" role="alert">The shared store is unreachable, so the history cannot be read.</p>`
      : rows.length === 0
        ? html`<p>Nothing has been answered, used or has expired yet.</p>`
        : rowsTable(`${countOf(rows.length, 'request')}, the newest first.${rest}`, columns, rows);
  return page(
    'History of approvals',
    html`${main}
<p><a class="button" href="${APPROVALS_PATH}">What waits</a></p>`,
    { frame, current: APPROVALS_PATH },
  );
}

const PROOF_TEXTS = {
  login: 'after a login',
  token: 'by the API',
  client: 'answered by the client, perhaps without a person',
} as const;

function answersText({ answers }: Approval): Html {
  if (answers.length === 0) return html`none`;
  return html`${answers.map(
    ({ verdict, person, party, proof }, index) =>
      html`${index === 0 ? undefined : html`<br>`}${verdict} by ${foreignName(person.subject)} <span class="dim small">(${party}, ${PROOF_TEXTS[proof]})</span>`,
  )}`;
}

/** One request with what the person has to see, and the forms to answer it. */
export function approvalPage(
  approval: ShownApproval,
  {
    nowMs,
    isAnswerer,
    query,
    obstacle,
    again,
    frame,
  }: {
    readonly nowMs: number;
    /** The role allows to answer. */
    readonly isAnswerer: boolean;
    /** What of it is asked for; sensitive values are shown only to whoever may answer. */
    readonly query: ViewQuery;
    /** What keeps the one who looks from granting. */
    readonly obstacle: ReturnType<typeof obstacleOf>;
    /** Where they log in again, if they logged in at an issuer. */
    readonly again?: string | undefined;
    readonly frame: Frame;
  },
): PlainResponse {
  const state = stateOf(approval, nowMs);
  const isOpen = state === 'waiting' && openParties(approval).includes('reviewer');
  const main = html`${approvalView(approval, { ...query, isRevealed: isAnswerer && query.isRevealed }, nowMs)}
<h2>Answers</h2>
<p>${answersText(approval)}</p>
${isOpen ? answerForms(approval, isAnswerer, { obstacle, again }, frame) : html`<p class="panel">${closedText(state)}</p>`}
<p><a class="button" href="${APPROVALS_PATH}">What waits</a> <a class="button" href="${HISTORY_PATH}">History</a></p>`;
  return page('A request that needs approval', main, { frame, current: APPROVALS_PATH });
}

/** One value of a request with all of its text; `undefined` where it is not there. */
export function approvalPartPage(approval: ShownApproval, query: ViewQuery, frame: Frame): PlainResponse | undefined {
  const part = partView(approval, query);
  return part && page('Part of a request', part, { frame, current: APPROVALS_PATH });
}

function closedText(state: string): string {
  if (state === 'waiting') return 'No reviewer is asked any more. The request waits for its caller.';
  return `This request does not wait any more: it is ${state}.`;
}

function answerForms(
  { id, demand }: Approval,
  isAnswerer: boolean,
  { obstacle, again }: Pick<Parameters<typeof approvalPage>[1], 'obstacle' | 'again'>,
  { formToken }: Frame,
): Html {
  if (!isAnswerer) return html`<p class="panel">Your role reads. Reviewers and admins answer.</p>`;
  const count = demand.reviewer?.count ?? 1;
  const needs = count === 1 ? undefined : html`<p>The rule needs ${count} different reviewers.</p>`;
  const grant =
    obstacle === undefined
      ? html`<form class="stack" method="post" action="${APPROVALS_PATH}/${id}/grant">${formTokenField(formToken)}<button>Grant this request once</button></form>`
      : obstacle.kind === 'not-granted' && obstacle.why === 'not-authenticated-recently' && again !== undefined
        ? html`<p class="panel">To grant it, log in again: it counts only if that was less than five minutes ago. Then you come back to this page, and answer.</p>
<p><a class="button" href="${again}">Log in to grant</a></p>`
        : html`<p class="panel">${describeRefusal(obstacle).error}</p>`;
  return html`<h2>Answer</h2>
${needs}${grant}
<form class="stack" method="post" action="${APPROVALS_PATH}/${id}/deny">${formTokenField(formToken)}<button class="danger">Deny this request</button></form>`;
}
