// One exchange as the stations share it, and the notes they leave in its record. Notes are facts for
// the audit; nothing here decides.

import { captureArguments } from '../inspection/capture.js';
import { type Profile, strictestProfile } from '../inspection/profiles.js';
import type { ResponseObligations } from '../policy/authorized-request.js';
import { capturedBy } from '../policy/decide.js';
import type { Decision } from '../policy/decision.js';
import type { PinKind } from '../policy/definitions.js';
import type { ReplayOutcome } from '../policy/limits.js';
import { type Caller, closeToken } from '../policy/principal.js';
import { REASONS, type Reason } from '../policy/reasons.js';
import type { RequestRecord } from '../policy/record.js';
import { type Refusal, refuseWith, renderRefusal } from '../policy/refusal.js';
import type { Admitted } from '../protocol/admitted-request.js';
import type { ReadError, ReadOutcome } from '../protocol/json/incremental.js';
import type { JsonReading } from '../protocol/json/json.js';
import type { JsonObject, Target } from '../protocol/jsonrpc.js';
import { PLAIN_SESSION } from '../protocol/listings.js';
import { encodeSseMessage } from '../protocol/sse.js';
import type { Incoming, Outgoing } from '../protocol/transport.js';
import type { PlannedMessage } from './originating-request.js';
import type { Ports, Snapshot } from './ports.js';

/** The progress of one request: it counts upwards. */
export type ProgressCount = { last: number };

/** That of a request under way, which is known in its session until `end`. */
export type FollowedProgress = ProgressCount & {
  end(): void;
  /** Its answer is a task, whose progress has the same token (MCP 2025-11-25, tasks). */
  keep(): void;
};

/** `view` may be replaced; `admitted` is set by admission, or by the stream that is resumed. */
export type Call = {
  readonly incoming: Incoming;
  /** Where it is answered: on a channel, from when its message is on its way. */
  outgoing: Outgoing;
  readonly ports: Ports;
  readonly record: RequestRecord;
  /** The count of versions when it began: what is told before a stream opens, its watch has missed. */
  readonly since: number;
  snapshot: Snapshot;
  admitted: PlannedMessage | undefined;
  /** When what it answers was asked for, in epoch milliseconds, where another exchange asked. */
  requestedAt?: number | undefined;
  caller?: Caller;
  /** Its message was read on another thread: who called then may be known as somebody else by now. */
  hasWaited?: boolean;
  /** Of the answer to a question: whether it is the first. */
  claim?: ReplayOutcome | Promise<ReplayOutcome>;
  /** How far the request says that it is, where it asked to be told. */
  progress?: FollowedProgress | undefined;
};

const NO_GROUPS: readonly string[] = Object.freeze([]);
const NO_TARGET: Target = { kind: 'none' };
const NOTHING_CAPTURED: Readonly<Record<string, string>> = Object.freeze({});
/** Names of arguments that the record keeps; the rest are counted by the digest. */
const MAX_RECORDED_KEYS = 32;
/** Groups that the record keeps of those that a rule names and the caller has. */
const MAX_RECORDED_GROUPS = 32;

/** The token as the client sent it: for the guard, and closed for what is exchanged for it. */
export function presentedToken(incoming: Incoming): string | undefined {
  const header = incoming.headers['authorization'];
  const space = header?.indexOf(' ') ?? -1;
  return header === undefined || space === -1 ? undefined : header.slice(space + 1).trim();
}

/** On whose behalf this exchange sends. Known once the caller is. */
export function callerOf(call: Call): Caller {
  if (call.caller !== undefined) return call.caller;
  const { incoming, record } = call;
  const { principal } = record;
  if (principal === undefined) throw new Error('nothing is sent for a caller that is not known');
  const presented = presentedToken(incoming);
  const token = presented === undefined ? undefined : closeToken(presented);
  call.caller = { principal, decisionId: incoming.id, token, signed: 0 };
  return call.caller;
}

/** The scheme of the credential, lower-case; a word that the client chose, to compare and not to show. */
export function presentedScheme(incoming: Incoming): string | undefined {
  return incoming.headers['authorization']?.split(' ', 1)[0]?.toLowerCase();
}

/** What the record knows after admission. */
export function noteAdmitted(call: Pick<Call, 'record' | 'ports'>, admitted: Admitted): void {
  const { record, ports } = call;
  const { message, target, args } = admitted;
  record.client.era = admitted.era;
  record.client.version = admitted.version;
  record.client.selfReported = admitted.selfReported;
  record.target.method = admitted.rule.method;
  record.target.kind = target.kind;
  record.target.name = nameOf(target);
  record.target.requestId = message.kind === 'notification' ? undefined : message.id;
  record.client.session = admitted.session?.hash;
  noteRemoved(record, admitted.removed);
  if (args === undefined) return;
  const text = JSON.stringify(args);
  record.args = {
    digest: ports.keyedHash('arguments', text),
    bytes: text.length,
    keys: Object.keys(args).slice(0, MAX_RECORDED_KEYS),
    captured: NOTHING_CAPTURED,
  };
}

/** Members of `_meta` in our own name, which were cut out of the message. */
function noteRemoved(record: RequestRecord, removed: readonly string[]): void {
  for (const path of removed) {
    record.findings.push({
      detector: 'reserved-meta',
      direction: 'to-upstream',
      path,
      count: 1,
      action: 'strip',
    });
  }
}

/** The name that a rule, a pin and a record use for a target. */
export function nameOf(target: Target): string | undefined {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
      return target.name;
    case 'resource':
      return target.uri;
    case 'template':
      return target.uriTemplate;
    case 'question':
      return target.name;
    case 'task':
      return target.tool;
    case 'none':
      return undefined;
  }
}

function isPinnedKind(kind: Target['kind']): kind is PinKind {
  return kind === 'tool' || kind === 'prompt' || kind === 'template';
}

/** What the record knows after the decision: the verdict, its rule, and the pin that it rests on. */
export function noteDecision(call: Call, decision: Decision, args: JsonObject | undefined): void {
  const { record, snapshot, admitted } = call;
  record.decision.stage = 'decide';
  noteRule(record, decision);
  if (decision.verdict === 'deny') record.decision.reasons.push(decision.reason);
  noteCaptured(call, decision, args);
  const target = admitted?.target ?? NO_TARGET;
  const name = nameOf(target);
  const kind = target.kind === 'task' ? 'tool' : target.kind;
  if (name === undefined || !isPinnedKind(kind)) return;
  const standing = snapshot.catalogueFor(admitted ?? PLAIN_SESSION).standing(kind, name);
  record.target.definition = standing.observed;
  record.target.pin = standing.pinned?.digest;
}

/** What rules ask to have recorded of the arguments. A later decision on the same call is the one that counts. */
function noteCaptured(
  { record, incoming }: Call,
  decision: Decision,
  args: JsonObject | undefined,
): void {
  if (record.args === undefined || args === undefined) return;
  const pointers = capturedBy(decision);
  record.args.captured =
    pointers.length === 0
      ? NOTHING_CAPTURED
      : captureArguments(args, pointers, presentedToken(incoming));
}

/** What the record knows of the rule that decided: which it is, and by which groups the caller fell under it. */
export function noteRule(record: RequestRecord, decision: Decision): void {
  record.decision.verdict = decision.verdict;
  record.decision.policy = decision.policy;
  record.decision.rule = decision.rule;
  const { groups } = decision;
  const { principal } = record;
  if (groups === undefined || principal === undefined) {
    record.groupsUsed = NO_GROUPS;
    return;
  }
  const used = groups.filter((group) => principal.groups.includes(group));
  record.groupsUsed = used.slice(0, MAX_RECORDED_GROUPS);
}

/** Answers with a refusal, if no answer has begun, and notes it. */
export function refuse(call: Call, refusal: Refusal): void {
  const { record, outgoing } = call;
  if (isLeft(call, refusal)) return;
  noteRefusal(call, refusal);
  const rendered = renderRefusal(refusal, refusalContext(call));
  const isSentOnStream = rendered.status === 200 && sendOnLegacyStream(call, rendered.body);
  const status = isSentOnStream ? 202 : statusFor(call, rendered.status);
  record.result.http = status;
  record.result.rpcCode = rendered.rpcCode;
  record.result.bytes = rendered.body.length;
  if (isSentOnStream) outgoing.send(status, {}, '');
  else outgoing.send(status, rendered.headers, rendered.body);
  void refuseToServer(call);
}

/**
 * Answers a request of HTTP+SSE where its client waits for the answer: on the channel (MCP 2024-11-05). False
 * where another replica holds it, or its client leaves too much unread; then the status of the POST must do.
 */
function sendOnLegacyStream({ admitted, ports }: Call, json: string): boolean {
  if (admitted?.era !== '2024' || admitted.message.kind !== 'request') return false;
  const end = admitted.session === undefined ? undefined : ports.legacySse.find(admitted.session);
  if (end === undefined || end.isLagging) return false;
  void end.write(encodeSseMessage(json));
  return true;
}

/** What has no answer but its status is refused by it (MCP transports, sending messages to the server). */
function statusFor({ admitted }: Call, status: number): number {
  const isAnswered =
    admitted === undefined || (admitted.message.kind === 'request' && admitted.era !== '2024');
  return status === 200 && !isAnswered ? 400 : status;
}

/** A server that waits for an answer which may not leave learns that none will come, unless it has one. */
async function refuseToServer(call: Call): Promise<void> {
  const { admitted, incoming, ports, record } = call;
  if (admitted?.session === undefined || record.decision.action !== 'refused') return;
  const { message, session } = admitted;
  if ((message.kind !== 'result' && message.kind !== 'error') || message.id === undefined) return;
  const by = callerOf(call);
  const isFirst = await claimReply(call);
  if (isFirst !== true) return;
  ports.replyToServer(incoming.upstream, { session, id: message.id, by }, WITHHELD);
}

/** Whether this exchange holds the first answer to its question; from now on no other does. Asked once. */
export async function claimReply(call: Call): Promise<ReplayOutcome> {
  const { serverRequestId, session } = call.admitted ?? {};
  if (serverRequestId === undefined || session === undefined) return true;
  call.claim ??= call.ports.claimReply(serverRequestId, session);
  return call.claim;
}

const WITHHELD = { code: -32603, message: 'The answer was withheld.' };

/**
 * True when the exchange broke off because its client left, which is how the 2026 era cancels: nobody is
 * there to be answered, and no upstream has failed (MCP 2026-07-28, cancellation).
 */
export function isLeft(call: Call, refusal: Refusal): boolean {
  const { record } = call;
  return (
    hasLeft(call) &&
    record.decision.action === 'forwarded' &&
    REASONS[refusal.deny.reason].stage === 'forward'
  );
}

/** In 2026 the connection is the request's own; in 2024 it is the channel, and nothing outlives it. */
function hasLeft({ admitted, incoming, outgoing }: Call): boolean {
  if (admitted?.era === '2026') return incoming.signal.aborted;
  return admitted?.era === '2024' && outgoing.isClosed;
}

/** Notes a refusal: before forwarding nothing left, afterwards something came that was withheld. */
export function noteRefusal(call: Call, refusal: Refusal): void {
  const { decision } = call.record;
  const wasForwarded = decision.action === 'forwarded';
  decision.action = wasForwarded ? 'withheld' : 'refused';
  if (!wasForwarded) decision.verdict = 'deny';
  decision.stage = refusal.stage;
  if (decision.reasons.at(-1) !== refusal.deny.reason) decision.reasons.push(refusal.deny.reason);
}

/** What the rendering of a refusal may know of this call. */
export function refusalContext(call: Call): Parameters<typeof renderRefusal>[1] {
  const { admitted, incoming, snapshot } = call;
  return {
    decisionId: incoming.id,
    era: admitted?.era,
    requestId: admitted?.message.kind === 'request' ? admitted.message.id : undefined,
    target: admitted?.target ?? NO_TARGET,
    method: admitted?.rule.method,
    challenge: (reason, scopes, proof) =>
      snapshot.challenge(reason, scopes, { scheme: presentedScheme(incoming), proof }),
  };
}

// The inspection profile of one exchange: the upstream's own, made stricter by what rules ask for.

/** The strictest of the upstream's profile and those that require rules name. */
export function profileOf(
  call: Call,
  responseObligations: ResponseObligations | undefined,
): Profile {
  let { profile } = call.snapshot;
  for (const name of responseObligations?.profiles ?? []) {
    const named = call.snapshot.profiles.get(name);
    if (named === undefined)
      throw new Error('a rule names an inspection profile that is not configured');
    profile = strictestProfile(profile, named);
  }
  return profile;
}

// Reads what an upstream sent as JSON, under the bounds of that upstream, and says why it may not pass where
// it could not be read.

/** At once, unless it is large. */
export function readMessage(
  { ports, snapshot, incoming }: Call,
  source: Uint8Array | string,
): ReadOutcome | Promise<ReadOutcome> {
  const { maxValues } = snapshot.limits;
  return ports.readJson(source, { upstream: incoming.upstream, maxValues });
}

/** Whether somebody read it, be it to find that it is none: that is for admission to say. */
export function isRead(outcome: ReadOutcome): outcome is JsonReading {
  return outcome.ok || (outcome.error !== 'overloaded' && outcome.error !== 'internal');
}

/** The refusal in place of a message that was not read. */
export function refuseUnread(error: ReadError): Refusal {
  return refuseWith(reasonUnread(error));
}

export function reasonUnread(error: ReadError): Reason {
  switch (error) {
    case 'too-many-values':
      return 'result-too-large';
    case 'overloaded':
    case 'internal':
      return error;
    case 'malformed-json':
    case 'duplicate-key':
    case 'too-deep':
      return 'upstream-protocol';
  }
}
