// Which upstreams listed a resource through an endpoint, as this replica saw it: of several that may serve a
// URI, it tells whose it is. Bounded; what is forgotten is ambiguous again, and then refused.

/** Past this many URIs of all endpoints, the oldest are forgotten first. */
const MAX_URIS = 20_000;
/** Longer URIs are not remembered. */
const MAX_URI_CHARS = 2_048;

export type ListedResources = {
  note(endpoint: string, upstream: string, uris: readonly string[]): void;
  /** The upstreams that listed the URI. */
  recall(endpoint: string, uri: string): readonly string[];
};

/** An empty memory. */
export function createListedResources(maxUris = MAX_URIS): ListedResources {
  const known = new Map<string, ReadonlySet<string>>();
  const keyOf = (endpoint: string, uri: string): string => `${endpoint} ${uri}`;

  function add(key: string, upstream: string): void {
    const listed = known.get(key) ?? new Set();
    if (!listed.has(upstream)) known.set(key, new Set([...listed, upstream]));
    const [oldest] = known.keys();
    if (known.size > maxUris && oldest !== undefined) known.delete(oldest);
  }

  return {
    note(endpoint, upstream, uris) {
      for (const uri of uris) if (uri.length <= MAX_URI_CHARS) add(keyOf(endpoint, uri), upstream);
    },
    recall: (endpoint, uri) => [...(known.get(keyOf(endpoint, uri)) ?? [])],
  };
}
