// Creates the credential source for each type of credential. An upstream has two: one for callers' requests
// and one for the gateway's own listings. Neither is ever used in place of the other.
// docs/contract.md §3 (`credentials`, `pinning.credentials`).

import type { ClientAuthentication, UpstreamCredentials } from '../../config/settings.js';
import type { GuardedFetch } from '../safe-fetch.js';
import {
  type CredentialSource,
  createNoCredential,
  createStaticCredential,
  encodedFormsOf,
  type RegisterCredential,
} from './presenter.js';
import { createTokenCache } from './token-cache.js';
import { createTokenEndpoint } from './token-endpoint.js';
import { createTokenExchange } from './token-exchange.js';

export type CredentialPorts = {
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** The upstream's request timeout; obtaining credentials may not take longer. */
  readonly requestTimeoutMs: number;
  /** Called with the reason why a token could not be obtained, in text that is safe to log. */
  readonly onError: (detail: string) => void;
  readonly onCredential: RegisterCredential;
};

/** The longest wait for an authorization server. */
const MAX_TOKEN_WAIT_MS = 10_000;

/**
 * Creates the source for these credentials and registers their secrets. No token is requested before it is
 * needed.
 */
export function createCredentialSource(
  credentials: UpstreamCredentials,
  ports: CredentialPorts,
): CredentialSource {
  const timeoutMs = Math.min(ports.requestTimeoutMs, MAX_TOKEN_WAIT_MS);
  noteConfigured(credentials, ports.onCredential);
  switch (credentials.type) {
    case 'none':
      return createNoCredential();
    case 'static':
      return createStaticCredential(credentials.header, credentials.value);
    case 'client-credentials': {
      const endpoint = createTokenEndpoint(credentials.request, { ...ports, timeoutMs });
      return createTokenCache({
        ...ports,
        keyOf: () => '',
        mayRequest: () => true,
        requestToken: () =>
          endpoint.requestToken({
            type: 'client_credentials',
            parameters: {},
            subjectToken: undefined,
          }),
      });
    }
    case 'token-exchange': {
      const endpoint = createTokenEndpoint(credentials.request, { ...ports, timeoutMs });
      return createTokenExchange(endpoint, credentials.actor, ports);
    }
  }
}

/** Registers every configured secret except private keys, which are used only to sign. */
function noteConfigured(credentials: UpstreamCredentials, note: RegisterCredential): void {
  switch (credentials.type) {
    case 'none':
      return;
    case 'static':
      for (const encodedForm of encodedFormsOf(credentials.header, credentials.value)) {
        note(encodedForm, 'configured');
      }
      return;
    case 'token-exchange':
      if (credentials.actor !== undefined) note(credentials.actor.token, 'configured');
      noteClient(credentials.request.authentication, note);
      return;
    case 'client-credentials':
      noteClient(credentials.request.authentication, note);
  }
}

function noteClient(authentication: ClientAuthentication, note: RegisterCredential): void {
  if (authentication.method !== 'private_key_jwt') note(authentication.secret, 'configured');
}
