// Clients that name themselves by the URL of a document (client-id metadata documents): https, or http on
// loopback, with a path, without query, fragment or credentials. The document must name that very URL, and
// of its redirects those to this machine count. Fetching is the guarded fetch of whoever starts the issuer.
// draft-ietf-oauth-client-id-metadata-document §3 and §4; MCP 2025-11-25, authorization.

import { isLoopbackHost, type PublicClient, usableRedirects } from './issuer-clients.js';

/** Fetches a JSON document under the rules for learned URLs; `undefined` where there is none. */
export type FetchDocument = (url: URL) => Promise<unknown>;

const MAX_KNOWN = 100;
const KNOWN_FOR_MS = 5 * 60_000;

type Known = { readonly client: PublicClient; readonly untilMs: number };

/** True for a client id that is to be read as the URL of a document. */
export function isDocumentUrl(id: string): boolean {
  if (!URL.canParse(id)) return false;
  const url = new URL(id);
  const isPlain = url.protocol === 'http:' && isLoopbackHost(url.hostname);
  if (url.protocol !== 'https:' && !isPlain) return false;
  // Identifiers are compared exactly, so there is one spelling of each.
  const hasMore =
    url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '';
  return url.href === id && url.pathname !== '/' && !hasMore;
}

/** Finds clients by their documents; what was found is remembered for five minutes. */
export function createDocumentClients(
  fetchDocument: FetchDocument,
): (id: string) => Promise<PublicClient | undefined> {
  const known = new Map<string, Known>();
  return async (id) => {
    const found = known.get(id);
    if (found !== undefined && found.untilMs > Date.now()) return found.client;
    const client = readDocument(id, await fetchDocument(new URL(id)));
    if (client === undefined) return undefined;
    const oldest = known.keys().next().value;
    if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    known.set(id, { client, untilMs: Date.now() + KNOWN_FOR_MS });
    return client;
  };
}

/** A document with a secret, or a way to prove one, is none of a public client. */
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
