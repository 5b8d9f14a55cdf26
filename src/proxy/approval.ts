// The yes of a person to a request: looked for before limits are charged, used behind them, and asked for where there is
// none. What waits is answered at once, and the same request repeated is decided anew as a whole; only then its yes is
// used. What the client answers to a form of the gateway counts here too. docs/reference/approvals.md; MCP 2026-07-28,
// multi-round-trip requests; MCP 2025-11-25, elicitation.

import { createHash } from 'node:crypto';
import { sensitivePointers } from '../inspection/sensitive-fields.js';
import { canonicalForm } from '../pins/digest.js';
import {
  type Approval,
  type ApprovalAnswer,
  type ApprovalContent,
  type ApprovalOutcome,
  type ApprovalQuestion,
  type ApprovalSubject,
  MAX_SHOWN_CHARACTERS,
  openParties,
} from '../policy/approval.js';
import {
  APPROVABLE_METHODS,
  type ApprovalDemand,
  type ApprovalRequirement,
  demandOf,
} from '../policy/approval-terms.js';
import { type Allow, approvalOf, type Deny, type Refusal, refuseWith } from '../policy/decision.js';
import { historiesRead } from '../policy/information-flow.js';
import type { Principal } from '../policy/principal.js';
import type { RecordFacts, RequestRecord, Staged } from '../policy/record.js';
import { digestOfTexts } from '../policy/rule-text.js';
import type { AdmittedMessage } from '../protocol/admitted-request.js';
import {
  applyEdits,
  hasInexactNumber,
  type Member,
  memberSpans,
  removalEdits,
  removalsOf,
  spanOf,
} from '../protocol/json/json.js';
import { isObject, type ServerRequestName } from '../protocol/jsonrpc.js';
import { paramsOf } from '../protocol/params.js';
import { APPROVAL_KEY, isApproved, isDeclined } from '../protocol/server-requests.js';
import { RELATED_TASK_KEY } from '../protocol/tasks.js';
import { unseenCharacters } from '../text/escaping.js';
import { stepsOf } from '../text/json-members.js';
import { isShownEntirely } from './flows.js';
import { nameOf, type RequestContext, sensitiveFieldsOf } from './request-context.js';

/** A request that somebody has to approve. */
export type Approvable = {
  readonly principal: Principal;
  /** As it will be forwarded. */
  readonly admitted: AdmittedMessage;
  readonly requirements: readonly ApprovalRequirement[];
  /** Digest of the texts of the rules that decided. */
  readonly rules: string;
};

/** What has to be approved of a message, by rules and by flows; undefined where nothing has. */
export function approvableOf(
  principal: Principal,
  allow: Allow,
  admitted: AdmittedMessage,
  byFlows: readonly ApprovalRequirement[] = NOTHING,
): Approvable | undefined {
  const obligation = allow.obligations.length === 0 ? undefined : approvalOf(allow);
  if (obligation === undefined && byFlows.length === 0) return undefined;
  if (!APPROVABLE_METHODS.has(admitted.rule.method)) return undefined;
  return {
    ...{ principal, admitted },
    requirements: [...(obligation?.requirements ?? []), ...byFlows],
    rules: digestOfTexts([obligation?.rules ?? allow.text, ...byFlows.map(({ text }) => text)]),
  };
}

const NOTHING: readonly ApprovalRequirement[] = Object.freeze([]);

/** A yes that was found; `use` uses it up, and refuses where that is not possible any more. */
export type FoundApproval = { readonly use: () => Promise<Refusal | undefined> };

type ApprovalCall = RequestContext<'approvals' | 'audit' | 'flows'>;

/** Finds the yes for a request, or refuses it and asks. */
export async function findApproval(call: ApprovalCall, approvable: Approvable): Promise<Staged<FoundApproval>> {
  const demand = demandOf(approvable.requirements);
  if (demand === undefined) return { outcome: NOTHING_ASKED };
  const sent = sentArguments(approvable.admitted);
  // Nobody could be shown them: they are not compared with what was approved either, which takes its time.
  if (sent.length > MAX_SHOWN_CHARACTERS && demand.caller?.remember?.same === undefined)
    return { outcome: refusalOf(demand, { kind: 'too-large' }, () => ({})) };
  const question = questionOf(call, approvable, demand, sent);
  const outcome =
    (await takeClientAnswer(call, approvable, question)) ?? (await call.ports.approvals.consult(question));
  const waits = (approval: Approval, isNew: boolean) => waitingFor(call, approvable, approval, isNew);
  return { outcome: foundOrRefused(demand, outcome, waits), facts: factsOf(outcome) };
}

export const NOTHING_ASKED: FoundApproval = Object.freeze({ use: async () => undefined });

/** What a server requests of a caller, for a reviewer to approve. */
export type ApprovableServerRequest = {
  readonly principal: Principal;
  readonly allow: Allow;
  readonly record: RequestRecord;
  readonly method: string;
  readonly name: ServerRequestName;
  /** JSON text, as the client would be sent it. */
  readonly params: string;
};

/** The same for what a server requests of this caller: it is refused, and passes when it is made again after the yes. */
export async function findServerRequestApproval(
  call: RequestContext<'approvals' | 'audit'>,
  { principal, allow, record, method, name, params }: ApprovableServerRequest,
): Promise<Staged<FoundApproval>> {
  const obligation = approvalOf(allow);
  const demand = demandOf(obligation?.requirements ?? NOTHING);
  if (obligation === undefined || demand === undefined) return { outcome: NOTHING_ASKED };
  const { ports, incoming } = call;
  const args = withoutVarying(params);
  const form = formOfText(args);
  const outcome = await ports.approvals.consult({
    demand,
    decisionId: record.id,
    // Apart from what the caller asks, because a server chooses how much it asks.
    owner: JSON.stringify([ownerOf(principal), incoming.upstream]),
    subject: {
      ...{ caller: ports.approvals.callerOf(principal), upstream: incoming.upstream, method, name },
      ...{ args: ports.audit.keyedHash('arguments', form), digest: digestOf(form), remembered: undefined },
      pin: undefined,
      rules: obligation.rules,
    },
    content: () => ({ ...NOTHING_SHOWN, args, findings: record.findings }),
  });
  return { outcome: foundOrRefused(demand, outcome, () => ({})), facts: factsOf(outcome) };
}

/** Members of `_meta` that the protocol has differ each time, besides a `traceparent` (W3C Trace Context §3.2). */
const VARYING_META: ReadonlySet<string> = new Set(['progressToken', RELATED_TASK_KEY]);
const TRACE_PARENT = /^"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"$/;

/** The params without what differs whenever a server asks for the same, which is no part of what is approved. */
function withoutVarying(params: string): string {
  const isVarying = ({ name, value }: Member): boolean =>
    VARYING_META.has(name) || (name === 'traceparent' && TRACE_PARENT.test(params.slice(value.start, value.end)));
  const root = { start: 0, end: params.length };
  const meta = memberSpans(params, root).find(({ name }) => name === '_meta')?.value;
  const inMeta = meta === undefined ? [] : memberSpans(params, meta);
  const isEmptied = inMeta.every(isVarying);
  const edits = [
    ...removalEdits(params, root, (name) => name === 'elicitationId' || (name === '_meta' && isEmptied)),
    ...(isEmptied ? [] : removalsOf(inMeta, (at) => inMeta.slice(at, at + 1).some(isVarying))),
  ];
  return applyEdits(
    params,
    edits.sort((one, other) => one.start - other.start),
  );
}

const NOTHING_SHOWN: ApprovalContent = {
  args: '{}',
  definition: undefined,
  selfReported: undefined,
  labels: 'unknown',
  findings: [],
  sensitive: [],
};

function factsOf(outcome: ApprovalOutcome): readonly RecordFacts[] {
  return 'approval' in outcome ? [{ decision: { approval: outcome.approval.id } }] : [];
}

type Waiting = (approval: Approval, isNew: boolean) => Pick<Deny, 'advice' | 'ask'>;

function foundOrRefused(demand: ApprovalDemand, outcome: ApprovalOutcome, waits: Waiting): FoundApproval | Refusal {
  if (outcome.kind !== 'granted') return refusalOf(demand, outcome, waits);
  return {
    async use() {
      const used = await outcome.use();
      if (used === 'used') return undefined;
      return refuseWith(USE_REASONS[used], used === 'taken' ? { advice: SENT_BEFORE } : {});
    },
  };
}

const SENT_BEFORE =
  'Another request has used the yes, or this answer was sent before. Send the request again from the beginning.';

const USE_REASONS = {
  taken: 'approval-required',
  unavailable: 'store-unavailable',
  unrecorded: 'audit-unavailable',
} as const;

function questionOf(
  call: ApprovalCall,
  { principal, admitted, rules }: Approvable,
  demand: ApprovalDemand,
  sent: string,
): ApprovalQuestion {
  const form = formOfText(sent);
  const { ports, incoming, record } = call;
  const same = demand.caller?.remember?.same;
  const name = nameOf(admitted.target) ?? '';
  const { name: shownAs = name } = admitted.presented ?? {};
  const subject: ApprovalSubject = {
    caller: ports.approvals.callerOf(principal),
    upstream: incoming.upstream,
    method: admitted.rule.method,
    name,
    ...(shownAs === name ? {} : { shownAs }),
    isTask: admitted.mayBecomeTask && admitted.protocol.tasks?.areRequested === true,
    args: ports.audit.keyedHash('arguments', form),
    digest: digestOf(form),
    remembered: demand.caller?.remember && digestOf(same === undefined ? form : namedIn(sent, same)),
    pin: record.target.pin,
    rules,
  };
  return {
    ...{ subject, demand },
    decisionId: incoming.id,
    owner: ownerOf(principal),
    round: roundOf(call, admitted),
    isRoundOnly: !isShownEntirely(admitted),
    content: () => contentOf(call, principal, admitted, sent),
  };
}

/** What the server gave the caller for this round of the request, sealed to both: it was opened before (input-required.ts). */
function roundOf({ ports }: ApprovalCall, admitted: AdmittedMessage): string | undefined {
  const state = admitted.protocol.hasInputRequired ? paramsOf(admitted)['requestState'] : undefined;
  return typeof state === 'string' ? ports.audit.keyedHash('arguments', state) : undefined;
}

/** The person, whatever client asks: nobody has more questions by having more clients. */
function ownerOf({ issuerUrl, subject }: Principal): string {
  return JSON.stringify([issuerUrl, subject]);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The arguments as they will be forwarded. */
function sentArguments(admitted: AdmittedMessage): string {
  const { target, edits } = admitted;
  if (target.kind === 'resource') return JSON.stringify({ uri: target.uri });
  const forwarded = applyEdits(admitted.text, edits);
  const span = spanOf(forwarded, ['params', 'arguments']);
  return span === undefined ? '{}' : forwarded.slice(span.start, span.end);
}

/**
 * Equal for spellings of the same arguments that differ in white space, the order of members and how a number is written.
 * Numbers that no double holds are told apart by their spelling alone.
 */
function formOfText(text: string): string {
  const isExact = !hasInexactNumber(text, { start: 0, end: text.length });
  const canonical = canonicalForm(JSON.parse(text), isExact);
  return canonical.ok ? canonical.text : text;
}

/** The arguments that a rule names, as one text; what is absent is told from null. */
function namedIn(text: string, pointers: readonly string[]): string {
  const named = pointers.map((pointer) => {
    const span = spanOf(text, stepsOf(pointer));
    return span === undefined ? [pointer] : [pointer, formOfText(text.slice(span.start, span.end))];
  });
  return JSON.stringify(named);
}

/** What the person is shown. */
async function contentOf(
  call: ApprovalCall,
  principal: Principal,
  admitted: AdmittedMessage,
  args: string,
): Promise<ApprovalContent> {
  const { record, snapshot, ports } = call;
  const { flows } = snapshot.policies;
  // Where no flow looks for a label, nothing is kept.
  const history =
    flows === undefined ? undefined : await ports.flows.read(historiesRead(principal), flows.sought, flows.keepMs);
  const { target } = admitted;
  const name = nameOf(target) ?? '';
  const pinned =
    target.kind === 'tool' || target.kind === 'prompt'
      ? snapshot.catalogFor(admitted).statusOf(target.kind, name)
      : undefined;
  return {
    args,
    definition: pinned?.pinned?.definition,
    selfReported: record.client.selfReported,
    labels: history instanceof Map ? [...history.keys()].sort() : 'unknown',
    findings: record.findings.filter(({ direction }) => direction === 'to-upstream'),
    sensitive: sensitivePointers(JSON.parse(args), sensitiveFieldsOf(call, target)?.arguments ?? []),
  };
}

type Unapproved = Exclude<ApprovalOutcome, { readonly kind: 'granted' }>;

function refusalOf(demand: ApprovalDemand, outcome: Unapproved, waits: Waiting): Refusal {
  const [policy = '', rule = ''] = (demand.rules[0] ?? '').split(/\/(.*)/s, 2);
  const named = { policy, rule };
  switch (outcome.kind) {
    case 'waiting':
      return refuseWith(outcome.isLate ? 'approval-expired' : 'approval-required', {
        ...named,
        ...waits(outcome.approval, outcome.isNew),
      });
    case 'denied': {
      const seconds = Math.max(1, Math.ceil((outcome.approval.expiresAtMs - Date.now()) / MS_PER_SECOND));
      return refuseWith('approval-denied', { ...named, retryAfterSeconds: seconds, ...whoRefused(outcome.approval) });
    }
    case 'mismatch':
      return refuseWith('approval-mismatch', named);
    case 'crowded':
      return refuseWith('approval-required', {
        ...named,
        advice: 'Too many requests wait for an answer already, so nobody was asked. Have some of them answered first.',
      });
    case 'too-large':
      return refuseWith('approval-required', {
        ...named,
        advice: 'Nobody was asked, because the arguments are too large to be shown to a person. Send less at once.',
      });
    case 'unseen':
      return refuseWith('approval-required', { ...named, advice: NOBODY_SEES });
    case 'unavailable':
      return refuseWith('store-unavailable', named);
    case 'unrecorded':
      return refuseWith('audit-unavailable', named);
  }
}

/** Only a login in a browser is known to be a person's; a token may be a machine's, and a client may answer by itself. */
function whoRefused({ answers }: Approval): Pick<Deny, 'advice'> {
  const no = answers.find(({ verdict }) => verdict === 'denied');
  return no === undefined ? {} : { advice: NO_BY[no.proof] };
}

const NO_BY: Readonly<Record<ApprovalAnswer['proof'], string>> = {
  login: 'A person refused it.',
  token: 'It was refused with the token of a reviewer.',
  client: 'The client refused it, perhaps without a person.',
};

/** What is said of a request that carries more than a person is shown. */
export const NOBODY_SEES =
  'Nobody was asked, because the request carries answers or terms of a task that no person is shown. Send it from the beginning, without them.';

const MS_PER_SECOND = 1000;

/** Whom the request waits for, and how its client is to ask them. */
function waitingFor(
  call: ApprovalCall,
  { admitted }: Approvable,
  approval: Approval,
  isNew: boolean,
): Pick<Deny, 'advice' | 'ask'> {
  const { id, subject } = approval;
  const still = isNew ? '' : 'It is still waiting. ';
  if (!openParties(approval).includes('caller'))
    return { advice: `${still}Approval ${id} waits for a reviewer: tell your user, and try again later.` };
  const form = isNew ? formOf(approval, admitted) : undefined;
  const url = call.ports.approvals.linkTo(id, subject.caller);
  const advice =
    url === undefined
      ? `${still}Approval ${id} can be answered by a form of the client alone, because there is no page to log in at.`
      : `${still}Approval ${id}: show your user this link, where they log in and answer: ${url}`;
  if (form !== undefined) return { advice, ask: { mode: 'form', message: form, id } };
  return isNew && url !== undefined && admitted.elicitation.includes('url')
    ? { advice, ask: { mode: 'url', url, message: MESSAGE, id } }
    : { advice };
}

const MESSAGE = 'A policy of this gateway asks you to approve a request before it is carried out.';

/** The most that a form shows of arguments, in characters. */
const MAX_FORM_CHARACTERS = 2_000;

/**
 * The text of the form that the client answers; undefined where the rules ask for more, where the client shows no forms, or
 * where the arguments do not fit into it as they are: then the person follows the link, and is never shown a shortened form.
 */
function formOf({ demand, subject }: ApprovalQuestion | Approval, admitted: AdmittedMessage): string | undefined {
  if (demand.caller?.proof !== 'client' || !admitted.elicitation.includes('form')) return undefined;
  const text = sentArguments(admitted);
  if (text.length > MAX_FORM_CHARACTERS || hasInexactNumber(text, { start: 0, end: text.length })) return undefined;
  // Without the white space between its parts, by which what follows could be pushed out of sight.
  const shown = JSON.stringify(JSON.parse(text));
  const { upstream, name, shownAs } = subject;
  if ([upstream, name, shown].some((part) => unseenCharacters(part).size > 0 || PUSHES_AWAY.test(part)))
    return undefined;
  const reasons = demand.reasons.map((reason) => `\n${reason}`).join('');
  const known = shownAs === undefined ? '' : `, which your client knows as ${shownAs}`;
  return `${MESSAGE}${reasons}\n\n${upstream}: ${name}${known}\n${shown}`;
}

/** Line ends, and blanks that fill lines: what stands behind them is out of sight. */
const PUSHES_AWAY = /[\r\n\u0085\u2028\u2029]|\s{40}/u;

/**
 * What the client has answered to the question of the gateway: counted as an answer, and then what became of the approval.
 * Nothing is a yes to a form that was not shown: a client that was given a link says only that it was opened, or that its
 * user declined to.
 */
async function takeClientAnswer(
  { ports }: ApprovalCall,
  { admitted, principal }: Approvable,
  question: ApprovalQuestion,
): Promise<ApprovalOutcome | undefined> {
  const answers = paramsOf(admitted)['inputResponses'];
  const answer = isObject(answers) ? answers[APPROVAL_KEY] : undefined;
  if (!isObject(answer)) return undefined;
  if (formOf(question, admitted) === undefined && !isDeclined(answer)) return undefined;
  const standing = await ports.approvals.consult(question);
  // What was not asked before was not answered either.
  if (standing.kind !== 'waiting' || standing.isNew) return standing;
  await ports.approvals.answerByForm(standing.approval.id, principal, isApproved(answer));
  return ports.approvals.consult(question);
}
