// In which era an upstream is spoken to, and whether it carries what an admitted message asks for: any era
// that is policed here, and the parameter headers that its approved definition mirrors. Translates nothing.
// Source: MCP 2026-07-28, versioning and custom headers; docs/reference/protocol.md §2.2.

import type { Admitted, ProtocolError } from './admitted-request.js';
import { compareParamHeaders } from './headers.js';
import type { TaskUse } from './tasks.js';
import { SESSION_VERSIONS, STATELESS_VERSIONS } from './versions/revisions.js';

/** Versions that an upstream speaks and that we police. */
export type Carried = {
  readonly sessions: readonly string[];
  readonly stateless: readonly string[];
  /** What of tasks it declares in sessions. */
  readonly tasks?: readonly TaskUse[];
};

const UNSUPPORTED_VERSION = -32022;
const INVALID_PARAMS = -32602;
const HEADER_MISMATCH = -32020;

/** What stands for a tool, as far as headers need it. */
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
 * The era in which an upstream is spoken to for a client of this one: the client's own where the upstream
 * speaks it, else the other where it speaks that. Before its first listing nothing is known, and nothing
 * is translated.
 */
export function eraTowards(client: '2025' | '2026', carried: Carried | undefined): '2025' | '2026' {
  if (carried === undefined) return client;
  const { sessions, stateless } = carried;
  if (client === '2025') return sessions.length === 0 && stateless.length > 0 ? '2026' : '2025';
  return stateless.length === 0 && sessions.length > 0 ? '2025' : '2026';
}

/** The versions that a client may use here: of an era that the upstream does not speak, those we translate. */
export function versionsOffered(carried: Carried | undefined): readonly string[] | undefined {
  if (carried === undefined) return undefined;
  const { sessions, stateless } = carried;
  if (sessions.length + stateless.length === 0) return [];
  return [
    ...(stateless.length > 0 ? stateless : STATELESS_VERSIONS),
    ...(sessions.length > 0 ? sessions : SESSION_VERSIONS),
  ];
}

/**
 * Refuses what no era of the upstream carries. What it speaks is not known before its first listing; then
 * nothing is refused here, and the upstream's own answer decides.
 */
export function checkCarried(
  admitted: Admitted,
  carried: Carried | undefined,
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

/** Compares `Mcp-Param-*` with the arguments, by the schema of the tool (2026 only). */
export function checkParamHeaders(
  admitted: Admitted,
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
