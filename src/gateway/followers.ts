// Who is told when a version was applied or somebody was revoked: listeners for good, and the open streams,
// which come and go with every exchange.

export type ChangeEmitter = {
  /** Tells `told` from now on, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** Tells everyone who follows, in no order. */
  emit(): void;
};

type ChangeListener = { readonly listener: () => void; at: number };

/**
 * Nobody follows yet. An array, not a Set, for the reason that live-table.ts gives.
 */
export function createChangeEmitter(): ChangeEmitter {
  const listeners: ChangeListener[] = [];

  const isHere = (entry: ChangeListener): boolean => listeners[entry.at] === entry;

  function leave(entry: ChangeListener): void {
    if (!isHere(entry)) return;
    const last = listeners.pop();
    if (last === undefined || last === entry) return;
    listeners[entry.at] = last;
    last.at = entry.at;
  }

  return {
    subscribe(listener) {
      const entry = { listener, at: listeners.length };
      listeners.push(entry);
      return () => leave(entry);
    },
    emit() {
      for (const entry of [...listeners]) if (isHere(entry)) entry.listener();
    },
  };
}
