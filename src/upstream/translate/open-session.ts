// Opens a session of the gateway's own with an upstream, for a caller whose era has none: initialize with
// what that caller declared and was granted, then initialized, then the level of its log.
// Source: MCP 2025-11-25, lifecycle; logging.

import { isObject, type JsonObject } from '../../mcp/message.js';
import type { ForwardError } from '../../mcp/transport.js';
import { FIRST_VERSION_WITH_HEADER, SESSION_VERSIONS } from '../../mcp/versions.js';
import {
  type CallPorts,
  callUpstream,
  type ListingError,
  notifyUpstream,
} from '../listing-call.js';
import type { UpstreamSession } from './session-pool.js';

/** A session as it was opened, before anybody is said to own it. */
type Opened = Omit<UpstreamSession, 'caller'>;

/** What a session is opened with. */
export type SessionTerms = {
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly logLevel: string | undefined;
};

/** Bytes of a handshake. */
const MAX_HANDSHAKE_BYTES = 1024 * 1024;
/** Visible ASCII (MCP 2025-11-25, session management). */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;

const FORWARD_ERRORS: { readonly [why in ListingError]: ForwardError } = {
  'too-large': 'upstream-protocol',
  unavailable: 'upstream-unavailable',
  timeout: 'upstream-timeout',
  credentials: 'upstream-credentials',
  protocol: 'upstream-protocol',
};

/** Opens one, or says why there is none. */
export async function openUpstreamSession(
  ports: CallPorts,
  { version, capabilities, clientInfo, logLevel }: SessionTerms,
): Promise<Opened | ForwardError> {
  const budget = {
    bytesLeft: MAX_HANDSHAKE_BYTES,
    deadlineMs: ports.now() + ports.requestTimeoutMs,
  };
  const params = { protocolVersion: version, capabilities, clientInfo };
  const call = { era: '2025', version, method: 'initialize', params, headers: {} } as const;
  const response = await callUpstream(ports, call, budget);
  if (response.kind === 'failed') return FORWARD_ERRORS[response.why];
  const session =
    response.kind === 'result' ? readOpened(response.result, response.headers) : undefined;
  if (session === undefined) return 'upstream-protocol';
  const headers = headersIn(session);
  const notified = await notifyUpstream(ports, headers, 'notifications/initialized', budget);
  if (notified.kind === 'failed') return FORWARD_ERRORS[notified.why];
  if (notified.kind === 'refused') return 'upstream-protocol';
  if (logLevel !== undefined && isObject(session.handshake['capabilities'])) {
    const isLogging = isObject(session.handshake['capabilities']['logging']);
    // A server that will not set it logs as it likes; what nobody asked for is not passed on.
    const level = { era: '2025', version, params: { level: logLevel }, headers } as const;
    if (isLogging) await callUpstream(ports, { ...level, method: 'logging/setLevel' }, budget);
  }
  return session;
}

/** The session that a handshake opened; `undefined` where its answer is none that is carried. */
export function readOpened(
  result: JsonObject,
  headers: { readonly [name: string]: string | undefined },
): Opened | undefined {
  const version = result['protocolVersion'];
  const id = headers['mcp-session-id'];
  if (typeof version !== 'string' || !SESSION_VERSIONS.includes(version)) return undefined;
  if (!isObject(result['capabilities'])) return undefined;
  if (id !== undefined && !SESSION_ID.test(id)) return undefined;
  return { version, upstreamSession: id, handshake: result };
}

/** The headers of a request within a session. */
export function headersIn({
  version,
  upstreamSession,
}: Pick<UpstreamSession, 'version' | 'upstreamSession'>): Record<string, string> {
  const headers: Record<string, string> = {};
  if (version >= FIRST_VERSION_WITH_HEADER) headers['mcp-protocol-version'] = version;
  if (upstreamSession !== undefined) headers['mcp-session-id'] = upstreamSession;
  return headers;
}
