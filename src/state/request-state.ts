// What a client carries between the legs of one dialogue in 2026: the upstream's own state, byte for byte,
// sealed and bound to the caller and to the request that it belongs to. Nothing is stored; whoever changes,
// steals or keeps it too long has nothing (MCP 2026-07-28, multi-round-trip requests; contract §10).

import type { KeyRing } from './key-ring.js';
import { open, seal } from './seal.js';
import type { SessionBinding } from './session-seal.js';

const PURPOSE = 'request-state';

/** How long a human may take to answer. */
export const REQUEST_STATE_TTL_MS = 15 * 60 * 1000;
/** The longest state of an upstream that is carried, in UTF-16 units. */
export const MAX_STATE_CHARS = 64 * 1024;
/** A sealed state of that length, in base64url, with room for characters of three bytes. */
const MAX_SEALED_STATE_CHARS = 4 * MAX_STATE_CHARS + 256;

/** Whose state it is, and of which request: exact strings. */
export type StateBinding = SessionBinding & {
  readonly method: string;
  /** Kind and name of what the request is about. */
  readonly target: string;
  /** Digest of the params without what changes from leg to leg. */
  readonly params: string;
};

function bindings(binding: StateBinding): readonly string[] {
  const { upstream, issuer, subject, client, method, target, params } = binding;
  return [upstream, issuer, subject, client, method, target, params];
}

/** Seals the state of an upstream until `expiresAtMs`; `undefined` where it is too long to be carried. */
export function sealRequestState(
  ring: KeyRing,
  binding: StateBinding,
  state: string,
  expiresAtMs: number,
): string | undefined {
  if (state.length > MAX_STATE_CHARS) return undefined;
  return seal(ring, PURPOSE, bindings(binding), state, expiresAtMs);
}

/** The state that was sealed under this very binding; `undefined` for everything else, without a reason. */
export function openRequestState(
  ring: KeyRing,
  binding: StateBinding,
  sealed: string,
  nowMs: number,
): string | undefined {
  return open(ring, PURPOSE, bindings(binding), sealed, nowMs, MAX_SEALED_STATE_CHARS)?.toString(
    'utf8',
  );
}
