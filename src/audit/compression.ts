// Compresses audit files that no run writes any more: `audit-….jsonl` becomes `audit-….jsonl.gz`. The compressed file is
// written under another name, synced and read back before it takes its name, and only then is the original removed; so
// wherever a crash comes, the lines are there once. While both files are there, the original counts. The work is done
// on threads of the platform, with pauses, and no write to the audit log waits for it.

import { constants, createReadStream, createWriteStream } from 'node:fs';
import { lstat, open, rename, stat, unlink, utimes } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { readBytes } from './reader.js';
import { COMPRESSED, compressingName } from './run-name.js';

const FILE_MODE = 0o600;
const PIECE_BYTES = 256 * 1024;

/** Passes the pieces on and rests after each as long as it took, so that at most half of a processor is used. */
async function* withPauses(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let startedMs = performance.now();
  for await (const piece of pieces) {
    yield piece;
    await sleep(performance.now() - startedMs);
    startedMs = performance.now();
  }
}

async function countBytes(path: string): Promise<number> {
  let bytes = 0;
  for await (const piece of withPauses(readBytes(path))) bytes += piece.length;
  return bytes;
}

async function writeCompressed(path: string, next: string, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  async function* count(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of withPauses(pieces)) {
      bytes += piece.length;
      yield piece;
    }
  }
  const source = createReadStream(path, { highWaterMark: PIECE_BYTES });
  // A new file, so that no link leads elsewhere.
  const target = createWriteStream(next, { flags: 'wx', mode: FILE_MODE });
  await pipeline(source, count, createGzip(), target, { signal });
  await syncPath(next);
  return bytes;
}

/** Makes a file durable, or the names in a folder. */
async function syncPath(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  await handle.sync().finally(() => handle.close());
}

/**
 * Compresses a file that is complete. Rejects if it is written meanwhile, and where anything else prevents it; the original
 * is there then.
 */
export async function compressFile(path: string, folder: string, signal: AbortSignal): Promise<void> {
  const next = compressingName(path);
  // What an earlier attempt left is no file of anybody.
  await unlink(next).catch(() => undefined);
  try {
    const before = await stat(path);
    const bytes = await writeCompressed(path, next, signal);
    const isReadable = (await countBytes(next)) === bytes;
    const { size, ino } = await lstat(path);
    if (!isReadable || size !== bytes || ino !== before.ino) throw new Error('it changed while it was compressed');
    // How old the lines are decides how long the file is kept.
    await utimes(next, before.atime, before.mtime);
    await rename(next, `${path}${COMPRESSED}`);
    await syncPath(folder);
    await unlink(path);
  } catch (error) {
    await unlink(next).catch(() => undefined);
    throw error;
  }
}
