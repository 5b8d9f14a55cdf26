// What each upstream with `pinning.mode: trust-on-first-use` offered first: read before anything is trusted, and kept in
// the shared store, else in a file beside the lock files, or in memory where that cannot be written.
// docs/reference/definitions.md#trust-on-first-use.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { countOf, describeReadError, systemErrorCode } from '../text/wording.js';
import { FIRST_USE_SUFFIX, findDecisions, trustObserved, withTrusted } from './approval.js';
import { updateFile } from './file-update.js';
import type { Observed } from './last-seen.js';
import type { Lock } from './lock.js';
import type { LockReading } from './lock-reader.js';

/** A text that is kept under the name of an upstream. `where` is for people; absent if a restart forgets it. */
type Kept = { readonly text: string; readonly where: string | undefined };

/** Where first uses are kept. Outlives the runtimes of upstreams. */
export type FirstUseKeeper = {
  /** What is kept; `undefined` if there is nothing yet. Rejects if that cannot be known. */
  read(upstream: string): Promise<Kept | undefined>;
  /** Keeps the text, unless another is kept already, and resolves with the one that is. Rejects like `read`. */
  keep(upstream: string, text: string): Promise<Kept>;
};

/** The shared store. Both reject with an error that may be shown. */
type FirstUseStore = {
  find(upstream: string): Promise<string | undefined>;
  /** Keeps the text, unless another is kept already, and returns the one that is. */
  keep(upstream: string, text: string): Promise<string>;
};

/** Keeps them for all replicas. */
export function createStoreKeeper({ find, keep }: FirstUseStore): FirstUseKeeper {
  const where = 'the shared store';
  return {
    async read(upstream) {
      const text = await find(upstream);
      return text === undefined ? undefined : { text, where };
    },
    keep: async (upstream, text) => ({ text: await keep(upstream, text), where }),
  };
}

const MISSING: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR']);

/** Keeps a file for each upstream in the folder of the lock files. */
export function createFileKeeper(folder: () => string): FirstUseKeeper {
  const inMemory = new Map<string, string>();

  async function read(upstream: string): Promise<Kept | undefined> {
    const where = `${upstream}${FIRST_USE_SUFFIX}`;
    try {
      return { text: await readFile(join(folder(), where), 'utf8'), where };
    } catch (error) {
      if (!MISSING.has(systemErrorCode(error))) throw new Error(describeReadError(error));
      const text = inMemory.get(upstream);
      return text === undefined ? undefined : { text, where: undefined };
    }
  }

  return {
    read,
    async keep(upstream, text) {
      inMemory.set(upstream, inMemory.get(upstream) ?? text);
      try {
        const path = join(folder(), `${upstream}${FIRST_USE_SUFFIX}`);
        // Only one process is in there at a time, and the file of the first one stays.
        await updateFile(path, () => (existsSync(path) ? undefined : inMemory.get(upstream)));
        return (await read(upstream)) ?? { text, where: undefined };
      } catch {
        return { text: inMemory.get(upstream) ?? text, where: undefined };
      }
    },
  };
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'an unexpected error';
}

export type FirstUse = {
  /** Reads what was trusted before; after an error, again when called again. Never rejects. */
  load(): Promise<void>;
  /** Trusts what is offered, unless something was trusted before. */
  observe(observed: Observed): void;
  /** Resolves when what is being trusted is trusted. */
  settled(): Promise<void>;
  /** True while what was offered is being trusted: it is not listed yet, and soon it is. */
  isSettling(): boolean;
  /** False while it is not known what is trusted: then nothing is. */
  isSettled(): boolean;
  /** What is trusted; `undefined` while nothing is. */
  trusted(): Lock | undefined;
  /** The lock file with what is trusted besides. */
  lockWith(lock: Lock | undefined): Lock | undefined;
  /** What is trusted, in words. */
  describe(): string;
  /** Differs after each change of what is trusted. */
  revision(): number;
};

/** For upstreams that are pinned otherwise. */
export const NO_FIRST_USE: FirstUse = {
  load: () => Promise.resolve(),
  observe: () => undefined,
  settled: () => Promise.resolve(),
  isSettling: () => false,
  isSettled: () => true,
  trusted: () => undefined,
  lockWith: (lock) => lock,
  describe: () => '',
  revision: () => 0,
};

/** Work on lock files of any size, which is done beside the event loop. */
export type LockWork = {
  /** What `readLock` does. Rejects where a job fails. */
  read(upstream: string, file: string, text: string): Promise<LockReading>;
  /** What `writeLock` does, likewise. */
  write(lock: Lock): Promise<string>;
  /** Finds out which definitions can be used. One about which that fails is compiled when it is used. Never rejects. */
  check(lock: Lock): Promise<void>;
};

type FirstUsePorts = {
  readonly keeper: FirstUseKeeper;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Whether the scan keeps a definition from being trusted. */
  readonly scan: { hasBlocked(definition: JsonObject | string): boolean };
  readonly work: LockWork;
  /** Called when something is trusted; `isNew`: just now, and by this process. */
  readonly onTrusted: (trusted: Lock, isNew: boolean) => void;
};

/** Creates the first use of one upstream. */
export function createFirstUse(upstream: string, ports: FirstUsePorts): FirstUse {
  let trusted: { readonly lock: Lock; readonly where: string | undefined } | undefined;
  let isLoaded = false;
  let error: string | undefined;
  let keeping: Promise<void> | undefined;
  let loading: Promise<void> | undefined;
  let revision = 0;
  let merged: { readonly from: Lock | undefined; readonly lock: Lock } | undefined;

  /** `own`: what this process has written, if that is what is kept. */
  async function adopt(kept: Kept, own: Lock | undefined): Promise<void> {
    const { lock, diagnostics } =
      own === undefined
        ? await ports.work.read(upstream, `${upstream}${FIRST_USE_SUFFIX}`, kept.text)
        : { lock: own, diagnostics: [] };
    if (lock === undefined || lock.upstream !== upstream) {
      error = diagnostics[0]?.message ?? 'it is of another upstream';
      isLoaded = false;
      return;
    }
    await ports.work.check(lock);
    trusted = { lock, where: kept.where };
    isLoaded = true;
    keeping = undefined;
    error = undefined;
    merged = undefined;
    revision += 1;
    ports.onTrusted(lock, own !== undefined);
  }

  async function read(): Promise<void> {
    try {
      const kept = await ports.keeper.read(upstream);
      if (kept === undefined) isLoaded = true;
      else await adopt(kept, undefined);
    } catch (cause) {
      error = messageOf(cause);
    }
  }

  async function keep(lock: Lock): Promise<void> {
    const text = await ports.work.write(lock);
    const kept = await ports.keeper.keep(upstream, text);
    await adopt(kept, kept.text === text ? lock : undefined);
  }

  /** A name of which one form was left out is trusted in none. */
  function isLeftOut(observed: Observed): (pin: { kind: string; name: string }) => boolean {
    return ({ kind, name }) =>
      observed.listings.some(({ seen, instructions }) => {
        const definition =
          kind === 'instructions' ? instructions?.text : seen[kind as keyof typeof seen].get(name)?.definition;
        return definition !== undefined && ports.scan.hasBlocked(definition);
      });
  }

  return {
    async load() {
      if (isLoaded) return;
      // The listings of both eras ask at the same time.
      loading ??= read().finally(() => {
        loading = undefined;
      });
      await loading;
    },
    observe(observed) {
      if (!isLoaded || trusted !== undefined || keeping !== undefined) return;
      const at = new Date(ports.now()).toISOString();
      const lock = trustObserved(upstream, observed, at, isLeftOut(observed));
      if (lock === undefined) return;
      keeping = keep(lock).then(
        () => {
          keeping = undefined;
        },
        (cause: unknown) => {
          keeping = undefined;
          // Read again with the next listing: it may have been kept all the same.
          isLoaded = false;
          error = messageOf(cause);
        },
      );
    },
    settled: () => keeping ?? Promise.resolve(),
    isSettling: () => keeping !== undefined,
    isSettled: () => isLoaded && keeping === undefined,
    trusted: () => trusted?.lock,
    lockWith(lock) {
      if (trusted === undefined) return lock;
      if (merged === undefined || merged.from !== lock) merged = { from: lock, lock: withTrusted(lock, trusted.lock) };
      return merged.lock;
    },
    describe() {
      if (error !== undefined) return `what was trusted on first use cannot be used: ${error}`;
      if (trusted === undefined) return 'nothing was trusted on first use yet';
      const { lock, where } = trusted;
      const decisions = findDecisions(undefined, lock);
      const [first] = decisions;
      const since = first?.record === undefined ? '' : ` on ${first.record.at}`;
      const kept = where === undefined ? 'a restart forgets it' : `kept in ${where}`;
      return `trusted on first use${since}: ${countOf(decisions.length, 'definition')}, ${kept}`;
    },
    revision: () => revision,
  };
}
