// The cursor of a list that several upstreams fill: each member's own cursor, sealed and bound to the endpoint,
// the caller and the list. Whoever presents it goes on where the page ended, on any replica; nothing is stored.
// Source: MCP 2025-11-25, pagination (cursors are opaque); contract §10 (sealed values).

import type { KeyRing } from './key-ring.js';
import { open, seal } from './seal.js';
import { bindings, type SessionBinding } from './session-seal.js';

const PURPOSE = 'cursor';
/** Longest sealed cursor that is read. Members write their own cursors, and some write much. */
const MAX_SEALED_CHARS = 256 * 1024;

/** Where each member's list goes on. The empty text is a cursor like any other. */
export type BackendCursors = ReadonlyMap<string, string>;

/** Whose cursor it is; `upstream` is the endpoint. */
export type CursorBinding = SessionBinding & { readonly method: string };

/** Makes a cursor, valid until `expiresAtMs` (milliseconds since the epoch). */
export function sealCursor(
  ring: KeyRing,
  binding: CursorBinding,
  cursors: BackendCursors,
  expiresAtMs: number,
): string {
  const payload = JSON.stringify([...cursors]);
  return seal(ring, PURPOSE, [...bindings(binding), binding.method], payload, expiresAtMs);
}

/** Opens a cursor; `undefined` for whatever was not given out for this list to this caller. */
export function openCursor(
  ring: KeyRing,
  binding: CursorBinding,
  sealed: string,
  nowMs: number,
): BackendCursors | undefined {
  const bound = [...bindings(binding), binding.method];
  const payload = open(ring, PURPOSE, bound, sealed, nowMs, MAX_SEALED_CHARS);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const cursors = new Map<string, string>();
  for (const entry of value as readonly unknown[]) {
    const [backend, cursor]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    if (typeof backend !== 'string' || typeof cursor !== 'string') return undefined;
    cursors.set(backend, cursor);
  }
  return cursors;
}
