// What `sallyport init` asks of the network: where a host name resolves to, whether an issuer has metadata that names
// it, and whether it is a Keycloak. Connections opened here are closed here. RFC 8414 §3 and §3.3.

import { lookup } from 'node:dns/promises';
import { metadataUrls } from '../auth/discovery.js';
import type { IssuerSettings, Network } from '../config/settings.js';
import { bareHost, isAddressAllowed } from '../policy/addresses.js';
import { isObject, type Json } from '../protocol/jsonrpc.js';
import { escapeForTerminal } from '../text/escaping.js';
import { createGuardedFetch } from '../upstream/safe-fetch.js';

/** From the narrowest to the widest: what is allowed in `public` is allowed in `private` too. */
const NETWORKS = ['loopback', 'public', 'private'] as const satisfies readonly Network[];

/** The narrowest network that contains every address of the host; `public` if it has none or one in no network. */
export async function networkOf(url: string): Promise<Network> {
  const host = bareHost(new URL(url).hostname);
  try {
    const addresses = await lookup(host, { all: true });
    const contains = (network: Network): boolean =>
      addresses.every(({ address }) => isAddressAllowed(address, network));
    return NETWORKS.find(contains) ?? 'public';
  } catch {
    return 'public';
  }
}

const METADATA_BOUNDS = { maxBytes: 64 * 1024, timeoutMs: 5_000 };

/** How the token endpoint of every realm of a Keycloak ends. */
const KEYCLOAK_TOKEN_PATH = '/protocol/openid-connect/token';

export type IssuerCheck =
  /** `error`: why its metadata cannot be used, for each URL that was tried. */
  { readonly error: string } | { readonly error?: never; readonly isKeycloak: boolean };

/** Reads the metadata of an issuer. */
export async function checkIssuer(issuer: IssuerSettings): Promise<IssuerCheck> {
  const { fetchJson, close } = createGuardedFetch();
  const errors: string[] = [];
  try {
    for (const url of metadataUrls(issuer.issuer)) {
      const outcome = await fetchJson(url, {
        network: issuer.network,
        plaintext: issuer.plaintext,
        ...METADATA_BOUNDS,
      });
      const error = outcome.ok ? mismatchOf(outcome.value, issuer) : outcome.detail;
      if (outcome.ok && error === undefined) return { isKeycloak: isKeycloak(outcome.value) };
      errors.push(`${url.href} ${error}`);
    }
    return { error: errors.join('; ') };
  } finally {
    await close();
  }
}

function isKeycloak(metadata: Json): boolean {
  const endpoint = isObject(metadata) ? metadata['token_endpoint'] : undefined;
  return typeof endpoint === 'string' && endpoint.endsWith(KEYCLOAK_TOKEN_PATH);
}

/** Issuers are compared as strings, without normalization (RFC 8414 §3.3). */
function mismatchOf(metadata: Json, { issuer }: IssuerSettings): string | undefined {
  const named = isObject(metadata) ? metadata['issuer'] : undefined;
  if (named === issuer) return undefined;
  return typeof named === 'string'
    ? `names the issuer "${escapeForTerminal(named)}"`
    : 'names no issuer';
}
