// The one order of stages for every decision: a client's message, the streams and the end of a session, a batch, and
// server requests, whether one comes as a message or several in one. Only the subject differs, so the order is written
// here and nowhere else.
// Source: docs/reference/design.md, "The stages of a request".

import {
  decide,
  decideRequest,
  decideWithoutArguments,
  isListed,
  type ListedKind,
  listsKind,
} from '../policy/decide.js';
import { type Decision, type Refusal, refuseWith } from '../policy/decision.js';
import type { Principal } from '../policy/principal.js';
import { fold, type RecordFacts, type RequestRecord, type Staged } from '../policy/record.js';
import type { PolicyQuery } from '../policy/rules.js';
import type { AdmittedMessage } from '../protocol/admitted-request.js';
import type { JsonObject, Target } from '../protocol/jsonrpc.js';
import type { ListFilter } from '../protocol/subscriptions.js';
import type { ClientTraits } from '../protocol/versions/revisions.js';
import type { Snapshot } from './ports.js';
import type { RequestContext, VerifiedCall } from './request-context.js';

/** What a stage returns: at once, unless it waits for a thread, a store or a listing. */
export type StageOutcome<T> = Staged<T> | Promise<Staged<T>>;

/** The stages for one kind of subject. Each takes what the one before it made. */
export type Stages<
  Subject extends object,
  Allowed extends object = Subject,
  Inspected extends object = Allowed,
  Authorized extends object = Inspected,
> = {
  /** May the caller, or the server, do this? */
  decide(subject: Subject): StageOutcome<Allowed>;
  /** May the content pass? */
  inspect(subject: Subject, allowed: Allowed): StageOutcome<Inspected>;
  /** Are the limits met? */
  enforce(subject: Subject, inspected: Inspected): StageOutcome<Authorized>;
};

/** Where a decision is recorded, or the decisions about all that a message contains. */
type RecordContext = Pick<RequestContext<'audit'>, 'ports'> &
  (Pick<RequestContext, 'record'> | { readonly records: readonly RequestRecord[] });

/**
 * Takes a subject through all stages. The returned subject may be forwarded: it passed every stage, and the decision is
 * in the audit log. INVARIANT: the order of the stages must not change.
 */
export async function authorize<
  Subject extends object,
  Allowed extends object,
  Inspected extends object,
  Authorized extends object,
>(
  recorded: RecordContext,
  stages: Stages<Subject, Allowed, Inspected, Authorized>,
  subject: Subject,
): Promise<Authorized | Refusal> {
  // A warm call waits for no stage, and turns of the microtask queue would cost more than some stages.
  const decided = stages.decide(subject);
  const allowed = take(recorded, decided instanceof Promise ? await decided : decided);
  if (isRefusal(allowed)) return allowed;
  const read = stages.inspect(subject, allowed);
  const inspected = take(recorded, read instanceof Promise ? await read : read);
  if (isRefusal(inspected)) return inspected;
  const enforced = stages.enforce(subject, inspected);
  const authorized = take(recorded, enforced instanceof Promise ? await enforced : enforced);
  if (isRefusal(authorized)) return authorized;
  return (await recordDecision(recorded)) ?? authorized;
}

/** Folds what a stage has learned into the record, and goes on with its outcome. */
export function take<T>(recorded: RecordContext, { outcome, facts }: Staged<T>): T | Refusal {
  if (facts === undefined) return outcome;
  if ('record' in recorded) foldAll(recorded.record, facts);
  else for (const record of recorded.records) foldAll(record, facts);
  return outcome;
}

function foldAll(record: RequestRecord, facts: readonly RecordFacts[]): void {
  for (const learned of facts) fold(record, learned);
}

function isRefusal<T extends object>(outcome: T | Refusal): outcome is Refusal {
  return 'kind' in outcome && outcome.kind === 'refused';
}

/** Writes the decision to the audit log. A subject whose decision cannot be recorded is refused. */
function recordDecision(recorded: RecordContext): Promise<Refusal | undefined> {
  return 'record' in recorded
    ? writeDecision(recorded.ports, recorded.record)
    : writeDecisions(recorded.ports, recorded.records);
}

async function writeDecisions(
  ports: RequestContext<'audit'>['ports'],
  records: readonly RequestRecord[],
): Promise<Refusal | undefined> {
  for (const record of records) {
    const refusal = await writeDecision(ports, record);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

async function writeDecision(
  ports: RequestContext<'audit'>['ports'],
  record: RequestRecord,
): Promise<Refusal | undefined> {
  let isRecorded = false;
  fold(record, { decision: { action: 'forwarded' } });
  try {
    isRecorded = await ports.audit.recordDecision(record);
  } finally {
    if (!isRecorded) fold(record, { decision: { action: 'refused' } });
  }
  return isRecorded ? undefined : refuseWith('audit-unavailable');
}

/**
 * The decision of a snapshot about a target of this client, for a request, or for a message that reveals the target.
 * Pure. Without the request's arguments they are `unknown`.
 */
export function decideTarget(
  snapshot: Snapshot,
  principal: Principal,
  client: ClientTraits,
  query: Pick<AdmittedMessage, 'target'> &
    Partial<Pick<PolicyQuery, 'findings'>> & { readonly args?: JsonObject | undefined },
): Decision {
  return decideRequest(snapshot.policies, queryFor(snapshot, principal, client, query));
}

/** Whether the snapshot lists the target for this client, as a decision, which allows no request. Pure. */
export function decideVisible(
  snapshot: Snapshot,
  principal: Principal,
  client: ClientTraits,
  target: Target,
): Decision {
  return decide(snapshot.policies, queryFor(snapshot, principal, client, { target }));
}

/**
 * The decision about a response that is still to come: that about its request, made again. `decidedUnder`: its arguments
 * are not known any more, only the version under which they were decided on. Pure.
 */
export function decideResponse(
  snapshot: Snapshot,
  principal: Principal,
  admitted: ClientTraits & Pick<AdmittedMessage, 'target' | 'args'>,
  decidedUnder: string | undefined,
): Decision {
  if (decidedUnder === undefined) return decideTarget(snapshot, principal, admitted, admitted);
  const { args: _, ...query } = queryFor(snapshot, principal, admitted, admitted);
  const isSame = decidedUnder === versionOf(snapshot);
  return decideWithoutArguments(snapshot.policies, query, isSame ? 'passed' : 'unknown');
}

/** Names the configuration, policies and pins of a snapshot. */
export function versionOf({ versions: { config, policy, pins } }: Snapshot): string {
  return [config, policy, pins].map((hash) => hash.slice(0, VERSION_CHARS)).join('.');
}

/** Of each hash: enough to tell the versions of one gateway apart. */
const VERSION_CHARS = 16;

/** What a decision about a target is asked. */
export function queryFor(
  snapshot: Snapshot,
  principal: Principal,
  client: ClientTraits,
  query: Parameters<typeof decideTarget>[3],
): PolicyQuery {
  const catalog = snapshot.catalogFor(client);
  const { upstream } = catalog;
  const { target, args = 'unknown', findings } = query;
  return { principal, upstream, target, args, findings, catalog };
}

/** Whether the snapshot lists the target for this client (docs/contract.md, law 2). Pure. */
export function maySee(snapshot: Snapshot, principal: Principal, client: ClientTraits, target: Target): boolean {
  const catalog = snapshot.catalogFor(client);
  return isListed(snapshot.policies, principal, catalog.upstream, target, catalog);
}

const LISTED_KINDS: { readonly [filter in ListFilter]: ListedKind } = {
  toolsListChanged: 'tool',
  promptsListChanged: 'prompt',
  resourcesListChanged: 'resource',
};

/** Whether the client may see any item of this list, and so is notified of its changes. Pure. */
export function mayKnowList(
  snapshot: Snapshot,
  principal: Principal,
  client: ClientTraits,
  filter: ListFilter,
): boolean {
  const catalog = snapshot.catalogFor(client);
  return listsKind(snapshot.policies, principal, catalog, LISTED_KINDS[filter]);
}

/** The stage of a subject that has nothing to inspect, or no limits. */
export function passThrough<T>(_subject: unknown, passed: T): Staged<T> {
  return { outcome: passed };
}

/**
 * Counts a stream towards its caller's quota before anything is waited for, so that streams which are opened at the
 * same time cannot exceed it. It counts until the request ends.
 */
export function reserveStream(call: RequestContext<'streams'>, principal: Principal): Refusal | undefined {
  call.stream = call.ports.streams.reserve(call.incoming.upstream, principal);
  return call.stream === undefined ? refuseWith('overloaded') : undefined;
}

/** The limit on the streams that clients open: how many one caller may hold, and all callers together. */
export function enforceStreamQuota<T>({ call, principal }: VerifiedCall<'streams'>, opening: T): Staged<T> {
  return { outcome: reserveStream(call, principal) ?? opening };
}
