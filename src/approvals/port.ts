// The approvals as the pipeline is given them: with who calls, where they answer, and what a client answers for them.
// docs/reference/approvals.md.

import { personIn, personsActing } from '../auth/claims.js';
import type { Settings } from '../config/settings.js';
import type { ApprovalCaller, ApprovalPort } from '../policy/approval.js';
import { identityOfActor, type Principal } from '../policy/principal.js';
import { approvalLink } from './link.js';
import type { ApprovalService } from './service.js';

/** Another replica may take the answer, so that it is looked for in the store. */
const LOOK_EVERY_MS = 250;

/** `settings`: those in force. */
export function createApprovalPort(
  { consult, answer, isWaiting }: Pick<ApprovalService, 'consult' | 'answer' | 'isWaiting'>,
  settings: () => Pick<Settings, 'publicBase' | 'issuers'>,
): ApprovalPort {
  return {
    consult,
    callerOf: (principal) => callerOf(principal, settings()),
    linkTo(id, { issuerName }) {
      const { publicBase, issuers } = settings();
      return issuers.get(issuerName)?.login === undefined ? undefined : approvalLink(publicBase, id);
    },
    answerByForm: (id, principal, isGranted) =>
      answer(id, isGranted ? 'granted' : 'denied', {
        ...{ party: 'caller', proof: 'client', groups: [] },
        person: callerOf(principal, settings()),
      }),
    async waitForAnswer(id, withinMs, signal) {
      const endMs = performance.now() + withinMs;
      while (!signal.aborted && performance.now() < endMs && (await isWaiting(id)))
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    },
  };
}

function callerOf(principal: Principal, { issuers }: Pick<Settings, 'issuers'>): ApprovalCaller {
  const { issuer, issuerUrl, subject, client, actors, claims } = principal;
  const settings = issuers.get(issuer);
  const acting = settings === undefined ? [] : personsActing(claims, settings);
  return {
    ...{ issuer: issuerUrl, issuerName: issuer, subject, client },
    match: settings && personIn(claims, settings),
    actors: actors.map((actor, at) => ({
      ...identityOfActor(actor, principal),
      match: acting[at],
      isClient: actor.subject === client || actor.subject === actor.client,
    })),
  };
}
