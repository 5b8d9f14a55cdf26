// The ids that clients carry for us within a session: of questions of a server and of events of a stream.
// Sealed to the caller, the upstream and the session; nothing but the newest questions is remembered.

import type { ReplayOutcome, ReplayStore } from '../policy/limits.js';
import type { Principal } from '../policy/principal.js';
import type { SessionFacts } from '../protocol/admitted-request.js';
import type { Ports, SessionScope } from '../proxy/ports.js';
import type { KeyRing } from '../state/keys.js';

import type { SessionBinding } from '../state/sealed-values.js';
import {
  openEvent,
  openServerRequest,
  type ServerRequestBinding,
  sealEvent,
  sealServerRequest,
} from '../state/sealed-values.js';
import { createPassedServerRequests } from '../state/session-tables.js';
import { OWN_SESSION } from '../upstream/adapters/session-over-stateless/adapter.js';

/** How long a sealed session lives. Clients abandon most sessions; the id is all that is kept of one. */
export const SESSION_TTL_MS = 24 * 60 * 60 * 1000;
/** How long a question waits for its answer: people think, and go to lunch. */
const SERVER_REQUEST_TTL_MS = 2 * 60 * 60 * 1000;

/** Whose a sealed value is, and at which upstream. */
export function bindingOf(upstream: string, principal: Principal): SessionBinding {
  return {
    upstream,
    issuer: principal.issuerUrl,
    subject: principal.subject,
    client: principal.client,
  };
}

/** Whose a sealed value is, and in which session. */
export function bindingIn({ upstream, principal, session }: SessionScope): ServerRequestBinding {
  return { ...bindingOf(upstream, principal), session: session.hash ?? '' };
}

/** The ports that seal and open such ids. */
export function createSealedIds(
  ring: KeyRing,
  now: () => number,
  answeredRequests: ReplayStore,
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

  /** Replicas may stand at different steps of a change of keys: an answer counts under each that they share. */
  async function claimReply(sealed: string, session: SessionFacts): Promise<ReplayOutcome> {
    const expiresAtMs = now() + SERVER_REQUEST_TTL_MS;
    for (const keyHash of ring.hmacAll('answered-question', sealed)) {
      const isFirst = await answeredRequests.useOnce(keyHash, expiresAtMs, session.hash ?? '');
      if (isFirst !== true) return isFirst;
    }
    return true;
  }

  return {
    sealServerRequest(request, scope) {
      const binding = bindingIn(scope);
      const sealed = sealServerRequest(ring, binding, request, now() + SERVER_REQUEST_TTL_MS);
      asked.add(binding.session, request.id, sealed);
      return sealed;
    },
    openServerRequest: (sealed, scope) => openServerRequest(ring, bindingIn(scope), sealed, now()),
    // Where the gateway itself waits for the answer, on one replica, nobody waits for a second one.
    claimReply: (sealed, session) =>
      session.upstreamSession === OWN_SESSION ? true : claimReply(sealed, session),
    recallServerRequest: (id, session) => asked.find(session.hash ?? '', id),
    sealEvent: (event, scope) => sealEvent(ring, bindingIn(scope), event, now() + SESSION_TTL_MS),
    openEvent: (sealed, scope) => openEvent(ring, bindingIn(scope), sealed, now()),
  };
}
