// Whether the upstream carries what an admitted message asks for: its era, and the parameter headers
// that its approved definition mirrors. Faults only; nothing is translated here.
// Source: MCP 2026-07-28, versioning and custom headers; mcp-spec.md §2.2.

import type { Admitted, ProtocolFault } from './admitted.js';
import { compareParamHeaders } from './headers.js';

/** Versions that an upstream speaks and that we police. */
export type Carried = {
  readonly sessions: readonly string[];
  readonly stateless: readonly string[];
};

const UNSUPPORTED_VERSION = -32022;
const INVALID_PARAMS = -32602;
const HEADER_MISMATCH = -32020;

/** What stands for a tool, as far as headers need it. */
type MirroredLookup = {
  standing(
    kind: 'tool',
    name: string,
  ): {
    readonly pinned:
      | {
          readonly mirrored: readonly {
            readonly header: string;
            readonly path: readonly string[];
          }[];
        }
      | undefined;
  };
};

/**
 * Refuses an era that the upstream does not speak. What it speaks is not known before its first
 * listing; then nothing is refused here, and the upstream's own answer decides.
 */
export function checkCarried(
  admitted: Admitted,
  carried: Carried | undefined,
): ProtocolFault | undefined {
  if (carried === undefined) return undefined;
  const { message, era, version } = admitted;
  const supported = [...carried.stateless, ...carried.sessions];
  const id = message.kind === 'request' ? { id: message.id } : {};
  if (era === '2026' && !carried.stateless.includes(version)) {
    return fault({
      ...id,
      reason: 'unsupported-version',
      code: UNSUPPORTED_VERSION,
      message: 'Unsupported protocol version',
      data: { supported, requested: version },
      era,
    });
  }
  if (admitted.rule.method !== 'initialize' || carried.sessions.length > 0) return undefined;
  const text = `This server speaks ${supported.length === 0 ? 'no version carried here' : supported.join(', ')}.`;
  return fault({
    ...id,
    reason: 'unsupported-version',
    code: INVALID_PARAMS,
    message: text,
    data: { supported, requested: version },
    era,
  });
}

/** Compares `Mcp-Param-*` with the arguments, by the approved schema of the tool (2026 only). */
export function checkParamHeaders(
  admitted: Admitted,
  catalogue: MirroredLookup,
): ProtocolFault | undefined {
  const { target, args, era, message } = admitted;
  if (era !== '2026' || target.kind !== 'tool' || args === undefined) return undefined;
  const mirrored = catalogue.standing('tool', target.name).pinned?.mirrored ?? [];
  if (mirrored.length === 0 || compareParamHeaders(mirrored, args, admitted.paramHeaders))
    return undefined;
  const id = message.kind === 'request' ? { id: message.id } : {};
  return fault({
    ...id,
    reason: 'header-mismatch',
    code: HEADER_MISMATCH,
    message: 'A parameter header is missing or differs from the arguments.',
    era,
  });
}

function fault(what: Omit<ProtocolFault, 'kind' | 'status'>): ProtocolFault {
  return { kind: 'fault', status: 400, ...what };
}
