// Checks that the upstream supports what an admitted message needs: a supported version, and the parameter
// headers that its approved definition mirrors. Translates nothing.
// Source: MCP 2026-07-28, versioning and custom headers; docs/reference/protocol.md §2.2.

import type { AdmittedMessage, ProtocolError } from './admitted-request.js';
import { type ErrorContext, headerMismatch, protocolErrorOf } from './errors.js';
import { compareParamHeaders } from './headers.js';
import type { Message } from './jsonrpc.js';
import type { TaskCapability } from './tasks.js';
import type { SpokenVersions } from './versions/detection.js';
import { SESSION_VERSIONS, STATELESS_VERSIONS } from './versions/revisions.js';

/** Versions that both the upstream and the gateway support. */
export type SupportedVersions = SpokenVersions & {
  /** The task capabilities that it declares in sessions. */
  readonly tasks?: readonly TaskCapability[];
};

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
export function versionsOffered(
  supportedVersions: SupportedVersions | undefined,
): readonly string[] | undefined {
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
  const error = protocolErrorOf('unsupported-version', code, text, contextOf(message));
  return { ...error, data: { supported, requested: version } };
}

/** Compares the `Mcp-Param-*` headers with the arguments, by the tool's schema (2026 only). */
export function checkParamHeaders(
  admitted: AdmittedMessage,
  catalog: MirroredLookup,
): ProtocolError | undefined {
  const { target, args, protocol, message } = admitted;
  if (!protocol.mirrorsBody || target.kind !== 'tool' || args === undefined) return undefined;
  const { listed, pinned } = catalog.statusOf('tool', target.name);
  const mirrored = (listed ?? pinned)?.mirrored ?? [];
  if (mirrored.length === 0 || compareParamHeaders(mirrored, args, admitted.paramHeaders))
    return undefined;
  const text = 'A parameter header is missing or differs from the arguments.';
  return headerMismatch(contextOf(message), text);
}

function contextOf(message: Message): ErrorContext {
  return message.kind === 'request' ? { id: message.id } : {};
}
