// THE STORY AT AN ENDPOINT of several upstreams: who calls, is it valid protocol, and whose is it. Then each
// member that it concerns is asked by an ordinary exchange (src/exchange.ts), in which everything else is
// decided, recorded and forwarded. Nothing here allows anything, and nothing here reaches an upstream.

import type { Ports } from '../../exchange-ports.js';
import { admitPost } from '../../mcp/admit.js';
import type { Admitted } from '../../mcp/admitted.js';
import type { AdmittedArray } from '../../mcp/arrays.js';
import type { JsonReading } from '../../mcp/json.js';
import type { ReadOutcome } from '../../mcp/json-reader.js';
import type { Incoming, Outgoing } from '../../mcp/transport.js';
import { openRecord } from '../../policy/open-record.js';
import type { Principal } from '../../policy/principal.js';
import { type Refusal, refuseFault, refuseWith } from '../../policy/refusal.js';
import { relayArray } from '../array.js';
import { isRead, refuseUnread } from '../reading.js';
import { proofOf } from '../stations.js';
import { route } from './routes.js';
import { findMember, membersIn, openLive } from './sessions.js';
import { endSessions, openStreams } from './streams.js';
import { findTask } from './tasks.js';
import { type RunExchange, refuseWhole, type Verified, type Whole } from './whole.js';

/** Carries one request to an endpoint. Never rejects; answers once. `run` carries what a member is asked. */
export async function runMerged(
  incoming: Incoming,
  outgoing: Outgoing,
  ports: Ports,
  run: RunExchange,
): Promise<void> {
  const endpoint = ports.endpoint(incoming.upstream);
  if (endpoint === undefined) return outgoing.send(404, {}, '');
  const record = openRecord(incoming);
  record.versions = endpoint.versions;
  const whole: Whole = {
    ...{ incoming, outgoing, ports, run, endpoint, record },
    admitted: undefined,
    isPassedOn: false,
  };
  try {
    const refusal = await travel(whole);
    if (refusal !== undefined) refuseWhole(whole, refusal);
  } catch (error) {
    ports.report(error, incoming.id);
    refuseWhole(whole, refuseWith('internal'));
  } finally {
    if (!whole.isPassedOn) ports.closeRecord(record);
  }
}

/** The order: who, what, and then the members. */
async function travel(whole: Whole): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, record, run } = whole;
  const principal = await authenticate(whole);
  if ('kind' in principal) return principal;
  const verified: Verified = { whole, principal };
  if (incoming.httpMethod === 'GET') return openStreams(verified);
  if (incoming.httpMethod === 'DELETE') return endSessions(verified);

  const reading = await readBody(whole);
  if (!isRead(reading)) return refuseUnread(reading.fault);
  const admitted = admit(verified, reading);
  if (admitted.kind === 'refused') return admitted;
  if (admitted.kind === 'array')
    return relayArray({ incoming, outgoing, ports, record }, admitted, (one, part) =>
      // The array has taken no place: its elements take those of their members.
      runMerged({ ...one, enter: incoming.enter }, part, ports, run),
    );
  return route(verified, admitted);
}

async function authenticate(whole: Whole): Promise<Principal | Refusal> {
  const { incoming, outgoing, ports, record } = whole;
  const principal = await ports.authenticate(incoming, outgoing);
  record.latency.auth = performance.now() - incoming.startedMs;
  if ('reason' in principal) return refuseWith(principal.reason, proofOf(principal));
  record.principal = principal;
  return principal;
}

/** Its values are counted by the member that it is for, as that member's bounds say. */
function readBody({ incoming, ports }: Whole): ReadOutcome | Promise<ReadOutcome> {
  const terms = { upstream: incoming.upstream, maxValues: Number.POSITIVE_INFINITY };
  return ports.readJson(incoming.body, terms);
}

/** Admitted here, so that it is known whose it is; what leaves, the member's own exchange admits again. */
function admit(verified: Verified, reading: JsonReading): Admitted | AdmittedArray | Refusal {
  const { whole, principal } = verified;
  const { incoming, ports } = whole;
  const outcome = admitPost({
    headers: incoming.headers,
    repeated: incoming.repeated,
    body: incoming.body,
    reading,
    openSession: (sealed) => openLive(verified, sealed),
    openQuestion: (id, session) =>
      findMember(
        membersIn(whole, principal, session),
        (place) => ports.openQuestion(id, place),
        principal,
      )?.opened,
    openTask: (sealed) => findTask(verified, sealed)?.task,
  });
  if (outcome.kind === 'fault') return refuseFault(outcome);
  if (outcome.kind === 'admitted') whole.admitted = outcome;
  return outcome;
}
