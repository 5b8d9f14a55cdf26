// HTTP+SSE, 2024-11-05: what a message that was posted to a channel must show besides its body, how its
// session stands in a query, and where a server wants messages. Opening a sealed session is the caller's port.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

import { type ErrorContext, headerMismatch } from '../errors.js';
import type { HeaderMap } from '../headers.js';
import type { JsonObject } from '../jsonrpc.js';
import { LEGACY_SSE_VERSION } from './revisions.js';
import {
  checkStrayHeaders,
  type OpenSession,
  type SessionCheck,
  sessionRequired,
  unknownSession,
} from './session.js';
import { claimsStateless } from './stateless.js';

/** The only form of the query that the gateway hands out. */
const SESSION_QUERY = /^session=([A-Za-z0-9_-]+)$/;
/** Longest address that a server may want its messages at; it is sealed into every address of ours. */
const MAX_ENDPOINT_CHARACTERS = 2048;

/**
 * In place of a server's address: what marks a session whose server speaks another transport. No address looks
 * like it, because addresses are paths.
 */
export const BRIDGED_LEGACY_SSE = 'sallyport:bridged-channel';

/** What a client that looks for a channel at an endpoint of several servers is told. */
export const NO_LEGACY_SSE_HERE =
  'HTTP+SSE (2024-11-05) is not served where several servers stand behind one endpoint. Use Streamable HTTP ' +
  'on the path of the endpoint, or HTTP+SSE below the path of one server.';

/** Headers that no client of this transport knows. */
const LATER_HEADERS = ['mcp-session-id', 'mcp-protocol-version', 'last-event-id'];

/**
 * True for a GET by which a client probes for this transport: it knows no header of a later one (MCP 2025-11-25,
 * transports, backwards compatibility).
 */
export function probesForLegacySse(headers: HeaderMap): boolean {
  const isOfSession = LATER_HEADERS.some((name) => headers[name] !== undefined);
  return !isOfSession && headers['accept']?.includes('text/event-stream') === true;
}

/** The sealed session in a query, or `undefined` where the query is not one of ours. */
export function sessionInQuery(query: string): string | undefined {
  return SESSION_QUERY.exec(query)?.[1];
}

/** The address to post to, as the first event of a channel names it. */
export function legacySseAddress(messageUrl: string, sealed: string): string {
  return `${messageUrl}?session=${sealed}`;
}

/**
 * The path and query that a server wants its messages at, from its `endpoint` event; `undefined` where that
 * is no address of the server's own origin: what is posted there would reach somebody else.
 */
export function readEndpoint(value: string, base: URL): string | undefined {
  if (value === '' || !URL.canParse(value, base.href)) return undefined;
  const url = new URL(value, base.href);
  if (url.origin !== base.origin || url.username !== '' || url.password !== '') return undefined;
  const path = url.pathname + url.search;
  return path.length > MAX_ENDPOINT_CHARACTERS ? undefined : path;
}

/**
 * Opens the session that the query named. Unknown, ended, of another transport or somebody else's are one
 * and the same 404. A message that claims another version is refused, whoever would believe it.
 */
export function checkLegacySse(
  { headers, openSession }: { readonly headers: HeaderMap; readonly openSession: OpenSession },
  errorContext: ErrorContext,
  meta?: JsonObject,
): SessionCheck {
  const stray = checkStrayHeaders(headers, errorContext);
  if (stray !== undefined) return stray;
  const version = headers['mcp-protocol-version']?.trim() ?? LEGACY_SSE_VERSION;
  if (claimsStateless(meta, headers) || version !== LEGACY_SSE_VERSION) {
    return headerMismatch(errorContext, 'Messages of HTTP+SSE have the version of HTTP+SSE.');
  }
  const sealed = headers['mcp-session-id'];
  if (sealed === undefined) return sessionRequired(errorContext);
  const session = openSession(sealed);
  if (session?.version !== LEGACY_SSE_VERSION) return unknownSession(errorContext);
  return { kind: 'session', version: LEGACY_SSE_VERSION, session };
}
