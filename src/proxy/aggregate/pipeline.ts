// The pipeline of an aggregate: authenticates the caller, validates the message and determines which backends it
// concerns. Each of them then gets a request of its own through the ordinary pipeline (proxy/pipeline.ts), where
// everything else is decided, recorded and forwarded. INVARIANT: nothing here allows anything or reaches an
// upstream.

import { callerKeyOf } from '../../policy/principal.js';
import { openRecord } from '../../policy/record.js';
import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import { admitPost } from '../../protocol/admission.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import type { AdmittedArray } from '../../protocol/batch.js';
import type { ReadOutcome } from '../../protocol/json/incremental.js';
import type { JsonReading } from '../../protocol/json/json.js';
import type { Incoming, Outgoing } from '../../protocol/transport.js';
import { runBatch } from '../features/batch.js';
import type { Ports } from '../ports.js';
import { isRead, refuseReadError } from '../request-context.js';
import { noteCaller } from '../stages.js';
import {
  type AggregateContext,
  type HandleRequest,
  refuseAggregate,
  type VerifiedRequest,
} from './requests.js';
import { findTask, route } from './router.js';
import { backendSessionsIn, findBackend, openAggregateSession } from './sessions.js';
import { endSessions, openStreams } from './streams.js';

/** Handles one request to an aggregate. Never rejects; responds once. `run` is the pipeline for backend requests. */
export async function handleAggregateRequest(
  incoming: Incoming,
  outgoing: Outgoing,
  ports: Ports,
  run: HandleRequest,
): Promise<void> {
  const aggregate = ports.aggregate(incoming.upstream);
  if (aggregate === undefined) return outgoing.send(404, {}, '');
  const record = openRecord(incoming);
  record.versions = aggregate.versions;
  const context: AggregateContext = {
    ...{ incoming, outgoing, ports, run, aggregate, record },
    changesAtStart: ports.countChanges(),
    admitted: undefined,
    hasBackendRecords: false,
  };
  try {
    const refusal = await runStages(context);
    if (refusal !== undefined) refuseAggregate(context, refusal);
  } catch (error) {
    ports.report(error, incoming.id);
    refuseAggregate(context, refuseWith('internal'));
  } finally {
    if (!context.hasBackendRecords) ports.closeRecord(record);
  }
}

/** The stages in order: authentication, admission, routing to the backends. */
async function runStages(context: AggregateContext): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, record, run } = context;
  const principal = noteCaller(context, await ports.authenticate(incoming, outgoing));
  if ('kind' in principal) return principal;
  const verified: VerifiedRequest = { context, principal };
  if (incoming.httpMethod === 'GET') return openStreams(verified);
  if (incoming.httpMethod === 'DELETE') return endSessions(verified);

  const reading = await readBody(context, callerKeyOf(principal));
  if (!isRead(reading)) return refuseReadError(reading.error);
  const admitted = admit(verified, reading);
  if (admitted.kind === 'refused') return admitted;
  if (admitted.kind === 'array')
    return runBatch({ incoming, outgoing, ports, record }, admitted, (one, element) =>
      // The batch itself holds no concurrency slot; its elements take those of their backends.
      handleAggregateRequest({ ...one, acquireSlot: incoming.acquireSlot }, element, ports, run),
    );
  return route(verified, admitted);
}

/** The number of values is unlimited here: each backend's own limit applies when its request is parsed. */
function readBody(
  { incoming, ports }: AggregateContext,
  caller: string,
): ReadOutcome | Promise<ReadOutcome> {
  const terms = { upstream: incoming.upstream, caller, maxValues: Number.POSITIVE_INFINITY };
  return ports.readJson(incoming.body, terms);
}

/** Admits the message only to find its backends. The backend's own pipeline run admits what is forwarded. */
function admit(
  verified: VerifiedRequest,
  reading: JsonReading,
): AdmittedMessage | AdmittedArray | Refusal {
  const { context, principal } = verified;
  const { incoming, ports } = context;
  const outcome = admitPost({
    headers: incoming.headers,
    repeated: incoming.repeated,
    body: incoming.body,
    reading,
    openSession: (sealed) => openAggregateSession(verified, sealed),
    openServerRequest: (id, session) =>
      findBackend(
        backendSessionsIn(context, principal, session),
        (scope) => ports.openServerRequest(id, scope),
        principal,
      )?.opened,
    openTask: (sealed) => findTask(verified, sealed)?.task,
  });
  if (outcome.kind === 'error') return refuseProtocolError(outcome);
  if (outcome.kind === 'admitted') context.admitted = outcome;
  return outcome;
}
