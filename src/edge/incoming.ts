// One request as the rest of the gateway sees it: plain values out of what node:http read. Where the transport
// puts a value elsewhere, it is moved to where all others have it. Decides nothing.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { sessionInQuery } from '../mcp/eras/channels.js';
import type { Incoming } from '../mcp/transport.js';
import { ClientLeave } from './client-leave.js';
import { certificateOf } from './peer.js';
import type { EdgeRoute } from './routes.js';

/** What the edge has found out about a request. */
export type Facts = {
  readonly id: string;
  readonly receivedAt: number;
  readonly startedMs: number;
  readonly route: EdgeRoute;
  readonly query: string;
  readonly repeated: ReadonlySet<string>;
  readonly body: Uint8Array;
  readonly remoteAddress: string;
};

/** The session of HTTP+SSE stands in the query; from here on it stands where other sessions stand. */
function headersOf(
  request: IncomingMessage,
  { route, query, repeated }: Facts,
): Pick<Incoming, 'headers' | 'repeated'> {
  const headers = request.headers as Incoming['headers'];
  if (route.legacySsePath !== 'message') return { headers, repeated };
  const named = { ...headers, 'mcp-session-id': sessionInQuery(query) };
  // Two sessions are one too many.
  return headers['mcp-session-id'] === undefined
    ? { headers: named, repeated }
    : { headers: named, repeated: new Set([...repeated, 'mcp-session-id']) };
}

/** Puts the values together. `enter` takes a place of the upstream's. */
export function toIncoming(
  request: IncomingMessage,
  response: ServerResponse,
  facts: Facts,
  enter: Incoming['enter'],
): Incoming {
  const { headers, repeated } = headersOf(request, facts);
  return {
    id: facts.id,
    upstream: facts.route.upstream,
    httpMethod: request.method === 'GET' ? 'GET' : request.method === 'DELETE' ? 'DELETE' : 'POST',
    legacySsePath: facts.route.legacySsePath,
    headers,
    repeated,
    query: facts.query,
    body: facts.body,
    remoteAddress: facts.remoteAddress,
    clientCertificate: certificateOf(request.socket),
    enter,
    // INVARIANT: a plain value. With an accessor of its own each of these objects would get a hidden class of its
    // own, which slows down whatever reads it and keeps it from being collected young.
    signal: new ClientLeave(response),
    receivedAt: facts.receivedAt,
    startedMs: facts.startedMs,
  };
}
