// Lists an upstream once, for the command line: connections that are opened here are closed here.

import type { Settings, UpstreamSettings } from '../config/settings.js';
import { mergeObserved, type Observed, observeListing } from '../pins/observed.js';
import { createKeyRing } from '../state/key-ring.js';
import { createGuardedFetch } from '../upstream/guarded-fetch.js';
import { listProfilesOnce } from '../upstream/listing-faces.js';
import { keysOf } from './run-keys.js';
import { loadOfOne } from './shared-load.js';
import { assertionSigner } from './signing.js';
import { connectUpstream } from './upstream-connection.js';

export type OnceObserved =
  | { readonly kind: 'observed'; readonly observed: Observed }
  | { readonly kind: 'unreachable'; readonly why: string };

/** What the upstream offers now, in every era that it speaks and to every face. Never rejects. */
export async function observeOnce(
  upstream: UpstreamSettings,
  gateway: Pick<Settings, 'keys' | 'publicBase'>,
  gatewayVersion: string,
): Promise<OnceObserved> {
  const guarded = createGuardedFetch();
  const troubles: string[] = [];
  const { client, sessions, openRequest, sessionVersions } = connectUpstream(upstream, {
    guarded,
    now: Date.now,
    ...loadOfOne(),
    signer: assertionSigner(createKeyRing(keysOf(gateway))),
    issuer: gateway.publicBase,
    onCredential: () => undefined,
    onTrouble: (_what, detail) => troubles.push(detail),
  });
  const { requestTimeoutMs } = upstream.limits;
  try {
    const outcome = await listProfilesOnce(
      { requestTimeoutMs, gatewayVersion, sessionVersions, apps: upstream.apps },
      { openRequest, now: Date.now },
    );
    if (outcome.kind === 'listed')
      return {
        kind: 'observed',
        observed: mergeObserved(outcome.listings.map(observeListing)),
      };
    const [trouble] = troubles;
    return { ...outcome, why: trouble === undefined ? outcome.why : `${outcome.why}: ${trouble}` };
  } finally {
    await sessions.close();
    await client.close();
    await guarded.close();
  }
}
