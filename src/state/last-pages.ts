// The pages of lists that callers of aggregates were shown last, for the time in which a backend hangs. In memory only
// and bounded: who fills it forgets its own first.

const MAX_CHARS_A_PAGE = 256 * 1024;
const MAX_CHARS_A_CALLER = 1024 * 1024;
const MAX_CHARS = 16 * 1024 * 1024;

type KeptPage = { readonly text: string; readonly atMs: number };
type CallerPages = { readonly pages: Map<string, KeptPage>; chars: number };

type KeptPages = {
  keep(caller: string, key: string, text: string): void;
  /** The page, unless it is older than this. */
  recall(caller: string, key: string, maxAgeMs: number): string | undefined;
};

/** Creates the table; `now` is in milliseconds. */
export function createKeptPages(now: () => number): KeptPages {
  /** Whoever kept a page longest ago comes first, and so does that page. */
  const callers = new Map<string, CallerPages>();
  let chars = 0;

  function forgetPage(own: CallerPages, key: string): void {
    const kept = own.pages.get(key)?.text.length ?? 0;
    own.pages.delete(key);
    own.chars -= kept;
    chars -= kept;
  }

  function forgetOldest(own: CallerPages): void {
    const [oldest] = own.pages.keys();
    if (oldest !== undefined) forgetPage(own, oldest);
  }

  return {
    keep(caller, key, text) {
      const own = callers.get(caller) ?? { pages: new Map(), chars: 0 };
      forgetPage(own, key);
      if (text.length > MAX_CHARS_A_PAGE) return;
      while (own.chars + text.length > MAX_CHARS_A_CALLER) forgetOldest(own);
      own.pages.set(key, { text, atMs: now() });
      own.chars += text.length;
      chars += text.length;
      callers.delete(caller);
      callers.set(caller, own);
      for (const [other, { chars: theirs }] of callers) {
        if (chars <= MAX_CHARS) break;
        callers.delete(other);
        chars -= theirs;
      }
    },
    recall(caller, key, maxAgeMs) {
      const kept = callers.get(caller)?.pages.get(key);
      return kept !== undefined && now() - kept.atMs <= maxAgeMs ? kept.text : undefined;
    },
  };
}
