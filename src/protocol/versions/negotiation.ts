// Which family of revisions a message, a session or an upstream has, and whether the upstream supports what an
// admitted message needs. A message is classified by body and headers together: if they disagree it is refused, and
// neither of the two is ever preferred. Translates nothing.
// Source: MCP 2026-07-28, versioning, custom headers and transports (backward compatibility); MCP 2025-11-25,
// transports; docs/reference/protocol.md#rules.

import type { AdmittedMessage, ProtocolError } from '../admitted-request.js';
import { areMirrors, compareParamHeaders, hasParamHeaders, PARAM_PREFIX } from '../headers.js';
import type { JsonObject, Target } from '../jsonrpc.js';
import { type ErrorContext, errorContextOf, headerMismatch, protocolErrorOf } from '../responses.js';
import type { TaskCapability } from '../tasks.js';
import type { AdmissionInput, AdmissionRules, CallContext, Classified, SessionRules } from './admission-rules.js';
import { LEGACY_SSE } from './legacy-sse.js';
import {
  LEGACY_SSE_VERSION,
  type ListedEra,
  type ProtocolVersion,
  SESSION_VERSIONS,
  STATELESS_VERSIONS,
} from './revisions.js';
import { SESSION } from './session.js';
import { claimsStateless, STATELESS } from './stateless.js';

const SINGLE_HEADERS = ['mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name', 'last-event-id'];

/**
 * The version of a call, or the first error of its headers and envelope.
 * Source: MCP 2026-07-28, versioning; transports, backward compatibility.
 */
export function classify(context: CallContext): Classified | ProtocolError {
  const { input, meta, errorContext } = context;
  return checkRepeated(input, errorContext) ?? protocolOfCall(input, meta).classify(context);
}

/** The family that a call claims by its body and its headers. */
export function protocolOfCall(
  input: Pick<AdmissionInput, 'headers' | 'isLegacySse'>,
  meta: JsonObject | undefined,
): AdmissionRules {
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
export type SupportedVersions = {
  readonly sessions: readonly string[];
  readonly stateless: readonly string[];
  /** The task capabilities that it declares in sessions. */
  readonly tasks?: readonly TaskCapability[];
};

/**
 * The family to use with an upstream for a client of the given one: the client's own if the upstream supports
 * it, otherwise the other one if the upstream supports that. Before the first listing nothing is known, and
 * nothing is translated. A client of legacy SSE is served like one with sessions.
 */
export function protocolForUpstream(
  client: ProtocolVersion,
  supportedVersions: SupportedVersions | undefined,
): ProtocolVersion {
  const hasSessions = supportedVersions !== undefined && supportedVersions.sessions.length > 0;
  const isStateless = supportedVersions !== undefined && supportedVersions.stateless.length > 0;
  if (client.hasSessions) return isStateless && !hasSessions ? STATELESS : SESSION;
  return hasSessions && !isStateless ? SESSION : STATELESS;
}

/** True if messages between a client and its upstream are translated into another era. */
export function isTranslated(client: ProtocolVersion, supportedVersions: SupportedVersions | undefined): boolean {
  return protocolForUpstream(client, supportedVersions).hasSessions !== client.hasSessions;
}

/** True for a listing that was made in the era of this family. */
export function isListedFor({ listedEra }: ProtocolVersion, { era }: { readonly era: ListedEra }): boolean {
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

/** The definitions of a tool, as far as headers need them. */
type MirroredLookup = {
  statusOf(
    kind: 'tool',
    name: string,
  ): { readonly pinned: Mirroring | undefined; readonly listed?: Mirroring | undefined };
};

type Mirroring = {
  readonly mirrored: readonly { readonly header: string; readonly path: readonly string[] }[];
};

/**
 * The versions that a client may use: for an era that the upstream does not support, those that the gateway
 * translates.
 */
export function versionsOffered(supportedVersions: SupportedVersions | undefined): readonly string[] | undefined {
  if (supportedVersions === undefined) return undefined;
  const { sessions, stateless } = supportedVersions;
  if (sessions.length + stateless.length === 0) return [];
  return [
    ...(stateless.length > 0 ? stateless : STATELESS_VERSIONS),
    ...(sessions.length > 0 ? sessions : SESSION_VERSIONS),
  ];
}

/**
 * Refuses a message if no era of the upstream is supported. Before the first listing it is not known what the
 * upstream supports; then nothing is refused here, and the upstream's own response decides.
 */
export function checkSupported(
  admitted: AdmittedMessage,
  supportedVersions: SupportedVersions | undefined,
): ProtocolError | undefined {
  const supported = versionsOffered(supportedVersions);
  if (supported === undefined || supported.length > 0) return undefined;
  const { message, protocol, version, rule } = admitted;
  if (!protocol.namesVersionAnew(rule.method)) return undefined;
  const text = 'This server has no supported protocol version in common with this gateway.';
  const code = protocol.unsupportedVersionCode;
  const error = protocolErrorOf('unsupported-version', code, text, errorContextOf(message));
  return { ...error, data: { supported, requested: version } };
}

/** The headers `Mcp-Param-*`, in lower case, that mirror an argument of the target. */
export function mirroredHeaders(catalog: MirroredLookup, target: Target): ReadonlySet<string> {
  if (target.kind !== 'tool') return NO_HEADERS;
  const { listed, pinned } = catalog.statusOf('tool', target.name);
  const mirrored = (listed ?? pinned)?.mirrored ?? [];
  return new Set(mirrored.map(({ header }) => PARAM_PREFIX + header.toLowerCase()));
}

const NO_HEADERS: ReadonlySet<string> = new Set();

/**
 * Compares the `Mcp-Param-*` headers with the arguments, by the tool's schema. In a session, which has no such headers,
 * each one must equal an argument: it is not forwarded, and whoever reads it before reads what the body says.
 */
export function checkParamHeaders(admitted: AdmittedMessage, catalog: MirroredLookup): ProtocolError | undefined {
  const { target, args, protocol, message } = admitted;
  const { paramHeaders } = admitted;
  if (target.kind !== 'tool' || args === undefined) return undefined;
  if (!protocol.mirrorsBody && !hasParamHeaders(paramHeaders)) return undefined;
  const { listed, pinned } = catalog.statusOf('tool', target.name);
  const mirrored = (listed ?? pinned)?.mirrored ?? [];
  const isAgreed = protocol.mirrorsBody
    ? mirrored.length === 0 || compareParamHeaders(mirrored, args, paramHeaders)
    : areMirrors(mirrored, args, paramHeaders);
  if (isAgreed) return undefined;
  const text = 'A parameter header is missing or differs from the arguments.';
  return headerMismatch(errorContextOf(message), text);
}
