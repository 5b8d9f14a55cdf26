// Legacy SSE (HTTP+SSE, 2024-11-05): what its messages are checked by, and how they are answered. Reads and
// writes message endpoints with the session in their query. Opening a sealed session is left to a port of the
// caller.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

import { type CapabilityGrants, grantsOf } from '../capabilities.js';
import { acceptsType, type HeaderMap } from '../headers.js';
import type { JsonObject } from '../jsonrpc.js';
import { type ErrorContext, headerMismatch } from '../responses.js';
import { NO_GRANTS, type ServerRequestGrants } from '../server-requests.js';
import type { AdmissionInput, OpenSession, SessionCheck, SessionRules } from './admission-rules.js';
import { LEGACY_SSE_VERSION } from './revisions.js';
import {
  checkDeclaredByServer,
  checkStrayHeaders,
  cutInSession,
  IN_SESSIONS,
  readSessionParamHeaders,
  sessionRequired,
  unknownSession,
  withoutMatchingMirrorHeaders,
} from './session.js';
import { claimsStateless } from './stateless.js';

export const LEGACY_SSE: SessionRules = {
  ...IN_SESSIONS,
  era: '2024',
  revisions: [LEGACY_SSE_VERSION],
  // The session exists before the handshake.
  issuesSessionIds: false,
  answersOnStream: true,
  tasks: undefined,
  namesVersionAnew: () => true,
  // What is posted to a session has no response but its status, and a notification is dropped.
  statusOfRefusedMethod: (kind) => (kind === 'request' ? 400 : 202),
  statusOfInvalidParams: (kind) => (kind === 'request' ? 400 : 202),
  classify({ input, call, errorContext, meta }) {
    const headers = withoutMatchingMirrorHeaders(input.headers, call);
    const checked = checkLegacySse({ ...input, headers }, errorContext, meta);
    if (checked.kind === 'error') return checked;
    const { version, session } = checked;
    return { kind: 'classified', protocol: LEGACY_SSE, version, session };
  },
  checkReply: (input, errorContext) => checkLegacySse(input, errorContext),
  readMirrorHeaders: readSessionParamHeaders,
  // Any replica may receive the message, and only the one with the stream knows what was declared.
  mayNotifyRoots: (input) => input.grants?.().roots === true,
  cutCapabilities: (context) => cutInSession(context, legacyGrantsOf),
  mayBecomeTask: () => false,
  checkTasksDeclared: checkDeclaredByServer,
};

/** Legacy SSE predates elicitation and apps. */
function legacyGrantsOf(input: AdmissionInput): CapabilityGrants {
  const terms = grantsOf(input, false);
  const grants = (): ServerRequestGrants => ({
    ...terms.grants(),
    elicitation: NO_GRANTS.elicitation,
  });
  return { ...terms, grants, apps: () => false };
}

/** The only form of the query that the gateway issues. */
const SESSION_QUERY = /^session=([A-Za-z0-9_-]+)$/;
/** Maximum length of a server's message endpoint; it is sealed into every message endpoint of the gateway. */
const MAX_ENDPOINT_CHARACTERS = 2048;

/** The text for a client that looks for legacy SSE on the path of an aggregate. */
export const NO_LEGACY_SSE_HERE =
  'HTTP+SSE (2024-11-05) is not served where several servers stand behind one endpoint. Use Streamable HTTP ' +
  'on the path of the endpoint, or HTTP+SSE below the path of one server.';

/** Headers that no client of this transport sends. */
const LATER_HEADERS = ['mcp-session-id', 'mcp-protocol-version', 'last-event-id'];

const STREAM = 'text/event-stream';

/**
 * True for a GET by which a client probes for this transport: it has no header of a later one
 * (MCP 2025-11-25, transports, backwards compatibility).
 */
export function probesForLegacySse(headers: HeaderMap): boolean {
  const isOfSession = LATER_HEADERS.some((name) => headers[name] !== undefined);
  const { accept } = headers;
  // Named and not only covered: a GET that accepts anything may come from a browser.
  const isNamed = accept?.toLowerCase().includes(STREAM) === true;
  return !isOfSession && isNamed && acceptsType(accept, STREAM);
}

/** The sealed session in a query, or `undefined` if the gateway did not issue such a query. */
export function sessionInQuery(query: string): string | undefined {
  return SESSION_QUERY.exec(query)?.[1];
}

/** The message endpoint of the gateway, as the first event of a stream names it. */
export function legacySseAddress(messageUrl: string, sealed: string): string {
  return `${messageUrl}?session=${sealed}`;
}

/**
 * The path and query of a server's message endpoint, from its `endpoint` event; `undefined` if it is not on
 * the server's own origin, because what is posted there would reach another party.
 */
export function readEndpoint(value: string, base: URL): string | undefined {
  if (value === '' || !URL.canParse(value, base.href)) return undefined;
  const url = new URL(value, base.href);
  if (url.origin !== base.origin || url.username !== '' || url.password !== '') return undefined;
  const path = url.pathname + url.search;
  return path.length > MAX_ENDPOINT_CHARACTERS ? undefined : path;
}

/**
 * Opens the session that the query names. A session that is unknown, has ended, is of another transport or
 * belongs to another caller gets the same 404. A message that claims another version is refused, because some
 * server might believe the claim.
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
    return headerMismatch(errorContext, 'A message over HTTP+SSE has the protocol version 2024-11-05.');
  }
  const sealed = headers['mcp-session-id'];
  if (sealed === undefined) return sessionRequired(errorContext);
  const session = openSession(sealed);
  if (session?.version !== LEGACY_SSE_VERSION) return unknownSession(errorContext);
  return { kind: 'session', version: LEGACY_SSE_VERSION, session };
}
