// The session id that a client is given: what the gateway must know of the session (its version, what
// servers may ask in it, what of tasks its server declared, whether its client shows apps, the upstream's
// own id), sealed, and bound to the upstream and to issuer, subject and client of whoever opened it, never
// to the bytes of a token.
// Any replica with the gateway key opens it; nothing is stored (contract §10; MCP 2025-11-25, session management).

import type { SessionFacts } from '../mcp/admitted.js';
import { SERVER_REQUEST_NAMES } from '../mcp/questions.js';
import { TASK_USES } from '../mcp/tasks.js';
import type { KeyRing } from './key-ring.js';
import { keyTagOf, open, seal } from './seal.js';

const PURPOSE = 'session';

/** Whose session it is. Exact strings, as verified: no trimming, no case folding, no normalization. */
export type SessionBinding = {
  readonly upstream: string;
  /** The `iss` claim. */
  readonly issuer: string;
  readonly subject: string;
  readonly client: string;
};

/** The binding as associated data: of a session, and of what is given out within one. */
export function bindings({ upstream, issuer, subject, client }: SessionBinding): readonly string[] {
  return [upstream, issuer, subject, client];
}

/**
 * Makes a session id, valid until `expiresAtMs` (milliseconds since the epoch). Two calls never give the same id.
 * @throws RangeError for a binding with a lone surrogate.
 */
export function sealSession(
  ring: KeyRing,
  binding: SessionBinding,
  session: SessionFacts,
  expiresAtMs: number,
): string {
  const {
    version,
    upstreamSession,
    allowedServerRequests = [],
    tasks = [],
    apps = false,
  } = session;
  const payload = JSON.stringify([
    version,
    upstreamSession ?? null,
    allowedServerRequests,
    tasks,
    apps,
  ]);
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
): SessionFacts | undefined {
  const payload = open(ring, PURPOSE, bindings(binding), id, nowMs);
  return payload === undefined ? undefined : readSession(payload.toString('utf8'));
}

/**
 * The keyed digest by which a session is known: under the key that sealed its id, so that it is one at every
 * replica and through a rotation, whichever key stands first. `undefined` where there is no such key.
 */
export function sessionHash(ring: KeyRing, id: string): string | undefined {
  return ring.hmacUnder(keyTagOf(id), PURPOSE, id);
}

function readSession(text: string): SessionFacts | undefined {
  const value: unknown = JSON.parse(text);
  if (!Array.isArray(value)) return undefined;
  const [version, upstreamSession, allowedServerRequests, tasks, apps]: readonly unknown[] = value;
  if (typeof version !== 'string' || !Array.isArray(allowedServerRequests)) return undefined;
  const uses = TASK_USES.filter((use) => Array.isArray(tasks) && tasks.includes(use));
  return {
    version,
    upstreamSession: typeof upstreamSession === 'string' ? upstreamSession : undefined,
    allowedServerRequests: SERVER_REQUEST_NAMES.filter((name) =>
      allowedServerRequests.includes(name),
    ),
    ...(uses.length === 0 ? {} : { tasks: uses }),
    ...(apps === true ? { apps } : {}),
  };
}
