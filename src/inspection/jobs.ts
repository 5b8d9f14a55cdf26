// What of an inspection can be done apart from the event loop: jobs of plain data, and the one function that
// does them, here or on another thread. How they get there is not decided here.

import { divideJson, type JsonPart } from '../protocol/json/incremental.js';
import { MAX_JSON_DEPTH, readJsonText } from '../protocol/json/json.js';
import type { JsonError } from '../protocol/json/scan.js';
import { type GuardInput, type GuardOutcome, guardClean, guardClosely } from './requests.js';
import {
  type CloseInput,
  type CloseOutcome,
  type InspectionInput,
  type InspectionOutcome,
  inspectFully,
  passIfClean,
} from './responses.js';

/**
 * Content inspection as exchanges use it: at once, unless a text is long and not surely clean. What waits, waits
 * in its upstream's turn.
 */
export type InspectionPort = {
  /** Never throws or rejects, as `inspectMessage`. */
  message(input: InspectionInput, upstream: string): InspectionOutcome | Promise<InspectionOutcome>;
  /** Never throws or rejects, as `guardArguments`. */
  request(input: GuardInput, upstream: string): GuardOutcome | Promise<GuardOutcome>;
};

/** Longer texts are looked at closely beside the event loop: hostile ones of this length take some 50 ms. */
export const LONG_TEXT_CHARS = 16 * 1024;
/** Longer texts are parsed and looked at by the prefilter there too: a hostile megabyte takes some 100 ms. */
export const LARGE_TEXT_CHARS = 256 * 1024;

/**
 * A job of plain data. The value of a message is read again from its text. `isWhole`: nobody has looked at it
 * yet, so the prefilter comes first.
 */
export type InspectionJob =
  | {
      readonly kind: 'message';
      readonly input: Omit<CloseInput, 'value'>;
      readonly needsPrefilter: boolean;
    }
  | { readonly kind: 'request'; readonly input: GuardInput; readonly needsPrefilter: boolean }
  | {
      readonly kind: 'read';
      readonly input: { readonly text: string; readonly maxValues: number };
    };

export type DoneJob =
  | {
      readonly kind: 'message';
      readonly outcome: CloseOutcome;
      /** Of a large text that was changed: the parts in which its value can be built. */
      readonly parts: JsonPart | undefined;
    }
  | { readonly kind: 'request'; readonly outcome: GuardOutcome }
  | { readonly kind: 'read'; readonly outcome: DividedReading };

/** That text is JSON, and the parts in which its value can be built. */
export type DividedReading =
  | { readonly ok: false; readonly error: JsonError }
  | {
      readonly ok: true;
      readonly suspectNumbers: boolean;
      readonly values: number;
      readonly parts: JsonPart;
    };

/** Does a job. Never throws. The text of a message must have been read as JSON before. */
export function doJob(job: InspectionJob): DoneJob {
  switch (job.kind) {
    case 'request': {
      const begun = job.needsPrefilter ? guardClean(job.input) : undefined;
      return { kind: 'request', outcome: begun ?? guardClosely(job.input) };
    }
    case 'message': {
      const input = { ...job.input, value: JSON.parse(job.input.text) };
      const begun = job.needsPrefilter ? passIfClean(input) : undefined;
      const outcome = begun ?? inspectFully(input);
      const isDivided = job.needsPrefilter && outcome.kind === 'changed';
      const parts = isDivided ? divideJson(outcome.text) : undefined;
      return { kind: 'message', outcome, parts };
    }
    case 'read':
      return { kind: 'read', outcome: divide(job.input.text, job.input.maxValues) };
  }
}

function divide(text: string, maxValues: number): DividedReading {
  const reading = readJsonText(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
  if (!reading.ok) return reading;
  const { suspectNumbers, values } = reading;
  return { ok: true, suspectNumbers, values, parts: divideJson(text) };
}
