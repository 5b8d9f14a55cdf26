// Which members of an endpoint listed a resource to a caller, as this replica saw it: of several that may serve
// a URI, it tells whose it is. It knows only where every one of them has shown its whole list, or a server
// could claim what another has not shown yet. Bounded; what is forgotten is ambiguous again, and then refused.

/** Past this many URIs and callers, everything is forgotten: half a memory would point to the wrong server. */
const MAX_URIS = 50_000;
/** Longer URIs are not remembered. */
const MAX_URI_CHARS = 2_048;

/** A page of one member's list. `isLast`: the list ends with it. */
export type ListedPage = {
  readonly upstream: string;
  readonly uris: readonly string[];
  readonly isLast: boolean;
};

export type ListedResources = {
  /** `key` names caller and endpoint. */
  note(key: string, page: ListedPage): void;
  /** Of these members, those that listed the URI; none where one of them has not shown its whole list. */
  recall(key: string, uri: string, members: readonly string[]): readonly string[];
};

type Shown = { readonly listers: Map<string, Set<string>>; readonly whole: Set<string> };

/** An empty memory. */
export function createListedResources(maxUris = MAX_URIS): ListedResources {
  const known = new Map<string, Shown>();
  let count = 0;

  function shownTo(key: string): Shown {
    const before = known.get(key);
    if (before !== undefined) return before;
    const shown = { listers: new Map(), whole: new Set<string>() };
    known.set(key, shown);
    count += 1;
    return shown;
  }

  function add({ listers }: Shown, uri: string, upstream: string): void {
    const listed = listers.get(uri) ?? new Set();
    if (listed.size === 0) count += 1;
    listers.set(uri, listed.add(upstream));
  }

  return {
    note(key, { upstream, uris, isLast }) {
      // Callers count too: most lists are empty, and there is no end of callers.
      const isNew = known.has(key) ? 0 : 1;
      if (count + uris.length + isNew > maxUris) {
        known.clear();
        count = 0;
      }
      const shown = shownTo(key);
      const kept = uris.filter((uri) => uri.length <= MAX_URI_CHARS).slice(0, maxUris);
      for (const uri of kept) add(shown, uri, upstream);
      if (isLast && kept.length === uris.length) shown.whole.add(upstream);
    },
    recall(key, uri, members) {
      const shown = known.get(key);
      if (shown === undefined || !members.every((member) => shown.whole.has(member))) return [];
      return members.filter((member) => shown.listers.get(uri)?.has(member) === true);
    },
  };
}
