// The one table of features: which of them an admitted message uses. It is read each time the message is
// decided. A message that uses none is plain: no other file of this folder runs for its request, and for the response
// of a plain tools/call only where it brings a notification, a server request or an input request.

import type { FlowSet } from '../../policy/information-flow.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { isInputRetry, paramsOf, progressTokenOf } from '../../protocol/params.js';
import { findRelatedTask } from '../../protocol/tasks.js';
import type { Incoming } from '../../protocol/transport.js';
import { reserveStream } from '../authorization.js';
import { SEALED_CURSOR, sealsCursors } from '../flows.js';
import { BRIDGED_LEGACY_SSE, DIRECT_LEGACY_SSE } from '../legacy-sse/messages.js';
import type { Snapshot } from '../ports.js';
import type { Feature } from '../request-context.js';
import { INPUT_RETRY } from './input-required.js';
import { FOLLOWED_REQUEST } from './progress.js';
import { narrowSubscription, relaySubscription } from './subscriptions.js';
import { TASK_USE } from './task-requests.js';

/** A request that opens the stream of a subscription. */
export const SUBSCRIPTION_STREAM: Feature = {
  prepare(call, { principal, admitted }) {
    // One that is decided again has its place in the quota.
    const refusal = call.stream === undefined ? reserveStream(call, principal) : undefined;
    return refusal === undefined ? narrowSubscription(call, principal, admitted) : { outcome: refusal };
  },
  withoutSealed(content) {
    const { notifications } = content;
    if (!isObject(notifications)) return content;
    const { taskIds: _, ...rest } = notifications;
    return { ...content, notifications: rest };
  },
  relay: relaySubscription,
};

type IsUsed = (admitted: AdmittedMessage, snapshot: Snapshot) => boolean;

/** In the order in which they change a message: the ids of tasks are restored before anything is sealed. */
const FEATURES: readonly (readonly [IsUsed, Feature])[] = [
  [usesTasks, TASK_USE],
  [({ protocol }, { legacySse }) => protocol.answersOnStream && legacySse.isDirect, DIRECT_LEGACY_SSE],
  [({ protocol }, { legacySse }) => protocol.answersOnStream && !legacySse.isDirect, BRIDGED_LEGACY_SSE],
  [({ rule }) => rule.response === 'subscription', SUBSCRIPTION_STREAM],
  [isInputRetry, INPUT_RETRY],
  [continuesSealedList, SEALED_CURSOR],
  [isFollowed, FOLLOWED_REQUEST],
];

const NO_FEATURES: readonly Feature[] = [];

/** The features of a message under this snapshot. */
export function featuresOf(admitted: AdmittedMessage, snapshot: Snapshot): readonly Feature[] {
  let used: Feature[] | undefined;
  for (const [isUsed, feature] of FEATURES)
    if (isUsed(admitted, snapshot)) {
      used ??= [];
      used.push(feature);
    }
  return used ?? NO_FEATURES;
}

function continuesSealedList(admitted: AdmittedMessage, snapshot: Snapshot): boolean {
  return admitted.rule.response === 'filter' && paramsOf(admitted)['cursor'] !== undefined && sealsCursors(snapshot);
}

function isFollowed({ message, target, session }: AdmittedMessage, snapshot: Snapshot): boolean {
  if (progressTokenOf(message) !== undefined) return true;
  const { sensitive, flows } = snapshot.policies;
  if (session === undefined || target.kind !== 'tool') return false;
  const { upstream } = snapshot;
  return (
    sensitive?.of(upstream, target.name) !== undefined ||
    (flows !== undefined && leavesMore(flows, upstream, target.name))
  );
}

/** Whether a result of the tool has labels that a message of the upstream does not have. */
function leavesMore(flows: FlowSet, upstream: string, tool: string): boolean {
  const around = flows.of(upstream, undefined, '').leaves;
  return flows.of(upstream, 'tool', tool).leaves.some((label) => !around.includes(label));
}

/** A server that declared tasks in sessions may insist on a task for a call that requests none. */
function usesTasks(admitted: AdmittedMessage, { supportedVersions }: Snapshot): boolean {
  const { rule, task, mayBecomeTask, message } = admitted;
  return (
    rule.targetKind === 'task' ||
    task !== undefined ||
    mayBecomeTask ||
    paramsOf(admitted)['task'] !== undefined ||
    (rule.method === 'tools/call' && supportedVersions?.tasks?.includes('call') === true) ||
    findRelatedTask(message) !== undefined
  );
}

/**
 * True for a request that opens a long-lived stream and takes no concurrency slot. Only its header is read here,
 * which is safe because the header is compared with the body before anything is forwarded.
 */
export function requestsSubscription({ headers }: Incoming): boolean {
  return headers['mcp-method'] === 'subscriptions/listen';
}
