// What a protected resource tells its clients: its metadata, with the paths that they are served on, and the
// WWW-Authenticate value of a 401 or 403. Every value comes from the configuration or from policy, never from the
// request, Host included.
// RFC 9728 §2, §3, §3.1 and §5.1, RFC 6750 §3, RFC 9449 §5.1 and §7.1, RFC 6749 §3.3; MCP 2026-07-28, scope challenge
// handling; docs/reference/listeners.md#paths.

import type { IssuerSettings, UpstreamSettings } from '../config/settings.js';
import type { ProofError } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import { type BindingDemand, PROOF_ALGORITHMS, type TokenScheme } from './presented-token.js';

/** Whether to request it is the client's choice, never the server's (MCP 2026-07-28, scope challenge handling). */
const NEVER_OFFERED = 'offline_access';

const SCHEME_NAMES: Readonly<Record<TokenScheme, string>> = { bearer: 'Bearer', dpop: 'DPoP' };

type ChallengeOffer = {
  readonly metadataUrl: string;
  /** For a 401 the scopes in the metadata document, for a 403 every scope that the operation needs. */
  readonly scopes: readonly string[];
  /** What tokens must be bound to. */
  readonly demand: BindingDemand;
  /** Client certificates are requested, so that a bearer token may be bound to one. */
  readonly takesCertificates: boolean;
  /** The request used DPoP, or had to. */
  readonly usesProofs: boolean;
  readonly proof: ProofError | undefined;
};

/** RFC 6750 §3.1: no error where no credential was sent. */
function errorFor(reason: Reason): string | undefined {
  if (reason === 'token-missing') return undefined;
  return reason === 'insufficient-scope' ? 'insufficient_scope' : 'invalid_token';
}

/** A quoted-string (RFC 9110 §5.6.4); characters not allowed in a header value are left out. */
function quote(value: string): string {
  return `"${value.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')}"`;
}

/** The accepted schemes, the one that the error belongs to first. */
function schemesOf({ demand, takesCertificates, usesProofs }: ChallengeOffer): readonly TokenScheme[] {
  switch (demand) {
    case 'none':
      return [usesProofs ? 'dpop' : 'bearer'];
    case 'any':
      if (!takesCertificates) return ['dpop'];
      return usesProofs ? ['dpop', 'bearer'] : ['bearer', 'dpop'];
    case 'dpop':
      return ['dpop'];
    case 'mtls':
      return ['bearer'];
  }
}

/** The challenge of a refusal that is rendered as 401 or 403. */
export function challengeFor(reason: Reason, offer: ChallengeOffer): string {
  const shared = [`resource_metadata=${quote(offer.metadataUrl)}`];
  const scopes = offer.scopes.filter((scope) => scope !== NEVER_OFFERED);
  if (scopes.length > 0) shared.push(`scope=${quote(scopes.join(' '))}`);
  const error = offer.proof ?? errorFor(reason);
  return schemesOf(offer)
    .map((scheme, index) => {
      const parts = [...shared];
      if (error !== undefined && index === 0) parts.push(`error="${error}"`);
      if (scheme === 'dpop') parts.push(`algs=${quote(PROOF_ALGORITHMS.join(' '))}`);
      return `${SCHEME_NAMES[scheme]} ${parts.join(', ')}`;
    })
    .join(', ');
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** The settings that the document is built from. */
type MetadataSource = Pick<UpstreamSettings, 'resource' | 'issuers' | 'scopesSupported' | 'binding'>;

/** The path of the public URL without a trailing slash; empty at the root. */
function publicPath(publicUrl: URL): string {
  const { pathname } = publicUrl;
  return pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
}

/**
 * The document of one upstream as JSON text. Names that are not among the configured `issuers` are left out.
 * `takesCertificates`: the listener requests client certificates.
 */
export function metadataDocument(
  upstream: MetadataSource,
  issuers: ReadonlyMap<string, Pick<IssuerSettings, 'issuer'>>,
  takesCertificates: boolean,
): string {
  const scopes = upstream.scopesSupported.filter((scope) => scope !== NEVER_OFFERED);
  return JSON.stringify({
    resource: upstream.resource,
    authorization_servers: upstream.issuers.flatMap((name) => issuers.get(name)?.issuer ?? []),
    ...(scopes.length > 0 ? { scopes_supported: scopes } : {}),
    bearer_methods_supported: ['header'],
    ...possessionMembers(upstream, takesCertificates),
  });
}

/** RFC 9728 §2: which token bindings are supported, and which are required. */
function possessionMembers({ binding }: MetadataSource, takesCertificates: boolean): Readonly<Record<string, unknown>> {
  return {
    ...(takesCertificates ? { tls_client_certificate_bound_access_tokens: true } : {}),
    ...(binding === 'mtls' ? {} : { dpop_signing_alg_values_supported: PROOF_ALGORITHMS }),
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
