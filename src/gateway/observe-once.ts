// Lists an upstream once, for the command line: connections that are opened here are closed here.

import type { UpstreamSettings } from '../config/settings.js';
import { mergeObserved, type Observed, observeListing } from '../pins/observed.js';
import { createUpstreamClient } from '../upstream/client.js';
import { connectOptionsFor } from '../upstream/connect.js';
import { createListingRequest } from '../upstream/listing-port.js';
import { listOnce } from '../upstream/relist.js';

export type OnceObserved =
  | { readonly kind: 'observed'; readonly observed: Observed }
  | { readonly kind: 'unreachable'; readonly why: string };

/** What the upstream offers now, in every era that it speaks. Never rejects. */
export async function observeOnce(
  upstream: UpstreamSettings,
  gatewayVersion: string,
): Promise<OnceObserved> {
  const { url, credentials, limits, network, pinning } = upstream;
  const client = createUpstreamClient({
    url,
    credentials,
    limits,
    connect: connectOptionsFor(network),
  });
  try {
    const request = createListingRequest(client, pinning.credentials);
    const outcome = await listOnce(
      { requestTimeoutMs: limits.requestTimeoutMs, gatewayVersion },
      { request, now: Date.now },
    );
    if (outcome.kind === 'unreachable') return outcome;
    return { kind: 'observed', observed: mergeObserved(outcome.listings.map(observeListing)) };
  } finally {
    await client.close();
  }
}
