// The source of each type of credential. One upstream has two: what leaves with callers' messages, and what
// the gateway shows when it lists for itself. A source never stands in for another.
// docs/contract.md §3 (`credentials`, `pinning.credentials`).

import type { ClientAuthentication, UpstreamCredentials } from '../../config/settings.js';
import type { GuardedFetch } from '../safe-fetch.js';
import {
  type CredentialSource,
  createNoCredential,
  createStaticCredential,
  encodedFormsOf,
  type NoteCredential,
} from './presenter.js';
import { createTokenCache } from './token-cache.js';
import { createTokenEndpoint } from './token-endpoint.js';
import { createTokenExchange } from './token-exchange.js';

export type CredentialPorts = {
  readonly guarded: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** Longest wait for an answer of the upstream: its credentials may not take longer. */
  readonly requestTimeoutMs: number;
  /** Told why a token could not be had, in words that are safe to log. */
  readonly onError: (detail: string) => void;
  readonly onCredential: NoteCredential;
};

/** Longest wait for an authorization server. */
const MAX_TOKEN_WAIT_MS = 10_000;

/** The source of these credentials, whose secrets are noted. Nothing is asked for before it is needed. */
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
        ask: () =>
          endpoint.ask({ type: 'client_credentials', parameters: {}, subjectToken: undefined }),
      });
    }
    case 'token-exchange': {
      const endpoint = createTokenEndpoint(credentials.request, { ...ports, timeoutMs });
      return createTokenExchange(endpoint, credentials.actor, ports);
    }
  }
}

/** Every configured secret of an upstream but private keys, which only sign. */
function noteConfigured(credentials: UpstreamCredentials, note: NoteCredential): void {
  switch (credentials.type) {
    case 'none':
      return;
    case 'static':
      for (const encodedForm of encodedFormsOf(credentials.header, credentials.value)) {
        note(encodedForm, 'kept');
      }
      return;
    case 'token-exchange':
      if (credentials.actor !== undefined) note(credentials.actor.token, 'kept');
      noteClient(credentials.request.authentication, note);
      return;
    case 'client-credentials':
      noteClient(credentials.request.authentication, note);
  }
}

function noteClient(authentication: ClientAuthentication, note: NoteCredential): void {
  if (authentication.method !== 'private_key_jwt') note(authentication.secret, 'kept');
}
