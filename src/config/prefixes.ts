// The prefixes of an endpoint's members: what is written, or the name of the upstream and `_`.

import type { MemberSettings } from './settings.js';
import { mapAt, textAt } from './tree.js';

/** The prefix of a member for which none is written. */
export function defaultPrefix(upstream: string): string {
  return `${upstream}_`;
}

/** The members of an endpoint of a gateway file, in its order. */
export function membersOf(root: unknown, endpoint: string): readonly MemberSettings[] {
  const path = ['endpoints', endpoint, 'upstreams'];
  return Object.keys(mapAt(root, path)).map((upstream) => ({
    upstream,
    prefix: textAt(root, [...path, upstream, 'prefix']) ?? defaultPrefix(upstream),
  }));
}
