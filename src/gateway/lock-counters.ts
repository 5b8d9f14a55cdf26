// The counters of signed lock files: the highest that was seen of each upstream, in the store or in a file beside the
// audit log, at a place that stays the same for all runs. A lower one is refused, and so is an equal one with other bytes:
// an old lock file with its old signatures is still validly signed. docs/reference/lock-files.md#counters.

import { type FileHandle, lstat, open, readFile, rename, unlink } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Diagnostic, fileDiagnostic } from '../config/diagnostics.js';
import type { Settings } from '../config/settings.js';
import { LOCK_SUFFIX } from '../pins/lock.js';
import { isCounter } from '../pins/signature.js';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import type { CounterStore, GatewayState } from '../state/memory.js';
import type { SeenCounter } from '../state/store.js';
import { describeReadError, systemErrorCode } from '../text/wording.js';
import type { Version, VersionReading } from './config-version.js';

type Counters = ReadonlyMap<string, SeenCounter>;

const SUFFIX = '.lock-counters';
const SCHEMA_PREFIX = 'sallyport.lock-counters/';
const SCHEMA = `${SCHEMA_PREFIX}1`;
const FILE_MODE = 0o600;
/** Counters that could not be kept are tried again after this time. */
const RETRY_AFTER_MS = 30_000;

/**
 * The files that hold the counters beside the configured path of an audit file, `audit.jsonl`: `audit.lock-counters`, the
 * next version of it, and `audit.jsonl.lock-counters`, where earlier versions kept them.
 */
export function counterPaths(auditPath: string): readonly [string, string, string] {
  const { dir, name } = parse(auditPath);
  const path = join(dir, `${name}${SUFFIX}`);
  return [path, `${path}.new`, `${auditPath}${SUFFIX}`];
}

/** Adds counters to others; of two of one upstream the higher stays. */
function raise(counters: Counters, more: Counters): Counters {
  const raised = new Map(counters);
  for (const [upstream, seen] of more) {
    if (seen.counter > (raised.get(upstream)?.counter ?? 0)) raised.set(upstream, seen);
  }
  return raised;
}

/** Whether a lock file is older than one that was seen: by its counter or, with the same counter, by its bytes. */
function isOld(one: SeenCounter, seen: SeenCounter | undefined): boolean {
  if (seen === undefined || one.counter > seen.counter) return false;
  return one.counter < seen.counter || one.sha256 !== seen.sha256;
}

/**
 * Counters in a file, which several gateways may share. Whoever writes it creates the next version first, which must not
 * exist, and reads the counters then: nobody else replaces the file meanwhile.
 */
function createCounterFile(auditPath: string): CounterStore {
  const [path, nextPath, formerPath] = counterPaths(auditPath);

  async function read(): Promise<{ readonly counters: Counters; readonly isFormer: boolean }> {
    const counters = (await readCounters(path)) ?? new Map();
    // An earlier version may have raised its file after this one was created.
    const former = await readCounters(formerPath);
    return { counters: raise(counters, former ?? new Map()), isFormer: former !== undefined };
  }

  async function replace(next: FileHandle): Promise<void> {
    if (!(await isAt(nextPath, next))) throw new Error('another process has replaced it');
    await rename(nextPath, path);
  }

  async function discard(next: FileHandle): Promise<void> {
    if (await isAt(nextPath, next)) await unlink(nextPath).catch(() => undefined);
  }

  async function write(counters: Counters): Promise<Counters> {
    const handle = await createNext(nextPath).catch(() => undefined);
    if (handle === undefined) throw new Error(`${path} cannot be written`);
    try {
      const { counters: known, isFormer } = await read();
      if ([...counters].some(([name, one]) => isOld(one, known.get(name)))) {
        await unlink(nextPath);
        return known;
      }
      const raised = raise(known, counters);
      await handle.writeFile(writeCounters(raised));
      await replace(handle);
      if (isFormer) await unlink(formerPath).catch(() => undefined);
      return raised;
    } catch {
      await discard(handle);
      throw new Error(`${path} cannot be written`);
    } finally {
      await handle.close();
    }
  }

  return {
    async raise(counters) {
      const { counters: known, isFormer } = await read();
      if ([...counters].some(([name, one]) => isOld(one, known.get(name)))) return known;
      const isKnown = writeCounters(raise(known, counters)) === writeCounters(known);
      // Whoever only reads writes nothing.
      return isKnown && (!isFormer || counters.size === 0) ? known : write(counters);
    },
  };
}

/** Another process has the next version for this long only if it ended while it wrote. */
const WRITTEN_WITHIN_MS = 3_000;
/** After this time it can neither be created nor removed. */
const GIVE_UP_AFTER_MS = 2 * WRITTEN_WITHIN_MS;
const POLL_MS = 50;

/** Whether a path still has the file that was opened there. */
async function isAt(path: string, handle: FileHandle): Promise<boolean> {
  const [found, own] = await Promise.all([lstat(path).catch(() => undefined), handle.stat()]);
  return found?.ino === own.ino && found.dev === own.dev;
}

/** Creates the next version; waits for another process that is writing it, and removes what one left that has ended. */
async function createNext(path: string): Promise<FileHandle> {
  const sinceMs = performance.now();
  for (;;) {
    try {
      return await open(path, 'wx', FILE_MODE);
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
    const waitedMs = performance.now() - sinceMs;
    if (waitedMs > GIVE_UP_AFTER_MS) throw new Error(`${path} cannot be removed`);
    if (waitedMs > WRITTEN_WITHIN_MS) await unlink(path).catch(() => undefined);
    await sleep(POLL_MS);
  }
}

function writeCounters(counters: Counters): string {
  const sorted = [...counters].sort(([one], [other]) => (one < other ? -1 : 1));
  return `${JSON.stringify({ schema: SCHEMA, counters: Object.fromEntries(sorted) }, null, 2)}\n`;
}

/** `undefined` if there is none. A file that is damaged is an error: to begin anew, somebody has to remove it. */
async function readCounters(path: string): Promise<Counters | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const why = describeReadError(error);
    if (why === 'does not exist') return undefined;
    throw new Error(`${path} ${why}`);
  }
  const counters = parseCounters(text);
  if (counters === undefined) throw new Error(`${path} ${describeUnread(text)}`);
  return counters;
}

/** The counters of a newer version must not be thrown away as damaged ones may be: old lock files would count again. */
function describeUnread(text: string): string {
  const schema = parseObject(text)?.['schema'];
  return typeof schema === 'string' && schema !== SCHEMA && schema.startsWith(SCHEMA_PREFIX)
    ? 'was written by another version of Sallyport, in a form that this one does not know; run that version'
    : 'is damaged; remove it to begin anew';
}

function parseCounters(text: string): Counters | undefined {
  const value = parseObject(text);
  if (value?.['schema'] !== SCHEMA || !isObject(value['counters'])) return undefined;
  const counters = new Map<string, SeenCounter>();
  for (const [upstream, seen] of Object.entries(value['counters'])) {
    const { counter, sha256 } = isObject(seen) ? seen : {};
    if (!isCounter(counter) || typeof sha256 !== 'string') return undefined;
    counters.set(upstream, { counter, sha256 });
  }
  return counters;
}

export type LockCounters = {
  /**
   * Checks a version that was read. A version with a counter that is too low is refused. While the store cannot be read,
   * a start is refused, and a running gateway compares with the counters that it has seen itself. Never rejects.
   */
  check(reading: VersionReading, phase: 'start' | 'reload'): Promise<VersionReading>;
  /**
   * Checks a version in the same way when nothing else keeps it from taking effect, and remembers its counters: all of
   * them, or none if it is refused. Never rejects.
   */
  accept(reading: VersionReading, phase: 'start' | 'reload'): Promise<VersionReading>;
  /** Tries again to keep what could not be kept, from time to time. */
  retry(): void;
  /**
   * Why the counters do not protect as they should: a restart forgets them, or a lock file that was accepted while the
   * store could not be read is older than one that was seen; `undefined` if they do.
   */
  error(): string | undefined;
};

const NOWHERE =
  'a restart forgets the counters of lock files: there is neither a store nor an audit file to keep them beside';

export function createLockCounters({
  state,
  settings,
  nowMs = () => performance.now(),
}: {
  readonly state: Pick<GatewayState, 'countersOf'>;
  readonly settings: Pick<Settings, 'audit'>;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
}): LockCounters {
  const [auditPath] = settings.audit.sinks.flatMap((sink) => (sink.type === 'file' ? [sink.path] : []));
  const file = auditPath === undefined ? undefined : createCounterFile(auditPath);
  let seen: Counters = new Map();
  /** Counters that could not be written to the store yet. */
  let unkept: Version['signed'] | undefined;
  let failedAtMs = 0;
  let lastError: string | undefined;

  function storeOf(upstreams: Iterable<string>): CounterStore | undefined {
    return state.countersOf?.([...upstreams]) ?? file;
  }

  /**
   * Writes counters to the store and reads higher ones that other replicas have written: between the check and the write
   * another replica may have seen a later file, and only the store decides which of the two came first.
   */
  async function keep(signed: Version['signed']): Promise<void> {
    unkept = undefined;
    const store = storeOf(signed.keys());
    try {
      // Of two files with the same counter, the one in the store came first.
      seen = raise((await store?.raise(signed)) ?? new Map(), seen);
      if (oldIn(signed).length === 0) seen = raise(seen, signed);
      lastError = store === undefined ? NOWHERE : undefined;
    } catch (error) {
      seen = raise(seen, signed);
      lastError = `a restart forgets the counters of lock files: ${messageOf(error)}`;
      unkept = signed;
      failedAtMs = nowMs();
    }
  }

  /**
   * Writes counters that were accepted while the store could not be read, and reports those that the store shows to be
   * too old.
   */
  async function keepLate(signed: Version['signed']): Promise<void> {
    await keep(signed);
    const old = oldIn(signed);
    if (old.length === 0) return;
    await keep(new Map([...signed].filter(([upstream]) => !old.includes(upstream))));
    lastError = `lock files are in force that are older than ones that were seen while the store could not be reached: ${old.join(', ')}`;
  }

  function oldIn(signed: Version['signed']): readonly string[] {
    return [...signed].filter(([upstream, one]) => isOld(one, seen.get(upstream))).map(([upstream]) => upstream);
  }

  async function check(reading: VersionReading, phase: 'start' | 'reload'): Promise<VersionReading> {
    const { version } = reading;
    if (version?.settings.signing === undefined) return reading;
    const { signed, settings: read } = version;
    try {
      seen = raise((await storeOf(signed.keys())?.raise(new Map())) ?? new Map(), seen);
    } catch (error) {
      if (phase === 'start') {
        const why = `the counters of lock files cannot be read: ${messageOf(error)}`;
        return refuse(reading, [fileDiagnostic(read.file, 'unreadable', why)], []);
      }
    }
    return refuseOld(reading, version);
  }

  function refuseOld(reading: VersionReading, { signed, settings: read }: Version): VersionReading {
    const old = oldIn(signed);
    if (old.length === 0) return reading;
    const diagnostics = old.map((upstream) =>
      fileDiagnostic(
        `${read.pinsDir}/${upstream}${LOCK_SUFFIX}`,
        'lock',
        oldText(upstream, signed.get(upstream), seen.get(upstream)),
      ),
    );
    return refuse(reading, diagnostics, old);
  }

  return {
    check,
    async accept(reading, phase) {
      const checked = await check(reading, phase);
      const { version } = checked;
      if (version?.settings.signing === undefined) return checked;
      await keep(version.signed);
      return refuseOld(checked, version);
    },
    retry() {
      if (unkept !== undefined && nowMs() - failedAtMs > RETRY_AFTER_MS) void keepLate(unkept);
    },
    error: () => lastError,
  };
}

function oldText(upstream: string, one: SeenCounter | undefined, seen: SeenCounter | undefined): string {
  const [counter, highest] = [one?.counter ?? 0, seen?.counter ?? 0];
  const what =
    counter < highest
      ? `is older than one that was seen: its counter is ${counter}, and ${highest} was seen`
      : `differs from the file that was seen with the same counter, ${highest}`;
  const how = `sallyport pin sign ${upstream} --counter ${highest + 1}`;
  return `the lock file ${what}; if it is meant to be used again, sign it anew: ${how}`;
}

function refuse(
  { diagnostics }: VersionReading,
  found: readonly Diagnostic[],
  unsigned: readonly string[],
): VersionReading {
  return {
    version: undefined,
    diagnostics: [...diagnostics, ...found],
    unsigned: new Set(unsigned),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'the reason is not known';
}
