// Lists an upstream once, for the command line: connections that are opened here are closed here.

import type { UpstreamSettings } from '../config/settings.js';
import { mergeObserved, type Observed, observeListing } from '../pins/observed.js';
import { listOnce } from '../upstream/relist.js';
import { connectUpstream } from './upstream-connection.js';

export type OnceObserved =
  | { readonly kind: 'observed'; readonly observed: Observed }
  | { readonly kind: 'unreachable'; readonly why: string };

/** What the upstream offers now, in every era that it speaks. Never rejects. */
export async function observeOnce(
  upstream: UpstreamSettings,
  gatewayVersion: string,
): Promise<OnceObserved> {
  const { client, sessions, request, sessionVersions } = connectUpstream(upstream, Date.now);
  const { requestTimeoutMs } = upstream.limits;
  try {
    const outcome = await listOnce(
      { requestTimeoutMs, gatewayVersion, sessionVersions },
      { request, now: Date.now },
    );
    if (outcome.kind === 'unreachable') return outcome;
    return { kind: 'observed', observed: mergeObserved(outcome.listings.map(observeListing)) };
  } finally {
    await sessions.close();
    await client.close();
  }
}
