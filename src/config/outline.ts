// What can be understood of a gateway file even where parts of it are wrong: names and folders.
// Enough to check policies and locks in the same run; never enough to run a gateway.

import { dirname, resolve } from 'node:path';
import type { Locate, Position } from './positions.js';
import { backendsOf } from './prefixes.js';
import type { BackendSettings } from './settings.js';
import { mapAt, textAt, textsAt, valueAt } from './tree.js';

export type UpstreamOutline = {
  readonly name: string;
  readonly issuers: readonly string[];
  /** Whether only what is pinned may be used. */
  readonly strict: boolean;
};

/** What an endpoint shows under which prefixes, and where the file says so. */
export type AggregateOutline = {
  readonly name: string;
  readonly backends: readonly BackendSettings[];
  readonly position: Position;
};

export type Outline = {
  /** Absolute path of the file. */
  readonly file: string;
  readonly aggregates: readonly AggregateOutline[];
  readonly upstreams: readonly UpstreamOutline[];
  readonly issuers: readonly string[];
  readonly profiles: readonly string[];
  /** Absolute. */
  readonly policiesDir: string | undefined;
  /** Absolute. */
  readonly pinsDir: string | undefined;
  readonly opsHost: string | undefined;
  readonly opsPort: number | undefined;
  readonly isOpsSecure: boolean;
};

/** The outline of a gateway file whose defaults have been filled in. `file` is its absolute path. */
export function outlineOf(root: unknown, file: string, locate: Locate): Outline {
  const folder = dirname(file);
  const policies = textAt(root, ['policies', 'dir']);
  const policiesDir = policies === undefined ? undefined : resolve(folder, policies);
  const pins = textAt(root, ['pins', 'dir']);
  const port = valueAt(root, ['listeners', 'ops', 'port']);
  return {
    file,
    aggregates: Object.keys(mapAt(root, ['endpoints'])).map((name) => ({
      name,
      backends: backendsOf(root, name),
      position: locate(['endpoints', name], 'key'),
    })),
    upstreams: Object.keys(mapAt(root, ['upstreams'])).map((name) => ({
      name,
      issuers: textsAt(root, ['upstreams', name, 'issuers']).map(([, issuer]) => issuer),
      strict: textAt(root, ['upstreams', name, 'pinning', 'mode']) !== 'off',
    })),
    issuers: Object.keys(mapAt(root, ['issuers'])),
    profiles: Object.keys(mapAt(root, ['inspection', 'profiles'])),
    policiesDir,
    pinsDir:
      pins === undefined ? policiesDir && resolve(policiesDir, 'pins') : resolve(folder, pins),
    opsHost: textAt(root, ['listeners', 'ops', 'host']),
    isOpsSecure: valueAt(root, ['listeners', 'ops', 'tls']) !== undefined,
    opsPort: typeof port === 'number' ? port : undefined,
  };
}
