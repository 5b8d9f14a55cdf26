// What the tests of this folder share: an authenticator over a test issuer and the guarded fetch.

import { createHmac } from 'node:crypto';
import {
  type AuthnOutcome,
  createAuthenticator,
  isAuthnError,
  type ProtectedResource,
} from '../../../src/auth/authenticator.js';
import { createIntrospector, type Introspector } from '../../../src/auth/introspection.js';
import { createKeySource, type KeySource } from '../../../src/auth/issuer.js';
import type { IssuerSettings } from '../../../src/config/settings.js';
import { createGuardedFetch } from '../../../src/upstream/safe-fetch.js';

export const RESOURCE = 'https://mcp.example.com/notes';

export const ACCEPTANCE: ProtectedResource = {
  issuers: ['corp'],
  audiences: {},
  resource: RESOURCE,
};

/** A clock that a test moves. */
export type TestClock = { offsetMs: number; readonly now: () => number };

export function makeClock(): TestClock {
  const clock = { offsetMs: 0, now: () => Date.now() + clock.offsetMs };
  return clock;
}

/** An authenticator over real sockets; `ask` takes the value of the Authorization header. */
export function makeAuthenticator(issuers: readonly IssuerSettings[], clock = makeClock()) {
  const guarded = createGuardedFetch();
  const keySources = new Map<string, KeySource>();
  const introspectors = new Map<string, Introspector>();
  for (const issuer of issuers) {
    const { name, introspection } = issuer;
    const ports = { ...guarded, now: clock.now, onIntrospected: () => undefined };
    if (introspection === undefined) keySources.set(name, createKeySource(issuer, ports));
    else introspectors.set(name, createIntrospector(issuer, introspection, ports));
  }
  const { authenticate } = createAuthenticator({
    issuers: new Map(issuers.map((issuer) => [issuer.name, issuer])),
    keySources,
    introspectors,
    now: clock.now,
    tokenIds: (bytes) => [createHmac('sha256', 'token-id').update(bytes).digest('base64url')],
    verifyProof: () => Promise.resolve('invalid_dpop_proof'),
  });
  const ask = (token: string, acceptance = ACCEPTANCE) =>
    authenticate({ headers: { authorization: `Bearer ${token}` }, repeated: new Set(), query: '' }, acceptance);
  return {
    authenticate,
    ask,
    keySources,
    introspectors,
    clock,
    /** The reason, or `ok`. */
    async verdict(token: string, acceptance = ACCEPTANCE): Promise<string> {
      return verdictOf(await ask(token, acceptance));
    },
    close: () => guarded.close(),
  };
}

export function verdictOf(outcome: AuthnOutcome): string {
  return isAuthnError(outcome) ? outcome.reason : 'ok';
}
