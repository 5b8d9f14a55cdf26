// The files of the configuration. Reading: an interface for the contents of a file and the names in a folder,
// implemented here for the disk, and by maps in tests. Watching: reports when the content of gateway file, policies
// or lock files has changed. It watches folders, because a mounted ConfigMap is replaced by a symbolic link beside
// the files, and polls, because a watch can miss such a replacement. It compares hashes of the content: writing the
// same content is not a change. Never writes.

import { createHash } from 'node:crypto';
import { type FSWatcher, readdirSync, readFileSync, statSync, watch } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { platform } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** Throw if the file or folder cannot be read. */
export type Files = {
  readonly readFile: (path: string) => Uint8Array;
  readonly listFolder: (path: string) => readonly string[];
  /** The permission bits of a file; `undefined` where the system has none. */
  readonly modeOf?: ((path: string) => number | undefined) | undefined;
};

/** The disk. Reads are synchronous: they happen at start and on reload only, and the files are small. */
export const DISK_FILES: Files = {
  readFile: (path) => readFileSync(path),
  listFolder: (path) => readdirSync(path),
  modeOf: (path) => (platform() === 'win32' ? undefined : statSync(path).mode),
};

/** The text of UTF-8 bytes without a byte order mark; `undefined` if they are no UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** What has been read of files and folders: SHA-256 of the files, and the names in the folders. */
export type FilesRead = {
  readonly digests: ReadonlyMap<string, string>;
  readonly names: ReadonlyMap<string, readonly string[]>;
};

/** Files that are read through this are noted with what they held. */
export function noteReads(files: Files): { readonly files: Files; readonly read: FilesRead } {
  const digests = new Map<string, string>();
  const names = new Map<string, readonly string[]>();
  const note = (path: string, digest: string): void => {
    const before = digests.get(resolve(path));
    digests.set(resolve(path), before === undefined || before === digest ? digest : CHANGED_MEANWHILE);
  };
  const noting: Files = {
    ...files,
    readFile(path) {
      try {
        const bytes = files.readFile(path);
        note(path, createHash('sha256').update(bytes).digest('hex'));
        return bytes;
      } catch (error) {
        note(path, UNREADABLE);
        throw error;
      }
    },
    listFolder(path) {
      names.set(resolve(path), []);
      const listed = files.listFolder(path);
      names.set(resolve(path), listed);
      return listed;
    },
  };
  return { files: noting, read: { digests, names } };
}

const UNREADABLE = 'unreadable';
/** Equal to no digest: the file was read twice and held something else. */
const CHANGED_MEANWHILE = 'changed';

/** Files by name, and folders of which every file with the suffix is watched. */
export type WatchTargets = {
  readonly files: readonly string[];
  readonly folders: readonly { readonly path: string; readonly suffix: string }[];
  /** True of files that gateways write themselves: events of watched folders about them are ignored. */
  readonly isOwn?: (file: string) => boolean;
};

/** A file changed this recently may change again within the resolution of its times, so it is read again. */
const STABLE_AFTER_MS = 2000;

type KnownFile = { readonly stamp: string; readonly digest: string };

/** `content` changes with the content of the files; `stamp` also with every write of the same content. */
type Fingerprint = {
  readonly content: string;
  readonly stamp: string;
  /** By the path of each file; of an unreadable one there is none. */
  readonly digests: ReadonlyMap<string, string>;
};

/**
 * Creates a function that hashes the current content of targets. It reads only files whose inode, size or
 * times changed, so that polling every second costs little. It never fails: an unreadable file is hashed
 * as such.
 */
function createFingerprint(): (targets: WatchTargets) => Promise<Fingerprint> {
  let known = new Map<string, KnownFile>();
  return async (targets) => {
    const seen = new Map<string, KnownFile>();
    const hash = createHash('sha256');
    const listed = await Promise.all(targets.folders.map(listWatched));
    for (const [index, { path }] of targets.folders.entries())
      if (listed[index] === undefined) hash.update(`${JSON.stringify(path)} ${UNREADABLE}\n`);
    for (const file of [...targets.files, ...listed.flatMap((files) => files ?? [])]) {
      hash.update(`${JSON.stringify(file)} ${await digestOf(file, known, seen)}\n`);
    }
    known = seen;
    const stamp = JSON.stringify([...seen].map(([file, one]) => [file, one.stamp]));
    const digests = new Map([...seen].map(([file, { digest }]) => [file, digest]));
    return { content: hash.digest('hex'), stamp, digests };
  };
}

type WatchedFolder = WatchTargets['folders'][number];

/** `undefined` if the folder cannot be read. */
async function listWatched(folder: WatchedFolder): Promise<string[] | undefined> {
  try {
    return watchedOf(folder, await readdir(folder.path));
  } catch {
    return undefined;
  }
}

function watchedOf({ path, suffix }: WatchedFolder, names: readonly string[]): string[] {
  return names
    .filter((name) => name.endsWith(suffix) && !name.startsWith('.'))
    .sort()
    .map((name) => join(path, name));
}

/** Whether the files are as they were read. What was not read then, though it was there, does not count. */
function areAsRead({ digests, names }: FilesRead, targets: WatchTargets, now: Fingerprint['digests']): boolean {
  const listed = targets.folders.flatMap((folder) => watchedOf(folder, names.get(resolve(folder.path)) ?? []));
  const before = new Set([...targets.files, ...listed]);
  const isAsRead = (file: string): boolean => {
    const digest = digests.get(resolve(file));
    return digest === undefined || digest === (now.get(file) ?? UNREADABLE);
  };
  const isNew = (file: string): boolean => !before.has(file) && names.has(resolve(dirname(file)));
  return ![...now.keys()].some(isNew) && [...before].every(isAsRead);
}

async function digestOf(
  file: string,
  known: ReadonlyMap<string, KnownFile>,
  seen: Map<string, KnownFile>,
): Promise<string> {
  try {
    // `stat` follows links, so a replaced ConfigMap shows as another inode.
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = await stat(file, { bigint: true });
    const stamp = `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    const before = known.get(file);
    const isStable = BigInt(Date.now()) - ctimeMs > BigInt(STABLE_AFTER_MS);
    const digest = isStable && before?.stamp === stamp ? before.digest : await hashFile(file);
    seen.set(file, { stamp, digest });
    return digest;
  } catch {
    return UNREADABLE;
  }
}

async function hashFile(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

const POLL_MS = 1000;
/** The longest pause between two calls for the same files, in polls. */
const MAX_PAUSE_POLLS = 60;
/** Several writes of one change arrive within this time and are checked once. */
const DEBOUNCE_MS = 50;

type WatchOptions = {
  readonly targets: WatchTargets;
  /** What of them has been read: what differs already is a change that the first check finds. */
  readonly read?: FilesRead | undefined;
  /** Called after a change, never concurrently; a change during a call is followed by another call. */
  readonly onChange: () => void | Promise<void>;
  /** Called with what `onChange` threw. Watching continues. */
  readonly onError: (error: unknown) => void;
  readonly pollMs?: number;
  readonly debounceMs?: number;
};

export type ConfigWatch = {
  /**
   * Says what was read last, and which files to watch from now on. What differs from it is a change. While the files are
   * those of the last call, as where none could be read, the next call waits for a pause, which grows.
   * @param read `undefined` if the reading failed.
   */
  noteReading(targets: WatchTargets, read: FilesRead | undefined): void;
  /** Checks now. Resolves once `onChange` has run for a change that was found. */
  check(): Promise<void>;
  /** Stops timers and watches. Starts no further call; a running one is awaited. */
  close(): Promise<void>;
};

/** Starts watching. What differs from the files as they were read, or are when this resolves, is a change. */
export async function watchConfiguration(options: WatchOptions): Promise<ConfigWatch> {
  const state = new Watch(options);
  await state.start();
  return state;
}

class Watch implements ConfigWatch {
  readonly #options: WatchOptions;
  #targets: WatchTargets;
  readonly #fingerprint = createFingerprint();
  /** The content that was read; empty if that is not known. */
  #known = '';
  /** What was said of a reading since the files were looked at. */
  #reading: { readonly read: FilesRead | undefined } | undefined;
  /** The content at the last call, and when it is a reason for another. */
  #calledFor = '';
  #pauseMs = 0;
  #againAtMs = 0;
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
    const { read } = this.#options;
    if (read !== undefined) this.#reading = { read };
    const { content } = await this.#look();
    if (read === undefined) this.#known = content;
    this.#polling = setInterval(() => this.#poll(), this.#options.pollMs ?? POLL_MS);
    this.#polling.unref();
  }

  noteReading(targets: WatchTargets, read: FilesRead | undefined): void {
    this.#targets = targets;
    this.#reading = { read };
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
        const found = await this.#look();
        if (found.content === this.#known || this.#isClosed || !this.#isTimeFor(found)) continue;
        this.#known = found.content;
        await this.#notify();
        const isNoted = this.#reading !== undefined;
        const { stamp } = await this.#look();
        if (stamp === found.stamp || (isNoted && this.#known !== '')) continue;
        // Files were written while `onChange` ran, which may have read neither the old nor the new content.
        this.#known = '';
        this.#isDue = true;
      } catch (error) {
        this.#options.onError(error);
      }
    }
  }

  /** The files as they are now, compared with what was said to have been read. */
  async #look(): Promise<Fingerprint> {
    const targets = this.#targets;
    const reading = this.#reading;
    this.#reading = undefined;
    const found = await this.#fingerprint(targets);
    if (reading !== undefined) {
      const isAsRead = reading.read !== undefined && areAsRead(reading.read, targets, found.digests);
      this.#known = isAsRead ? found.content : '';
    }
    return found;
  }

  /** Whether to call now. The same files are a reason again only after a pause. */
  #isTimeFor({ content, stamp }: Fingerprint): boolean {
    const nowMs = performance.now();
    const { pollMs = POLL_MS } = this.#options;
    const seen = `${content} ${stamp}`;
    if (seen !== this.#calledFor) this.#pauseMs = 0;
    else if (nowMs < this.#againAtMs) return false;
    this.#calledFor = seen;
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, pollMs), MAX_PAUSE_POLLS * pollMs);
    this.#againAtMs = nowMs + this.#pauseMs;
    return true;
  }

  async #notify(): Promise<void> {
    try {
      await this.#options.onChange();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #poll(): void {
    // Folders can be removed and created again; a watch that ended is restarted.
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
    return this.#targets.isOwn?.(file) === true;
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
      // The folder does not exist, or no more watches are available: polling still finds the change.
    }
  }
}

function foldersOf(targets: WatchTargets): ReadonlySet<string> {
  return new Set([...targets.files.map((file) => dirname(file)), ...targets.folders.map(({ path }) => path)]);
}
