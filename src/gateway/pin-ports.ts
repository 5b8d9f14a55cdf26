// Lists an upstream once, for the command line, and writes lock files. Connections opened here are closed here.

import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Settings, UpstreamSettings } from '../config/settings.js';
import { mergeObserved, type Observed, observeListing } from '../pins/last-seen.js';
import { createKeyRing } from '../state/keys.js';
import { listProfilesOnce } from '../upstream/discovery/discovery.js';
import { createGuardedFetch } from '../upstream/safe-fetch.js';
import { assertionSigner, keysOf } from './keys.js';
import { connectUpstream, createSingleUpstreamResources } from './upstream-connection.js';

export type OnceObserved =
  | { readonly kind: 'observed'; readonly observed: Observed }
  | { readonly kind: 'unreachable'; readonly why: string };

/** Lists what the upstream offers now, in every era that it speaks and for every client profile. Never rejects. */
export async function observeOnce(
  upstream: UpstreamSettings,
  gateway: Pick<Settings, 'keys' | 'publicBase'>,
  gatewayVersion: string,
): Promise<OnceObserved> {
  const guarded = createGuardedFetch();
  const connectionErrors: string[] = [];
  const { client, sessions, openRequest, sessionVersions } = connectUpstream(upstream, {
    guarded,
    now: Date.now,
    ...createSingleUpstreamResources(),
    signer: assertionSigner(createKeyRing(keysOf(gateway))),
    issuer: gateway.publicBase,
    onCredential: () => undefined,
    onTrouble: (_what, detail) => connectionErrors.push(detail),
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
    const [trouble] = connectionErrors;
    return { ...outcome, why: trouble === undefined ? outcome.why : `${outcome.why}: ${trouble}` };
  } finally {
    await sessions.close();
    await client.close();
    await guarded.close();
  }
}

/**
 * Replaces a file atomically: a reader sees the old text or the new one, never a mixture. Writes beside the file, then
 * renames. Creates the folder. Rejects on failure and leaves nothing behind.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const beside = `${path}.${randomUUID()}.new`;
  await mkdir(dirname(path), { recursive: true });
  try {
    await writeFile(beside, text);
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}
