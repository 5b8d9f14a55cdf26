// The source of each type of credential. One upstream has two: what leaves with callers' messages, and what
// the gateway shows when it lists for itself. A source never stands in for another.
// Contract §3 (`credentials`, `pinning.credentials`).

import type { UpstreamCredentials } from '../config/settings.js';
import {
  type CredentialSource,
  createNoCredential,
  createStaticCredential,
} from './credentials.js';
import type { GuardedFetch } from './guarded-fetch.js';
import { createTokenCache } from './token-cache.js';
import { createTokenEndpoint } from './token-endpoint.js';
import { createTokenExchange } from './token-exchange.js';

export type CredentialPorts = {
  readonly guarded: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** Longest wait for an answer of the upstream: its credentials may not take longer. */
  readonly requestTimeoutMs: number;
  /** Told why a token could not be had, in words that are safe to log. */
  readonly onFault: (detail: string) => void;
};

/** Longest wait for an authorization server. */
const MAX_TOKEN_WAIT_MS = 10_000;

/** The source of these credentials. Nothing is asked for before it is needed. */
export function createCredentialSource(
  credentials: UpstreamCredentials,
  ports: CredentialPorts,
): CredentialSource {
  const timeoutMs = Math.min(ports.requestTimeoutMs, MAX_TOKEN_WAIT_MS);
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
        mayAsk: () => true,
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
