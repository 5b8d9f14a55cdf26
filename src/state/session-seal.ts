// The session id that a client is given: what the gateway must know of the session, sealed, and bound to
// the upstream and to issuer, subject and client of whoever opened it, never to the bytes of a token.
// Any replica with the gateway key opens it; nothing is stored (contract §10; MCP 2025-11-25, session management).

import type { SessionFacts } from '../mcp/admitted.js';
import type { KeyRing } from './key-ring.js';
import { open, seal } from './seal.js';

const PURPOSE = 'session';

/** Whose session it is. Exact strings, as verified: no trimming, no case folding, no normalization. */
export type SessionBinding = {
  readonly upstream: string;
  /** The `iss` claim. */
  readonly issuer: string;
  readonly subject: string;
  readonly client: string;
};

/** What a session id carries. */
export type SealedSession = SessionFacts & {
  /** Names of the capabilities that were removed when the session was opened. */
  readonly stripped: readonly string[];
};

function bindings({ upstream, issuer, subject, client }: SessionBinding): readonly string[] {
  return [upstream, issuer, subject, client];
}

/**
 * Makes a session id, valid until `expiresAtMs` (milliseconds since the epoch). Two calls never give the same id.
 * @throws RangeError for a binding with a lone surrogate.
 */
export function sealSession(
  ring: KeyRing,
  binding: SessionBinding,
  session: SealedSession,
  expiresAtMs: number,
): string {
  const { version, upstreamSession, stripped } = session;
  const payload = JSON.stringify([version, upstreamSession ?? null, stripped]);
  return seal(ring, PURPOSE, bindings(binding), payload, expiresAtMs);
}

/**
 * Opens a session id for whoever presents it. `undefined` when it is unknown, expired, or someone else's:
 * the three are not told apart.
 */
export function openSession(
  ring: KeyRing,
  binding: SessionBinding,
  id: string,
  nowMs: number,
): SealedSession | undefined {
  const payload = open(ring, PURPOSE, bindings(binding), id, nowMs);
  return payload === undefined ? undefined : readSession(payload.toString('utf8'));
}

function readSession(text: string): SealedSession | undefined {
  const value: unknown = JSON.parse(text);
  if (!Array.isArray(value)) return undefined;
  const [version, upstreamSession, stripped]: readonly unknown[] = value;
  if (typeof version !== 'string' || !Array.isArray(stripped)) return undefined;
  return {
    version,
    upstreamSession: typeof upstreamSession === 'string' ? upstreamSession : undefined,
    stripped: stripped.filter((name): name is string => typeof name === 'string'),
  };
}
