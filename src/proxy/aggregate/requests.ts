// What one member of an endpoint is asked: an exchange like every other, on the member's own name, with its
// own rules, pins, limits and record, under the endpoint's identity. Only headers that belong to the path
// are made anew.
// Source: MCP 2026-07-28, transports (standard request headers); MCP 2025-11-25, session management.

import type { Principal } from '../../policy/principal.js';
import type { RequestRecord } from '../../policy/record.js';
import { type Refusal, refuseWith, renderRefusal } from '../../policy/refusal.js';
import type { Admitted } from '../../protocol/admitted-request.js';
import { encodeHeaderValue } from '../../protocol/headers.js';
import type { Incoming, Outgoing } from '../../protocol/transport.js';
import type { Aggregate, Ports } from '../ports.js';
import { noteAdmitted, presentedScheme } from '../request-context.js';
import type { Backend } from './merge.js';

/** How a part differs from the whole. */
export type BackendRequest = {
  readonly backend: Backend;
  /** The sealed session of the member, and its version; absent where there is none yet, or none at all. */
  readonly session?: { readonly sealed: string; readonly version: string } | undefined;
  /** Its own text; the client's bytes where absent. */
  readonly text?: string;
  /** What `Mcp-Name` says for the member, where the client sent one. */
  readonly name?: string;
  /** The event after which a stream of the member goes on. */
  readonly lastEventId?: string | undefined;
  /** A decision of its own, where several members are asked. */
  readonly isOneOfMany?: boolean;
};

/** Runs one part. Never rejects; the answer goes to `outgoing`. */
export async function runBackendRequest(
  verified: Verified,
  backendRequest: BackendRequest,
  outgoing: Outgoing,
): Promise<void> {
  const { context } = verified;
  const { aggregate, incoming, ports } = context;
  const { backend, text, isOneOfMany = false } = backendRequest;
  context.isPassedOn = true;
  const own: Incoming = {
    ...incoming,
    id: isOneOfMany ? ports.newDecisionId() : incoming.id,
    upstream: backend.upstream,
    aggregate: aggregate.name,
    headers: headersOf(incoming, backendRequest),
    body: text === undefined ? incoming.body : new TextEncoder().encode(text),
    enter: () => incoming.enter(backend.upstream),
    startedMs: isOneOfMany ? performance.now() : incoming.startedMs,
  };
  const leave = enterRequest(context, backend);
  try {
    await context.run(own, outgoing, portsOf(verified));
  } finally {
    leave();
  }
}

/** A request of a session is known to run at this member until it is answered here. */
function enterRequest(
  { admitted, incoming, ports }: AggregateContext,
  { upstream }: Backend,
): () => void {
  const session = incoming.headers['mcp-session-id'];
  if (session === undefined || admitted?.message.kind !== 'request') return () => undefined;
  return ports.registerBackendRequest(session, admitted.message.id, upstream);
}

/** A session of the endpoint is none of the member's: each has its own. */
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

/** The ports of a member's part: the same, but that the caller is the endpoint's and so is the sight. */
function portsOf({ context, principal }: Verified): Ports {
  const { incoming: asked, ports } = context;
  const { name } = context.aggregate;
  // A session is ended at its members after it has ended here.
  const sealed = asked.httpMethod === 'DELETE' ? undefined : asked.headers['mcp-session-id'];
  let isVerified = true;
  return {
    ...ports,
    snapshot: (upstream) => ports.aggregate(name)?.snapshot(upstream),
    openSession(own, upstream, by) {
      // A part lives no longer than the whole, which may be revoked while the part is open.
      const isOver = sealed !== undefined && ports.openSession(sealed, name, by) === undefined;
      return isOver ? undefined : ports.openSession(own, upstream, by);
    },
    authenticate(incoming, outgoing) {
      const aggregate = ports.aggregate(name);
      const isBackend = aggregate?.backends.some(({ upstream }) => upstream === incoming.upstream);
      // A reload may have taken the member out while a stream of it was open.
      if (isBackend !== true) return { reason: 'upstream-unavailable' };
      // The whole was verified a moment ago; whoever asks again later asks what stands then.
      if (!isVerified) return ports.authenticate({ ...incoming, upstream: name }, outgoing);
      isVerified = false;
      return principal;
    },
  };
}

// A request on the path of an endpoint, as the parts of relay/merged/ share it, and how it is refused before
// any member is asked. What a member is asked is an exchange of its own, with a record of its own.

/** How a member's part is run: src/proxy/pipeline.ts. */
export type HandleRequest = (incoming: Incoming, outgoing: Outgoing, ports: Ports) => Promise<void>;

/** One request of a client to an endpoint. */
export type AggregateContext = {
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly ports: Ports;
  readonly run: HandleRequest;
  readonly aggregate: Aggregate;
  /** Written only where no member is asked. */
  readonly record: RequestRecord;
  admitted: Admitted | undefined;
  /** Members were asked: what is to be recorded, they record. */
  isPassedOn: boolean;
};

/** A request whose caller is known. */
export type Verified = { readonly context: AggregateContext; readonly principal: Principal };

const NO_TARGET = { kind: 'none' } as const;

/** What a caller gets for what does not exist here, and for what it may not see. */
export function refuseUnknown(): Refusal {
  return refuseWith('no-matching-allow', { listed: false });
}

/** The wire form of a refusal of the endpoint's own. */
export function renderAggregateRefusal(
  { admitted, aggregate, incoming }: AggregateContext,
  refusal: Refusal,
): ReturnType<typeof renderRefusal> {
  return renderRefusal(refusal, {
    decisionId: incoming.id,
    era: admitted?.era,
    requestId: admitted?.message.kind === 'request' ? admitted.message.id : undefined,
    target: admitted?.target ?? NO_TARGET,
    method: admitted?.rule.method,
    challenge: (reason, scopes, proof) =>
      aggregate.challenge(reason, scopes, { scheme: presentedScheme(incoming), proof }),
  });
}

/** Answers with a refusal of the endpoint's own, if no answer has begun, and notes it. */
export function refuseAggregate(context: AggregateContext, refusal: Refusal): void {
  const { admitted, outgoing, record } = context;
  context.isPassedOn = false;
  if (admitted !== undefined) noteAdmitted(context, admitted);
  record.decision.verdict = 'deny';
  record.decision.stage = refusal.stage;
  record.decision.reasons.push(refusal.deny.reason);
  const rendered = renderAggregateRefusal(context, refusal);
  const isAnswered = admitted === undefined || admitted.message.kind === 'request';
  const status = rendered.status === 200 && !isAnswered ? 400 : rendered.status;
  record.result.http = status;
  record.result.rpcCode = rendered.rpcCode;
  record.result.bytes = rendered.body.length;
  outgoing.send(status, rendered.headers, rendered.body);
}
