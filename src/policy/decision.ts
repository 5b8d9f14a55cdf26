// The types of a decision: the two verdicts, the obligations of an allow, and what is recorded of both. There
// is no third verdict: an error is a deny.

import type { ProofError } from './principal.js';
import type { Reason } from './reasons.js';

/** No literal or spread can have this private member, so values of these types exist only where code casts to them. */
declare class AllowBrand {
  private readonly brand: never;
}

/** How often something may happen, and per whom it is counted. */
export type RateLimit = {
  readonly rule: string;
  readonly count: number;
  readonly windowMs: number;
  readonly per: 'subject' | 'client' | 'rule';
};

/** What may be spent within a time, by all rules that name the budget, and per whom it is counted. */
export type Budget = {
  readonly name: string;
  readonly max: number;
  readonly windowMs: number;
  readonly per: 'subject' | 'client' | 'all';
};

/** What must be done before an allowed message is forwarded, or to its response. */
export type Obligation =
  | { readonly kind: 'rate'; readonly limit: RateLimit }
  | {
      readonly kind: 'budget';
      readonly budget: Budget;
      readonly rule: string;
      /** What this call costs: finite and not negative. */
      readonly cost: number;
    }
  | { readonly kind: 'max-result-bytes'; readonly bytes: number }
  | { readonly kind: 'inspect'; readonly profile: string }
  | { readonly kind: 'capture'; readonly pointers: readonly string[] };

/** An allow. Made only in policy/decide.ts. */
export type Allow = AllowBrand & {
  readonly verdict: 'allow';
  readonly policy: string;
  readonly rule: string;
  /** The groups that the rule names, for the record. */
  readonly groups: readonly string[] | undefined;
  readonly obligations: readonly Obligation[];
};

/** An argument that was refused, for the record: where it is and which keyword of a schema it fails, never its value. */
export type Violation = { readonly pointer: string; readonly keyword: string };

/** A deny, with what its rendering needs. `listed` determines whether the caller learns the reason. */
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
  /** A sentence that a model can act on. Built from schema positions and texts of rules, never from traffic. */
  readonly advice?: string;
  readonly retryAfterSeconds?: number;
  /** For `arguments-invalid`: the first arguments that were refused. */
  readonly violations?: readonly Violation[];
  /** The decisions that caused this one, by their ids. */
  readonly causes?: readonly string[];
  /** JSON pointers to the arguments whose values the record keeps for a refused call too. */
  readonly captures?: readonly string[];
  /** For a failed authentication whose challenge must name an error of the proof of possession. */
  readonly proof?: ProofError;
};

export type Decision = Allow | Deny;
