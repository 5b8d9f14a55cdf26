// The gateway's own keys: those of the configuration, or one that lasts as long as the run.

import { randomBytes } from 'node:crypto';
import { KEY_BYTES, readKeyText, writeKeyText } from '../config/keys.js';
import type { GatewayKey, Settings } from '../config/settings.js';

/** On loopback a missing key is made for the run; the configuration refuses that anywhere else. */
export function keysOf(settings: Settings): readonly GatewayKey[] {
  if (settings.keys.length > 0) return settings.keys;
  const made = readKeyText(writeKeyText(randomBytes(KEY_BYTES)));
  if (made === undefined) throw new Error('a key that was made cannot be read');
  return [made];
}
