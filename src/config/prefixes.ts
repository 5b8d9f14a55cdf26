// The prefixes of an endpoint's members: what is written, or the name of the upstream and `_`.

import type { BackendSettings } from './settings.js';
import { mapAt, textAt } from './tree.js';

/** The prefix of a member for which none is written. */
export function defaultPrefix(upstream: string): string {
  return `${upstream}_`;
}

/** The members of an endpoint of a gateway file, in its order. */
export function backendsOf(root: unknown, aggregate: string): readonly BackendSettings[] {
  const path = ['endpoints', aggregate, 'upstreams'];
  return Object.keys(mapAt(root, path)).map((upstream) => ({
    upstream,
    prefix: textAt(root, [...path, upstream, 'prefix']) ?? defaultPrefix(upstream),
  }));
}
