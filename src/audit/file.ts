// The writer of audit files. Each run has a file of its own beside the configured path, opened so that it must not exist
// before, readable by its owner alone; so no two gateways ever share one. Its first line links it to the newest file that
// was there. A file that is as large or as old as is configured is followed by the next one, and so is a file that was
// moved away, removed, cut or written to by another process, or whose end could not be repaired after a failed write:
// what the writer finds it never changes. Groups of lines are appended, each synced where that is configured.

import { constants, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, stat, statfs, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '../text/wording.js';
import type { ChainHead, ChainTail, Predecessor } from './chain.js';
import { createWriterWatch, findOldFiles, findPredecessor, listRuns, readFileEnd } from './folder.js';
import { runNameOf } from './run-name.js';
import type { ChainWriter, FileOpening, Preparation } from './sink.js';

const FILE_MODE = 0o600;

/** A write that has returned is with the operating system, and so survives the death of this process. */
const APPEND = constants.O_APPEND | constants.O_RDWR | constants.O_NOFOLLOW;
/** INVARIANT: the file must not exist, so that no other process has it open, and no link leads elsewhere. */
const NEW_FILE = APPEND | constants.O_CREAT | constants.O_EXCL;

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

async function checkFile(opened: OpenFile): Promise<Cause | undefined> {
  if (opened.isTorn) return 'torn';
  try {
    return compare(opened.isLocal ? statSync(opened.path) : await stat(opened.path), opened);
  } catch {
    return 'vanished';
  }
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
  let device: FileHandle | undefined;
  /** The number of bytes being written, until they are known to be durable. */
  let writing = 0;
  let rotatesAfterMs = 0;
  /** The last file that somebody else has written to, or cut. */
  let damaged: string | undefined;
  const findOtherWriters = createWriterWatch(path, instance, quietMs);

  /** Creates a file whose name is newer than every other, also if the clock was set back. */
  async function create(): Promise<{ readonly handle: FileHandle; readonly name: string }> {
    const newest = (await listRuns(folder, basename(path))).at(-1)?.startMs ?? Number.NEGATIVE_INFINITY;
    for (let startMs = Math.max(now(), newest + 1); ; startMs += 1) {
      const name = runNameOf(path, startMs, instance);
      try {
        return { handle: await open(join(folder, name), NEW_FILE | flags, FILE_MODE), name };
      } catch (error) {
        if (systemErrorCode(error) !== 'EEXIST') throw error;
      }
    }
  }

  async function openNext(
    head: ChainHead | undefined,
    describe: () => Promise<Pick<FileOpening, 'after' | 'skipped'>>,
    why?: Cause,
  ): Promise<void> {
    // Before the file exists, so that it is not found itself.
    const { after, skipped } = await describe();
    const { handle, name } = await create();
    try {
      const { dev, ino } = await handle.stat();
      if (isSynced) await syncFolder(folder);
      const next = {
        ...{ handle, path: join(folder, name), isLocal: await isOnThisMachine(folder), device: dev, inode: ino },
        ...{ openedMs: performance.now(), head, size: 0, isTorn: false },
        opening: { file: name, why, after, skipped },
      };
      await opened?.handle.close().catch(() => undefined);
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
      device = await open(path, constants.O_APPEND | constants.O_WRONLY);
      return;
    }
    await openNext(undefined, () => findPredecessor(path));
  }

  /** Goes on in the next file. A rotation that fails is no failure: there is a file to write to. */
  async function follow(file: OpenFile, known: ChainHead, why: Cause): Promise<void> {
    if (why === 'resized') damaged = basename(file.path);
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
      else await file.handle.truncate(file.size);
    } catch {
      file.isTorn = true;
    }
  }

  return {
    async prepare(known): Promise<Preparation> {
      if (opened === undefined && device === undefined) await openFirst();
      if (opened !== undefined) await keepUsable(opened, known);
      return opened?.size === 0 ? { head: opened.head, opening: opened.opening } : { head: known };
    },
    async commit(bytes) {
      const handle = opened?.handle ?? device;
      if (handle === undefined) throw new Error('the file is not open');
      writing = bytes.length;
      await writeAll(handle, bytes);
      writing = 0;
      if (opened !== undefined) opened.size += bytes.length;
    },
    async abandon() {
      if (opened !== undefined && writing > 0) await undo(opened);
      writing = 0;
      await device?.close().catch(() => undefined);
      device = undefined;
    },
    async close() {
      const file = opened;
      opened = undefined;
      await device?.close();
      // A file without a line says nothing.
      if (file?.size === 0 && (await checkFile(file)) === undefined) await unlink(file.path).catch(() => undefined);
      await file?.handle.close();
    },
    folder: {
      async findWarnings() {
        const others = await findOtherWriters();
        return [
          ...(damaged === undefined ? [] : [`another process has cut the audit file ${damaged} or written into it`]),
          ...others.map((name) => `two writers: another gateway writes ${name} beside this one`),
        ];
      },
      findOld: (beforeMs) => findOldFiles(path, beforeMs, (name) => name === opened?.opening.file),
      async remove(file) {
        // The line that says so must be there after a power failure too.
        await opened?.handle.datasync();
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
    prepare: (known) => Promise.resolve({ head: known }),
    commit: (bytes) => write(bytes.toString('latin1')),
    abandon: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
