// Enforces the obligations of an allow that must be met before a message is forwarded. Only here an
// AuthorizedRequest is made, which is all that forwarding accepts. The only stage that uses the limit store.
// ARCHITECTURE.md, "Types hold the order"; docs/contract.md §4, law 3.

import type { AdmittedMessage, TaskFacts } from '../protocol/admitted-request.js';
import type { Message } from '../protocol/jsonrpc.js';
import type { Allow, Deny } from './decision.js';
import { enforceLimits, type LimitStore } from './limits.js';
import type { Principal } from './principal.js';

/** A private member cannot be written, and a spread leaves it out, so a value is made only where the casts are. */
declare class AuthorizedBrand {
  private readonly brand: never;
}

/** The obligations of an allow that its response must meet. */
export type ResponseObligations = {
  /** The smallest of all caps, in bytes. */
  readonly maxResultBytes: number | undefined;
  /** Names of inspection profiles; all of them apply. */
  readonly profiles: readonly string[];
};

/** A message that has passed every stage. Made only here. */
export type AuthorizedRequest<M extends Message = Message> = AuthorizedBrand & {
  readonly admitted: AdmittedMessage<M>;
  readonly principal: Principal;
  readonly allow: Allow;
  readonly responseObligations: ResponseObligations;
};

/** The same authorization for a copy of its message, for an upstream that is reached in another session. */
export function replaceAdmitted(
  authorized: AuthorizedRequest,
  admitted: AdmittedMessage,
): AuthorizedRequest {
  return { ...authorized, admitted } as AuthorizedRequest;
}

export type EnforcePorts = { readonly limits: LimitStore };

/**
 * Enforces the obligations of an allow. Returns synchronously if the store does, so that a caller need not
 * wait: test for a promise before awaiting. A store that fails is a refusal.
 */
export function enforce<M extends Message>(
  allow: Allow,
  admitted: AdmittedMessage<M>,
  principal: Principal,
  ports: EnforcePorts,
): AuthorizedRequest<M> | Deny | Promise<AuthorizedRequest<M> | Deny> {
  const deny = isReply(admitted) ? undefined : enforceLimits(allow, principal, ports.limits);
  if (deny instanceof Promise) {
    return deny.then((denied) => denied ?? authorize(allow, admitted, principal));
  }
  return deny ?? authorize(allow, admitted, principal);
}

/** A reply to a server request was counted when the request was made. */
function isReply({ message }: AdmittedMessage): boolean {
  return message.kind === 'result' || message.kind === 'error';
}

// INVARIANT: casts to AuthorizedRequest are in this file alone.
function authorize<M extends Message>(
  allow: Allow,
  admitted: AdmittedMessage<M>,
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
 * Collects the obligations that the response must meet; for a request about a task, also those of the call
 * that created it.
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
      // Limits are enforced before; captured arguments were recorded with the decision.
      case 'rate':
      case 'budget':
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
