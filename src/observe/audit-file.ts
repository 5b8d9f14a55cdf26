// The file that audit lines go to: appended, synced (O_DSYNC) group by group, readable by its owner
// alone. Before a group it looks whether the path still names the file it has, and of the size it left:
// when it was removed, rotated, cut or written by another, it opens the path anew. Groups that follow
// each other within a few milliseconds share one look. After a crash it finds the last whole line and
// says what was torn. It never goes on in a file that is no audit file.

import { constants, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ChainWriter, Notice, Preparation } from './audit-ports.js';
import { type ChainHead, readTail, tornDigest } from './chain.js';

const FILE_MODE = 0o600;

/** Each write returns when its bytes are durable, as after fdatasync: one call of the system, not two. */
const SYNCED_APPEND = constants.O_APPEND | constants.O_CREAT | constants.O_RDWR | constants.O_DSYNC;

/** A look is good for this long: as near as a look can come to a write that takes about as long itself. */
const LOOK_EVERY_MS = 5;

/** The end of the file in which the last whole line must be found; far more than the longest line. */
const MAX_TAIL_BYTES = 1024 * 1024;

/**
 * File systems of this machine (statfs(2)): ext, XFS, Btrfs, F2FS, ZFS, tmpfs, overlay. There a look is a
 * few microseconds from memory, less than handing it to another thread; over a network it may take forever.
 */
const LOCAL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

type Opened = {
  readonly handle: FileHandle;
  /** On a file system of this machine. */
  readonly isLocal: boolean;
  readonly isRegular: boolean;
  readonly device: number;
  readonly inode: number;
  /** Bytes that are durable. */
  size: number;
};

type Found = 'same' | 'vanished' | 'replaced' | 'resized';

function compare(found: Stats | undefined, opened: Opened): Found {
  if (found === undefined) return 'vanished';
  if (found.ino !== opened.inode || found.dev !== opened.device) return 'replaced';
  return opened.isRegular && found.size !== opened.size ? 'resized' : 'same';
}

function lookNow(path: string, opened: Opened): Found {
  try {
    return compare(statSync(path, { throwIfNoEntry: false }), opened);
  } catch {
    return 'vanished';
  }
}

async function look(path: string, opened: Opened): Promise<Found> {
  try {
    return compare(await stat(path), opened);
  } catch {
    return 'vanished';
  }
}

async function isOnThisMachine(path: string): Promise<boolean> {
  try {
    return LOCAL_FILE_SYSTEMS.has((await statfs(path)).type);
  } catch {
    return false;
  }
}

async function openPath(path: string): Promise<Opened> {
  const handle = await open(path, SYNCED_APPEND, FILE_MODE);
  try {
    const found = await handle.stat();
    return {
      handle,
      isLocal: found.isFile() && (await isOnThisMachine(path)),
      isRegular: found.isFile(),
      device: found.dev,
      inode: found.ino,
      size: found.isFile() ? found.size : 0,
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Makes the name of a new file durable too. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function readEnd({ handle, size }: Opened): Promise<string> {
  const length = Math.min(size, MAX_TAIL_BYTES);
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, length - done, size - length + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.toString('latin1', 0, done);
}

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done);
    done += bytesWritten;
  }
}

function continuation(head: ChainHead, why: string): Notice {
  return { event: 'continued', detail: { why, after_seq: head.seq, after_hash: head.hash } };
}

/** How a file with content is gone on with. */
function resume(text: string, known: ChainHead | undefined, why: string): Preparation {
  const tail = readTail(text);
  if (tail.head === undefined && known === undefined) {
    throw new Error('the file has content and no audit line at its end');
  }
  const isOurs =
    tail.head !== undefined &&
    (known === undefined || (tail.head.epoch === known.epoch && tail.head.seq >= known.seq));
  const notices: Notice[] = [];
  if (tail.torn !== '') {
    const detail = { torn_bytes: tail.torn.length, torn_sha256: tornDigest(tail.torn) };
    notices.push({ event: 'recovered', detail });
  }
  if (!isOurs && known !== undefined) notices.push(continuation(known, why));
  return { head: isOurs ? tail.head : known, notices, needsLineEnd: !tail.isLineEnded };
}

/**
 * A writer for one path. Nothing is opened before the first `prepare`. A file that was taken away within
 * `lookEveryMs` after a look is noticed by the first group behind that time.
 */
export function createAuditFile(path: string, lookEveryMs: number = LOOK_EVERY_MS): ChainWriter {
  let opened: Opened | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;

  async function release(): Promise<void> {
    const { handle } = opened ?? {};
    opened = undefined;
    await handle?.close().catch(() => undefined);
  }

  async function takeUp(known: ChainHead | undefined, why: string): Promise<Preparation> {
    const file = await openPath(path);
    opened = file;
    if (file.size > 0) return resume(await readEnd(file), known, why);
    if (file.isRegular) await syncFolder(path);
    const notices = known === undefined ? [] : [continuation(known, why)];
    return { head: known, notices, needsLineEnd: false };
  }

  return {
    async prepare(known) {
      if (opened === undefined) return takeUp(known, 'reopened');
      const nowMs = performance.now();
      if (nowMs - lookedMs < lookEveryMs) return { head: known, notices: [], needsLineEnd: false };
      const found = opened.isLocal ? lookNow(path, opened) : await look(path, opened);
      if (found === 'same') {
        lookedMs = nowMs;
        return { head: known, notices: [], needsLineEnd: false };
      }
      await release();
      return takeUp(known, found);
    },
    async commit(bytes) {
      if (opened === undefined) throw new Error('the file is not open');
      await writeAll(opened.handle, bytes);
      opened.size += bytes.length;
    },
    async abandon() {
      // What was written of the failed group is taken back, so that the file ends with a whole line.
      if (opened?.isRegular) await opened.handle.truncate(opened.size).catch(() => undefined);
      await release();
    },
    close: release,
  };
}

/**
 * A writer that hands lines to a stream, such as standard output. It cannot be durable: `write` resolves
 * when the stream took the text. Each run is a chain of its own.
 */
export function createAuditStream(write: (text: string) => Promise<void>): ChainWriter {
  return {
    prepare: (known) => Promise.resolve({ head: known, notices: [], needsLineEnd: false }),
    commit: (bytes) => write(bytes.toString('latin1')),
    abandon: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
