// What one member of an endpoint is asked: an exchange like every other, on the member's own name, with its
// own rules, pins, limits and record, under the endpoint's identity. Only headers that belong to the path
// are made anew.
// Source: MCP 2026-07-28, transports (standard request headers); MCP 2025-11-25, session management.

import type { Ports } from '../../exchange-ports.js';
import type { Backend } from '../../mcp/merge/prefixes.js';
import { encodeHeaderValue } from '../../mcp/translate/mirrored-headers.js';
import type { Incoming, Outgoing } from '../../mcp/transport.js';
import type { AggregateContext, Verified } from './whole.js';

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
