// What a decision is: the two verdicts, what an allow still owes, and what is recorded of both.
// There is no third state: an error is a deny.

import type { ProofError } from './principal.js';
import type { Reason } from './reasons.js';

declare const allowBrand: unique symbol;

/** How often something may happen, and counted for whom. */
export type RateLimit = {
  readonly rule: string;
  readonly count: number;
  readonly windowMs: number;
  readonly per: 'subject' | 'client' | 'rule';
};

/** What an allow still owes before the message may leave. */
export type Obligation =
  | { readonly kind: 'rate'; readonly limit: RateLimit }
  | { readonly kind: 'max-result-bytes'; readonly bytes: number }
  | { readonly kind: 'inspect'; readonly profile: string }
  | { readonly kind: 'capture'; readonly pointers: readonly string[] };

/** An allow. Made only in policy/decide.ts. */
export type Allow = {
  readonly [allowBrand]: true;
  readonly verdict: 'allow';
  readonly policy: string;
  readonly rule: string;
  /** The groups that the rule names, for the record. */
  readonly groups: readonly string[] | undefined;
  readonly obligations: readonly Obligation[];
};

/** A deny, with what its rendering needs. `listed` decides whether the caller learns the reason. */
export type Deny = {
  readonly verdict: 'deny';
  readonly reason: Reason;
  readonly listed: boolean;
  readonly policy?: string;
  readonly rule?: string;
  /** The groups that the rule names, for the record. */
  readonly groups?: readonly string[] | undefined;
  /** For `insufficient-scope`: every scope of the alternative with the fewest missing. */
  readonly scopes?: readonly string[];
  /** A sentence that a model can act on. Built by us from schema positions and rule texts, never from traffic. */
  readonly advice?: string;
  readonly retryAfterSeconds?: number;
  /** JSON pointers into the arguments whose values the record keeps of what is refused, too. */
  readonly captures?: readonly string[];
  /** For a refused login, where its challenge must speak of a proof of possession. */
  readonly proof?: ProofError;
};

export type Decision = Allow | Deny;
