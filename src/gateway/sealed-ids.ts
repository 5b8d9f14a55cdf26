// The ids that clients carry for the gateway within a session: of server requests and of stream events. They are sealed
// to the caller, the upstream and the session. Only the newest server requests are also kept in memory.

import type { ReplayOutcome, ReplayStore } from '../policy/limits.js';
import type { SessionFacts } from '../protocol/admitted-request.js';

import type { Ports, SessionScope } from '../proxy/ports.js';
import type { KeyRing } from '../state/keys.js';
import { bindingOf, EVENT_ID, SERVER_REQUEST_ID } from '../state/sealed-values.js';
import { createPassedServerRequests } from '../state/session-tables.js';

/** Lifetime of a sealed session. Clients abandon most sessions, and nothing but the id is kept of one. */
export const SESSION_TTL_MS = 24 * 60 * 60 * 1000;
/** How long a server request waits for its reply, which a person may have to give. */
const SERVER_REQUEST_TTL_MS = 2 * 60 * 60 * 1000;

/** Binds a sealed value to a caller's session. */
export function bindingIn({ upstream, principal, session }: SessionScope): readonly string[] {
  return [...bindingOf(upstream, principal), session.hash ?? ''];
}

export function createSealedIds(
  ring: KeyRing,
  now: () => number,
  claimedReplies: ReplayStore,
): Pick<
  Ports,
  | 'sealServerRequest'
  | 'openServerRequest'
  | 'claimReply'
  | 'recallServerRequest'
  | 'sealEvent'
  | 'openEvent'
> {
  const asked = createPassedServerRequests();

  /**
   * Claims under every key, because replicas may be at different steps of a key rotation and share at least one key.
   */
  async function claimReply(sealed: string, session: SessionFacts): Promise<ReplayOutcome> {
    const expiresAtMs = now() + SERVER_REQUEST_TTL_MS;
    for (const keyHash of ring.hmacAll('answered-question', sealed)) {
      const isFirst = await claimedReplies.useOnce(keyHash, expiresAtMs, session.hash ?? '');
      if (isFirst !== true) return isFirst;
    }
    return true;
  }

  return {
    sealServerRequest(request, scope) {
      const expiresAtMs = now() + SERVER_REQUEST_TTL_MS;
      const sealed = SERVER_REQUEST_ID.seal(ring, bindingIn(scope), request, expiresAtMs);
      asked.add(scope.session.hash ?? '', request.id, sealed);
      return sealed;
    },
    openServerRequest: (sealed, scope) =>
      SERVER_REQUEST_ID.open(ring, bindingIn(scope), sealed, now()),
    // The gateway itself waits for such a reply, on one replica, and drops a second one.
    claimReply: (sealed, session) =>
      session.target.kind === 'gateway' ? true : claimReply(sealed, session),
    recallServerRequest: (id, session) => asked.find(session.hash ?? '', id),
    sealEvent: (event, scope) =>
      EVENT_ID.seal(ring, bindingIn(scope), event, now() + SESSION_TTL_MS),
    openEvent: (sealed, scope) => EVENT_ID.open(ring, bindingIn(scope), sealed, now()),
  };
}
