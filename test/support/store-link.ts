// A shared store in this process, for tests of what stands before a store: it counts with a clock that the
// test holds, forgets when it is told to, and is down when it is told to.

import type { SealedMessage, StoreLink } from '../../src/state/store.js';

export type FakeStore = {
  /** A connection to it. */
  link(): StoreLink;
  goDown(): void;
  comeBack(): void;
  /** Loses all that it held, as a store without persistence does at its restart. */
  forget(): void;
  /** What it holds, as whoever reads it would see it. */
  dump(): string;
  /** Commands so far, by name. */
  readonly asked: string[];
};

/** `now` is the store's clock, in milliseconds since the epoch. */
export function createFakeStore(now: () => number): FakeStore {
  let isDown = false;
  let changes = 0;
  const asked: string[] = [];
  const listeners = new Set<() => void>();
  const sealed = new Map<string, { text: string; untilMs: number }>();
  const lifted = new Map<string, number>();
  const ended = new Map<string, number>();
  const uses = new Map<string, number[]>();
  const used = new Map<string, number>();
  const replicas = new Set<string>();
  const messages = new Map<string, { readonly text: string; readonly at: number }[]>();
  let lastAt = 0;

  async function ask<T>(name: string, run: () => T): Promise<T> {
    asked.push(name);
    if (isDown) throw new Error('down');
    return run();
  }

  function change(): void {
    changes += 1;
    for (const listener of listeners) listener();
  }

  /** Forgets what was read, and shows the next. */
  function messagesFor(replica: string, readTo: number, most: number) {
    const kept = (messages.get(replica) ?? []).filter(({ at }) => at > readTo);
    messages.set(replica, kept);
    return kept.slice(0, most);
  }

  function leave({ replica, text }: SealedMessage): void {
    lastAt += 1;
    messages.set(replica, [...(messages.get(replica) ?? []), { text, at: lastAt }]);
  }

  const link = (): StoreLink => ({
    isPrivate: true,
    opened: () => Promise.resolve(),
    describe: () => 'no connection',
    poll: (replica, { mark, readTo, maxMessages }) =>
      ask('look', () => {
        replicas.add(replica);
        const shown = [...ended].filter(([, untilMs]) => untilMs >= Math.max(mark, now()));
        return {
          version: changes === 0 ? '' : String(changes),
          replicas: replicas.size,
          ended: shown.map(([hash, untilMs]) => ({ hash, leftMs: untilMs - now() })),
          mark: Math.max(mark, ...shown.map(([, untilMs]) => untilMs)),
          hasMore: false,
          messages: messagesFor(replica, readTo, maxMessages),
        };
      }),
    revocations: () =>
      ask('revocations', () => ({
        version: String(changes),
        sealed: new Map([...sealed].map(([id, { text }]) => [id, text])),
        lifted: new Set(lifted.keys()),
      })),
    addRevocation: (id, text, leftMs) =>
      ask('addRevocation', () => {
        if (sealed.has(id) || lifted.has(id)) return 'added';
        sealed.set(id, { text, untilMs: now() + leftMs });
        change();
        return 'added';
      }),
    liftRevocation: (id, leftMs) =>
      ask('liftRevocation', () => {
        sealed.delete(id);
        lifted.set(id, now() + leftMs);
        change();
      }),
    endSession: (hash, leftMs) =>
      ask('endSession', () => {
        ended.set(hash, now() + leftMs);
      }),
    enqueueMessages: (given) =>
      ask('enqueueMessages', () => {
        const reachable = given.filter(({ replica }) => replicas.has(replica));
        for (const word of reachable) leave(word);
        if (reachable.length > 0) for (const listener of listeners) listener();
        return reachable.length > 0 ? 'left' : 'gone';
      }),
    replicas: () => ask('replicas', () => [...replicas]),
    take: (key, { count, windowMs }) =>
      ask('take', () => {
        const within = (uses.get(key) ?? []).filter((atMs) => atMs > now() - windowMs);
        if (within.length >= count) return { ok: false, retryAfterMs: windowMs } as const;
        uses.set(key, [...within, now()]);
        return { ok: true } as const;
      }),
    useOnce: (keyHash, leftMs) =>
      ask('useOnce', () => {
        const isKnown = (used.get(keyHash) ?? 0) > now();
        if (!isKnown) used.set(keyHash, now() + leftMs);
        return !isKnown;
      }),
    onHint: (listener) => void listeners.add(listener),
    close: () => Promise.resolve(),
  });

  return {
    link,
    asked,
    goDown() {
      isDown = true;
    },
    comeBack() {
      isDown = false;
    },
    forget() {
      for (const table of [sealed, lifted, ended, uses, used, messages]) table.clear();
      changes = 0;
    },
    dump: () =>
      JSON.stringify([sealed, lifted, ended, uses, used, messages].map((table) => [...table])),
  };
}
