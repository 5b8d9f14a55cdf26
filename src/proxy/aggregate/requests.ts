// Requests to the backends of an aggregate. Each goes through the ordinary pipeline under the backend's own
// names, rules, pins, limits and record, with the caller that was verified for the aggregate. Only the headers
// that belong to the path are rewritten. Also the context of an aggregate's request, and its refusals before any
// backend is involved.
// Source: MCP 2026-07-28, transports (standard request headers); MCP 2025-11-25, session management.

import type { Principal } from '../../policy/principal.js';
import type { RequestRecord } from '../../policy/record.js';
import { type Refusal, refuseWith, renderRefusal } from '../../policy/refusal.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import { encodeHeaderValue } from '../../protocol/headers.js';
import type { Incoming, Outgoing } from '../../protocol/transport.js';
import type { Aggregate, Ports } from '../ports.js';
import { noteAdmitted, presentedScheme } from '../request-context.js';
import type { Backend } from './merge.js';

/** How the request to one backend differs from the client's. */
export type BackendRequest = {
  readonly backend: Backend;
  /** The backend's sealed session and its version; absent before `initialize`, and in the stateless era. */
  readonly session?: { readonly sealed: string; readonly version: string } | undefined;
  /** The body for this backend; if absent, the client's bytes are used. */
  readonly text?: string;
  /** The value of `Mcp-Name` for this backend, if the client sent that header. */
  readonly name?: string;
  /** The event after which the backend's stream is resumed. */
  readonly lastEventId?: string | undefined;
  /** Needs a decision id of its own, because several backends are involved. */
  readonly isOneOfMany?: boolean;
};

/** Runs one backend request through the pipeline. Never rejects; the response goes to `outgoing`. */
export async function runBackendRequest(
  verified: VerifiedRequest,
  backendRequest: BackendRequest,
  outgoing: Outgoing,
): Promise<void> {
  const { context } = verified;
  const { aggregate, incoming, ports } = context;
  const { backend, text, isOneOfMany = false } = backendRequest;
  context.hasBackendRecords = true;
  const backendIncoming: Incoming = {
    ...incoming,
    id: isOneOfMany ? ports.newDecisionId() : incoming.id,
    upstream: backend.upstream,
    aggregate: aggregate.name,
    headers: headersOf(incoming, backendRequest),
    body: text === undefined ? incoming.body : new TextEncoder().encode(text),
    acquireSlot: (caller) => incoming.acquireSlot(caller, backend.upstream),
    startedMs: isOneOfMany ? performance.now() : incoming.startedMs,
  };
  const leave = enterRequest(context, backend);
  try {
    await context.run(backendIncoming, outgoing, portsOf(verified));
  } finally {
    leave();
  }
}

/** Registers which backend is working on a request of the session until its response is complete. */
function enterRequest(
  { admitted, incoming, ports }: AggregateContext,
  { upstream }: Backend,
): () => void {
  const session = incoming.headers['mcp-session-id'];
  if (session === undefined || admitted?.message.kind !== 'request') return () => undefined;
  return ports.registerBackendRequest(session, admitted.message.id, upstream);
}

/** Replaces the session headers: the aggregate's session id means nothing to a backend, which has its own. */
function headersOf(
  { headers }: Incoming,
  { session, name, lastEventId }: BackendRequest,
): Incoming['headers'] {
  const own: Record<string, string | undefined> = { ...headers };
  own['mcp-session-id'] = session?.sealed;
  own['last-event-id'] = lastEventId;
  if (session !== undefined && headers['mcp-protocol-version'] !== undefined)
    own['mcp-protocol-version'] = session.version;
  if (name !== undefined && headers['mcp-name'] !== undefined)
    own['mcp-name'] = encodeHeaderValue(name);
  return own;
}

/** The ports of a backend request: those of the gateway, but with the aggregate's caller and its snapshots. */
function portsOf({ context, principal }: VerifiedRequest): Ports {
  const { incoming: asked, ports } = context;
  const { name } = context.aggregate;
  // On DELETE the aggregate's session is ended before those of its backends, so it is not checked here.
  const sealed = asked.httpMethod === 'DELETE' ? undefined : asked.headers['mcp-session-id'];
  let isFirst = true;
  /** Whether nothing has changed since the caller was verified: a large body is waited for, and revocations must not. */
  const isStillVerified = (): boolean =>
    ports.countChanges() === context.changesAtStart && principal.token.expiresAt > Date.now();
  return {
    ...ports,
    snapshot: (upstream) => ports.aggregate(name)?.snapshot(upstream),
    openSession(own, upstream, by) {
      // A backend's session is valid only as long as the aggregate's, which may be revoked while a stream is
      // open.
      const isOver = sealed !== undefined && ports.openSession(sealed, name, by) === undefined;
      return isOver ? undefined : ports.openSession(own, upstream, by);
    },
    enterLease: (lease) => ports.enterLease({ ...lease, aggregateSession: sealed }),
    authenticate(incoming, outgoing) {
      const aggregate = ports.aggregate(name);
      const isBackend = aggregate?.backends.some(({ upstream }) => upstream === incoming.upstream);
      // A reload may have removed the backend while one of its streams was open.
      if (isBackend !== true) return { reason: 'upstream-unavailable' };
      // The first call reuses the principal that was verified; later calls verify again.
      const isReused = isFirst && isStillVerified();
      isFirst = false;
      if (isReused) return principal;
      // The proof of possession was used when the request came.
      return ports.authenticate({ ...incoming, upstream: name, isProofUsed: true }, outgoing);
    },
  };
}

/** Runs one request through the pipeline (proxy/pipeline.ts). */
export type HandleRequest = (incoming: Incoming, outgoing: Outgoing, ports: Ports) => Promise<void>;

/** One request of a client to an aggregate. Each backend request has a record of its own. */
export type AggregateContext = {
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly ports: Ports;
  readonly run: HandleRequest;
  readonly aggregate: Aggregate;
  /** Written only if no backend was involved. */
  readonly record: RequestRecord;
  /** The number of changes before the caller was verified. */
  readonly changesAtStart: number;
  admitted: AdmittedMessage | undefined;
  /** Backend requests were made, and their records are the ones that count. */
  hasBackendRecords: boolean;
};

/** A request whose caller is verified. */
export type VerifiedRequest = { readonly context: AggregateContext; readonly principal: Principal };

const NO_TARGET = { kind: 'none' } as const;

/** The refusal for what does not exist here and for what the caller may not see. It is the same for both. */
export function refuseUnknown(): Refusal {
  return refuseWith('no-matching-allow', { listed: false });
}

/** Renders a refusal of the aggregate itself. */
export function renderAggregateRefusal(
  { admitted, aggregate, incoming }: AggregateContext,
  refusal: Refusal,
): ReturnType<typeof renderRefusal> {
  return renderRefusal(refusal, {
    decisionId: incoming.id,
    protocol: admitted?.protocol,
    requestId: admitted?.message.kind === 'request' ? admitted.message.id : undefined,
    target: admitted?.target ?? NO_TARGET,
    method: admitted?.rule.method,
    challenge: (reason, scopes, proof) =>
      aggregate.challenge(reason, scopes, { scheme: presentedScheme(incoming), proof }),
  });
}

/** Responds with a refusal of the aggregate itself, if no response has begun, and notes it. */
export function refuseAggregate(context: AggregateContext, refusal: Refusal): void {
  const { admitted, outgoing, record } = context;
  context.hasBackendRecords = false;
  if (admitted !== undefined) noteAdmitted(context, admitted);
  record.decision.verdict = 'deny';
  record.decision.stage = refusal.stage;
  record.decision.reasons.push(refusal.deny.reason);
  const rendered = renderAggregateRefusal(context, refusal);
  const hasResponseBody = admitted === undefined || admitted.message.kind === 'request';
  const status = rendered.status === 200 && !hasResponseBody ? 400 : rendered.status;
  record.result.http = status;
  record.result.rpcCode = rendered.rpcCode;
  record.result.bytes = Buffer.byteLength(rendered.body);
  outgoing.send(status, rendered.headers, rendered.body);
}
