// What of an inspection can be done apart from the event loop: jobs of plain data, and the one function that
// does them, here or on another thread. How they get there is not decided here.

import { type GuardInput, type GuardOutcome, guardClosely } from './arguments.js';
import {
  type CloseInput,
  type CloseOutcome,
  type InspectionInput,
  type InspectionOutcome,
  lookClosely,
} from './inspect.js';

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

/** Longer texts are looked at closely beside the event loop; a copy to another thread costs more for others. */
export const LONG_TEXT_CHARS = 64 * 1024;

/** A job of plain data. The value of a message is read again from its text. */
export type InspectionJob =
  | { readonly kind: 'message'; readonly input: Omit<CloseInput, 'value'> }
  | { readonly kind: 'request'; readonly input: GuardInput };

export type DoneJob =
  | { readonly kind: 'message'; readonly outcome: CloseOutcome }
  | { readonly kind: 'request'; readonly outcome: GuardOutcome };

/** Does a job. Never throws. The text of a message must have been read as JSON before. */
export function doJob(job: InspectionJob): DoneJob {
  if (job.kind === 'request') return { kind: 'request', outcome: guardClosely(job.input) };
  const value = JSON.parse(job.input.text);
  return { kind: 'message', outcome: lookClosely({ ...job.input, value }) };
}
