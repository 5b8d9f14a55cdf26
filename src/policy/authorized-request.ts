// The last station before a message may leave: what the allow still owes is met here, and only here a
// Cleared is made, which is all that forwarding accepts. The only station that asks the store.
// ARCHITECTURE.md, "Types hold the order"; docs/contract.md §4, law 3.

import type { Admitted, TaskFacts } from '../protocol/admitted-request.js';
import type { Message } from '../protocol/jsonrpc.js';
import type { Allow, Deny } from './decision.js';
import { type LimitStore, meetLimits } from './limits.js';
import type { Principal } from './principal.js';

declare const authorizedBrand: unique symbol;

/** What must hold of the answer, of all that the allow owes. */
export type ResponseObligations = {
  /** The least of all caps, in bytes. */
  readonly maxResultBytes: number | undefined;
  /** Names of inspection profiles; all of them apply. */
  readonly profiles: readonly string[];
};

/** A message that every station has let through. Made only here. */
export type AuthorizedRequest<M extends Message = Message> = {
  readonly [authorizedBrand]: true;
  readonly admitted: Admitted<M>;
  readonly principal: Principal;
  readonly allow: Allow;
  readonly responseObligations: ResponseObligations;
};

export type EnforcePorts = { readonly limits: LimitStore };

/**
 * Meets the obligations of an allow. Answers at once where the store does, so that a caller need not
 * wait: test for a promise before awaiting. A store that fails refuses.
 */
export function enforce<M extends Message>(
  allow: Allow,
  admitted: Admitted<M>,
  principal: Principal,
  ports: EnforcePorts,
): AuthorizedRequest<M> | Deny | Promise<AuthorizedRequest<M> | Deny> {
  const deny = isReply(admitted) ? undefined : meetLimits(allow, principal, ports.limits);
  if (deny instanceof Promise) {
    return deny.then((denied) => denied ?? authorize(allow, admitted, principal));
  }
  return deny ?? authorize(allow, admitted, principal);
}

/** The answer to a question was counted when the question was asked. */
function isReply({ message }: Admitted): boolean {
  return message.kind === 'result' || message.kind === 'error';
}

/** INVARIANT: the only cast to Cleared in the program. */
function authorize<M extends Message>(
  allow: Allow,
  admitted: Admitted<M>,
  principal: Principal,
): AuthorizedRequest<M> {
  return {
    allow,
    admitted,
    principal,
    responseObligations: responseObligationsOf(allow, admitted.task),
  } as AuthorizedRequest<M>;
}

const NO_RESPONSE_OBLIGATIONS: ResponseObligations = Object.freeze({
  maxResultBytes: undefined,
  profiles: [],
});

/**
 * The obligations that are met while the answer passes, gathered; of a task those too that its call left.
 */
export function responseObligationsOf(
  allow: Allow,
  task?: Pick<TaskFacts, 'maxResultBytes' | 'profiles'>,
): ResponseObligations {
  if (allow.obligations.length === 0 && task === undefined) return NO_RESPONSE_OBLIGATIONS;
  let maxResultBytes = task?.maxResultBytes;
  const profiles: string[] = [...(task?.profiles ?? [])];
  for (const obligation of allow.obligations) {
    switch (obligation.kind) {
      // Limits are met before; what is captured is on record since the decision.
      case 'rate':
      case 'capture':
        break;
      case 'max-result-bytes':
        maxResultBytes = Math.min(obligation.bytes, maxResultBytes ?? obligation.bytes);
        break;
      case 'inspect':
        if (!profiles.includes(obligation.profile)) profiles.push(obligation.profile);
    }
  }
  return { maxResultBytes, profiles };
}
