// On whose behalf something leaves for an upstream: the verified caller, the decision it belongs to, and
// the token that was presented, as a thing that can be carried and not read. Only the token exchange
// opens it (an architecture test reads who does). Decides nothing.
// MCP security best practices (token passthrough); RFC 8693 §2.1.

import type { Principal } from './principal.js';

/** Only this file can name the member: no serializer visits it, and no other code reads it. */
const TOKEN = Symbol('subject token');

/** The caller's token, closed: it shows in no text, no JSON and no log. */
export type SubjectToken = { readonly [TOKEN]: string };

export type Caller = {
  readonly principal: Principal;
  /** The decision id of the exchange. */
  readonly decisionId: string;
  /** Absent once nothing more may be exchanged for it: what is at hand must do. */
  readonly token: SubjectToken | undefined;
  /** How often something was signed for it, so that no two assertions share an id. */
  signed: number;
};

/** Closes a token. */
export function closeToken(token: string): SubjectToken {
  return { [TOKEN]: token };
}

/** INVARIANT: called by the token exchange alone, which sends it to the configured server and nowhere else. */
export function openToken(token: SubjectToken): string {
  return token[TOKEN];
}

/** The same caller for what outlives the exchange: the token is not kept. */
export function withoutToken({ principal, decisionId }: Caller): Caller {
  return { principal, decisionId, token: undefined, signed: 0 };
}
