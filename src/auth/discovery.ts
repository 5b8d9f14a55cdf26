// Discovers endpoints of an issuer, such as its key set: by authorization server metadata, then by OpenID Connect. A
// document that names another issuer is discarded, and the URL found must be of the issuer's own origin or public https;
// of a plaintext issuer they may be plain http on that origin alone. It verifies no token and keeps no state.
// RFC 8414 §3 and §3.3; OpenID Connect Discovery 1.0 §4; MCP 2026-07-28, authorization server discovery.

import type { IssuerSettings, Network } from '../config/settings.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';

/** The part of the guarded fetch that discovery uses. */
export type FetchJson = (
  url: URL,
  rule: {
    readonly network: Network;
    readonly plaintext?: 'accepted' | undefined;
    readonly origins?: readonly string[];
    readonly maxBytes: number;
    readonly timeoutMs: number;
  },
) => Promise<
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly why: string; readonly detail: string }
>;

/** The metadata members that are read, and their names in error messages. */
const ENDPOINTS = {
  jwks_uri: 'key set',
  introspection_endpoint: 'introspection endpoint',
  authorization_endpoint: 'authorization endpoint',
  token_endpoint: 'token endpoint',
} as const;

type EndpointMember = keyof typeof ENDPOINTS;

type Failed = { readonly ok: false; readonly detail: string };
export type Discovery = { readonly ok: true; readonly url: URL } | Failed;
type MetadataReading = { readonly ok: true; readonly metadata: JsonObject } | Failed;

const MAX_METADATA_BYTES = 64 * 1024;
const METADATA_TIMEOUT_MS = 5_000;

/** All candidates have the same origin: when it cannot be reached, the next would fail too. */
const ORIGIN_ERRORS: ReadonlySet<string> = new Set(['refused-address', 'timeout', 'unreachable']);

/**
 * The metadata URLs of an issuer, in the order in which they are tried: RFC 8414 with the path inserted, OpenID Connect
 * with the path inserted, OpenID Connect with the path in front.
 */
export function metadataUrls(issuer: string): readonly URL[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
  const inserted = [
    new URL(`${origin}/.well-known/oauth-authorization-server${path}`),
    new URL(`${origin}/.well-known/openid-configuration${path}`),
  ];
  if (path === '') return inserted;
  return [...inserted, new URL(`${origin}${path}/.well-known/openid-configuration`)];
}

function failed(detail: string): Failed {
  return { ok: false, detail };
}

function readMetadata(
  document: Json,
  issuer: IssuerSettings,
  members: readonly EndpointMember[],
): MetadataReading {
  if (!isObject(document)) return failed('the metadata document is not a JSON object');
  // Compared as strings, without normalization (RFC 8414 §3.3).
  if (document['issuer'] !== issuer.issuer) return failed('the metadata names another issuer');
  const missing = members.find((member) => {
    const written = document[member];
    return typeof written !== 'string' || !URL.canParse(written);
  });
  if (missing !== undefined) return failed(`the metadata names no ${ENDPOINTS[missing]}`);
  return { ok: true, metadata: document };
}

/** Finds one URL in the metadata of `issuer`; see {@link discoverMetadata}. */
export async function discover(
  issuer: IssuerSettings,
  member: EndpointMember,
  fetchJson: FetchJson,
): Promise<Discovery> {
  const found = await discoverMetadata(issuer, [member], fetchJson);
  return found.ok ? { ok: true, url: new URL(String(found.metadata[member])) } : found;
}

/**
 * Finds the metadata of `issuer` that name all of these URLs. A document that is absent, invalid or of another issuer
 * counts as not found, and the next is tried. Whether a URL is allowed is checked when it is fetched (see
 * {@link learnedUrlRule}).
 */
export async function discoverMetadata(
  issuer: IssuerSettings,
  members: readonly EndpointMember[],
  fetchJson: FetchJson,
): Promise<MetadataReading> {
  let last: MetadataReading = failed('no metadata document was found');
  for (const url of metadataUrls(issuer.issuer)) {
    const outcome = await fetchJson(url, {
      network: issuer.network,
      plaintext: issuer.plaintext,
      maxBytes: MAX_METADATA_BYTES,
      timeoutMs: METADATA_TIMEOUT_MS,
    });
    if (outcome.ok) {
      last = readMetadata(outcome.value, issuer, members);
      if (last.ok) return last;
    } else {
      last = failed(`the metadata ${outcome.detail}`);
      if (ORIGIN_ERRORS.has(outcome.why)) return last;
    }
  }
  return last;
}

/** Where a URL found in the metadata may point: to the issuer's own origin, in its network, or to public https. */
export function learnedUrlRule({ issuer, network, plaintext }: IssuerSettings): {
  readonly network: Network;
  readonly plaintext: 'accepted' | undefined;
  readonly origins: readonly string[];
} {
  return { network, plaintext, origins: [new URL(issuer).origin] };
}
