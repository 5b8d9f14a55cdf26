// The last station before a message may leave: what the allow still owes is met here, and only here a
// Cleared is made, which is all that forwarding accepts. The only station that asks the store.
// Architecture §1; contract §4, law 3.

import type { Admitted, TaskFacts } from '../mcp/admitted.js';
import type { Message } from '../mcp/message.js';
import type { Allow, Deny } from '../policy/decision.js';
import type { Principal } from '../policy/principal.js';
import { type LimitStore, meetLimits } from './limits.js';

declare const clearedBrand: unique symbol;

/** What must hold of the answer, of all that the allow owes. */
export type OwedByAnswer = {
  /** The least of all caps, in bytes. */
  readonly maxResultBytes: number | undefined;
  /** Names of inspection profiles; all of them apply. */
  readonly profiles: readonly string[];
};

/** A message that every station has let through. Made only here. */
export type Cleared<M extends Message = Message> = {
  readonly [clearedBrand]: true;
  readonly admitted: Admitted<M>;
  readonly principal: Principal;
  readonly allow: Allow;
  readonly owed: OwedByAnswer;
};

export type SettlePorts = { readonly limits: LimitStore };

/**
 * Meets the obligations of an allow. Answers at once where the store does, so that a caller need not
 * wait: test for a promise before awaiting. A store that fails refuses.
 */
export function settle<M extends Message>(
  allow: Allow,
  admitted: Admitted<M>,
  principal: Principal,
  ports: SettlePorts,
): Cleared<M> | Deny | Promise<Cleared<M> | Deny> {
  const deny = isAnswer(admitted) ? undefined : meetLimits(allow, principal, ports.limits);
  if (deny instanceof Promise) {
    return deny.then((settled) => settled ?? clear(allow, admitted, principal));
  }
  return deny ?? clear(allow, admitted, principal);
}

/** The answer to a question was counted when the question was asked. */
function isAnswer({ message }: Admitted): boolean {
  return message.kind === 'result' || message.kind === 'error';
}

/** INVARIANT: the only cast to Cleared in the program. */
function clear<M extends Message>(
  allow: Allow,
  admitted: Admitted<M>,
  principal: Principal,
): Cleared<M> {
  return { allow, admitted, principal, owed: owedByAnswer(allow, admitted.task) } as Cleared<M>;
}

const NOTHING_OWED: OwedByAnswer = Object.freeze({ maxResultBytes: undefined, profiles: [] });

/**
 * The obligations that are met while the answer passes, gathered; of a task those too that its call left.
 */
export function owedByAnswer(
  allow: Allow,
  task?: Pick<TaskFacts, 'maxResultBytes' | 'profiles'>,
): OwedByAnswer {
  if (allow.obligations.length === 0 && task === undefined) return NOTHING_OWED;
  let maxResultBytes = task?.maxResultBytes;
  const profiles: string[] = [...(task?.profiles ?? [])];
  for (const owed of allow.obligations) {
    switch (owed.kind) {
      // Limits are met before; what is captured is on record since the decision.
      case 'rate':
      case 'capture':
        break;
      case 'max-result-bytes':
        maxResultBytes = Math.min(owed.bytes, maxResultBytes ?? owed.bytes);
        break;
      case 'inspect':
        if (!profiles.includes(owed.profile)) profiles.push(owed.profile);
    }
  }
  return { maxResultBytes, profiles };
}
