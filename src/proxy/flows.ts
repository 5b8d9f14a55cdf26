// Flows at work: records what is delivered to a caller before it leaves, and refuses what follows from it, or says who has
// to approve it. Every message
// that a check has passed comes by here, so no way of delivering a result is left out. Where no policy has a flow, none
// of this runs. docs/reference/flows.md.

import { APPROVABLE_METHODS, type ApprovalRequirement } from '../policy/approval-terms.js';
import { adviceForYoung, type Refusal, refuseProtocolError, refuseWith } from '../policy/decision.js';
import {
  type Flow,
  type FlowReading,
  type FlowSet,
  findViolations,
  historiesRead,
  historiesWritten,
  liftViolations,
  RECORD_EVERY_MS,
  reachOf,
} from '../policy/information-flow.js';
import type { Principal } from '../policy/principal.js';
import type { Finding, Staged } from '../policy/record.js';
import { amendAdmitted, copyAdmitted } from '../protocol/admission.js';
import type { AdmittedMessage } from '../protocol/admitted-request.js';
import { isAboutNothing, withoutFreeText, withoutUnpinnedText } from '../protocol/free-text.js';
import { setMember, spanOf } from '../protocol/json/json.js';
import { isObject, type Json, type Target } from '../protocol/jsonrpc.js';
import { LIST_MEMBERS } from '../protocol/methods.js';
import { paramsOf } from '../protocol/params.js';
import { errorContextOf, invalidParams } from '../protocol/responses.js';
import { isOwnKey } from '../protocol/server-requests.js';
import { readFilter } from '../protocol/subscriptions.js';
import { mirroredHeaders } from '../protocol/versions/negotiation.js';
import type { Snapshot } from './ports.js';
import { type Feature, nameOf, type RequestContext } from './request-context.js';

const MS_PER_SECOND = 1_000;

/** Kinds of targets whose requests carry something to the upstream, and that may violate flows. */
const SINKS: ReadonlySet<Target['kind']> = new Set(['tool', 'prompt', 'resource', 'template']);
/** Of the requests about a task, which follow its tool, the one that does. */
const TASK_SINK = 'tasks/update';
/** The request whose text is the URIs of the resources that it names, if it names any. */
const LISTEN = 'subscriptions/listen';
/** The server request whose reply repeats nothing that was received: it names folders of the client. */
const ROOTS = 'roots/list';
const NO_FLOWS: readonly Flow[] = [];

/** What flows look at of a message on its way to the upstream. */
type Concern = {
  readonly flows: readonly Flow[];
  /** Sent in place of it where a flow does not permit its text. Absent if the message exists for its text. */
  readonly without?: AdmittedMessage;
};
const NO_CONCERN: Concern = { flows: NO_FLOWS };

/** What flows make of a message, and what has to be approved before it may go on. */
export type FlowOutcome = Staged<AdmittedMessage> & { readonly requirements?: readonly ApprovalRequirement[] };

/**
 * The message as a flow permits it after what this caller has received, or its refusal. A message that names no item
 * does its work without the text of its sender, so it is never refused. One that a person may lift a flow for is given
 * with what that person has to approve, and without text that such a person is not shown.
 */
export async function enforceFlows(
  call: RequestContext<'flows' | 'sessions'>,
  principal: Principal,
  received: AdmittedMessage,
): Promise<FlowOutcome> {
  const { ports, snapshot } = call;
  const all = snapshot.policies.flows;
  if (all === undefined) return { outcome: received };
  const { admitted, findings } = withoutUndefinedHeaders(call, all, received);
  const { flows, without } = concernOf(call, all, principal, admitted);
  if (flows.length === 0) return { outcome: admitted, facts: [{ findings }] };
  const labels = [...new Set(flows.flatMap(({ from }) => from))];
  const history = await ports.flows.read(historiesRead(principal), labels, reachOf(flows));
  const ruling = rulingOf(flows, history, admitted);
  if (isRefusal(ruling)) return cutTo(without, findings) ?? { outcome: ruling, facts: [{ findings }] };
  if (ruling.length === 0) return { outcome: admitted, facts: [{ findings }] };
  const shown = withoutFreeText(admitted);
  const lifted = shown === admitted ? undefined : cutTo(shown, findings);
  return { ...(lifted ?? { outcome: admitted, facts: [{ findings }] }), requirements: ruling };
}

/** The message of which text was cut. */
function cutTo(cut: AdmittedMessage | undefined, findings: readonly Finding[]): Staged<AdmittedMessage> | undefined {
  if (cut === undefined) return undefined;
  return { outcome: cut, facts: [{ findings: [...findings, { ...CUT, detector: 'flow-text', path: '/params' }] }] };
}

const CUT = { direction: 'to-upstream', count: 1, action: 'strip' } as const;

function isRefusal(ruling: Refusal | readonly ApprovalRequirement[]): ruling is Refusal {
  return 'kind' in ruling;
}

/** The refusal, or what has to be approved: nothing where no flow is violated. */
function rulingOf(
  flows: readonly Flow[],
  history: FlowReading,
  admitted: AdmittedMessage,
): Refusal | readonly ApprovalRequirement[] {
  if (history === 'unavailable') return refuseWith('store-unavailable');
  if ('lostForMs' in history) {
    const retryAfterSeconds = Math.ceil(history.lostForMs / MS_PER_SECOND);
    return refuseWith('store-unavailable', {
      retryAfterSeconds,
      advice: adviceForYoung(retryAfterSeconds),
      detail: 'the store began empty, so it has no history for this flow yet',
    });
  }
  const violations = findViolations(flows, history);
  const [first] = violations;
  if (first === undefined) return [];
  const lifting = isShownEntirely(admitted) ? liftViolations(violations) : first;
  if (!('flow' in lifting)) return lifting;
  const { flow, causes, leftMs } = lifting;
  const retryAfterSeconds = Math.ceil(leftMs / MS_PER_SECOND);
  return refuseWith('tainted-flow', {
    ...{ policy: flow.policy, rule: flow.id, causes, retryAfterSeconds },
    advice: `The results came from the decisions ${causes.join(', ')}. Try again in ${retryAfterSeconds} seconds.`,
  });
}

/** The members of params that a person is shown, that hold no text of the caller, or of which that text is cut. */
const SHOWN_PARAMS: ReadonlySet<string> = new Set(['name', 'arguments', 'uri', '_meta', 'requestState']);

/**
 * Whether a person who is asked sees all that the message carries: not so if it answers the server besides (MCP 2026-07-28,
 * multi-round-trip requests), or says how its task is to be run. What answers the gateway itself is not sent on.
 */
export function isShownEntirely(admitted: AdmittedMessage): boolean {
  const { message, rule } = admitted;
  if (message.kind !== 'request' || !APPROVABLE_METHODS.has(rule.method)) return false;
  const isSent = (name: string): boolean => name !== 'task' || admitted.mayBecomeTask;
  return Object.entries(paramsOf(admitted)).every(
    ([name, value]) =>
      SHOWN_PARAMS.has(name) || !isSent(name) || isPlainTask(name, value) || answersGateway(name, value),
  );
}

function answersGateway(name: string, value: Json): boolean {
  return name === 'inputResponses' && isObject(value) && Object.keys(value).every(isOwnKey);
}

/**
 * The message as a person may approve it: without text in `_meta` and headers that no person is shown. Undefined if it
 * carries more that nobody sees, except in a round of the request, whose server asked for it.
 */
export function toShow(call: RequestContext, admitted: AdmittedMessage): CutMessage | undefined {
  const isRound = typeof paramsOf(admitted)['requestState'] === 'string';
  if (!isRound && !isShownEntirely(admitted)) return undefined;
  const { admitted: mirrored, findings } = withoutUnmirroredHeaders(call, admitted);
  const shown = withoutFreeText(mirrored);
  const cut = shown === mirrored ? [] : [{ ...CUT, detector: 'flow-text', path: '/params' } as const];
  return { admitted: shown, findings: [...findings, ...cut] };
}

type CutMessage = { readonly admitted: AdmittedMessage; readonly findings: readonly Finding[] };

/** Whether it asks for a task and says nothing but how long that is to be kept. */
/** How long a task is kept, and how often it is asked about. */
const TASK_TIMES: ReadonlySet<string> = new Set(['ttl', 'pollInterval']);

function isPlainTask(name: string, value: Json): boolean {
  return (
    name === 'task' &&
    isObject(value) &&
    Object.entries(value).every(([key, time]) => TASK_TIMES.has(key) && typeof time === 'number')
  );
}

function concernOf(
  call: RequestContext<'sessions'>,
  all: FlowSet,
  principal: Principal,
  admitted: AdmittedMessage,
): Concern {
  const { target, message, rule } = admitted;
  const { upstream } = call.incoming;
  if (message.kind !== 'request' && message.kind !== 'notification')
    return { flows: flowsForReply(call, all, principal, admitted) };
  if (SINKS.has(target.kind) || rule.method === TASK_SINK)
    return { flows: all.of(upstream, kindOf(target), nameOf(target) ?? '').flows };
  if (rule.method === LISTEN) {
    const uris = readFilter(paramsOf(admitted)['notifications'])?.uris ?? [];
    if (uris.length > 0) return { flows: all.of(upstream, 'resource', '').flows };
  }
  const flows = flowsAround(all, upstream, target);
  if (flows.length === 0) return NO_CONCERN;
  const without = withoutFreeText(admitted);
  return without === admitted ? NO_CONCERN : { flows, without };
}

/** The flows of a message that names no item: those of the tool of a task, or of everything at the upstream. */
function flowsAround(all: FlowSet, upstream: string, target: Target): readonly Flow[] {
  return target.kind === 'task' ? all.of(upstream, 'tool', nameOf(target) ?? '').flows : all.anyOf(upstream);
}

/**
 * Leaves out the headers `Mcp-Param-*` that mirror no argument, where a flow may refuse the request: no check reads
 * them. MCP 2026-07-28 has intermediaries forward them, and elsewhere they are.
 */
function withoutUndefinedHeaders(call: RequestContext, all: FlowSet, admitted: AdmittedMessage): CutMessage {
  const { target, paramHeaders } = admitted;
  if (Object.keys(paramHeaders).length === 0) return { admitted, findings: NOTHING_CUT };
  const { upstream } = call.incoming;
  const flows = SINKS.has(target.kind)
    ? all.of(upstream, target.kind, nameOf(target) ?? '').flows
    : flowsAround(all, upstream, target);
  return flows.length === 0 ? { admitted, findings: NOTHING_CUT } : withoutUnmirroredHeaders(call, admitted);
}

function withoutUnmirroredHeaders(call: RequestContext, admitted: AdmittedMessage): CutMessage {
  const { target, paramHeaders } = admitted;
  const given = Object.keys(paramHeaders);
  const unchanged = { admitted, findings: NOTHING_CUT };
  if (given.length === 0) return unchanged;
  const mirrored = mirroredHeaders(call.snapshot.catalogFor(admitted), target);
  const kept = given.filter((name) => mirrored.has(name));
  if (kept.length === given.length) return unchanged;
  const count = given.length - kept.length;
  const left = Object.fromEntries(kept.map((name) => [name, paramHeaders[name] ?? '']));
  return {
    admitted: copyAdmitted(admitted, { paramHeaders: left }),
    findings: [{ ...CUT, detector: 'undefined-headers', path: '', count }],
  };
}

/**
 * After the reply, the server continues the request during which it asked. Not every stream tells which request that
 * is.
 */
function flowsForReply(
  { incoming, ports }: RequestContext<'sessions'>,
  all: FlowSet,
  principal: Principal,
  { rule, serverRequestId, session }: AdmittedMessage,
): readonly Flow[] {
  if (serverRequestId === undefined || session === undefined || rule.method === ROOTS) return NO_FLOWS;
  const { upstream } = incoming;
  const scope = { upstream, principal, session };
  const about = ports.sessions.serverRequests.open(serverRequestId, scope)?.about;
  return about === undefined ? all.anyOf(upstream) : all.of(upstream, about.kind, nameOf(about) ?? '').flows;
}

function kindOf({ kind }: Target): Target['kind'] {
  return kind === 'task' ? 'tool' : kind;
}

/**
 * What happens to text that no pin holds, in lists and handshakes of the upstream. `whole`: no flow begins there. `cut`:
 * it is left out. `count`: lists are delivered whole and count as received; handshakes are cut.
 */
export function unpinnedTextAt({
  policies,
  upstream,
  listsCount,
}: Pick<Snapshot, 'policies' | 'upstream' | 'listsCount'>): 'whole' | 'cut' | 'count' {
  if (policies.flows?.isSource(upstream) !== true) return 'whole';
  return listsCount ? 'count' : 'cut';
}

/** Whether the list counts as received. */
export function countsAsReceived(snapshot: Snapshot, method: string): boolean {
  return LIST_METHODS.has(method) && unpinnedTextAt(snapshot) === 'count';
}

const LIST_METHODS: ReadonlySet<string> = new Set([...LIST_MEMBERS.keys(), 'tasks/list']);

/** A text of which something was cut, and the findings that say so. */
type CutText = { readonly text: string; readonly findings: readonly Finding[] };

const NOTHING_CUT: readonly Finding[] = Object.freeze([]);
const CUT_FROM_RESULT: readonly Finding[] = Object.freeze([
  { detector: 'flow-text', direction: 'to-client', path: '/result', count: 1, action: 'strip' },
]);

/** The text of a response about no item, without what no pin holds where that is cut. */
export function cutUnpinnedText(snapshot: Snapshot, method: string, text: string): CutText {
  const handling = unpinnedTextAt(snapshot);
  const isCut = handling === 'cut' || (handling === 'count' && !LIST_METHODS.has(method));
  const left = isCut ? withoutUnpinnedText(text, method, snapshot.upstream) : text;
  return { text: left, findings: left === text ? NOTHING_CUT : CUT_FROM_RESULT };
}

/** Whether an error that answers such a request is replaced by one of the gateway's own. */
export function cutsErrors(snapshot: Snapshot, method: string): boolean {
  return isAboutNothing(method) && unpinnedTextAt(snapshot) !== 'whole';
}

/** Whether a client is given the cursors of a list sealed. Otherwise either side could put text into them. */
export function sealsCursors({ policies, upstream }: Pick<Snapshot, 'policies' | 'upstream'>) {
  const { flows } = policies;
  return flows !== undefined && (flows.isSource(upstream) || flows.anyOf(upstream).length > 0);
}

/** The text of a list with its cursor, which was left out of `text` before, as the client is given it. */
export function withCursor(
  call: RequestContext<'cursors'>,
  method: string,
  text: string,
  cursor: Json | undefined,
): string {
  if (typeof cursor !== 'string') return text;
  const sealed = call.ports.cursors.seal(cursor, { upstream: call.incoming.upstream, method });
  return setMember(text, ['result'], 'nextCursor', sealed);
}

const FOREIGN_CURSOR = 'The cursor does not belong to this list.';

/** A request for a further page of a list whose cursors are sealed. */
export const SEALED_CURSOR: Feature = {
  prepare({ ports, incoming }, { admitted }) {
    const { rule, message, text } = admitted;
    const sealed = paramsOf(admitted)['cursor'];
    const span = spanOf(text, ['params', 'cursor']);
    if (typeof sealed !== 'string' || span === undefined) return { outcome: admitted };
    const scope = { upstream: incoming.upstream, method: rule.method };
    const cursor = ports.cursors.open(sealed, scope);
    const outcome =
      cursor === undefined
        ? refuseProtocolError(invalidParams(errorContextOf(message), FOREIGN_CURSOR))
        : amendAdmitted(admitted, [{ ...span, text: JSON.stringify(cursor) }]);
    return { outcome };
  },
  withoutSealed: ({ cursor: _, ...content }) => content,
};

/** What one response, or one stream, delivers to its caller. */
export type Deliveries = {
  /** True once the labels of the targets are recorded; they are recorded again from time to time. */
  record(targets: readonly Target[]): boolean | Promise<boolean>;
};

export function createDeliveries(call: RequestContext<'flows'>, principal: Principal): Deliveries {
  const recordedAtMs = new Map<string, number>();

  async function recordDue(due: readonly Target[]): Promise<boolean> {
    const { incoming, ports } = call;
    for (const target of due) {
      const { flows } = call.snapshot.policies;
      const atMs = performance.now();
      const leaves = leavesOf(call, target);
      if (flows === undefined) return true;
      if (!(await ports.flows.record(historiesWritten(principal), leaves, incoming.id, flows.keepMs))) return false;
      recordedAtMs.set(keyOf(target), atMs);
    }
    return true;
  }

  return {
    record(targets) {
      const nowMs = performance.now();
      const isDue = (target: Target): boolean =>
        nowMs - (recordedAtMs.get(keyOf(target)) ?? Number.NEGATIVE_INFINITY) >= RECORD_EVERY_MS;
      const due = targets.filter((target) => leavesOf(call, target).length > 0 && isDue(target));
      return due.length === 0 || recordDue([...new Map(due.map((target) => [keyOf(target), target])).values()]);
    },
  };
}

/** The labels that what is received of a target has. */
function leavesOf({ incoming, snapshot }: RequestContext, target: Target): readonly string[] {
  return snapshot.policies.flows?.of(incoming.upstream, kindOf(target), nameOf(target) ?? '').leaves ?? [];
}

/** Labels tell tools apart and nothing else, so that a stream keeps no entry for each URI that its caller reads. */
function keyOf(target: Target): string {
  return kindOf(target) === 'tool' ? `tool ${nameOf(target) ?? ''}` : '';
}
