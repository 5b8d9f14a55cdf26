// Which family of revisions a message, a session or an upstream has. A message is classified by body and
// headers together: if they disagree it is refused, and neither of the two is ever preferred.
// Source: MCP 2026-07-28, versioning and transports (backward compatibility); MCP 2025-11-25, transports.

import type { ProtocolError } from '../admitted-request.js';
import { type ErrorContext, headerMismatch } from '../errors.js';
import type { JsonObject } from '../jsonrpc.js';
import type {
  AdmissionInput,
  AdmissionRules,
  Call,
  CallContext,
  Classified,
  SessionRules,
} from './admission-rules.js';
import { LEGACY_SSE } from './legacy-sse.js';
import type { ProtocolVersion } from './protocol-version.js';
import { LEGACY_SSE_VERSION, type ListedEra } from './revisions.js';
import { SESSION } from './session.js';
import { claimsStateless, STATELESS } from './stateless.js';

const SINGLE_HEADERS = [
  'mcp-protocol-version',
  'mcp-session-id',
  'mcp-method',
  'mcp-name',
  'last-event-id',
];

/**
 * The version of a call, or the first error of its headers and envelope.
 * Source: MCP 2026-07-28, versioning; transports, backward compatibility.
 */
export function classify(context: CallContext): Classified | ProtocolError {
  const { input, meta, errorContext } = context;
  return checkRepeated(input, errorContext) ?? protocolOfCall(input, meta).classify(context);
}

function protocolOfCall(input: AdmissionInput, meta: JsonObject | undefined): AdmissionRules {
  if (input.isLegacySse === true) return LEGACY_SSE;
  return claimsStateless(meta, input.headers) ? STATELESS : SESSION;
}

/** The family of a client's reply to a server request; `undefined` for the stateless era, which has none. */
export function protocolOfReply({
  headers,
  isLegacySse,
}: Pick<AdmissionInput, 'headers' | 'isLegacySse'>): SessionRules | undefined {
  if (claimsStateless(undefined, headers)) return undefined;
  return isLegacySse === true ? LEGACY_SSE : SESSION;
}

/** The family of a session whose revision is `version`. */
export function protocolOfSession(version: string): ProtocolVersion {
  return version === LEGACY_SSE_VERSION ? LEGACY_SSE : SESSION;
}

/** The family in which an upstream is listed for an era. */
export function protocolListedAs(era: ListedEra): ProtocolVersion {
  return isListedFor(SESSION, { era }) ? SESSION : STATELESS;
}

/** Versions that both an upstream and the gateway support, by era. */
export type SpokenVersions = {
  readonly sessions: readonly string[];
  readonly stateless: readonly string[];
};

/**
 * The family to use with an upstream for a client of the given one: the client's own if the upstream supports
 * it, otherwise the other one if the upstream supports that. Before the first listing nothing is known, and
 * nothing is translated. A client of legacy SSE is served like one with sessions.
 */
export function protocolForUpstream(
  client: ProtocolVersion,
  supportedVersions: SpokenVersions | undefined,
): ProtocolVersion {
  const hasSessions = supportedVersions !== undefined && supportedVersions.sessions.length > 0;
  const isStateless = supportedVersions !== undefined && supportedVersions.stateless.length > 0;
  if (client.hasSessions) return isStateless && !hasSessions ? STATELESS : SESSION;
  return hasSessions && !isStateless ? SESSION : STATELESS;
}

/** True if messages between a client and its upstream are translated into another era. */
export function isTranslated(
  client: ProtocolVersion,
  supportedVersions: SpokenVersions | undefined,
): boolean {
  return protocolForUpstream(client, supportedVersions).hasSessions !== client.hasSessions;
}

/** True for a listing that was made in the era of this family. */
export function isListedFor(
  { listedEra }: ProtocolVersion,
  { era }: { readonly era: ListedEra },
): boolean {
  return era === listedEra;
}

/** True for a task of this family: a task of another one does not exist in it. */
export function hasTask<T extends { readonly era: ListedEra }>(
  protocol: ProtocolVersion,
  task: T | undefined,
): task is T {
  return protocol.tasks !== undefined && task !== undefined && isListedFor(protocol, task);
}

/** An error if a header that must have one value was sent more than once. */
export function checkRepeated(
  input: Pick<AdmissionInput, 'repeated'>,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  if (input.repeated.size === 0) return undefined;
  return SINGLE_HEADERS.some((name) => input.repeated.has(name))
    ? headerMismatch(errorContext, 'A header of the protocol was sent more than once.')
    : undefined;
}

export function errorContextOf(call: Call): ErrorContext {
  return call.kind === 'request' ? { id: call.id } : {};
}
