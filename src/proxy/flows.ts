// Flows at work: records what is delivered to a caller before it leaves, and refuses what follows from it. Every message
// that a check has passed comes by here, so no way of delivering a result is left out. Where no policy has a flow, none
// of this runs. docs/contract.md §4.

import { type Refusal, refuseWith } from '../policy/decision.js';
import {
  type Flow,
  type FlowReading,
  type FlowSet,
  findViolation,
  historiesRead,
  historiesWritten,
  RECORD_EVERY_MS,
  reachOf,
} from '../policy/information-flow.js';
import type { Principal } from '../policy/principal.js';
import type { AdmittedMessage } from '../protocol/admitted-request.js';
import type { Target } from '../protocol/jsonrpc.js';
import { paramsOf } from '../protocol/params.js';
import { readFilter } from '../protocol/subscriptions.js';
import { nameOf, type RequestContext } from './request-context.js';
import { type MessageOutcome, withhold } from './response-context.js';

const MS_PER_SECOND = 1_000;

/** Kinds of targets whose requests carry something to the upstream, and that flows may refuse. */
const SINKS: ReadonlySet<Target['kind']> = new Set(['tool', 'prompt', 'resource', 'template']);
/** Of the requests about a task, which follow its tool, the one that does. */
const TASK_SINK = 'tasks/update';
/** The request whose text is the URIs of the resources that it names, if it names any. */
const LISTEN = 'subscriptions/listen';
/** The server request whose reply repeats nothing that was received: it names folders of the client. */
const ROOTS = 'roots/list';
const NO_FLOWS: readonly Flow[] = [];

/** The refusal of a request that a flow does not permit after what this caller has received. */
export function enforceFlows(
  call: RequestContext<'flows' | 'sessions'>,
  principal: Principal,
  admitted: AdmittedMessage,
): Refusal | undefined | Promise<Refusal | undefined> {
  const { ports, snapshot } = call;
  const all = snapshot.policies.flows;
  const flows = all === undefined ? NO_FLOWS : flowsFor(call, all, principal, admitted);
  if (flows.length === 0) return undefined;
  const labels = [...new Set(flows.flatMap(({ from }) => from))];
  const decide = (history: FlowReading): Refusal | undefined => {
    if (history === 'unavailable') return refuseWith('store-unavailable');
    if ('lostForMs' in history)
      return refuseWith('store-unavailable', {
        retryAfterSeconds: Math.ceil(history.lostForMs / MS_PER_SECOND),
        detail: 'the store has lost the history of flows',
      });
    const violation = findViolation(flows, history);
    if (violation === undefined) return undefined;
    const { flow, causes, leftMs } = violation;
    const retryAfterSeconds = Math.ceil(leftMs / MS_PER_SECOND);
    return refuseWith('tainted-flow', {
      ...{ policy: flow.policy, rule: flow.id, causes, retryAfterSeconds },
      advice: `The results came from the decisions ${causes.join(', ')}. Try again in ${retryAfterSeconds} seconds.`,
    });
  };
  const history = ports.flows.read(historiesRead(principal), labels, reachOf(flows));
  return history instanceof Promise ? history.then(decide) : decide(history);
}

/** The flows that may refuse a message of a client. */
function flowsFor(
  call: RequestContext<'sessions'>,
  all: FlowSet,
  principal: Principal,
  admitted: AdmittedMessage,
): readonly Flow[] {
  const { target, message, rule } = admitted;
  if (message.kind !== 'request') return flowsForReply(call, all, principal, admitted);
  if (rule.method === LISTEN) {
    const uris = readFilter(paramsOf(admitted)['notifications'])?.uris ?? [];
    return uris.length === 0 ? NO_FLOWS : all.of(call.incoming.upstream, 'resource', '').flows;
  }
  if (!SINKS.has(target.kind) && rule.method !== TASK_SINK) return NO_FLOWS;
  return all.of(call.incoming.upstream, kindOf(target), nameOf(target) ?? '').flows;
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
  if (serverRequestId === undefined || session === undefined || rule.method === ROOTS)
    return NO_FLOWS;
  const { upstream } = incoming;
  const scope = { upstream, principal, session };
  const tool = ports.sessions.openServerRequest(serverRequestId, scope)?.tool;
  if (tool === undefined) return all.anyOf(upstream);
  return all.of(upstream, tool === null ? undefined : 'tool', tool ?? '').flows;
}

function kindOf({ kind }: Target): Target['kind'] {
  return kind === 'task' ? 'tool' : kind;
}

/** What one response, or one stream, delivers to its caller. */
export type Delivery = {
  /** True once the labels of the target are recorded; they are recorded again from time to time. */
  record(): boolean | Promise<boolean>;
};

export function createDelivery(
  call: RequestContext<'flows'>,
  principal: Principal,
  target: Target,
): Delivery {
  const kind = kindOf(target);
  const name = nameOf(target) ?? '';
  let recordedAtMs = Number.NEGATIVE_INFINITY;
  return {
    record() {
      const { incoming, ports, snapshot } = call;
      const { flows } = snapshot.policies;
      const leaves = flows?.of(incoming.upstream, kind, name).leaves ?? [];
      const atMs = performance.now();
      if (flows === undefined || leaves.length === 0 || atMs - recordedAtMs < RECORD_EVERY_MS)
        return true;
      const note = (isRecorded: boolean): boolean => {
        if (isRecorded) recordedAtMs = atMs;
        return isRecorded;
      };
      const recorded = ports.flows.record(
        historiesWritten(principal),
        leaves,
        incoming.id,
        flows.keepMs,
      );
      return recorded instanceof Promise ? recorded.then(note) : note(recorded);
    },
  };
}

/** Records a message that passed its check, or withholds it. `isAnswer`: a response is one about a target. */
export function recordDelivery(
  delivery: Delivery,
  outcome: MessageOutcome | Promise<MessageOutcome>,
  isAnswer: boolean,
): MessageOutcome | Promise<MessageOutcome> {
  if (outcome instanceof Promise)
    return outcome.then((resolved) => recordDelivery(delivery, resolved, isAnswer));
  // A list or a handshake shows what is pinned or was asked for by policy alone; what is sent beside it, or instead of
  // it as an error, may be anything.
  const isDelivered =
    outcome.kind === 'pass' || (outcome.kind === 'response' && (isAnswer || outcome.isError));
  if (!isDelivered) return outcome;
  const recorded = delivery.record();
  const settle = (isRecorded: boolean): MessageOutcome =>
    isRecorded ? outcome : withhold('store-unavailable');
  return recorded instanceof Promise ? recorded.then(settle) : settle(recorded);
}
