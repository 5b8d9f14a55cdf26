// The keys of a run: those that are configured, or, on loopback, one that is made for the run and kept
// nowhere (contract §3). The configuration refuses a missing key anywhere else.

import { randomBytes } from 'node:crypto';
import { KEY_BYTES, readKeyText, writeKeyText } from '../config/keys.js';
import type { GatewayKey, Settings } from '../config/settings.js';

/** At least one key. */
export function keysOf({ keys }: Pick<Settings, 'keys'>): readonly GatewayKey[] {
  if (keys.length > 0) return keys;
  const made = readKeyText(writeKeyText(randomBytes(KEY_BYTES)));
  if (made === undefined) throw new Error('a key that was made cannot be read');
  return [made];
}
