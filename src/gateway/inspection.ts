// Where content is inspected: on the event loop, or, where a text is long and not surely clean, on another
// thread. Where there is no other thread it is the event loop again; where one died, nothing passes.

import { type InspectionJob, type InspectionPort, LONG_TEXT_CHARS } from '../inspect/apart.js';
import {
  type GuardInput,
  type GuardOutcome,
  guardArguments,
  guardClean,
  guardClosely,
} from '../inspect/arguments.js';
import {
  beginMessage,
  endMessage,
  type InspectionInput,
  type InspectionOutcome,
  inspectMessage,
  lookClosely,
  withheld,
} from '../inspect/inspect.js';
import type { OwnCredentials } from '../inspect/sanitize/own-credentials.js';
import type { Log } from '../observe/log.js';
import { createInspectionWorker, type InspectionWorker } from './inspection-worker.js';

export type Inspection = InspectionPort & {
  /** Ends the thread; what it has not done is withheld. */
  close(): Promise<void>;
};

/** Inspection with the help of a worker; the log is told once where there is no other thread, and once it is back. */
export function startInspection(log: Log, ownOf: OwnOf = NOTHING_OWN): Inspection {
  return createInspection(
    createInspectionWorker({
      onThread(isThere) {
        if (isThere) log.write('info', 'inspection thread is back');
        else
          log.write('warn', 'no inspection thread', {
            detail:
              'long texts are inspected on the event loop, and everybody waits for them; where the thread hangs at its start, they are withheld',
          });
      },
    }),
    ownOf,
  );
}

/** The credentials of ours that an upstream may send back. */
export type OwnOf = (upstream: string) => OwnCredentials | undefined;

const NOTHING_OWN: OwnOf = () => undefined;

/** Inspection with the help of a worker. A schema is code and stays here, before and after the close look. */
export function createInspection(worker: InspectionWorker, ownOf: OwnOf = NOTHING_OWN): Inspection {
  async function message(input: InspectionInput, upstream: string): Promise<InspectionOutcome> {
    const { text, profile, carry, caps, approved, answered, own } = input;
    const plain = { text, profile, carry, caps, approved, answered, own };
    const job: InspectionJob = { kind: 'message', input: plain };
    const end = await worker.run(job, upstream);
    switch (end.kind) {
      case 'message':
        return endMessage(input, end.outcome);
      case 'unavailable':
        return endMessage(input, lookClosely(input));
      case 'full':
        return withheld('overloaded');
      case 'died':
      case 'request':
        return withheld('internal');
    }
  }

  async function request(input: GuardInput, upstream: string): Promise<GuardOutcome> {
    const end = await worker.run({ kind: 'request', input }, upstream);
    switch (end.kind) {
      case 'request':
        return end.outcome;
      case 'unavailable':
        return guardClosely(input);
      case 'full':
        return { kind: 'refuse', reason: 'overloaded', findings: [] };
      case 'died':
      case 'message':
        return { kind: 'refuse', reason: 'internal', findings: [] };
    }
  }

  return {
    close: worker.close,
    message(given, upstream) {
      const own = ownOf(upstream);
      const input = own === undefined ? given : { ...given, own };
      if (input.text.length <= LONG_TEXT_CHARS) return inspectMessage(input);
      return beginMessage(input) ?? message(input, upstream);
    },
    request(input, upstream) {
      if (input.text.length <= LONG_TEXT_CHARS) return guardArguments(input);
      return guardClean(input) ?? request(input, upstream);
    },
  };
}
