// Decides where content is inspected: on the event loop, or on the worker thread where a text is large, where it is
// long and not surely clean, or where its upstream has used up its time budget on the loop. Without a worker thread the
// loop inspects everything; where a thread died during a job, its text is withheld.

import type { SentCredentials } from '../../inspection/detectors/upstream-credentials.js';
import {
  type InspectionJob,
  type InspectionPort,
  LARGE_TEXT_CHARS,
  LONG_TEXT_CHARS,
} from '../../inspection/jobs.js';
import {
  type GuardInput,
  type GuardOutcome,
  guardArguments,
  guardClean,
  guardFully,
} from '../../inspection/requests.js';
import {
  checkOutput,
  completeInspection,
  type InspectionInput,
  type InspectionOutcome,
  inspectFully,
  inspectWithPrefilter,
  passIfClean,
  withheld,
} from '../../inspection/responses.js';
import type { LoopScheduler, ReadJson } from '../../protocol/json/incremental.js';
import type { Json } from '../../protocol/jsonrpc.js';
import { createRate, type RateBounds } from '../../state/quota.js';
import type { Log } from '../../telemetry/log.js';
import { buildInSlices, createJsonReading } from './json-reader.js';
import { createInspectionWorker, type InspectionWorker, type JobOutcome } from './worker.js';

/**
 * The time that inspection may take on the event loop, per upstream and in total, refilled every second. An upstream
 * that has used it up is inspected on the worker thread until the budget is refilled.
 */
export type WorkBudget = {
  hasLeft(upstream: string): boolean;
  /** Records time that was spent, in milliseconds. What is left may become negative. */
  spend(upstream: string, ms: number): void;
};

type Options = {
  /** In milliseconds of work. */
  readonly each?: RateBounds;
  readonly all?: RateBounds;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
};

const RATE_PER_UPSTREAM: RateBounds = { burst: 30, perSecond: 50 };
const TOTAL_RATE: RateBounds = { burst: 50, perSecond: 150 };

export function createWorkBudget({
  each = RATE_PER_UPSTREAM,
  all = TOTAL_RATE,
  now = () => performance.now(),
}: Options = {}): WorkBudget {
  const total = createRate(all, now);
  const perUpstream = createRate(each, now);
  return {
    hasLeft: (upstream) => total.left() > 0 && perUpstream.left(upstream) > 0,
    spend(upstream, ms) {
      total.spend(ms);
      perUpstream.spend(ms, upstream);
    },
  };
}

export type Inspection = InspectionPort & {
  /** Reads messages with the help of the same thread. */
  readonly readJson: ReadJson;
  /** Ends the thread; unfinished jobs end as withheld. */
  close(): Promise<void>;
};

/** Creates inspection with a worker thread. Logs once when no thread can be started, and once when one runs again. */
export function startInspection(
  log: Log,
  loopScheduler: LoopScheduler,
  ownOf: OwnCredentialsOf = NOTHING_OWN,
): Inspection {
  const worker = createInspectionWorker({
    onThread(isThere) {
      if (isThere) log.write('info', 'inspection thread is back');
      else
        log.write('warn', 'no inspection thread', {
          detail:
            'long texts are inspected on the event loop, and everybody waits for them; where the thread hangs at its start, they are withheld',
        });
    },
  });
  return createInspection(worker, loopScheduler, { ownOf });
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

type InspectionOptions = { readonly ownOf?: OwnCredentialsOf; readonly budget?: WorkBudget };

/** Creates inspection over a worker. A schema is code and is validated here, before and after the inspection. */
export function createInspection(
  worker: InspectionWorker,
  loopScheduler: LoopScheduler,
  { ownOf = NOTHING_OWN, budget = createWorkBudget() }: InspectionOptions = {},
): Inspection {
  const readJson = createJsonReading(worker, loopScheduler);
  let threadUnavailableAtMs = Number.NEGATIVE_INFINITY;

  async function run(job: InspectionJob, upstream: string): Promise<JobOutcome> {
    const outcome = await worker.run(job, upstream);
    if (outcome.kind === 'unavailable') threadUnavailableAtMs = performance.now();
    return outcome;
  }

  async function message(
    input: InspectionInput,
    upstream: string,
    needsPrefilter: boolean,
  ): Promise<InspectionOutcome> {
    const { text, profile, carry, caps, approved, requestMethod, own } = input;
    const job = { text, profile, carry, caps, approved, requestMethod, own };
    const end = await run({ kind: 'message', input: job, needsPrefilter }, upstream);
    switch (end.kind) {
      case 'message':
        return completeInspection(input, end.outcome, await changedValue(end, upstream));
      case 'unavailable':
        return completeInspection(
          input,
          (needsPrefilter ? passIfClean(input) : undefined) ?? inspectFully(input),
        );
      case 'full':
        return withheld('overloaded');
      case 'died':
      case 'request':
      case 'read':
        return withheld('internal');
    }
  }

  /** Builds the value of a large text that was changed, in slices, like that of any large text. */
  function changedValue(
    { outcome, parts }: Extract<JobOutcome, { readonly kind: 'message' }>,
    upstream: string,
  ): Promise<Json> | undefined {
    if (outcome.kind !== 'changed' || parts === undefined) return undefined;
    return buildInSlices(outcome.text, parts, { loopScheduler, upstream });
  }

  async function request(
    input: GuardInput,
    upstream: string,
    needsPrefilter: boolean,
  ): Promise<GuardOutcome> {
    const end = await run({ kind: 'request', input, needsPrefilter }, upstream);
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
        return { kind: 'refuse', reason: 'internal', findings: [] };
    }
  }

  /** Whether work on a text stays on the loop: while the budget lasts, or while no thread can be started. */
  function runsOnLoop(upstream: string): boolean {
    return budget.hasLeft(upstream) || performance.now() - threadUnavailableAtMs < NO_THREAD_MS;
  }

  /** Whether the prefilter also runs on the worker thread, because a hostile text may be made to slow it down. */
  function isPrefilteredOnWorker(text: string, upstream: string): boolean {
    if (text.length > LARGE_TEXT_CHARS) return true;
    return text.length > SHORT_TEXT_CHARS && !runsOnLoop(upstream);
  }

  /** Runs work on a text and charges its time beyond `freeMs` to the budget. */
  function chargeToBudget<T>(upstream: string, freeMs: number, work: () => T): T {
    const startedMs = performance.now();
    const outcome = work();
    budget.spend(upstream, Math.max(0, performance.now() - startedMs - freeMs));
    return outcome;
  }

  /** Runs the prefilter. A short text is not measured, because measuring it costs more than it is worth. */
  function runPrefilter<T>(text: string, upstream: string, work: () => T): T {
    if (text.length <= SHORT_TEXT_CHARS) return work();
    return chargeToBudget(upstream, text.length * FREE_MS_A_CHAR, work);
  }

  return {
    close: worker.close,
    readJson,
    message(given, upstream) {
      const own = ownOf(upstream);
      const input = own === undefined ? given : withOwnCredentials(given, own);
      const { text } = input;
      if (isPrefilteredOnWorker(text, upstream))
        return checkOutput(input) ?? message(input, upstream, true);
      const begun = runPrefilter(text, upstream, () => inspectWithPrefilter(input));
      if (begun !== undefined) return begun;
      if (text.length > LONG_TEXT_CHARS || !runsOnLoop(upstream))
        return message(input, upstream, false);
      return chargeToBudget(upstream, 0, () => completeInspection(input, inspectFully(input)));
    },
    request(input, upstream) {
      const { text } = input;
      if (isPrefilteredOnWorker(text, upstream)) return request(input, upstream, true);
      const begun = runPrefilter(text, upstream, () => guardClean(input));
      if (begun !== undefined) return begun;
      if (text.length > LONG_TEXT_CHARS || !runsOnLoop(upstream))
        return request(input, upstream, false);
      return chargeToBudget(upstream, 0, () => guardFully(input));
    },
  };
}

/** Adds the credentials. The value of a large text is not parsed for this, because the worker thread parses it. */
function withOwnCredentials(input: InspectionInput, own: SentCredentials): InspectionInput {
  if (input.text.length <= LARGE_TEXT_CHARS) return { ...input, own };
  const { text, profile, output, carry, caps, approved, requestMethod } = input;
  return {
    ...{ text, profile, output, carry, caps, approved, requestMethod, own },
    get value() {
      return input.value;
    },
  };
}
