// The writer of audit files. Each run has a file of its own beside the configured path, opened so that it must not exist
// before, readable by its owner alone; so no two gateways ever share one. Its first line links it to the newest file that
// was there. A file that is as large or as old as is configured is followed by the next one, and so is a file that was
// moved away, removed, cut or written to by another process, or whose end could not be repaired after a failed write:
// what the writer finds it never changes. Groups of lines are appended, each synced where that is configured.

import { constants, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, stat, statfs, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemErrorCode } from '../text/wording.js';
import type { ChainHead, ChainTail, Predecessor } from './chain.js';
import { compressFile } from './compression.js';
import { createWriterWatch, findOldFiles, findPredecessor, listFinished, listRuns, readFileEnd } from './folder.js';
import { readRunName, runNameOf } from './run-name.js';
import type { ChainWriter, FileOpening, Preparation } from './sink.js';

const FILE_MODE = 0o600;

/** A write that has returned is with the operating system, and so survives the death of this process. */
const APPEND = constants.O_APPEND | constants.O_RDWR | constants.O_NOFOLLOW;
/** INVARIANT: the file must not exist, so that no other process has it open, and no link leads elsewhere. */
const NEW_FILE = APPEND | constants.O_CREAT | constants.O_EXCL;

/** INVARIANT: opening never waits for a reader, and a link outside /dev does not choose where lines go. */
const DEVICE = constants.O_APPEND | constants.O_WRONLY | constants.O_NONBLOCK;

/** A name that lies further ahead of the clock, and of what was written last, is nobody's start. */
const MAX_AHEAD_MS = 86_400_000;

/** Types of local file systems (statfs(2)): ext, XFS, Btrfs, F2FS, ZFS, tmpfs, overlay. */
const LOCAL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

/** True if only this machine's kernel can have mounted the file system; false too if that is unknown. */
async function isOnThisMachine(path: string): Promise<boolean> {
  try {
    return LOCAL_FILE_SYSTEMS.has((await statfs(path)).type);
  } catch {
    return false;
  }
}

type OpenFile = {
  readonly handle: FileHandle;
  readonly path: string;
  /**
   * True on a local file system, where a check takes a few microseconds from memory, less than passing it to
   * another thread. Over a network it could block indefinitely.
   */
  readonly isLocal: boolean;
  readonly device: number;
  readonly inode: number;
  readonly openedMs: number;
  /** What the first line says of the file. */
  readonly opening: FileOpening;
  /** The line that the first line follows, in the chain of this run. */
  readonly head: ChainHead | undefined;
  /** Bytes of completed writes. */
  size: number;
  /** Set if a failed write may have left bytes that could not be taken back. */
  isTorn: boolean;
};

/** Why the next file is opened; the first line says it. */
type Cause = 'vanished' | 'replaced' | 'resized' | 'torn' | 'size' | 'age';

function compare(found: Stats, opened: OpenFile): Cause | undefined {
  if (found.ino !== opened.inode || found.dev !== opened.device) return 'replaced';
  return found.size === opened.size ? undefined : 'resized';
}

/** Rejects if it cannot be found out: the file may still be there. */
async function checkFile(opened: OpenFile): Promise<Cause | undefined> {
  if (opened.isTorn) return 'torn';
  try {
    return compare(opened.isLocal ? statSync(opened.path) : await stat(opened.path), opened);
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
    return 'vanished';
  }
}

/** Later runs would not find a file whose name they cannot read. */
function requireReadable(name: string): void {
  if (readRunName(name) === undefined) throw new Error('no name is left for the next audit file');
}

/** Makes the name of a new file durable too. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done);
    done += bytesWritten;
  }
}

const FULL_PIPE_POLL_MS = 10;

/** Waits while a pipe is full; whoever gives up closes the handle, which ends the wait. */
async function writeToDevice(handle: FileHandle, bytes: Buffer): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    try {
      const { bytesWritten } = await handle.write(bytes, done, bytes.length - done);
      done += bytesWritten;
    } catch (error) {
      if (systemErrorCode(error) !== 'EAGAIN') throw error;
      await sleep(FULL_PIPE_POLL_MS);
    }
  }
}

/** When a file is followed by the next one; `undefined`: never for this cause. */
export type RotationBounds = { readonly bytes: number | undefined; readonly ageMs: number | undefined };

/** After a rotation that failed, the file is used for this time before the next attempt. */
const ROTATE_AGAIN_MS = 60_000;

export type AuditFileOptions = {
  /** Name of this run of the gateway. */
  readonly instance: string;
  /** Each write is synced, so that it survives power loss too. */
  readonly isSynced?: boolean;
  readonly rotation?: RotationBounds;
  /** A file counts as written by somebody else for this time after it has grown. */
  readonly quietMs?: number;
  readonly now?: () => number;
};

const QUIET_MS = 60_000;

/** Creates the writer of the files beside a path. Opens nothing before the first `prepare`. */
export function createAuditFile(path: string, options: AuditFileOptions): ChainWriter {
  const { instance, isSynced = false, rotation, quietMs = QUIET_MS, now = Date.now } = options;
  const flags = isSynced ? constants.O_DSYNC : 0;
  const folder = dirname(path);
  let opened: OpenFile | undefined;
  /** Set if something other than a file is at the path, such as a pipe, which lines are then written to. */
  let device: { readonly handle: FileHandle; readonly device: number; readonly inode: number } | undefined;
  /** The number of bytes being written, until they are known to be durable. */
  let writing = 0;
  let rotatesAfterMs = 0;
  /** What somebody else has last done to a file of this run. */
  let damage: string | undefined;
  /** Names that lie too far ahead to have been begun by a gateway. */
  let ahead: readonly string[] = [];
  /** How often a file was left whose lines may not all be on disk, and how often when old files were last listed. */
  let [losses, knownLosses] = [0, 0];
  const findOtherWriters = createWriterWatch(path, instance, quietMs);

  /** The start that the name of the next file has, if it is not taken; `after` is the last file with a line. */
  async function firstStart(after: string | undefined): Promise<number> {
    const lastMs = readRunName(after ?? '')?.startMs ?? Number.NEGATIVE_INFINITY;
    const limitMs = Math.max(now(), lastMs) + MAX_AHEAD_MS;
    const runs = await listRuns(folder, basename(path));
    ahead = runs.filter((run) => run.startMs > limitMs).map((run) => run.name);
    const newestMs = runs.findLast((run) => run.startMs <= limitMs)?.startMs ?? Number.NEGATIVE_INFINITY;
    return Math.max(now(), newestMs + 1, lastMs + 1);
  }

  /**
   * Creates a file whose name is newer than every other, also if the clock was set back. A name that lies far ahead is
   * passed over: somebody who may create files could otherwise use up the names that are left.
   */
  async function create(after: string | undefined): Promise<{ readonly handle: FileHandle; readonly name: string }> {
    for (let startMs = await firstStart(after); ; startMs += 1) {
      const name = runNameOf(path, startMs, instance);
      requireReadable(name);
      try {
        return { handle: await open(join(folder, name), NEW_FILE | flags, FILE_MODE), name };
      } catch (error) {
        if (systemErrorCode(error) !== 'EEXIST') throw error;
      }
    }
  }

  /** A removal may be recorded in the file that is left, so its lines must be on disk. */
  async function leave(file: OpenFile | undefined, why: Cause | undefined): Promise<void> {
    if (file === undefined) return;
    const isComplete = why === 'size' || why === 'age';
    const isOnDisk = await file.handle.datasync().then(
      () => true,
      () => false,
    );
    if (!isComplete || !isOnDisk) losses += 1;
    await file.handle.close().catch(() => undefined);
  }

  async function openNext(
    head: ChainHead | undefined,
    describe: () => Promise<Pick<FileOpening, 'after' | 'skipped'>>,
    why?: Cause,
  ): Promise<void> {
    // Before the file exists, so that it is not found itself.
    const { after, skipped } = await describe();
    const { handle, name } = await create(after?.file);
    try {
      const { dev, ino } = await handle.stat();
      if (isSynced) await syncFolder(folder);
      const next = {
        ...{ handle, path: join(folder, name), isLocal: await isOnThisMachine(folder), device: dev, inode: ino },
        ...{ openedMs: performance.now(), head, size: 0, isTorn: false },
        opening: { file: name, why, after, skipped },
      };
      await leave(opened, why);
      opened = next;
    } catch (error) {
      await handle.close();
      await unlink(join(folder, name)).catch(() => undefined);
      throw error;
    }
  }

  /** What this run has written last, by the file itself if a failed write may have left some of its lines there. */
  async function endOf(file: OpenFile, known: ChainHead): Promise<Predecessor> {
    const tail: ChainTail | undefined = file.isTorn ? await readFileEnd(file.path).catch(() => undefined) : undefined;
    const isOurs = tail?.head?.epoch === known.epoch;
    return { file: basename(file.path), head: (isOurs && tail.head) || known, torn: isOurs ? tail.torn : '' };
  }

  async function openFirst(): Promise<void> {
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && !found.isFile()) {
      await openDevice();
      return;
    }
    await openNext(undefined, () => findPredecessor(path));
  }

  async function openDevice(): Promise<void> {
    if (isSynced) throw new Error('"durability: synced" needs a file, and something else is at the path');
    // The runs before wrote files: whoever put this here would take the log away.
    const runs = await listRuns(folder, basename(path)).catch(() => []);
    if (runs.length > 0) throw new Error('something that is no file is at the path, beside files of earlier runs');
    const isInDev = resolve(path).startsWith('/dev/');
    const handle = await open(path, isInDev ? DEVICE : DEVICE | constants.O_NOFOLLOW);
    const { dev, ino } = await handle.stat();
    device = { handle, device: dev, inode: ino };
  }

  /** Lines must go to what is at the path now. */
  async function keepDevice(): Promise<void> {
    if (device === undefined) return;
    const found = await stat(path).catch(() => undefined);
    if (found?.ino === device.inode && found.dev === device.device) return;
    await device.handle.close().catch(() => undefined);
    device = undefined;
  }

  const textOfCut = (file: OpenFile): string =>
    `another process has cut the audit file ${basename(file.path)} or written into it`;

  /** Goes on in the next file. A rotation that fails is no failure: there is a file to write to. */
  async function follow(file: OpenFile, known: ChainHead, why: Cause): Promise<void> {
    if (why === 'resized') damage = textOfCut(file);
    if (why === 'vanished' || why === 'replaced')
      damage = `the audit file ${basename(file.path)} was moved away, removed or replaced while it was written`;
    const after = await endOf(file, known);
    try {
      await openNext(after.head, async () => ({ after, skipped: [] }), why);
    } catch (error) {
      if (why !== 'size' && why !== 'age') throw error;
      rotatesAfterMs = performance.now() + ROTATE_AGAIN_MS;
    }
  }

  function dueRotation({ size, openedMs }: OpenFile): Cause | undefined {
    if (size === 0 || rotation === undefined || performance.now() < rotatesAfterMs) return undefined;
    if (rotation.bytes !== undefined && size >= rotation.bytes) return 'size';
    return rotation.ageMs !== undefined && performance.now() - openedMs >= rotation.ageMs ? 'age' : undefined;
  }

  /** Lines that are confirmed must be in the file that is at its path now. */
  async function keepUsable(file: OpenFile, known: ChainHead | undefined): Promise<void> {
    const why = (await checkFile(file)) ?? dueRotation(file);
    if (why === undefined) return;
    if (known === undefined) await openNext(undefined, () => findPredecessor(path));
    else await follow(file, known, why);
  }

  /** Takes back what was written of a failed group, so that the file ends with a complete line. */
  async function undo(file: OpenFile): Promise<void> {
    try {
      const { size } = await file.handle.stat();
      if (size === file.size) return;
      // Only if nothing but this group follows: another process may have written after it.
      if (size > file.size + writing) file.isTorn = true;
      // Somebody has cut it: truncating it to a larger size would fill it with zeros.
      else if (size < file.size) {
        file.isTorn = true;
        damage = textOfCut(file);
      } else await file.handle.truncate(file.size);
    } catch {
      file.isTorn = true;
    }
  }

  return {
    async prepare(known): Promise<Preparation> {
      await keepDevice();
      if (opened === undefined && device === undefined) await openFirst();
      if (opened !== undefined) await keepUsable(opened, known);
      if (opened?.size === 0) return { head: opened.head, opening: opened.opening };
      return { head: known, isStream: device !== undefined };
    },
    async commit(bytes) {
      writing = bytes.length;
      if (opened !== undefined) await writeAll(opened.handle, bytes);
      else if (device !== undefined) await writeToDevice(device.handle, bytes);
      else throw new Error('the file is not open');
      writing = 0;
      if (opened !== undefined) opened.size += bytes.length;
    },
    async abandon() {
      if (opened !== undefined && writing > 0) await undo(opened);
      writing = 0;
      await device?.handle.close().catch(() => undefined);
      device = undefined;
    },
    async close() {
      const file = opened;
      opened = undefined;
      await device?.handle.close();
      // A file without a line says nothing.
      const isEmpty = file?.size === 0 && (await checkFile(file).catch(() => 'unknown')) === undefined;
      if (isEmpty) await unlink(file.path).catch(() => undefined);
      await file?.handle.close();
    },
    folder: {
      ownFile: () => opened && { path: opened.path, bytes: opened.size },
      async findWarnings() {
        const others = await findOtherWriters();
        return [
          ...(damage === undefined ? [] : [damage]),
          ...ahead.map((name) => `the start in the name of ${name} lies in the future: it is passed over`),
          ...others.map((name) => `two writers: another gateway writes ${name} beside this one`),
        ];
      },
      findOld(keptMs) {
        knownLosses = losses;
        return findOldFiles(path, { keptMs, nowMs: now() }, (name) => name === opened?.opening.file);
      },
      pathOf: (file) => join(folder, file),
      findFinished: () => listFinished(path, { quietMs, nowMs: now() }, (name) => name === opened?.opening.file),
      compress: (file, signal) => compressFile(file, folder, signal),
      async measureSpace() {
        const { bsize, blocks, bavail } = await statfs(folder);
        return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
      },
      async remove(file) {
        const current = opened;
        // The line that says so must be there after a power failure too; the next round tries again.
        if (current === undefined || (await checkFile(current)) !== undefined) return;
        await current.handle.datasync();
        if (losses !== knownLosses) return;
        await unlink(join(folder, file)).catch((error: unknown) => {
          // Another gateway in this folder removes the same files.
          if (systemErrorCode(error) !== 'ENOENT') throw error;
        });
      },
    },
  };
}

/**
 * Creates a writer to a stream such as standard output. It cannot be durable: `commit` resolves when the
 * stream has accepted the text. Each run is a chain of its own.
 */
export function createAuditStream(write: (text: string) => Promise<void>): ChainWriter {
  return {
    prepare: (known) => Promise.resolve({ head: known, isStream: true }),
    commit: (bytes) => write(bytes.toString('latin1')),
    abandon: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
