// The audit files beside a configured path: `audit.jsonl` stands for the files `audit-<start>-<instance>.jsonl` of its
// folder, and for a file of that very name that an earlier version wrote. Their order, what stands at the end of a file, which files are old, and which of them somebody else is writing. Opens no file for writing, follows no symbolic
// link among the files of runs, and reads of a file only its end.

import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '../text/wording.js';
import {
  type ChainLine,
  type ChainTail,
  isStreamEpoch,
  type Predecessor,
  readChainLine,
  readLink,
  readTail,
} from './chain.js';
import { readBytes, readLines } from './reader.js';
import { COMPRESSED, compareRuns, plainName, type RunName, readRunName, shortInstance } from './run-name.js';

/** True if the gateway may write the file itself: the configured path, or the file of a run beside it. */
export function isAuditFileOf(path: string, file: string): boolean {
  if (file === path) return true;
  return dirname(file) === dirname(path) && readRunName(basename(file))?.configured === basename(path);
}

/**
 * The files of runs in a folder, the oldest first; those of one configured name, or of all. Of a file that is there as it
 * was written and compressed, the first alone: the other may not be complete.
 */
export async function listRuns(folder: string, configured?: string): Promise<readonly RunName[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = new Set(entries.filter((entry) => entry.isFile()).map(({ name }) => name));
  return [...names]
    .filter((name) => !name.endsWith(COMPRESSED) || !names.has(plainName(name)))
    .flatMap((name) => readRunName(name) ?? [])
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

async function withFile<Result>(
  path: string,
  flags: number,
  read: (handle: FileHandle) => Promise<Result>,
): Promise<Result> {
  const handle = await open(path, flags);
  try {
    return await read(handle);
  } finally {
    await handle.close();
  }
}

/** Reads the last bytes of a file as Latin-1 text. */
async function readLast(
  handle: FileHandle,
  bytes: number,
): Promise<{ readonly text: string; readonly isEntire: boolean }> {
  const { size } = await handle.stat();
  const length = Math.min(size, bytes);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
  return { text: buffer.toString('latin1', 0, bytesRead), isEntire: length === size };
}

/** The end of a compressed file, which can only be read from its beginning. */
async function readCompressedEnd(path: string): Promise<ChainTail> {
  let text = '';
  const [, kept] = END_BYTES;
  for await (const piece of readBytes(path)) {
    text += piece.toString('latin1');
    // Seldom, because it copies what is kept.
    if (text.length > 2 * kept) text = text.slice(-kept);
  }
  return readTail(text.slice(-kept));
}

async function readEnd(handle: FileHandle): Promise<ChainTail> {
  let tail: ChainTail | undefined;
  for (const bytes of END_BYTES) {
    const { text, isEntire } = await readLast(handle, bytes);
    tail = readTail(text);
    if (tail.head !== undefined || isEntire) return tail;
  }
  return tail ?? readTail('');
}

/** The end of a file. Rejects if it cannot be read. */
export function readFileEnd(path: string): Promise<ChainTail> {
  if (path.endsWith(COMPRESSED)) return readCompressedEnd(path);
  return withFile(path, READ_FILE, readEnd);
}

/**
 * The end of a file that a gateway of this user wrote under its name; `undefined` of any other. Everything is read of one
 * open file, since another may come to its path meanwhile.
 */
function readOwnEnd(path: string, configured: string, user: number | undefined): Promise<ChainTail | undefined> {
  return withFile(path, READ_FILE, async (handle) => {
    const found = await handle.stat();
    if (!found.isFile() || (user !== undefined && found.uid !== user)) return undefined;
    // A gateway of this user has compressed it, and only a file with its lines.
    if (path.endsWith(COMPRESSED)) return readCompressedEnd(path);
    const link = readLink(readChainLine(await firstLineOf(handle))?.detail ?? {});
    // At the configured path, which no run chooses as its name, a file is known by that path.
    return path === configured || link === undefined || link.file === basename(path) ? readEnd(handle) : undefined;
  });
}

/** Undefined where there are no users, or this one has no entry (a container that runs under any number). */
export function currentUser(): number | undefined {
  try {
    const { uid } = userInfo();
    return uid < 0 ? undefined : uid;
  } catch {
    return undefined;
  }
}

/** Names of skipped files in a line. */
const MAX_SKIPPED = 16;

/**
 * The newest file of a path that has a complete line, and the newer ones that are passed over: those without one, as a
 * start leaves them that ended before its first line, and those that no gateway of this user wrote under their name: who
 * signs the end of a file vouches for it, so that a file that was put there must not be followed. Rejects if a file cannot
 * be read: what it has would be passed over.
 */
export async function findPredecessor(
  path: string,
): Promise<{ readonly after: Predecessor | undefined; readonly skipped: readonly string[] }> {
  const user = currentUser();
  const skipped: string[] = [];
  for (const file of [...(await listFilesOf(path))].reverse()) {
    const { head, torn = '' } = (await readOwnEnd(file, path, user)) ?? {};
    if (head !== undefined) return { after: { file: plainName(basename(file)), head, torn }, skipped };
    if (skipped.length < MAX_SKIPPED) skipped.push(basename(file));
  }
  return { after: undefined, skipped };
}

/** For how long files are kept, and the time (milliseconds since the epoch). */
export type Retention = { readonly keptMs: number; readonly nowMs: number };

/**
 * The files of a path, the oldest first, whose last line and last change are both old enough. Ends with the first that is
 * not, so that no file is removed before the one that it follows. Files without a complete line and those of other users
 * keep no other file, since none of this gateway follows them.
 */
export async function* findOldFiles(path: string, retention: Retention, isOwn: (name: string) => boolean) {
  const user = currentUser();
  for (const file of await listFilesOf(path)) {
    if (isOwn(basename(file))) return;
    const { mtimeMs, uid } = await lstat(file);
    const isOthers = user !== undefined && uid !== user;
    if (isRecentlyCompressed(file, mtimeMs, retention)) return;
    const end = await readFileEnd(file).catch((error: unknown) => rejectOwn(error, isOthers));
    if (end?.head === undefined) continue;
    const { head, torn, timeMs } = end;
    if (isOld([mtimeMs, timeMs], retention)) yield { file: basename(file), head, torn } satisfies Predecessor;
    else if (!isOthers) return;
  }
}

/** A compressed file has the time of its last line, and is dear to read. */
function isRecentlyCompressed(file: string, mtimeMs: number, retention: Retention): boolean {
  return file.endsWith(COMPRESSED) && !isOld([mtimeMs], retention);
}

/** What other users have left keeps no file of this one. */
function rejectOwn(error: unknown, isOthers: boolean): undefined {
  if (!isOthers) throw error;
  return undefined;
}

/** Whoever writes a file writes a checkpoint far more often, unless it was told otherwise. */
const ABANDONED_MS = 172_800_000;

/**
 * The files of a path that no run writes any more, the oldest first, and that can be compressed: not changed for
 * `quietMs`, written by this user, and with a complete line. Their run has ended, goes on in another file, or was killed
 * long ago.
 */
export async function listFinished(
  path: string,
  { quietMs, nowMs }: { readonly quietMs: number; readonly nowMs: number },
  isOwn: (name: string) => boolean,
): Promise<readonly string[]> {
  const user = currentUser();
  const finished: string[] = [];
  const runs = await listRuns(dirname(path), basename(path));

  /** A gateway beside this one may write nothing for as long as nobody calls. */
  async function isOver(one: RunName, file: string, quietForMs: number): Promise<boolean> {
    const isFollowed = runs.some((run) => run.instance === one.instance && compareRuns(run, one) > 0);
    const hasEnded = quietForMs >= ABANDONED_MS || isFollowed || (await hasRunEnded(file));
    return hasEnded && (await readFileEnd(file)).head !== undefined;
  }

  for (const run of runs) {
    const file = join(dirname(path), run.name);
    if (isOwn(run.name) || run.name.endsWith(COMPRESSED)) continue;
    const { mtimeMs, uid, size } = await lstat(file);
    const isQuiet = mtimeMs <= nowMs && nowMs - mtimeMs >= quietMs;
    if (!isQuiet || size === 0 || (user !== undefined && uid !== user)) continue;
    if (await isOver(run, file, nowMs - mtimeMs)) finished.push(file);
  }
  return finished;
}

/** One of the two times may lie in the future, where somebody has set it, and tells nothing; not both. */
function isOld(times: readonly number[], { keptMs, nowMs }: Retention): boolean {
  const past = times.filter((timeMs) => timeMs <= nowMs);
  return past.length > 0 && past.every((timeMs) => timeMs < nowMs - keptMs);
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
    const all = await listRuns(dirname(path), basename(path));
    // Nobody writes a compressed file.
    const runs = all.filter((run) => run.instance !== own && !run.name.endsWith(COMPRESSED));
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
  const { text } = await withFile(path, READ_FILE, (handle) => readLast(handle, END_BYTES[0]));
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
 * The files that an argument of a command stands for, the oldest first: a folder for all audit files in it, a configured
 * path for the file that an earlier version left there and those of its runs, any other file for itself. `onStray` gets
 * the files of a folder that are named like audit files and are none. Rejects if there is none.
 */
export async function expandAuditPath(
  path: string,
  onStray: (file: string) => void = () => undefined,
): Promise<readonly string[]> {
  const found = await stat(path).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (found?.isDirectory()) return listFolder(path, onStray);
  if (found !== undefined && !found.isFile()) return [path];
  const runs = await listRuns(dirname(path), basename(path)).catch(() => []);
  const files = runs.map(({ name }) => join(dirname(path), name));
  // Reading the path itself says best what is wrong with it.
  return found === undefined && files.length > 0 ? files : [path, ...files];
}

async function firstLineOf(handle: FileHandle): Promise<string> {
  let text = '';
  for (const bytes of END_BYTES) {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
    text = buffer.toString('latin1', 0, bytesRead);
    if (text.includes('\n') || bytesRead < bytes) break;
  }
  return text.split('\n', 1)[0] ?? '';
}

/** The names that files of earlier versions have, and those of container logs, also after they were rotated. */
const OTHER_NAME = /\.(?:jsonl|log)(?:[.-].+)?$/;
/** A stream has its first record within so many lines. What is before it is of the process log. */
const MAX_LINES_BEFORE_RECORD = 1_000;
/** The configured path of a folder that has no files of runs, unless it was changed. */
const DEFAULT_NAME = 'audit.jsonl';

/** The first record of a file, which is its first line unless it is a stream; `undefined` if there is none. */
async function readFirstRecord(path: string): Promise<ChainLine | undefined> {
  let number = 0;
  for await (const text of readLines(path)) {
    const line = readChainLine(text);
    if (line !== undefined && (number === 0 || isStreamEpoch(line.epoch))) return line;
    number += 1;
    if (line !== undefined || number > MAX_LINES_BEFORE_RECORD) return undefined;
  }
  return undefined;
}

function compareFirstLines(one: ChainLine, other: ChainLine): number {
  return one.epoch === other.epoch ? one.seq - other.seq : one.timeMs - other.timeMs;
}

/**
 * The same files, with those of streams in the order in which they were begun: container runtimes name the newest file so
 * that a pattern of the shell lists it first. All others keep their places. Files that cannot be read are left to the
 * reader.
 */
export async function orderStreams(files: readonly string[]): Promise<readonly string[]> {
  const firsts = await Promise.all(files.map((file) => firstOfStream(file).catch(() => undefined)));
  const streams = files
    .flatMap((file, index) => {
      const line = firsts[index];
      return line === undefined ? [] : { file, line };
    })
    .sort(({ line: one }, { line: other }) => compareFirstLines(one, other))
    .values();
  return files.map((file, index) => (firsts[index] === undefined ? file : (streams.next().value?.file ?? file)));
}

/** Of what is no file, nothing may be read beforehand. */
async function firstOfStream(file: string): Promise<ChainLine | undefined> {
  const isFile = (await stat(file)).isFile();
  const line = isFile && readRunName(basename(file)) === undefined ? await readFirstRecord(file) : undefined;
  return line !== undefined && isStreamEpoch(line.epoch) ? line : undefined;
}

/**
 * All audit files in a folder. Files of earlier versions come first, in the order of their first lines. The file of a run
 * that was given another name says in its first line which it had. A file without a readable first line that has the
 * configured name, or had it before it was rotated, comes first of all: its damage must be found.
 */
async function listFolder(folder: string, onStray: (file: string) => void): Promise<readonly string[]> {
  const runs = await listRuns(folder);
  const configured = new Set(runs.map((run) => run.configured));
  const entries = await readdir(folder, { withFileTypes: true });
  const earlier = entries.filter(
    (entry) =>
      entry.isFile() &&
      readRunName(entry.name) === undefined &&
      (configured.has(entry.name) || OTHER_NAME.test(entry.name)),
  );
  const lines = await Promise.all(
    earlier.map(async ({ name }) => ({ name, line: await readFirstRecord(join(folder, name)) })),
  );
  const renamed = lines.flatMap(({ name, line }) => {
    const run = readRunName(readLink(line?.detail ?? {})?.file ?? '');
    return run === undefined ? [] : { ...run, name };
  });
  const isRenamed = new Set(renamed.map(({ name }) => name));
  const sorted = lines
    .filter(({ name }) => !isRenamed.has(name))
    .flatMap(({ name, line }) => (line === undefined ? [] : { name, line }))
    .sort(({ line: one }, { line: other }) => compareFirstLines(one, other));
  const owners = runs.length === 0 ? [DEFAULT_NAME] : [...configured];
  const unreadable = lines.filter(({ line }) => line === undefined);
  const isOwned = (name: string) =>
    owners.some((owner) => name === owner || name.startsWith(`${owner}.`) || name.startsWith(`${owner}-`));
  const damaged = unreadable.filter(({ name }) => isOwned(name));
  for (const { name } of unreadable) if (!isOwned(name)) onStray(join(folder, name));
  if (sorted.length + damaged.length + renamed.length + runs.length === 0)
    throw new Error(`no audit file in ${folder}`);
  return [...damaged, ...sorted, ...[...runs, ...renamed].sort(compareRuns)].map(({ name }) => join(folder, name));
}
