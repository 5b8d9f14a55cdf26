// Requests to the backends of an aggregate. Each goes through the ordinary pipeline under the backend's own
// names, rules, pins, limits and record, with the caller that was verified for the aggregate. Only the headers
// that belong to the path are rewritten. Also the context of an aggregate's request, and its refusals before any
// backend is involved.
// Source: MCP 2026-07-28, transports (standard request headers); MCP 2025-11-25, session management.

import type { Principal } from '../../policy/principal.js';
import type { RequestRecord } from '../../policy/record.js';
import {
  type Refusal,
  refuseProtocolError,
  refuseWith,
  renderRefusal,
} from '../../policy/refusal.js';
import type { AdmittedMessage, SessionFacts } from '../../protocol/admitted-request.js';
import { INVALID_PARAMS, protocolErrorOf } from '../../protocol/errors.js';
import { encodeHeaderValue } from '../../protocol/headers.js';
import type { RequestId } from '../../protocol/jsonrpc.js';
import type { Incoming, Outgoing } from '../../protocol/transport.js';
import type { Aggregate, HandleRequest, IdentityPort, Ports } from '../ports.js';
import { noteAdmitted, noteOverride, presentedScheme } from '../request-context.js';
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
  /** The request whose response the resumed stream carries. */
  readonly resumedId?: RequestId | undefined;
  /** Needs a decision id of its own, because several backends are involved. */
  readonly isOneOfMany?: boolean;
  /** Ends the backend's session, regardless of the client's request. */
  readonly isEnd?: boolean;
  /** Made by the gateway and not by the client: it takes no concurrency slot and has a record in addition. */
  readonly isUnasked?: boolean;
};

/** Runs one backend request through the pipeline. Never rejects; the response goes to `outgoing`. */
export async function runBackendRequest(
  verified: VerifiedRequest,
  backendRequest: BackendRequest,
  outgoing: Outgoing,
): Promise<void> {
  const { context } = verified;
  const { aggregate, incoming, ports } = context;
  const { backend, text, isOneOfMany = false, isEnd = false, isUnasked = false } = backendRequest;
  context.hasBackendRecords ||= !isUnasked;
  const backendIncoming: Incoming = {
    ...incoming,
    ...(isOneOfMany
      ? { id: ports.audit.newDecisionId(), startedMs: performance.now(), receivedAt: Date.now() }
      : {}),
    httpMethod: isEnd ? 'DELETE' : incoming.httpMethod,
    upstream: backend.upstream,
    aggregate: { name: aggregate.name, session: incoming.headers['mcp-session-id'] },
    headers: headersOf(incoming, backendRequest),
    body: text === undefined ? incoming.body : new TextEncoder().encode(text),
    acquireSlot: (caller) => isUnasked || incoming.acquireSlot(caller, backend.upstream),
  };
  const unregister = registerRequest(context, backendRequest);
  try {
    await context.run(backendIncoming, outgoing, portsOf(verified));
  } finally {
    unregister();
  }
}

/** Registers which backend is working on a request of the session until its response is complete. */
function registerRequest(
  { admitted, incoming, ports }: AggregateContext,
  { backend: { upstream }, resumedId }: BackendRequest,
): () => void {
  const session = incoming.headers['mcp-session-id'];
  const id = admitted?.message.kind === 'request' ? admitted.message.id : resumedId;
  if (session === undefined || id === undefined) return () => undefined;
  return ports.aggregates.registerBackendRequest(session, id, upstream);
}

/** Replaces the session headers: the aggregate's session id means nothing to a backend, which has its own. */
function headersOf(
  { headers }: Incoming,
  { session, name, lastEventId }: BackendRequest,
): Incoming['headers'] {
  const backendHeaders: Record<string, string | undefined> = { ...headers };
  backendHeaders['mcp-session-id'] = session?.sealed;
  backendHeaders['last-event-id'] = lastEventId;
  if (session !== undefined && headers['mcp-protocol-version'] !== undefined)
    backendHeaders['mcp-protocol-version'] = session.version;
  if (name !== undefined && headers['mcp-name'] !== undefined)
    backendHeaders['mcp-name'] = encodeHeaderValue(name);
  return backendHeaders;
}

/** The ports of a backend request: those of the gateway, but with the aggregate's snapshots and its verified caller. */
function portsOf({ context, principal }: VerifiedRequest): Ports {
  const { aggregate, ports } = context;
  let isFirst = true;
  const identity: IdentityPort = {
    authenticate(incoming, outgoing) {
      // The caller of the request was just verified; later access checks verify it again.
      if (!isFirst) return ports.identity.authenticate(incoming, outgoing);
      isFirst = false;
      return principal;
    },
  };
  const snapshot = (upstream: string) => ports.aggregates.get(aggregate.name)?.snapshot(upstream);
  return { ...ports, identity, upstreams: { ...ports.upstreams, snapshot } };
}

/** One request of a client to an aggregate. Each backend request has a record of its own. */
export type AggregateContext = {
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly ports: Ports;
  readonly run: HandleRequest;
  /** The aggregate of the configuration in force when the request is forwarded. */
  aggregate: Aggregate;
  /** Written only if no backend was involved. */
  readonly record: RequestRecord;
  admitted: AdmittedMessage | undefined;
  /** The session of the request, once it is lost because a backend has lost its own. */
  lostSession: SessionFacts | undefined;
  /** Backend requests were made, and their records are the ones that count. */
  hasBackendRecords: boolean;
};

/** A request whose caller is verified. */
export type VerifiedRequest = { readonly context: AggregateContext; readonly principal: Principal };

const NO_TARGET = { kind: 'none' } as const;

/** The refusal of a request whose params are not valid here. */
export function refuseParams({ message }: AdmittedMessage, text: string): Refusal {
  const errorContext = message.kind === 'request' ? { id: message.id } : {};
  return refuseProtocolError(
    protocolErrorOf('invalid-message', INVALID_PARAMS, text, errorContext, 200),
  );
}

/** The refusal for items that do not exist and for items that the caller may not see: the same for both. */
export function refuseNotFound(): Refusal {
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
  noteOverride(record.decision, refusal.deny);
  const rendered = renderAggregateRefusal(context, refusal);
  const hasResponseBody = admitted === undefined || admitted.message.kind === 'request';
  const status = rendered.status === 200 && !hasResponseBody ? 400 : rendered.status;
  record.result.http = status;
  record.result.rpcCode = rendered.rpcCode;
  record.result.bytes = Buffer.byteLength(rendered.body);
  outgoing.send(status, rendered.headers, rendered.body);
}
