// The id under which a client sees a question of a server: the server's own id and what was asked, sealed
// and bound to the upstream, the caller and the session, so that any replica restores it and nobody else
// can answer. Nothing is stored (contract §10; MCP 2025-11-25, transports).

import type { ServerRequestFacts } from '../mcp/admitted.js';
import { SERVER_REQUEST_METHODS, SERVER_REQUEST_NAMES } from '../mcp/questions.js';
import type { KeyRing } from './key-ring.js';
import { open, seal } from './seal.js';
import { bindings, type SessionBinding } from './session-seal.js';

const PURPOSE = 'server-request';

/** `session` is the keyed hash of the session's sealed id. */
export type ServerRequestBinding = SessionBinding & { readonly session: string };

/** Makes the id of a question, valid until `expiresAtMs` (milliseconds since the epoch). */
export function sealServerRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  { id, method, name }: ServerRequestFacts,
  expiresAtMs: number,
): string {
  const bound = [...bindings(binding), binding.session];
  return seal(ring, PURPOSE, bound, JSON.stringify([id, method, name]), expiresAtMs);
}

/** Opens the id of an answer; `undefined` for whatever was not given out in this session of this caller. */
export function openServerRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sealed: string,
  nowMs: number,
): ServerRequestFacts | undefined {
  const bound = [...bindings(binding), binding.session];
  const payload = open(ring, PURPOSE, bound, sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [id, method, asked]: readonly unknown[] = value;
  const name = SERVER_REQUEST_NAMES.find((one) => one === asked);
  if (name === undefined || typeof method !== 'string' || !SERVER_REQUEST_METHODS.has(method)) {
    return undefined;
  }
  return typeof id === 'string' || typeof id === 'number' ? { id, method, name } : undefined;
}
