// The part of the admin API about approvals: list those that wait, list what became of the others, read one, grant and
// deny. Viewers read; reviewers and admins answer. docs/reference/approvals.md#api; RFC 9470 §3.

import type { AnswerRefusal, ApprovalDesk } from '../policy/approval.js';
import { mediaType } from '../protocol/headers.js';
import { parseObject } from '../protocol/jsonrpc.js';
import { type AdminCaller, type ApiReply, json, NOT_ALLOWED, refusal, type SentBody } from './api-response.js';
import {
  answerApproval,
  type GrantRefusal,
  historyList,
  type ReviewOutcome,
  shownApproval,
  shownCaller,
  shownInFull,
  waitingList,
} from './approvals.js';
import { ADMIN_ROLES, type AdminRole, MAX_AUTH_AGE_SECONDS } from './sessions.js';

export type ApprovalRequest =
  | { readonly action: 'list-approvals' | 'list-answered-approvals' }
  | { readonly action: 'show-approval'; readonly id: string; readonly isUnmasked: boolean }
  | { readonly action: 'grant-approval' | 'deny-approval'; readonly id: string };

export type ApprovalApiPorts = { readonly approvals: ApprovalDesk; readonly now: () => number };

const PATH = '/api/approvals';
/** An id, and then what is asked of it. Ids are longer than the names of lists. */
const ONE = /^\/api\/approvals\/([A-Za-z0-9_-]{16,128})(\/grant|\/deny|\?show=sensitive)?$/;

const ALLOWED_ROLES: Readonly<Record<ApprovalRequest['action'], readonly AdminRole[]>> = {
  'list-approvals': ADMIN_ROLES,
  'list-answered-approvals': ADMIN_ROLES,
  'show-approval': ADMIN_ROLES,
  'grant-approval': ['reviewer', 'admin'],
  'deny-approval': ['reviewer', 'admin'],
};

/** Whether the roles allow to answer, and to see sensitive values. */
export function mayAnswer(roles: readonly AdminRole[]): boolean {
  return ALLOWED_ROLES['grant-approval'].some((role) => roles.includes(role));
}

/** Routes a method and a target; `undefined` if they are not about approvals. */
export function readApprovalRequest(method: string | undefined, url: string | undefined): ApprovalRequest | undefined {
  const [, id, more] = ONE.exec(url ?? '') ?? [];
  if (method === 'POST') {
    const action = ANSWERS.get(more);
    return id === undefined || action === undefined ? undefined : { action, id };
  }
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  if (url === PATH) return { action: 'list-approvals' };
  if (url === `${PATH}/history`) return { action: 'list-answered-approvals' };
  if (id === undefined || ANSWERS.has(more)) return undefined;
  return { action: 'show-approval', id, isUnmasked: more !== undefined };
}

const ANSWERS: ReadonlyMap<string | undefined, 'grant-approval' | 'deny-approval'> = new Map([
  ['/grant', 'grant-approval'],
  ['/deny', 'deny-approval'],
]);

/** Handles a routed request of an authenticated caller. */
export async function respondToApproval(
  asked: ApprovalRequest,
  caller: AdminCaller,
  body: SentBody,
  ports: ApprovalApiPorts,
): Promise<ApiReply> {
  if (!ALLOWED_ROLES[asked.action].some((role) => caller.roles.includes(role))) return { response: NOT_ALLOWED };
  switch (asked.action) {
    case 'list-approvals':
    case 'list-answered-approvals':
      return list(asked.action === 'list-approvals', ports);
    case 'show-approval':
      return show(asked, caller, ports);
    case 'grant-approval':
    case 'deny-approval': {
      const verdict = asked.action === 'grant-approval' ? 'granted' : 'denied';
      // As for every change: no page of another origin can send JSON without asking first.
      if (mediaType(body.type) !== 'application/json') return { response: refusal(415, 'Send application/json.') };
      const text = await body.read();
      if (text === undefined) return { response: refusal(413, 'The request body exceeds the size limit.') };
      const members = parseObject(text);
      if (members === undefined || Object.keys(members).length > 0)
        return { response: refusal(400, 'The body must be {}.') };
      return answer({ id: asked.id, verdict }, caller, ports);
    }
  }
}

async function list(isWaiting: boolean, { approvals, now }: ApprovalApiPorts): Promise<ApiReply> {
  const all = await approvals.list();
  if (all === 'unavailable') return { response: UNAVAILABLE };
  const nowMs = now();
  if (!isWaiting) {
    const { shown, more } = historyList(all, nowMs);
    return { response: json(200, { approvals: shown.map((one) => shownApproval(one, nowMs)), more }) };
  }
  const { callers, unlisted, forReviewers } = waitingList(all, nowMs);
  const listed = callers.map(({ caller, shown, more }) => ({
    caller: shownCaller(caller),
    approvals: shown.map((one) => shownApproval(one, nowMs)),
    more,
  }));
  return { response: json(200, { callers: listed, unlisted, forReviewers }) };
}

async function show(
  { id, isUnmasked }: Extract<ApprovalRequest, { readonly action: 'show-approval' }>,
  { roles }: AdminCaller,
  { approvals, now }: ApprovalApiPorts,
): Promise<ApiReply> {
  const detail = { approval: id, ...(isUnmasked ? { sensitive: 'shown' } : {}) };
  if (isUnmasked && !mayAnswer(roles)) return { response: NOT_ALLOWED, detail };
  const found = await approvals.find(id);
  if (found === 'unavailable') return { response: UNAVAILABLE, detail };
  if (found === 'unknown') return { response: UNKNOWN, detail };
  return { response: json(200, { approval: shownInFull(found, now(), isUnmasked) }), detail };
}

async function answer(
  asked: Parameters<typeof answerApproval>[0],
  caller: AdminCaller,
  { approvals, now }: ApprovalApiPorts,
): Promise<ApiReply> {
  const detail = { approval: asked.id };
  const done = await answerApproval(asked, caller, approvals, now());
  if (done.kind === 'taken') return { response: json(200, { approval: shownApproval(done.approval, now()) }), detail };
  const { status, error } = describeRefusal(done);
  const response = refusal(status, error);
  if (done.kind !== 'not-granted' || done.why !== 'not-authenticated-recently') return { response, detail };
  return { response: { ...response, headers: { ...response.headers, ...STEP_UP } }, detail };
}

const STEP_UP = {
  'www-authenticate': `Bearer error="insufficient_user_authentication", max_age=${MAX_AUTH_AGE_SECONDS}`,
};

const NO_STORE = 'The shared store is unreachable. Nothing was changed.';
const NO_APPROVAL = 'No such approval is kept.';
const UNAVAILABLE = refusal(503, NO_STORE);
const UNKNOWN = refusal(404, NO_APPROVAL);

const GRANT_REFUSALS: Readonly<Record<GrantRefusal | 'not-shown', readonly [status: number, error: string]>> = {
  'break-glass': [
    403,
    'The break-glass token lists and denies. It grants nothing, because it is nobody in particular.',
  ],
  'acted-for': [403, 'Somebody else acts for you with this token. Grant with a token or a login of your own.'],
  'without-match': [
    403,
    'Your token lacks the claim that issuers.<name>.login.match names, so it cannot be told whether you are the caller. Log in with the scope that has it.',
  ],
  pairwise: [
    403,
    'Your issuer gives each client another subject, so it cannot be told whether you are the caller. Have the claim that tells it named in issuers.<name>.login.match.',
  ],
  'not-shown': [409, 'What the request asks is not kept any more, so nobody can be shown it.'],
  'not-authenticated-recently': [
    401,
    `Granting needs a token or a login in the console whose "auth_time" is at most ${MAX_AUTH_AGE_SECONDS} seconds old. Log in again.`,
  ],
};

const ANSWER_REFUSALS: Readonly<Record<AnswerRefusal, string>> = {
  'is-caller': 'You are the caller. Somebody else has to review this request.',
  'is-actor': 'You act for the caller. Somebody else has to review this request.',
  'answered-before': 'You have answered already. Somebody else has to answer too.',
  'not-told-apart':
    'It cannot be told whether you are the caller, or have answered before: one of the tokens lacks the claim that tells one person.',
  'not-in-group': 'The rule names groups of reviewers, and you are not in them.',
  'not-the-caller': 'Only the caller may answer this request.',
  'not-asked': 'No reviewer is asked about this request.',
  'no-proof': 'With this token you may deny alone.',
};

/** Why an answer was not taken: a status and a sentence. */
export function describeRefusal(outcome: Exclude<ReviewOutcome, { readonly kind: 'taken' }>): {
  readonly status: number;
  readonly error: string;
} {
  switch (outcome.kind) {
    case 'not-granted': {
      const [status, error] = GRANT_REFUSALS[outcome.why];
      return { status, error };
    }
    case 'refused':
      return { status: 403, error: ANSWER_REFUSALS[outcome.why] };
    case 'over':
      return { status: 409, error: 'This request does not wait any more.' };
    case 'unknown':
      return { status: 404, error: NO_APPROVAL };
    case 'unavailable':
      return { status: 503, error: NO_STORE };
    case 'unrecorded':
      return { status: 503, error: 'The audit log cannot be written, so the answer does not count.' };
  }
}
