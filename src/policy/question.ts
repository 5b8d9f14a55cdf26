// What a decision is asked, and the compiled policies that answer. One function answers for lists and
// for calls: a list is a question whose arguments are unknown (contract §4, law 2).

import type { JsonObject, Target } from '../mcp/message.js';
import type { Catalogue } from './definition.js';
import type { Principal } from './principal.js';

export type PolicyQuery = {
  readonly principal: Principal;
  readonly upstream: string;
  readonly target: Target;
  /** `unknown` for lists. A tool's or prompt's arguments; `{}` where the client sent none. */
  readonly args: JsonObject | 'unknown';
  readonly catalogue: Catalogue;
};

declare const policySetBrand: unique symbol;

/** Compiled, frozen policies. Made by policy/compile.ts. */
export interface PolicySet {
  readonly [policySetBrand]: true;
  /** SHA-256 over the policy files, lower-case hex; handed in by the reader. */
  readonly hash: string;
  readonly ruleCount: number;
}
