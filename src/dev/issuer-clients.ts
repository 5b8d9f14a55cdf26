// The clients of the development issuer: dynamically registered public clients, and clients identified by the URL
// of a metadata document. Kept in memory; issues no tokens. RFC 7591 §2 and §3.2.1 (the server may replace requested
// values), RFC 8252 §7.1 and §7.3; draft-ietf-oauth-client-id-metadata-document §3 and §4; MCP 2025-11-25,
// authorization.

import { randomUUID } from 'node:crypto';
import { BoundedMap } from '../state/bounded-map.js';

const MAX_CLIENTS = 1_000;
const MAX_REDIRECT_URIS = 10;
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** Schemes that a browser would not hand to an application on this machine. */
const FOREIGN_SCHEMES: ReadonlySet<string> = new Set(['https:', 'javascript:', 'data:', 'file:']);

export type PublicClient = { readonly id: string; readonly redirectUris: readonly string[] };

type ClientRegistry = {
  /** The response to a registration, or undefined if the request is invalid. */
  register(metadata: unknown): object | undefined;
  find(id: string): PublicClient | undefined;
};

/** True for hosts of this machine, as written in URLs. */
export function isLoopbackHost(hostname: string): boolean {
  return LOOPBACK_HOSTS.has(hostname);
}

/** Codes are issued without consent, so redirects must stay on this machine. */
function isRedirectUri(value: unknown): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname, hash } = new URL(value);
  if (hash !== '' || FOREIGN_SCHEMES.has(protocol)) return false;
  return protocol !== 'http:' || isLoopbackHost(hostname);
}

/**
 * The redirect URIs of a client's metadata that may receive codes; `undefined` if there are none. Others are
 * left out, as a server may do (RFC 7591 §3.2.1): editors register a web page of theirs beside loopback.
 */
function usableRedirects(metadata: unknown): readonly string[] | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const uris = 'redirect_uris' in metadata ? metadata.redirect_uris : undefined;
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > MAX_REDIRECT_URIS)
    return undefined;
  const usable = uris.filter(isRedirectUri);
  return usable.length === 0 ? undefined : usable;
}

/** A loopback redirect may use any port (RFC 8252 §7.3); anything else is compared exactly. */
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

/** Creates the registry. Beyond a thousand registrations, the oldest is removed. */
export function createClientRegistry(): ClientRegistry {
  const clients = new BoundedMap<string, PublicClient>(MAX_CLIENTS);
  return {
    register(metadata) {
      const redirectUris = usableRedirects(metadata);
      if (redirectUris === undefined) return undefined;
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
  };
}

/** Fetches a JSON document under the rules for URLs learned at run time; `undefined` if there is none. */
export type FetchDocument = (url: URL) => Promise<unknown>;

const MAX_KNOWN = 100;
const KNOWN_FOR_MS = 5 * 60_000;

type Known = { readonly client: PublicClient; readonly untilMs: number };

/**
 * True if a client id is the URL of a metadata document: https, or http on loopback, with a path, without
 * query, fragment or credentials.
 */
export function isDocumentUrl(id: string): boolean {
  if (!URL.canParse(id)) return false;
  const url = new URL(id);
  const isPlain = url.protocol === 'http:' && isLoopbackHost(url.hostname);
  if (url.protocol !== 'https:' && !isPlain) return false;
  // Identifiers are compared exactly, so only the normalized spelling is accepted.
  const hasMore =
    url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '';
  return url.href === id && url.pathname !== '/' && !hasMore;
}

/** Finds clients by their documents, which the given function fetches; cached for five minutes. */
export function createDocumentClients(
  fetchDocument: FetchDocument,
): (id: string) => Promise<PublicClient | undefined> {
  const known = new BoundedMap<string, Known>(MAX_KNOWN);
  return async (id) => {
    const found = known.get(id);
    if (found !== undefined && found.untilMs > Date.now()) return found.client;
    const client = readDocument(id, await fetchDocument(new URL(id)));
    if (client === undefined) return undefined;
    known.set(id, { client, untilMs: Date.now() + KNOWN_FOR_MS });
    return client;
  };
}

/**
 * Reads a metadata document. It must state its own URL as client id, only redirects to this machine count,
 * and a document with a secret or a client authentication method is not that of a public client.
 */
function readDocument(id: string, document: unknown): PublicClient | undefined {
  if (typeof document !== 'object' || document === null) return undefined;
  const { client_id: named, token_endpoint_auth_method: method = 'none' } = document as {
    readonly client_id?: unknown;
    readonly token_endpoint_auth_method?: unknown;
  };
  if (named !== id || method !== 'none' || 'client_secret' in document) return undefined;
  const redirectUris = usableRedirects(document);
  return redirectUris === undefined ? undefined : { id, redirectUris };
}
