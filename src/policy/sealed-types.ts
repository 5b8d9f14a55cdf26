// What clients and servers carry for the gateway, sealed: how the pipeline seals and opens one kind of it, and the scopes
// that a value is bound to. A value opens in the scope that it was sealed in and in no other. Types only; state/ seals.

import type { SessionFacts } from '../protocol/admitted-request.js';
import type { RequestId } from '../protocol/jsonrpc.js';
import type { Principal } from './principal.js';

/** One kind of sealed value. `Text` includes `undefined` where what must be carried can be too long. */
export type Sealed<Payload, Scope, Text extends string | undefined = string> = {
  seal(payload: Payload, scope: Scope): Text;
  /** `undefined`, without a reason, for whatever was not sealed in this scope, or has expired. */
  open(sealed: string, scope: Scope): Payload | undefined;
};

/** A kind that stands for a request, of which this replica remembers the newest. */
export type SealedRequests<Payload, Text extends string | undefined = string> = Sealed<Payload, SessionScope, Text> & {
  /** The sealed id of a recent request of the session, by its sender's own id; `undefined` if it is not known here. */
  recall(id: RequestId, session: SessionFacts): string | undefined;
};

/** A caller at an upstream, or at an aggregate. */
export type CallerScope = { readonly upstream: string; readonly principal: Principal };

/** A session of a caller. */
export type SessionScope = CallerScope & { readonly session: SessionFacts };

/** A request of a caller that is repeated for the next round of an input-required exchange (MCP 2026-07-28). */
export type RequestScope = CallerScope & {
  readonly method: string;
  readonly target: string;
  /** Canonical text of the params, without what changes from round to round. */
  readonly params: string;
};

/**
 * A list of an upstream, for all callers: pages are kept for those with the same rules, and what a cursor leads to is
 * filtered for each.
 */
export type ListScope = { readonly upstream: string; readonly method: string };

/** A list of an aggregate that a caller reads page by page. */
export type CallerListScope = CallerScope & ListScope;
