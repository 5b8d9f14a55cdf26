// Decides where content is read and inspected: on the event loop, or on a worker thread where a text is large, where it
// is long and not surely clean, or where its upstream or its caller has used up its time budget on the loop. Without a
// worker thread the loop does everything; where a thread died during a job, its text is withheld. The value of a large
// message is built on the loop in slices, so that no message blocks it for long.

import { isAscii } from 'node:buffer';
import type { DefinitionFinding } from '../inspection/definitions/scan.js';
import type { SentCredentials } from '../inspection/detectors/upstream-credentials.js';
import {
  type DefinitionOutcomes,
  type DefinitionTask,
  type InspectionJob,
  type InspectionPort,
  LARGE_TEXT_CHARS,
  LONG_TEXT_CHARS,
  runDefinitionTask,
} from '../inspection/jobs.js';
import type { MarkKeys } from '../inspection/redaction-marks.js';
import { type GuardInput, type GuardOutcome, guardArguments, guardClean, guardFully } from '../inspection/requests.js';
import {
  checkOutput,
  completeInspection,
  type FullInspectionOutcome,
  type InspectionInput,
  type InspectionOutcome,
  inspectFully,
  inspectWithPrefilter,
  passIfClean,
  withheld,
} from '../inspection/responses.js';
import type { Emit } from '../policy/events.js';
import {
  buildJson,
  finishInTurns,
  type LoopScheduler,
  type ReadJson,
  type ReadOptions,
  type ReadOutcome,
} from '../protocol/json/incremental.js';
import {
  decodeUtf8,
  type JsonReading,
  keepExactIds,
  MAX_JSON_DEPTH,
  parseScanned,
  readJsonText,
} from '../protocol/json/json.js';
import { scanJson } from '../protocol/json/strict-scan.js';
import type { Json } from '../protocol/jsonrpc.js';
import { readServerJson } from '../protocol/odd-items.js';
import { createWorkBudget, type WorkBudget } from './queue.js';
import { createInspectionWorker, type InspectionWorker, type JobOutcome } from './worker.js';

export type Inspection = InspectionPort & {
  /**
   * Scans the definitions of one server together; `text` is JSON of a list of `ScannedDefinition`. `undefined` if the
   * scan did not finish. Never rejects.
   */
  scanDefinitions(text: string, upstream: string): Promise<readonly DefinitionFinding[] | undefined>;
  /** Runs any task about definitions; `text` is JSON of its input. `undefined` if it did not finish. Never rejects. */
  readonly definitions: DefinitionTasks;
  /** Reads messages with the help of the same threads. */
  readonly readJson: ReadJson;
  /** Ends the threads; unfinished jobs end as withheld. */
  close(): Promise<void>;
};

export type DefinitionTasks = <Task extends DefinitionTask>(
  task: Task,
  text: string,
  upstream: string,
) => Promise<DefinitionOutcomes[Task] | undefined>;

/** Creates inspection with worker threads. Reports once when no thread can be started, and once when one runs again. */
export function startInspection(
  emit: Emit,
  loopScheduler: LoopScheduler,
  ownOf: OwnCredentialsOf = NOTHING_OWN,
  marks?: MarkKeys,
): Inspection {
  const worker = createInspectionWorker({ onThread: (isThere) => emit('workerThread', { isThere }) });
  return createInspection(worker, loopScheduler, { ownOf, marks });
}

/** The credentials of the gateway that an upstream received and may echo. */
export type OwnCredentialsOf = (upstream: string) => SentCredentials | undefined;

const NOTHING_OWN: OwnCredentialsOf = () => undefined;

/** After a thread could not be started, texts that are not long stay on the loop for this time. */
const NO_THREAD_MS = 1_000;

/** Texts up to this length are always prefiltered on the loop, and that time is not measured. */
const SHORT_TEXT_CHARS = 2_048;
/** Several times what the prefilter needs for a character of ordinary text: this much is not charged to the budget. */
const FREE_MS_A_CHAR = 20 / 1_000_000;

/**
 * A definition is never used unscanned, and what was trusted is kept. The other tasks serve reviewers, who are told that
 * the outcome is missing.
 */
const NEEDED: ReadonlySet<DefinitionTask> = new Set(['scan', 'usable', 'lock', 'pins']);

/** Whose text it is; without a caller it is the gateway's own. */
type Owner = { readonly upstream: string; readonly caller: string | undefined };

type InspectionOptions = {
  readonly ownOf?: OwnCredentialsOf;
  readonly budget?: WorkBudget;
  readonly marks?: MarkKeys | undefined;
};

/** Creates inspection over a worker. A schema is code and is validated here, before and after the inspection. */
export function createInspection(
  worker: InspectionWorker,
  loopScheduler: LoopScheduler,
  { ownOf = NOTHING_OWN, budget = createWorkBudget(), marks }: InspectionOptions = {},
): Inspection {
  const readJson = createJsonReading(worker, loopScheduler);
  let threadUnavailableAtMs = Number.NEGATIVE_INFINITY;

  async function run(job: InspectionJob, { upstream, caller }: Owner): Promise<JobOutcome> {
    const outcome = await worker.run(job, upstream, caller);
    if (outcome.kind === 'unavailable') threadUnavailableAtMs = performance.now();
    return outcome;
  }

  /** Full inspection on this thread. What the prefilter passes needs no marks, so that most inputs are never copied. */
  function inspectMarked(input: InspectionInput): FullInspectionOutcome {
    return inspectFully({ ...input, marks });
  }

  async function message(input: InspectionInput, owner: Owner, needsPrefilter: boolean): Promise<InspectionOutcome> {
    const { text, profile, previousTail, caps, approved, requestMethod, sensitive } = input;
    const { own } = input;
    const job = {
      text,
      profile,
      previousTail,
      caps,
      approved,
      requestMethod,
      sensitive,
      own,
      marks,
    };
    const end = await run({ kind: 'message', input: job, needsPrefilter }, owner);
    switch (end.kind) {
      case 'message':
        return completeInspection(input, end.outcome, await changedValue(end, owner.upstream));
      case 'unavailable':
        return completeInspection(input, (needsPrefilter ? passIfClean(input) : undefined) ?? inspectMarked(input));
      case 'full':
        return withheld('overloaded');
      case 'died':
      case 'request':
      case 'read':
      case 'definitions':
        return withheld('internal');
    }
  }

  /** Builds the value of a large text that was changed, in slices, like that of any large text. */
  function changedValue(
    { outcome, parts }: Extract<JobOutcome, { readonly kind: 'message' }>,
    upstream: string,
  ): Promise<Json> | undefined {
    if (outcome.kind !== 'changed' || parts === undefined) return undefined;
    return finishInTurns({ loopScheduler, upstream }, buildJson(outcome.text, parts));
  }

  async function request(input: GuardInput, owner: Owner, needsPrefilter: boolean): Promise<GuardOutcome> {
    const end = await run({ kind: 'request', input, needsPrefilter }, owner);
    switch (end.kind) {
      case 'request':
        return end.outcome;
      case 'unavailable':
        return guardArguments(input);
      case 'full':
        return { kind: 'refuse', reason: 'overloaded', findings: [] };
      case 'died':
      case 'message':
      case 'read':
      case 'definitions':
        return { kind: 'refuse', reason: 'internal', findings: [] };
    }
  }

  /** Whether work on a text stays on the loop: while the budget lasts, or while no thread can be started. */
  function runsOnLoop({ upstream, caller }: Owner): boolean {
    return budget.hasLeft(upstream, caller) || performance.now() - threadUnavailableAtMs < NO_THREAD_MS;
  }

  /** Whether the prefilter also runs on the worker thread, because a hostile text may be made to slow it down. */
  function isPrefilteredOnWorker(text: string, owner: Owner): boolean {
    if (text.length > LARGE_TEXT_CHARS) return true;
    return text.length > SHORT_TEXT_CHARS && !runsOnLoop(owner);
  }

  /** Runs work on a text and charges its time beyond `freeMs` to the budget. */
  function chargeToBudget<T>({ upstream, caller }: Owner, freeMs: number, work: () => T): T {
    const startedMs = performance.now();
    const outcome = work();
    budget.spend(upstream, Math.max(0, performance.now() - startedMs - freeMs), caller);
    return outcome;
  }

  /** Runs the prefilter. A short text is not measured, because measuring it costs more than it is worth. */
  function runPrefilter<T>(text: string, owner: Owner, work: () => T): T {
    if (text.length <= SHORT_TEXT_CHARS) return work();
    return chargeToBudget(owner, text.length * FREE_MS_A_CHAR, work);
  }

  function runOnLoop(
    input: { readonly task: DefinitionTask; readonly text: string },
    owner: Owner,
  ): DefinitionOutcomes[DefinitionTask] | undefined {
    try {
      return chargeToBudget(owner, 0, () => runDefinitionTask(input));
    } catch {
      return undefined;
    }
  }

  async function runTask(
    input: { readonly task: DefinitionTask; readonly text: string },
    owner: Owner,
  ): Promise<DefinitionOutcomes[DefinitionTask] | undefined> {
    if (input.text.length <= SHORT_TEXT_CHARS && runsOnLoop(owner)) return runOnLoop(input, owner);
    const end = await run({ kind: 'definitions', input }, owner);
    if (end.kind === 'unavailable' && (NEEDED.has(input.task) || input.text.length <= LONG_TEXT_CHARS))
      return runOnLoop(input, owner);
    return end.kind === 'definitions' ? end.outcome : undefined;
  }

  // The compiler cannot see that the outcome is that of this task.
  const definitions: DefinitionTasks = (task, text, upstream) =>
    runTask({ task, text }, { upstream, caller: undefined }) as never;

  return {
    marks,
    close: worker.close,
    readJson,
    definitions,
    scanDefinitions: (text, upstream) => definitions('scan', text, upstream),
    message(given, upstream, caller) {
      const owner = { upstream, caller };
      const own = ownOf(upstream);
      const input = own === undefined ? given : withOwn(given, own);
      const { text } = input;
      if (isPrefilteredOnWorker(text, owner)) return checkOutput(input) ?? message(input, owner, true);
      const prefiltered = runPrefilter(text, owner, () => inspectWithPrefilter(input));
      if (prefiltered !== undefined) return prefiltered;
      if (text.length > LONG_TEXT_CHARS || !runsOnLoop(owner)) return message(input, owner, false);
      return chargeToBudget(owner, 0, () => completeInspection(input, inspectMarked(input)));
    },
    request(input, upstream, caller) {
      const owner = { upstream, caller };
      const { text } = input;
      if (isPrefilteredOnWorker(text, owner)) return request(input, owner, true);
      const prefiltered = runPrefilter(text, owner, () => guardClean(input));
      if (prefiltered !== undefined) return prefiltered;
      if (text.length > LONG_TEXT_CHARS || !runsOnLoop(owner)) return request(input, owner, false);
      return chargeToBudget(owner, 0, () => guardFully(input));
    },
  };
}

/**
 * Adds the credentials shown to the upstream. The value of a large text is not parsed for this, because the worker thread
 * parses it.
 */
function withOwn(input: InspectionInput, own: SentCredentials): InspectionInput {
  if (input.text.length <= LARGE_TEXT_CHARS) return { ...input, own };
  const { text, profile, output, previousTail, caps, approved, requestMethod, sensitive } = input;
  return {
    ...{ text, profile, output, previousTail, caps, approved, requestMethod, sensitive, own },
    get value() {
      return input.value;
    },
  };
}

/** More values than this take too long to parse at once: up to three microseconds each. */
const MAX_VALUES_AT_ONCE = 10_000;

/** Creates a reader over a worker. Without a worker thread the event loop does all the work. */
export function createJsonReading(worker: InspectionWorker, loopScheduler: LoopScheduler): ReadJson {
  async function readOnWorker(
    text: string,
    { upstream, caller, maxValues, isServerList = false }: ReadOptions,
  ): Promise<ReadOutcome> {
    const input = { text, maxValues, isServerList };
    const end = await worker.run({ kind: 'read', input }, upstream, caller);
    switch (end.kind) {
      case 'read': {
        const { outcome } = end;
        if (!outcome.ok) return outcome;
        const { suspectNumbers, values, parts, rest } = outcome;
        const kept = rest ?? text;
        const value = await finishInTurns({ loopScheduler, upstream }, buildJson(kept, parts));
        if (suspectNumbers) keepExactIds(kept, value);
        const reading = { ok: true, text: kept, suspectNumbers, values, value } as const;
        return rest === undefined ? reading : { ...reading, isReduced: true };
      }
      case 'unavailable':
        return readOnLoop(text, maxValues, isServerList);
      case 'full':
        return { ok: false, error: 'overloaded' };
      case 'died':
      case 'message':
      case 'request':
      case 'definitions':
        return { ok: false, error: 'internal' };
    }
  }

  /** Reads a text that is not large, but whose values may take long to build. */
  function readMedium(
    text: string,
    source: Uint8Array | string,
    readOptions: ReadOptions,
  ): ReadOutcome | Promise<ReadOutcome> {
    const { maxValues, isServerList = false } = readOptions;
    const scanned = scanJson(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
    if (scanned.error === undefined && scanned.values > MAX_VALUES_AT_ONCE) return readOnWorker(text, readOptions);
    const reading: JsonReading =
      scanned.error === undefined ? parseScanned(text, scanned, source) : { ok: false, error: scanned.error };
    // What cannot be read may be one item of a list, which has to be found.
    return reading.ok || !isServerList ? reading : readOnWorker(text, readOptions);
  }

  return (source, readOptions) => {
    const text = decode(source);
    if (text === undefined) return { ok: false, error: 'malformed-json' };
    if (text.length > LARGE_TEXT_CHARS) return readOnWorker(text, readOptions);
    const { maxValues, isServerList = false } = readOptions;
    if (text.length <= MAX_VALUES_AT_ONCE) return readOnLoop(text, maxValues, isServerList);
    return readMedium(text, source, readOptions);
  };
}

/** Decodes UTF-8. Decoding ASCII, which nearly all texts are, as one-byte text takes half the time. */
function decode(source: Uint8Array | string): string | undefined {
  if (typeof source === 'string') return source;
  return isAscii(source) ? Buffer.prototype.latin1Slice.call(source) : decodeUtf8(source);
}

function readOnLoop(text: string, maxValues: number, isServerList: boolean): JsonReading {
  const read = isServerList ? readServerJson : readJsonText;
  return read(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
}
