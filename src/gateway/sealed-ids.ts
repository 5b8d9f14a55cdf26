// The ids that clients carry for us within a session: of questions of a server and of events of a stream.
// Sealed to the caller, the upstream and the session; nothing but the newest questions is remembered.

import type { Ports, SessionPlace } from '../exchange-ports.js';
import type { SessionFacts } from '../mcp/admitted.js';
import type { Principal } from '../policy/principal.js';
import type { ReplayAnswer, ReplayStore } from '../policy/replay-store.js';
import { createAskedQuestions } from '../state/asked-questions.js';
import { openEvent, sealEvent } from '../state/event-seal.js';
import type { KeyRing } from '../state/key-ring.js';
import { openQuestion, type QuestionBinding, sealQuestion } from '../state/question-seal.js';
import type { SessionBinding } from '../state/session-seal.js';
import { OWN_SESSION } from '../upstream/translate/for-sessions.js';

/** How long a sealed session lives. Clients abandon most sessions; the id is all that is kept of one. */
export const SESSION_TTL_MS = 24 * 60 * 60 * 1000;
/** How long a question waits for its answer: people think, and go to lunch. */
const QUESTION_TTL_MS = 2 * 60 * 60 * 1000;

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
export function bindingIn({ upstream, principal, session }: SessionPlace): QuestionBinding {
  return { ...bindingOf(upstream, principal), session: session.hash ?? '' };
}

/** The ports that seal and open such ids. */
export function createSealedIds(
  ring: KeyRing,
  now: () => number,
  answered: ReplayStore,
): Pick<
  Ports,
  'sealQuestion' | 'openQuestion' | 'claimAnswer' | 'recallQuestion' | 'sealEvent' | 'openEvent'
> {
  const asked = createAskedQuestions();

  /** Replicas may stand at different steps of a change of keys: an answer counts under each that they share. */
  async function claimAnswer(sealed: string, session: SessionFacts): Promise<ReplayAnswer> {
    const expiresAtMs = now() + QUESTION_TTL_MS;
    for (const keyHash of ring.hmacAll('answered-question', sealed)) {
      const isFirst = await answered.useOnce(keyHash, expiresAtMs, session.hash ?? '');
      if (isFirst !== true) return isFirst;
    }
    return true;
  }

  return {
    sealQuestion(question, place) {
      const binding = bindingIn(place);
      const sealed = sealQuestion(ring, binding, question, now() + QUESTION_TTL_MS);
      asked.add(binding.session, question.id, sealed);
      return sealed;
    },
    openQuestion: (sealed, place) => openQuestion(ring, bindingIn(place), sealed, now()),
    // Where the gateway itself waits for the answer, on one replica, nobody waits for a second one.
    claimAnswer: (sealed, session) =>
      session.upstreamSession === OWN_SESSION ? true : claimAnswer(sealed, session),
    recallQuestion: (id, session) => asked.find(session.hash ?? '', id),
    sealEvent: (event, place) => sealEvent(ring, bindingIn(place), event, now() + SESSION_TTL_MS),
    openEvent: (sealed, place) => openEvent(ring, bindingIn(place), sealed, now()),
  };
}
