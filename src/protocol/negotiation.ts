// Chooses the era that the gateway uses with an upstream, and checks that the upstream supports what an
// admitted message needs: a supported era, and the parameter headers that its approved definition mirrors.
// Translates nothing.
// Source: MCP 2026-07-28, versioning and custom headers; docs/reference/protocol.md §2.2.

import type { AdmittedMessage, ProtocolError } from './admitted-request.js';
import { compareParamHeaders } from './headers.js';
import type { TaskCapability } from './tasks.js';
import { SESSION_VERSIONS, STATELESS_VERSIONS } from './versions/revisions.js';

/** Versions that both the upstream and the gateway support. */
export type SupportedVersions = {
  readonly sessions: readonly string[];
  readonly stateless: readonly string[];
  /** The task capabilities that it declares in sessions. */
  readonly tasks?: readonly TaskCapability[];
};

const UNSUPPORTED_VERSION = -32022;
const INVALID_PARAMS = -32602;
const HEADER_MISMATCH = -32020;

/** The definitions of a tool, as far as headers need them. */
type MirroredLookup = {
  standing(
    kind: 'tool',
    name: string,
  ): { readonly pinned: Mirroring | undefined; readonly listed?: Mirroring | undefined };
};

type Mirroring = {
  readonly mirrored: readonly { readonly header: string; readonly path: readonly string[] }[];
};

/**
 * The era to use with an upstream for a client of the given era: the client's own if the upstream supports
 * it, otherwise the other one if the upstream supports that. Before the first listing nothing is known, and
 * nothing is translated.
 */
export function upstreamEraFor(
  client: '2025' | '2026',
  carried: SupportedVersions | undefined,
): '2025' | '2026' {
  if (carried === undefined) return client;
  const { sessions, stateless } = carried;
  if (client === '2025') return sessions.length === 0 && stateless.length > 0 ? '2026' : '2025';
  return stateless.length === 0 && sessions.length > 0 ? '2025' : '2026';
}

/**
 * The versions that a client may use: for an era that the upstream does not support, those that the gateway
 * translates.
 */
export function versionsOffered(
  carried: SupportedVersions | undefined,
): readonly string[] | undefined {
  if (carried === undefined) return undefined;
  const { sessions, stateless } = carried;
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
  carried: SupportedVersions | undefined,
): ProtocolError | undefined {
  const supported = versionsOffered(carried);
  if (supported === undefined || supported.length > 0) return undefined;
  const { message, era, version } = admitted;
  if (era === '2025' && admitted.rule.method !== 'initialize') return undefined;
  const id = message.kind === 'request' ? { id: message.id } : {};
  return protocolError({
    ...id,
    reason: 'unsupported-version',
    code: era === '2026' ? UNSUPPORTED_VERSION : INVALID_PARAMS,
    message: 'This server speaks no version that is carried here.',
    data: { supported, requested: version },
    era,
  });
}

/** Compares the `Mcp-Param-*` headers with the arguments, by the tool's schema (2026 only). */
export function checkParamHeaders(
  admitted: AdmittedMessage,
  catalogue: MirroredLookup,
): ProtocolError | undefined {
  const { target, args, era, message } = admitted;
  if (era !== '2026' || target.kind !== 'tool' || args === undefined) return undefined;
  const { listed, pinned } = catalogue.standing('tool', target.name);
  const mirrored = (listed ?? pinned)?.mirrored ?? [];
  if (mirrored.length === 0 || compareParamHeaders(mirrored, args, admitted.paramHeaders))
    return undefined;
  const id = message.kind === 'request' ? { id: message.id } : {};
  return protocolError({
    ...id,
    reason: 'header-mismatch',
    code: HEADER_MISMATCH,
    message: 'A parameter header is missing or differs from the arguments.',
    era,
  });
}

function protocolError(what: Omit<ProtocolError, 'kind' | 'status'>): ProtocolError {
  return { kind: 'fault', status: 400, ...what };
}
