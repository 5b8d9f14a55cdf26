// On whose behalf something leaves for an upstream: the verified caller, the decision it belongs to, and
// the token that was presented, as a thing that can be carried and not read. Only the token exchange
// opens it (an architecture test reads who does). Decides nothing.
// MCP security best practices (token passthrough); RFC 8693 §2.1.

import type { Principal } from './principal.js';

declare const tokenBrand: unique symbol;

/** The caller's token, closed: it shows in no text, no JSON and no log. */
export type SubjectToken = { readonly [tokenBrand]: true };

export type Caller = {
  readonly principal: Principal;
  /** The decision id of the exchange. */
  readonly decisionId: string;
  /** Absent once nothing more may be exchanged for it: what is at hand must do. */
  readonly token: SubjectToken | undefined;
  /** How often something was signed for it, so that no two assertions share an id. */
  signed: number;
};

const tokens = new WeakMap<SubjectToken, string>();

/** Closes a token. */
export function closeToken(token: string): SubjectToken {
  const closed = Object.freeze({}) as SubjectToken;
  tokens.set(closed, token);
  return closed;
}

/** INVARIANT: called by the token exchange alone, which sends it to the configured server and nowhere else. */
export function openToken(token: SubjectToken): string {
  return tokens.get(token) ?? '';
}

/** The same caller for what outlives the exchange: the token is not kept. */
export function withoutToken({ principal, decisionId }: Caller): Caller {
  return { principal, decisionId, token: undefined, signed: 0 };
}
