// Builds the protected resource metadata of an upstream and says on which paths it is answered.
// It is made of the configuration alone: no header of a request, Host included, has any part in it.
// RFC 9728 §2, §3 and §3.1; RFC 9449 §5.1; docs/contract.md §2.

import type { IssuerSettings, UpstreamSettings } from '../config/settings.js';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** Asking for it is the client's own choice (MCP 2026-07-28, protected resource metadata). */
const NEVER_OFFERED = 'offline_access';

/** What the document is made of. */
export type MetadataSource = Pick<
  UpstreamSettings,
  'resource' | 'issuers' | 'scopesSupported' | 'binding'
>;

/** What the listener can prove of the holder of a token. */
export type PossessionSupport = {
  readonly proofAlgorithms: readonly string[];
  /** Client certificates are asked for. */
  readonly takesCertificates: boolean;
};

/** The path of the public URL without a trailing slash: empty at the root. */
function publicPath(publicUrl: URL): string {
  const { pathname } = publicUrl;
  return pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
}

/**
 * The document of one upstream as JSON text. `issuers` are those of the configuration by name; names
 * of the upstream that are absent there are left out.
 */
export function metadataDocument(
  upstream: MetadataSource,
  issuers: ReadonlyMap<string, Pick<IssuerSettings, 'issuer'>>,
  support: PossessionSupport,
): string {
  const scopes = upstream.scopesSupported.filter((scope) => scope !== NEVER_OFFERED);
  return JSON.stringify({
    resource: upstream.resource,
    authorization_servers: upstream.issuers.flatMap((name) => issuers.get(name)?.issuer ?? []),
    ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
    bearer_methods_supported: ['header'],
    ...possessionMembers(upstream, support),
  });
}

/** RFC 9728 §2: what may be bound to what, and what must be. */
function possessionMembers(
  { binding }: MetadataSource,
  { proofAlgorithms, takesCertificates }: PossessionSupport,
): Readonly<Record<string, unknown>> {
  return {
    ...(takesCertificates ? { tls_client_certificate_bound_access_tokens: true } : {}),
    ...(binding === 'mtls' ? {} : { dpop_signing_alg_values_supported: proofAlgorithms }),
    ...(binding === 'dpop' || (binding === 'any' && !takesCertificates)
      ? { dpop_bound_access_tokens_required: true }
      : {}),
  };
}

/**
 * The paths on which a listener answers the document of the upstream at `path`: with the path of the
 * public URL inserted, as RFC 9728 §3.1 forms it, and without, as an outer proxy may strip it.
 */
export function metadataPaths(publicUrl: URL, path: string): readonly string[] {
  const outer = publicPath(publicUrl);
  const bare = `${WELL_KNOWN}${path}`;
  return outer === '' ? [bare] : [`${WELL_KNOWN}${outer}${path}`, bare];
}

/** The URL of the document as clients reach it: the `resource_metadata` of a challenge. */
export function metadataUrl(publicUrl: URL, path: string): string {
  return `${publicUrl.origin}${WELL_KNOWN}${publicPath(publicUrl)}${path}`;
}
