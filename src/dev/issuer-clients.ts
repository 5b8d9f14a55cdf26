// The clients of the development issuer: registered by themselves as public clients, or given at start
// as machines with a secret. It keeps them in memory and issues no tokens.
// RFC 7591 §2 and §3.2.1 (the server may replace requested values), RFC 8252 §7.1 and §7.3.

import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';

const MAX_CLIENTS = 1_000;
const MAX_REDIRECT_URIS = 10;
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** Schemes that a browser would not hand to an application of this machine. */
const FOREIGN_SCHEMES: ReadonlySet<string> = new Set(['https:', 'javascript:', 'data:', 'file:']);

/** A client with a secret, for client credentials. */
export type DevMachine = {
  readonly id: string;
  readonly secret: string;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
};

export type PublicClient = { readonly id: string; readonly redirectUris: readonly string[] };

export type ClientRegistry = {
  /** The answer of a registration, or undefined when the request is invalid. */
  register(metadata: unknown): object | undefined;
  find(id: string): PublicClient | undefined;
  /** The machine whose secret this is. */
  authenticate(id: string, secret: string): DevMachine | undefined;
};

/** True for the hosts of this machine, as they stand in URLs. */
export function isLoopbackHost(hostname: string): boolean {
  return LOOPBACK_HOSTS.has(hostname);
}

/** Codes are given without asking anyone, so they go to this machine alone. */
function isRedirectUri(value: unknown): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname, hash } = new URL(value);
  if (hash !== '' || FOREIGN_SCHEMES.has(protocol)) return false;
  return protocol !== 'http:' || isLoopbackHost(hostname);
}

/**
 * The redirects of a client's metadata to which codes may go; `undefined` where there is none. The rest is
 * left out, as a server may (RFC 7591 §3.2.1): editors register a web page of theirs beside loopback.
 */
export function usableRedirects(metadata: unknown): readonly string[] | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const uris = 'redirect_uris' in metadata ? metadata.redirect_uris : undefined;
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > MAX_REDIRECT_URIS)
    return undefined;
  const usable = uris.filter(isRedirectUri);
  return usable.length === 0 ? undefined : usable;
}

function isSameSecret(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/** A loopback redirect may use any port (RFC 8252 §7.3); all else is exact. */
export function isRegisteredRedirect(client: PublicClient, uri: string): boolean {
  if (client.redirectUris.includes(uri)) return true;
  if (!isRedirectUri(uri) || new URL(uri).protocol !== 'http:') return false;
  const withoutPort = (text: string) => {
    const url = new URL(text);
    url.port = '';
    return url.href;
  };
  return client.redirectUris.some((known) => withoutPort(known) === withoutPort(uri));
}

/** Makes the registry. Past a thousand registrations the oldest is forgotten. */
export function createClientRegistry(machines: readonly DevMachine[]): ClientRegistry {
  const clients = new Map<string, PublicClient>();
  return {
    register(metadata) {
      const redirectUris = usableRedirects(metadata);
      if (redirectUris === undefined) return undefined;
      const oldest = clients.keys().next().value;
      if (clients.size >= MAX_CLIENTS && oldest !== undefined) clients.delete(oldest);
      const id = randomUUID();
      clients.set(id, { id, redirectUris });
      return {
        client_id: id,
        client_id_issued_at: Math.floor(Date.now() / 1000),
        redirect_uris: redirectUris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      };
    },
    find: (id) => clients.get(id),
    authenticate: (id, secret) =>
      machines.find((machine) => machine.id === id && isSameSecret(machine.secret, secret)),
  };
}
