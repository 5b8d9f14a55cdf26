// Exchanges a caller's token for one that is issued for one upstream. This is the only place where a caller's
// token is unsealed: it goes into the body of the request to the configured server and nowhere else. An
// issued token is used only for the token it was exchanged for, and no longer than that token is valid.
// RFC 8693 §2.

import type { ActorToken } from '../../config/settings.js';
import { openToken, ownerKey, type Principal } from '../../policy/principal.js';
import type { CallerOrGateway, CredentialSource } from './presenter.js';
import { createTokenCache, type TokenCachePorts } from './token-cache.js';
import type { TokenEndpoint } from './token-endpoint.js';

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:';

/** Creates the credential source. The gateway itself has no token to exchange. */
export function createTokenExchange(
  endpoint: TokenEndpoint,
  actor: ActorToken | undefined,
  ports: Pick<TokenCachePorts, 'now' | 'onError' | 'onCredential'>,
): CredentialSource {
  const keys = new WeakMap<Principal, string>();
  const acting: Readonly<Record<string, string>> =
    actor === undefined
      ? {}
      : { actor_token: actor.token, actor_token_type: TOKEN_TYPE + actor.type };

  /** INVARIANT: a different token of the same caller may have different rights, so it has a different key. */
  function keyOf(caller: CallerOrGateway): string {
    if (caller === 'gateway') return '';
    const { principal } = caller;
    let key = keys.get(principal);
    if (key === undefined) {
      const { id, binding, audience, expiresAt } = principal.token;
      key = ownerKey(principal, principal.scopes, id, binding, audience, expiresAt);
      keys.set(principal, key);
    }
    return key;
  }

  return createTokenCache({
    ...ports,
    keyOf,
    mayRequest: (caller) => caller !== 'gateway' && caller.token !== undefined,
    async requestToken(caller) {
      if (caller === 'gateway' || caller.token === undefined)
        return {
          kind: 'error',
          detail: 'the request carries no token that could be exchanged',
          isOfCaller: true,
        };
      const subjectToken = openToken(caller.token);
      const response = await endpoint.requestToken({
        type: GRANT_TYPE,
        parameters: {
          subject_token: subjectToken,
          subject_token_type: `${TOKEN_TYPE}access_token`,
          requested_token_type: `${TOKEN_TYPE}access_token`,
          ...acting,
        },
        subjectToken,
      });
      if (response.kind === 'error') return response;
      return {
        ...response,
        expiresAtMs: Math.min(response.expiresAtMs, caller.principal.token.expiresAt),
      };
    },
  });
}
