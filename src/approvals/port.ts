// The approvals as the pipeline is given them: with who calls, where they answer, and what a client answers for them.
// docs/reference/approvals.md.

import type { Settings } from '../config/settings.js';
import { type ApprovalCaller, type ApprovalPort, stateOf } from '../policy/approval.js';
import { identityOfActor, type Principal } from '../policy/principal.js';
import type { ApprovalService } from './service.js';

/** Where callers answer, behind the public URL of the gateway. */
export const APPROVAL_PATH = '/.well-known/sallyport/approve/';
/** Another replica may take the answer, so that it is looked for in the store. */
const LOOK_EVERY_MS = 250;

/** `settings`: those in force. */
export function createApprovalPort(
  { consult, answer, find }: Pick<ApprovalService, 'consult' | 'answer' | 'find'>,
  settings: () => Pick<Settings, 'publicUrl' | 'issuers'>,
  now: () => number,
): ApprovalPort {
  /** The claim that tells one person, by which a login and a token are compared. */
  const matchClaim = ({ issuer }: Principal): string | undefined => settings().issuers.get(issuer)?.login?.match;

  async function isWaiting(id: string): Promise<boolean> {
    const found = await find(id);
    return typeof found !== 'string' && stateOf(found, now()) === 'waiting';
  }

  return {
    consult,
    callerOf: (principal) => callerOf(principal, matchClaim(principal)),
    linkTo: (id) => new URL(`${APPROVAL_PATH}${id}`, settings().publicUrl).href,
    answerByForm: (id, principal, isGranted) =>
      answer(id, isGranted ? 'granted' : 'denied', {
        ...{ party: 'caller', proof: 'client', groups: [] },
        person: callerOf(principal, matchClaim(principal)),
      }),
    async waitForAnswer(id, withinMs, signal) {
      const endMs = performance.now() + withinMs;
      while (!signal.aborted && performance.now() < endMs && (await isWaiting(id)))
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    },
  };
}

function callerOf(principal: Principal, match: string | undefined): ApprovalCaller {
  const { issuer, issuerUrl, subject, client, actors, claims } = principal;
  const value = match !== undefined && Object.hasOwn(claims, match) ? claims[match] : undefined;
  return {
    ...{ issuer: issuerUrl, issuerName: issuer, subject, client },
    // Empty, it would make one person of all.
    match: typeof value === 'string' && value !== '' ? value : undefined,
    actors: actors.map((actor) => identityOfActor(actor, principal)),
  };
}
