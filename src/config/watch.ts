// Tells when the content of watched files has changed: gateway file, policies, lock files.
// Watches folders, because a mounted ConfigMap is swapped by a link beside the files, and polls,
// because a watch can miss a swap. Compares content by hash: a touch without a change is silent.

import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

// One hash over the content of files and folders: equal as long as nothing that is read has changed.
// Reads only files whose inode, size or times moved, so that looking every second costs little.
// Never fails: what cannot be read is part of the hash too.

/** What is watched: files by name, and in folders every file that ends so. */
export type WatchTargets = {
  readonly files: readonly string[];
  readonly folders: readonly { readonly path: string; readonly suffix: string }[];
  /** Files that the gateway writes itself: where they stand among what is watched, no look is due for them. */
  readonly own?: readonly string[];
};

/** A file changed this recently may change again within the grain of its times: it is read anew. */
const STABLE_AFTER_MS = 2000;

type Known = { readonly stamp: string; readonly digest: string };

/** `content` is equal as long as the content is; `stamp` only as long as nothing was written at all. */
type Fingerprint = { readonly content: string; readonly stamp: string };

/** A function that hashes what targets hold now. Remembers the digests of files that stand still. */
function createFingerprint(): (targets: WatchTargets) => Promise<Fingerprint> {
  let known = new Map<string, Known>();
  return async (targets) => {
    const seen = new Map<string, Known>();
    const hash = createHash('sha256');
    const listed = await Promise.all(targets.folders.map(listFolder));
    for (const file of [...targets.files, ...listed.flat()]) {
      hash.update(`${JSON.stringify(file)} ${await digestOf(file, known, seen)}\n`);
    }
    known = seen;
    const stamp = JSON.stringify([...seen].map(([file, one]) => [file, one.stamp]));
    return { content: hash.digest('hex'), stamp };
  };
}

async function listFolder({ path, suffix }: WatchTargets['folders'][number]): Promise<string[]> {
  try {
    const names = await readdir(path);
    return names
      .filter((name) => name.endsWith(suffix) && !name.startsWith('.'))
      .sort()
      .map((name) => join(path, name));
  } catch {
    return [];
  }
}

async function digestOf(
  file: string,
  known: ReadonlyMap<string, Known>,
  seen: Map<string, Known>,
): Promise<string> {
  try {
    // Follows links: a swapped ConfigMap shows as another inode.
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = await stat(file, { bigint: true });
    const stamp = `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    const before = known.get(file);
    const isStable = BigInt(Date.now()) - ctimeMs > BigInt(STABLE_AFTER_MS);
    const digest = isStable && before?.stamp === stamp ? before.digest : await hashFile(file);
    seen.set(file, { stamp, digest });
    return digest;
  } catch {
    return 'unreadable';
  }
}

async function hashFile(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

const POLL_MS = 1000;
/** Several writes of one change come within this time; they are looked at once. */
const DEBOUNCE_MS = 50;

type WatchOptions = {
  readonly targets: WatchTargets;
  /** Called after a change, never twice at once; a change meanwhile is followed by another call. */
  readonly onChange: () => void | Promise<void>;
  /** Called with what `onChange` threw. The watch goes on. */
  readonly onError: (error: unknown) => void;
  readonly pollMs?: number;
  readonly debounceMs?: number;
};

export type ConfigWatch = {
  /**
   * Watches other files from now on. Where they differ from those before, one call of `onChange`
   * follows, so that a change between their reading and this moment is not lost.
   */
  retarget(targets: WatchTargets): void;
  /** Looks now. Resolves once a change that was found has been told. */
  check(): Promise<void>;
  /** Stops timers and watches. No call begins after it; one that runs is waited for. */
  close(): Promise<void>;
};

/** Begins to watch. What the files hold when this resolves counts as known. */
export async function watchConfiguration(options: WatchOptions): Promise<ConfigWatch> {
  const state = new Watch(options);
  await state.start();
  return state;
}

class Watch implements ConfigWatch {
  readonly #options: WatchOptions;
  #targets: WatchTargets;
  readonly #fingerprint = createFingerprint();
  #known = '';
  #isClosed = false;
  #running: Promise<void> | undefined;
  #isDue = false;
  #debounceTimer: NodeJS.Timeout | undefined;
  #polling: NodeJS.Timeout | undefined;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#targets = options.targets;
  }

  async start(): Promise<void> {
    this.#watchFolders();
    this.#known = (await this.#fingerprint(this.#targets)).content;
    this.#polling = setInterval(() => this.#poll(), this.#options.pollMs ?? POLL_MS);
    this.#polling.unref();
  }

  retarget(targets: WatchTargets): void {
    if (JSON.stringify(targets) === JSON.stringify(this.#targets)) return;
    this.#targets = targets;
    this.#known = '';
    this.#watchFolders();
  }

  check(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#isDue = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#polling);
    clearTimeout(this.#debounceTimer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      try {
        const found = await this.#fingerprint(this.#targets);
        if (found.content === this.#known || this.#isClosed) continue;
        this.#known = found.content;
        await this.#notify();
        const { stamp } = await this.#fingerprint(this.#targets);
        if (stamp === found.stamp) continue;
        // Written while it was told: what was read then may be neither what was found nor what stands now.
        this.#known = '';
        this.#isDue = true;
      } catch (error) {
        this.#options.onError(error);
      }
    }
  }

  async #notify(): Promise<void> {
    try {
      await this.#options.onChange();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #poll(): void {
    // Folders come and go; a watch that ended is begun again.
    this.#watchFolders();
    void this.check();
  }

  #debounce(): void {
    if (this.#isClosed || this.#debounceTimer !== undefined) return;
    this.#debounceTimer = setTimeout(() => {
      this.#debounceTimer = undefined;
      void this.check();
    }, this.#options.debounceMs ?? DEBOUNCE_MS);
    this.#debounceTimer.unref();
  }

  /** An audit log beside the configuration changes all the time. */
  #isOwn(file: string): boolean {
    return this.#targets.own?.includes(file) === true;
  }

  #watchFolders(): void {
    if (this.#isClosed) return;
    const folders = foldersOf(this.#targets);
    for (const [folder, watcher] of this.#watchers) {
      if (folders.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of folders) if (!this.#watchers.has(folder)) this.#watchFolder(folder);
  }

  #watchFolder(folder: string): void {
    const end = (): void => {
      this.#watchers.get(folder)?.close();
      this.#watchers.delete(folder);
    };
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name === null || !this.#isOwn(resolve(folder, name))) this.#debounce();
      });
      watcher.on('error', end);
      this.#watchers.set(folder, watcher);
    } catch {
      // Not there, or no watches left: polling alone sees the change.
    }
  }
}

function foldersOf(targets: WatchTargets): ReadonlySet<string> {
  return new Set([
    ...targets.files.map((file) => dirname(file)),
    ...targets.folders.map(({ path }) => path),
  ]);
}
