// Reads configuration versions. A reload reads and checks large files on a thread of its own, which neither delays a
// caller nor waits behind what an upstream sent; then only rules are compiled here, and a schema at its first use. What a
// start reads, and what is small, is read in place, and so are policies where nothing else has changed: of the version in
// force, all that they are checked by is here. If the thread ends before it is done, nothing was read.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileDiagnostic } from '../config/diagnostics.js';
import type { Settings } from '../config/settings.js';
import { fromTransfer, type Transfer } from '../config/transfer.js';
import type { CheckedDefinition, DefinitionCompiler } from '../pins/catalog.js';
import type { Lock } from '../pins/lock.js';
import type { Turns } from '../protocol/json/incremental.js';
import { createLoopScheduler } from '../work/turns.js';
import { createWorker, type Worker } from '../work/worker.js';
import {
  completeVersion,
  type FilesReading,
  type InForceElsewhere,
  inForceOf,
  loadVersion,
  type Origin,
  readChangedPolicies,
  type TracedReading,
  type Version,
  type VersionInForce,
  type VersionReading,
} from './config-version.js';

type Env = Readonly<Record<string, string | undefined>>;

/** `known`: SHA-256 of the text of each lock file whose lock is here already, by upstream. */
export type VersionJob = {
  readonly file: string;
  readonly env: Env;
  /** What the rules in force say is compared here. */
  readonly inForce: InForceElsewhere;
  readonly known: ReadonlyMap<string, string>;
};

/** A lock that is not known here yet, and what was found out about its definitions. */
export type LockPart = {
  readonly lock: Lock;
  readonly text: string;
  readonly checked: readonly CheckedDefinition[];
};

/** `reading` is a `FilesReading` as it is sent. */
export type VersionResult = { readonly kind: 'version'; readonly reading: Transfer };

export type VersionReader = {
  /** @param inForce the running version; absent at the start. Rejects only where reading itself fails. */
  read(inForce?: Version): Promise<VersionReading>;
  close(): Promise<void>;
};

const ENTRY = new URL('./version-thread.js', import.meta.url);
/** Reading so many bytes takes some twenty milliseconds, which is less than what starting a thread takes. */
const SMALL_BYTES = 64 * 1024;
const MAX_READING_MS = 600_000;
const MAX_HEAP_MB = 2_048;

/** Creates the reader of the versions of one gateway file. `entry`: another module of the thread. */
export function createVersionReader(
  file: string,
  {
    env,
    compile,
    secrets,
    entry = ENTRY,
  }: {
    readonly env: Env;
    readonly compile: DefinitionCompiler;
    /** Of a start alone: the files are shown, and no secret is read. */
    readonly secrets?: 'leave-out';
    readonly entry?: URL;
  },
): VersionReader {
  const worker: Worker<VersionJob, VersionResult> = createWorker({
    ...{ entry, threads: 1, keepsOne: false, maxHeapMb: MAX_HEAP_MB },
    ...{ maxJobMs: MAX_READING_MS, maxWaitMs: MAX_READING_MS, charsOf: () => 0 },
  });
  /** The locks that were read last, by upstream, with the SHA-256 of their texts. */
  let known = new Map<string, Pick<LockPart, 'lock' | 'text'>>();

  /** Rules are compiled here between what callers send. */
  const turns: Turns = { upstream: '', loopScheduler: createLoopScheduler() };

  const origins = new WeakMap<Version, Origin>();

  function keepOrigin({ origin, ...reading }: TracedReading): VersionReading {
    if (reading.version !== undefined && origin !== undefined) origins.set(reading.version, origin);
    return reading;
  }

  async function readChanges(inForce: Version): Promise<TracedReading | undefined> {
    const origin = origins.get(inForce);
    return origin && readChangedPolicies(inForce, origin, compile, turns);
  }

  async function readHere(inForce?: VersionInForce): Promise<TracedReading> {
    const read = new Map<string, Pick<LockPart, 'lock' | 'text'>>();
    const onLock = (lock: Lock, text: string): void => void read.set(lock.upstream, { lock, text });
    const reading = await loadVersion(file, { env, compile, secrets, onLock }, inForce);
    known = read;
    return reading;
  }

  async function readBeside({ open, compiled, ...inForce }: VersionInForce): Promise<TracedReading> {
    const read = new Map(known);
    const texts = new Map([...known].map(([upstream, { text }]) => [upstream, text]));
    const job = { file, env: { ...env }, inForce, known: texts };
    const end = await worker.run(job, file, undefined, (part) => {
      const { lock, text, checked } = part as LockPart;
      for (const one of checked) compile.learn(one);
      read.set(lock.upstream, { lock, text });
    });
    switch (end.kind) {
      case 'version': {
        const { files, ...reading } = fromTransfer<FilesReading>(end.reading);
        if (files === undefined) return { ...reading, version: undefined };
        known = new Map([...read].filter(([upstream, { text }]) => files.lockTexts.get(upstream) === text));
        if (known.size < files.lockTexts.size) return failed;
        const locks = new Map([...known].map(([upstream, { lock }]) => [upstream, lock]));
        return completeVersion(reading, files, locks, { open, compiled }, turns);
      }
      case 'unavailable':
        return readHere({ open, compiled, ...inForce });
      case 'died':
      case 'full':
        return failed;
    }
  }

  const failed: VersionReading = {
    version: undefined,
    diagnostics: [fileDiagnostic(file, 'unreadable', 'the thread that read the files ended before it was done')],
  };

  return {
    async read(inForce) {
      if (inForce === undefined) return keepOrigin(await readHere());
      if (isSmall(file, inForce.settings)) return keepOrigin(await readHere(inForceOf(inForce)));
      return keepOrigin((await readChanges(inForce)) ?? (await readBeside(inForceOf(inForce))));
    },
    close: worker.close,
  };
}

/**
 * Whether the files that a version is read from are few and short. One that cannot be looked at counts as nothing. Without
 * waiting: on a busy loop each wait may take seconds.
 */
function isSmall(file: string, { policiesDir, pinsDir }: Settings): boolean {
  let bytes = 0;
  for (const path of [file, ...listFiles(policiesDir), ...listFiles(pinsDir)]) {
    bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > SMALL_BYTES) return false;
  }
  return true;
}

function listFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}
