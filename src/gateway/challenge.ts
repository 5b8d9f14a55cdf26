// The challenge of one upstream or endpoint: what a 401 offers and a 403 asks for, made from settings and policy.

import { challengeFor } from '../authn/challenge.js';
import type { Settings, UpstreamSettings } from '../config/settings.js';
import { metadataUrl } from '../edge/metadata.js';
import type { Snapshot } from '../exchange-ports.js';

/** RFC 6750 §3: no error is named where no token was sent. */
export function challengeOf(
  settings: Settings,
  upstream: Pick<UpstreamSettings, 'path' | 'scopesSupported' | 'binding'>,
): Snapshot['challenge'] {
  const url = metadataUrl(settings.publicUrl, upstream.path);
  const takesCertificates = settings.listeners.data.tls?.clientCa !== undefined;
  return (reason, scopes, { scheme, proof }) =>
    challengeFor(reason, {
      metadataUrl: url,
      scopes: scopes ?? upstream.scopesSupported,
      possession: {
        demand: upstream.binding,
        takesCertificates,
        usesProofs: scheme === 'dpop' || proof !== undefined,
        proof,
      },
    });
}
