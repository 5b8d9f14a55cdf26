// Builds the protected resource metadata of an upstream and the paths it is served on. It is built from the
// configuration alone: no request header, Host included, influences it.
// Source: RFC 9728 §2, §3 and §3.1; RFC 9449 §5.1; docs/contract.md §2.

import type { IssuerSettings, UpstreamSettings } from '../config/settings.js';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** Requesting this scope is the client's own choice (MCP 2026-07-28, protected resource metadata). */
const NEVER_OFFERED = 'offline_access';

/** The settings that the document is built from. */
export type MetadataSource = Pick<
  UpstreamSettings,
  'resource' | 'issuers' | 'scopesSupported' | 'binding'
>;

/** The proofs of possession that the listener supports. */
export type PossessionSupport = {
  readonly proofAlgorithms: readonly string[];
  /** The listener requests client certificates. */
  readonly takesCertificates: boolean;
};

/** The path of the public URL without a trailing slash; empty at the root. */
function publicPath(publicUrl: URL): string {
  const { pathname } = publicUrl;
  return pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
}

/** The document of one upstream as JSON text. Names that are not among the configured `issuers` are left out. */
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

/** RFC 9728 §2: which token bindings are supported, and which are required. */
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
 * The paths on which a listener serves the document of the upstream at `path`: with the path of the public URL
 * inserted, as RFC 9728 §3.1 forms it, and without, in case an outer proxy strips it.
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
