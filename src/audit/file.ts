// The writer of audit files: appends groups of lines, each synced where that is configured, to a file that only
// its owner can read, and only while this process holds its lease. Before a group it checks that the path still names the
// open file and that the size is unchanged. If the file was removed, rotated or truncated, it reopens the
// path; if the file does not end in the last line of this process, another process has written to it and
// nothing more is written. After a crash it finds the last complete line and reports what was torn. It never
// continues a file that is not an audit file.

import { randomUUID } from 'node:crypto';
import { constants, type Stats, statSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type ChainHead, type ChainTail, readChainLine, readTail, tornDigest } from './chain.js';
import type { ChainWriter, LifecycleEvent, Preparation } from './sink.js';
import { AuditLease, isOnThisMachine, type LeaseOptions } from './writer-lease.js';

const FILE_MODE = 0o600;

/** A write that has returned is with the operating system, and so survives the death of this process. */
const APPEND = constants.O_APPEND | constants.O_CREAT | constants.O_RDWR;
/** Each write returns when its bytes are on the disk, as after fdatasync, in one system call instead of two. */
const SYNCED_APPEND = APPEND | constants.O_DSYNC;

/** The last complete line must be within this end of the file; far more than the longest line. */
const MAX_TAIL_BYTES = 1024 * 1024;

type OpenFile = {
  readonly handle: FileHandle;
  /**
   * True on a local file system, where a check takes a few microseconds from memory, less than passing it to
   * another thread. Over a network it could block indefinitely.
   */
  readonly isLocal: boolean;
  readonly isRegular: boolean;
  readonly device: number;
  readonly inode: number;
  /** Bytes of completed writes. */
  size: number;
};

type PathState = 'same' | 'vanished' | 'replaced' | 'resized';

function compare(found: Stats, opened: OpenFile): PathState {
  if (found.ino !== opened.inode || found.dev !== opened.device) return 'replaced';
  return opened.isRegular && found.size !== opened.size ? 'resized' : 'same';
}

async function checkFile(path: string, opened: OpenFile): Promise<PathState> {
  try {
    return compare(opened.isLocal ? statSync(path) : await stat(path), opened);
  } catch {
    return 'vanished';
  }
}

async function openPath(path: string, isSynced: boolean): Promise<OpenFile> {
  const handle = await open(path, isSynced ? SYNCED_APPEND : APPEND, FILE_MODE);
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

async function readEnd({ handle, size }: OpenFile, more = 0): Promise<string> {
  const length = Math.min(size, MAX_TAIL_BYTES + more);
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

function continuation(head: ChainHead, why: string): LifecycleEvent {
  return { event: 'continued', detail: { why, after_seq: head.seq, after_hash: head.hash } };
}

/** How a process that has written nothing yet continues a file with content. */
function continueExistingFile(text: string): Preparation {
  const tail = readTail(text);
  if (tail.head === undefined) {
    throw new Error('the file has content and no audit line at its end');
  }
  return { head: tail.head, lifecycleEvents: recovery(tail), needsLineEnd: !tail.isLineEnded };
}

function recovery({ torn }: ChainTail): LifecycleEvent[] {
  if (torn === '') return [];
  return [{ event: 'recovered', detail: { torn_bytes: torn.length, torn_sha256: tornDigest(torn) } }];
}

/** The text after the last line that this process wrote; `undefined` if that line is not in the file. */
function textAfterHead(text: string, { hash }: ChainHead): string | undefined {
  const ending = `"hash":"${hash}"}}\n`;
  const at = text.lastIndexOf(ending);
  if (at < 0) return undefined;
  const line = readChainLine(text.slice(text.lastIndexOf('\n', at) + 1, at + ending.length - 1));
  const isOurs = line !== undefined && line.computed === line.hash && line.hash === hash;
  return isOurs ? text.slice(at + ending.length) : undefined;
}

/** What a failed write that could not be undone may have left after the last line. */
type FailedWrite = { readonly device: number; readonly inode: number; readonly bytes: Buffer };

/** How a process continues a file that it has written to itself. */
function continueOwnFile(
  text: string,
  file: OpenFile,
  known: ChainHead,
  failedWrite: FailedWrite | undefined,
): Preparation {
  const trailingText = textAfterHead(text, known);
  if (trailingText === '') return { head: known, lifecycleEvents: [], needsLineEnd: false };
  const isSame = failedWrite?.device === file.device && failedWrite.inode === file.inode;
  const failedText = isSame ? failedWrite?.bytes.toString('latin1') : undefined;
  if (trailingText !== undefined && failedText?.startsWith(trailingText)) return continueExistingFile(text);
  throw new Error('the file does not end where this gateway left it: another process wrote into it, or cut it');
}

type AuditFileOptions = {
  /** Each write is synced, so that it survives power loss too. */
  readonly isSynced?: boolean;
  readonly lease?: LeaseOptions;
};

/** Creates a writer for one path. Opens nothing before `acquire` or the first `prepare`. */
export function createAuditFile(path: string, options: AuditFileOptions = {}): ChainWriter {
  const { isSynced = false } = options;
  const lease = new AuditLease(path, options.lease ?? { instance: randomUUID() });
  let opened: OpenFile | undefined;
  let failedWrite: FailedWrite | undefined;
  /** The bytes being written, until they are known to be durable. */
  let writing: Buffer | undefined;

  async function release(): Promise<void> {
    const { handle } = opened ?? {};
    opened = undefined;
    await handle?.close().catch(() => undefined);
  }

  async function openForWriting(known: ChainHead | undefined, why: string): Promise<Preparation> {
    await lease.holdAnew();
    const file = await openPath(path, isSynced);
    opened = file;
    if (file.size > 0) {
      const text = await readEnd(file, failedWrite?.bytes.length);
      return known === undefined ? continueExistingFile(text) : continueOwnFile(text, file, known, failedWrite);
    }
    if (file.isRegular && isSynced) await syncFolder(path);
    const lifecycleEvents = known === undefined ? [] : [continuation(known, why)];
    return { head: known, lifecycleEvents, needsLineEnd: false };
  }

  /** Removes what was written of a failed group, so that the file ends with a complete line. */
  async function undo({ handle, isRegular, device, inode, size }: OpenFile): Promise<void> {
    const bytes = writing;
    writing = undefined;
    if (bytes === undefined || !isRegular) return;
    try {
      // Truncates only if nothing but this group follows: another process may have written after it.
      if ((await handle.stat()).size > size + bytes.length) return;
      await handle.truncate(size);
    } catch {
      failedWrite = { device, inode, bytes: Buffer.from(bytes) };
    }
  }

  return {
    acquire: (onWait, ending) => lease.acquire(onWait, ending),
    currentError: () => lease.lost,
    async prepare(known) {
      if (opened === undefined) return openForWriting(known, 'reopened');
      if (!lease.isFresh) await lease.hold();
      // Lines that are confirmed must be in the file that is at the path now.
      const found = await checkFile(path, opened);
      if (found === 'same') return { head: known, lifecycleEvents: [], needsLineEnd: false };
      await release();
      return openForWriting(known, found);
    },
    async commit(bytes) {
      if (opened === undefined) throw new Error('the file is not open');
      writing = bytes;
      await writeAll(opened.handle, bytes);
      writing = undefined;
      failedWrite = undefined;
      opened.size += bytes.length;
    },
    async abandon() {
      if (opened !== undefined) await undo(opened);
      await release();
    },
    async close() {
      await release();
      await lease.release();
    },
  };
}

/**
 * Creates a writer to a stream such as standard output. It cannot be durable: `commit` resolves when the
 * stream has accepted the text. Each run is a chain of its own.
 */
export function createAuditStream(write: (text: string) => Promise<void>): ChainWriter {
  return {
    prepare: (known) => Promise.resolve({ head: known, lifecycleEvents: [], needsLineEnd: false }),
    commit: (bytes) => write(bytes.toString('latin1')),
    abandon: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
