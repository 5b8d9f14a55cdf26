// The audit files beside a configured path: `audit.jsonl` stands for the files `audit-<start>-<instance>.jsonl` of its
// folder, and for a file of that very name that an earlier version wrote. Their order, what stands at the end of a file, which files are old, and which of them somebody else is writing. Opens no file for writing, follows no symbolic
// link among the files of runs, and reads of a file only its end.

import { constants } from 'node:fs';
import { lstat, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '../text/wording.js';
import { type ChainTail, type Predecessor, readChainLine, readLink, readTail } from './chain.js';
import { compareRuns, type RunName, readRunName, shortInstance } from './run-name.js';

/** True if the gateway may write the file itself: the configured path, or the file of a run beside it. */
export function isAuditFileOf(path: string, file: string): boolean {
  if (file === path) return true;
  return dirname(file) === dirname(path) && readRunName(basename(file))?.configured === basename(path);
}

/** The files of runs in a folder, the oldest first; those of one configured name, or of all. */
export async function listRuns(folder: string, configured?: string): Promise<readonly RunName[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .flatMap((entry) => (entry.isFile() ? (readRunName(entry.name) ?? []) : []))
    .filter((run) => configured === undefined || run.configured === configured)
    .sort(compareRuns);
}

/** The files of a configured path, the oldest first: what an earlier version wrote at that very path, then those of runs. */
export async function listFilesOf(path: string): Promise<readonly string[]> {
  const runs = await listRuns(dirname(path), basename(path));
  const isThere = await lstat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  return [...(isThere ? [path] : []), ...runs.map(({ name }) => join(dirname(path), name))];
}

/** The last line is nearly always in the first of these ends of a file; the second is far longer than the longest line. */
const END_BYTES = [64 * 1024, 1024 * 1024] as const;

/** Neither follows a link nor waits, whatever is at the path. */
const READ_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Reads the last bytes of a file as Latin-1 text. */
async function readLast(path: string, bytes: number): Promise<{ readonly text: string; readonly isEntire: boolean }> {
  const handle = await open(path, READ_FILE);
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, bytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    return { text: buffer.toString('latin1', 0, bytesRead), isEntire: length === size };
  } finally {
    await handle.close();
  }
}

/** The end of a file. Rejects if it cannot be read. */
export async function readFileEnd(path: string): Promise<ChainTail> {
  let tail: ChainTail | undefined;
  for (const bytes of END_BYTES) {
    const { text, isEntire } = await readLast(path, bytes);
    tail = readTail(text);
    if (tail.head !== undefined || isEntire) return tail;
  }
  return tail ?? readTail('');
}

/** Names of skipped files in a line. */
const MAX_SKIPPED = 16;

/**
 * The newest file of a path that has a complete line, and the newer ones that have none, as a start leaves them that ended
 * before its first line. Rejects if a file cannot be read: what it has would be passed over.
 */
export async function findPredecessor(
  path: string,
): Promise<{ readonly after: Predecessor | undefined; readonly skipped: readonly string[] }> {
  const skipped: string[] = [];
  for (const file of [...(await listFilesOf(path))].reverse()) {
    const { head, torn } = await readFileEnd(file);
    if (head !== undefined) return { after: { file: basename(file), head, torn }, skipped };
    if (skipped.length < MAX_SKIPPED) skipped.push(basename(file));
  }
  return { after: undefined, skipped };
}

/**
 * The files of a path, the oldest first, whose last line and last change are both older than a time (milliseconds since
 * the epoch). Ends with the first that is not, so that no file is removed before the one that it follows. Files without a
 * complete line are left out: nothing follows them.
 */
export async function* findOldFiles(path: string, beforeMs: number, isOwn: (name: string) => boolean) {
  for (const file of await listFilesOf(path)) {
    if (isOwn(basename(file))) return;
    const { mtimeMs } = await lstat(file);
    const { head, torn, timeMs } = await readFileEnd(file);
    if (mtimeMs >= beforeMs || timeMs >= beforeMs) return;
    if (head !== undefined) yield { file: basename(file), head, torn } satisfies Predecessor;
  }
}

/** As many of the newest files are looked at for other writers; each has one that it writes. */
const MAX_WATCHED = 32;
const STOPPED_WITHIN_LINES = 4;

type WatchedFile = { size: number; changedMs: number; hasEnded: boolean };

/**
 * Creates a function that finds the files that somebody else is writing beside a path: those that are new or have grown
 * within `quietMs`, and do not end with the end of their run. At the first look, nothing has grown.
 */
export function createWriterWatch(
  path: string,
  instance: string,
  quietMs: number,
  monotonicMs: () => number = () => performance.now(),
): () => Promise<readonly string[]> {
  const own = shortInstance(instance);
  let watched: Map<string, WatchedFile> | undefined;

  async function lookAt(name: string, known: WatchedFile | undefined): Promise<WatchedFile> {
    const file = join(dirname(path), name);
    const { size } = await stat(file);
    if (size === known?.size) return known;
    const isNew = known === undefined && watched === undefined;
    return {
      size,
      changedMs: isNew ? Number.NEGATIVE_INFINITY : monotonicMs(),
      hasEnded: await hasRunEnded(file),
    };
  }

  return async () => {
    const runs = (await listRuns(dirname(path), basename(path))).filter((run) => run.instance !== own);
    const seen = new Map<string, WatchedFile>();
    const writing = new Map<string, string>();
    for (const { name, instance: other } of runs.slice(-MAX_WATCHED)) {
      const found = await lookAt(name, watched?.get(name)).catch(() => undefined);
      if (found === undefined) continue;
      seen.set(name, found);
      // A run that went on in a newer file writes only that.
      if (found.hasEnded || monotonicMs() - found.changedMs > quietMs) writing.delete(other);
      else writing.set(other, name);
    }
    watched = seen;
    return [...writing.values()];
  };
}

/** True if the last lines of a file are those that a gateway writes when it stops. */
async function hasRunEnded(path: string): Promise<boolean> {
  const { text } = await readLast(path, END_BYTES[0]);
  return text
    .trimEnd()
    .split('\n')
    .slice(-STOPPED_WITHIN_LINES)
    .some((line) => {
      const { type, detail } = readChainLine(line) ?? {};
      return type === 'lifecycle' && detail?.['event'] === 'stopped';
    });
}

/**
 * The files that an argument of a command stands for, the oldest first: a folder for all audit files in it, a file for
 * itself, and a configured path at which there is no file for the files of its runs. Rejects if there is none.
 */
export async function expandAuditPath(path: string): Promise<readonly string[]> {
  const found = await stat(path).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (found?.isDirectory()) return listFolder(path);
  if (found !== undefined) return [path];
  const files = await listRuns(dirname(path), basename(path)).catch(() => []);
  // Reading the path itself says best what is wrong with it.
  return files.length === 0 ? [path] : files.map(({ name }) => join(dirname(path), name));
}

/** The first line of a file as Latin-1 text, without its line feed. */
export async function readFirstLine(path: string): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    let text = '';
    for (const bytes of END_BYTES) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
      text = buffer.toString('latin1', 0, bytesRead);
      if (text.includes('\n') || bytesRead < bytes) break;
    }
    return text.split('\n', 1)[0] ?? '';
  } finally {
    await handle.close();
  }
}

/** The names that files of earlier versions have, also after they were rotated. */
const EARLIER_NAME = /\.jsonl(?:[.-].+)?$/;

/**
 * All audit files in a folder. Files of earlier versions come first, in the order of their first lines. The file of a run
 * that was given another name says in its first line which it had.
 */
async function listFolder(folder: string): Promise<readonly string[]> {
  const runs = await listRuns(folder);
  const configured = new Set(runs.map((run) => run.configured));
  const entries = await readdir(folder, { withFileTypes: true });
  const earlier = entries.filter(
    (entry) =>
      entry.isFile() &&
      readRunName(entry.name) === undefined &&
      (configured.has(entry.name) || EARLIER_NAME.test(entry.name)),
  );
  const lines = await Promise.all(
    earlier.map(async ({ name }) => ({ name, line: readChainLine(await readFirstLine(join(folder, name))) })),
  );
  const renamed = lines.flatMap(({ name, line }) => {
    const run = readRunName(readLink(line?.detail ?? {})?.file ?? '');
    return run === undefined ? [] : { ...run, name };
  });
  const isRenamed = new Set(renamed.map(({ name }) => name));
  const sorted = lines
    .filter(({ name }) => !isRenamed.has(name))
    .flatMap(({ name, line }) => (line === undefined ? [] : { name, line }))
    .sort(({ line: one }, { line: other }) =>
      one.epoch === other.epoch ? one.seq - other.seq : one.timeMs - other.timeMs,
    );
  if (lines.length + runs.length === 0) throw new Error(`no audit file in ${folder}`);
  return [...sorted, ...[...runs, ...renamed].sort(compareRuns)].map(({ name }) => join(folder, name));
}
