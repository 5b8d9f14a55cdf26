// The id under which a client knows a task: the server's own id, and what its result will be judged by, sealed
// and bound to the upstream and to issuer, subject and client of whoever made the call. Any replica opens it,
// and nobody else's hand makes anything of it. Nothing is stored (contract §10; MCP 2025-11-25, tasks,
// security; the Tasks extension).

import type { TaskFacts } from '../mcp/admitted.js';
import type { KeyRing } from './key-ring.js';
import { open, seal } from './seal.js';
import { bindings, type SessionBinding } from './session-seal.js';

const PURPOSE = 'task';
/** A task whose id would grow past this is not carried: it travels in a header too. */
const MAX_PAYLOAD_CHARACTERS = 4096;

/** Makes the id of a task, valid until `expiresAtMs`; `undefined` where what it must carry is too long. */
export function sealTask(
  ring: KeyRing,
  binding: SessionBinding,
  { id, era, tool, maxResultBytes, profiles }: TaskFacts,
  expiresAtMs: number,
): string | undefined {
  const payload = JSON.stringify([id, era, tool, maxResultBytes ?? null, profiles]);
  if (payload.length > MAX_PAYLOAD_CHARACTERS) return undefined;
  return seal(ring, PURPOSE, bindings(binding), payload, expiresAtMs);
}

/** Opens the id of a task; `undefined` for whatever was not given to this caller, and for what has expired. */
export function openTask(
  ring: KeyRing,
  binding: SessionBinding,
  sealed: string,
  nowMs: number,
): TaskFacts | undefined {
  const payload = open(ring, PURPOSE, bindings(binding), sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [id, era, tool, maxResultBytes, profiles]: readonly unknown[] = value;
  if (typeof id !== 'string' || typeof tool !== 'string' || !Array.isArray(profiles))
    return undefined;
  if (era !== '2025' && era !== '2026') return undefined;
  return {
    id,
    era,
    tool,
    maxResultBytes: typeof maxResultBytes === 'number' ? maxResultBytes : undefined,
    profiles: profiles.filter((one): one is string => typeof one === 'string'),
  };
}
