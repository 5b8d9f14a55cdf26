// The pipeline of an aggregate: authenticates the caller, validates the message and determines which backends it
// concerns. Each of them then gets a request of its own through the ordinary pipeline (proxy/pipeline.ts), where
// everything else is decided, recorded and forwarded. INVARIANT: nothing here allows anything or reaches an
// upstream.

import { callerKeyOf, type Principal } from '../../policy/principal.js';
import { openRecord } from '../../policy/record.js';
import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import { admitPost } from '../../protocol/admission.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import type { AdmittedArray } from '../../protocol/batch.js';
import type { ReadOutcome } from '../../protocol/json/incremental.js';
import type { JsonReading } from '../../protocol/json/json.js';
import type { Incoming, Outgoing } from '../../protocol/transport.js';
import { authenticateAgain } from '../access-lease.js';
import { runBatch } from '../features/batch.js';
import type { HandleRequest, Ports } from '../ports.js';
import { isRead, refuseReadError } from '../request-context.js';
import { noteCaller } from '../stages.js';
import { type AggregateContext, refuseAggregate, type VerifiedRequest } from './requests.js';
import { findTask, route } from './router.js';
import {
  endAggregateSession,
  endLostSession,
  findBackend,
  openAggregateSession,
} from './sessions.js';
import { openStreams } from './streams.js';

/** Handles one request to an aggregate. Never rejects; responds once. `run` is the pipeline for backend requests. */
export async function handleAggregateRequest(
  incoming: Incoming,
  outgoing: Outgoing,
  ports: Ports,
  run: HandleRequest,
): Promise<void> {
  const aggregate = ports.aggregates.get(incoming.upstream);
  if (aggregate === undefined) return outgoing.send(404, {}, '');
  const record = openRecord(incoming);
  record.versions = aggregate.versions;
  const context: AggregateContext = {
    ...{ incoming, outgoing, ports, run, aggregate, record },
    admitted: undefined,
    lostSession: undefined,
    hasBackendRecords: false,
  };
  try {
    const refusal = await runStages(context);
    if (refusal !== undefined) refuseAggregate(context, refusal);
  } catch (error) {
    ports.audit.report(error, incoming.id);
    refuseAggregate(context, refuseWith('internal'));
  } finally {
    if (!context.hasBackendRecords) ports.audit.closeRecord(record);
  }
}

/** The stages in order: authentication, admission, routing to the backends. */
async function runStages(context: AggregateContext): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports } = context;
  const changesAtStart = ports.leases.countChanges();
  const caller = noteCaller(context, await ports.identity.authenticate(incoming, outgoing));
  if ('kind' in caller) return caller;
  const reading =
    incoming.httpMethod === 'POST' ? await readBody(context, callerKeyOf(caller)) : undefined;
  if (reading !== undefined && !isRead(reading)) return refuseReadError(reading.error);
  const principal = await verifyAfterWait(context, caller, changesAtStart);
  if ('kind' in principal) return principal;
  // From here to the backends' own pipeline runs nothing is waited for.
  const verified: VerifiedRequest = { context, principal };
  const refusal = await serve(verified, reading);
  endLostSession(verified);
  return refusal;
}

async function serve(
  verified: VerifiedRequest,
  reading: JsonReading | undefined,
): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, record, run } = verified.context;
  if (reading === undefined)
    return incoming.httpMethod === 'GET' ? openStreams(verified) : endAggregateSession(verified);

  const admitted = admit(verified, reading);
  if (admitted.kind === 'refused') return admitted;
  if (admitted.kind === 'array')
    return runBatch({ incoming, outgoing, ports, record }, admitted, (one, element) =>
      // The batch itself holds no concurrency slot; its elements take those of their backends.
      handleAggregateRequest({ ...one, acquireSlot: incoming.acquireSlot }, element, ports, run),
    );
  return route(verified, admitted);
}

/**
 * Takes the aggregate as it now is, and verifies the caller again if any version has changed since the request came or
 * the token has expired: a large body is waited for, and revocations must not. An issuer may be waited for too, and the
 * backends' requests see only the changes that come after this.
 */
async function verifyAfterWait(
  context: AggregateContext,
  caller: Principal,
  changesAtStart: number,
): Promise<Principal | Refusal> {
  const { incoming, ports, record } = context;
  let principal = caller;
  let changes = changesAtStart;
  let isDue = caller.token.expiresAt <= Date.now();
  for (;;) {
    const aggregate = ports.aggregates.get(incoming.upstream);
    if (aggregate === undefined) return refuseWith('upstream-unavailable');
    context.aggregate = aggregate;
    record.versions = aggregate.versions;
    if (!isDue && ports.leases.countChanges() === changes) return principal;
    isDue = false;
    changes = ports.leases.countChanges();
    const verified = await authenticateAgain(context);
    if ('kind' in verified) return verified;
    principal = verified;
    record.principal = verified;
  }
}

/** The number of values is unlimited here: each backend's own limit applies when its request is parsed. */
function readBody(
  { incoming, ports }: AggregateContext,
  caller: string,
): ReadOutcome | Promise<ReadOutcome> {
  const readOptions = { upstream: incoming.upstream, caller, maxValues: Number.POSITIVE_INFINITY };
  return ports.inspection.readJson(incoming.body, readOptions);
}

/** Admits the message only to find its backends. The backend's own pipeline run admits what is forwarded. */
function admit(
  verified: VerifiedRequest,
  reading: JsonReading,
): AdmittedMessage | AdmittedArray | Refusal {
  const { context } = verified;
  const { incoming, ports } = context;
  const outcome = admitPost({
    headers: incoming.headers,
    repeated: incoming.repeated,
    body: incoming.body,
    reading,
    openSession: (sealed) => openAggregateSession(verified, sealed),
    openServerRequest: (id, session) =>
      findBackend(verified, session, (scope) => ports.sessions.openServerRequest(id, scope))
        ?.opened,
    openTask: (sealed) => findTask(verified, sealed)?.task,
  });
  if (outcome.kind === 'error') return refuseProtocolError(outcome);
  if (outcome.kind === 'admitted') context.admitted = outcome;
  return outcome;
}
