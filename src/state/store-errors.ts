// What an error of the shared store means: in words for people, and as one of few types for metrics. Pure.

import { systemErrorCode } from '../text/wording.js';

/** What the errors mean that a store answers with, by the word that they begin with. */
const STORE_ERRORS: ReadonlyMap<string, string> = new Map([
  ['NOAUTH', 'it asks for a password, and state.url has none that it accepts'],
  ['WRONGPASS', 'it does not accept the user or the password in state.url'],
  ['NOPERM', 'the user in state.url lacks a permission that the gateway needs'],
  ['LOADING', 'it is still loading its data'],
  ['READONLY', 'it is a replica, which takes no writes'],
  ['MOVED', 'it is a cluster, which is not supported'],
  ['OOM', 'it has no memory left'],
  ['MISCONF', 'it takes no writes because it cannot persist them'],
  ['ERR', 'it does not accept a command or a connection'],
]);

const TIMED_OUT = 'Command timed out';

/** An error of the store itself begins with a word in capitals; nothing else of an error is shown but its code. */
export function describeStoreError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const answered = answeredWord(error);
  if (answered !== undefined) return describeCode(STORE_ERRORS.get(answered) ?? 'it answers with an error', answered);
  if (error.message === TIMED_OUT) return 'no answer in time';
  return describeCode('no connection', systemErrorCode(error));
}

/** `refused`: the store answered with an error. */
export function storeErrorType(error: unknown): 'timeout' | 'refused' | 'unavailable' {
  if (!(error instanceof Error)) return 'unavailable';
  if (error.message === TIMED_OUT) return 'timeout';
  return answeredWord(error) === undefined ? 'unavailable' : 'refused';
}

function answeredWord({ message }: Error): string | undefined {
  return /^[A-Z]{3,16}(?= )/.exec(message)?.[0];
}

function describeCode(what: string, code: unknown): string {
  return typeof code === 'string' ? `${what} (${code})` : what;
}
