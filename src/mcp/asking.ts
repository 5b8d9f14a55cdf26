// The questions of a server in 2026: a result that asks for input first, instead of a request. Reads what
// is asked and by which capability; whether it may be asked, and its content, are judged elsewhere.
// Source: MCP 2026-07-28, multi-round-trip requests (InputRequiredResult).

import { foldName } from './case-folding.js';
import type { Grants } from './grants.js';
import { isObject, type Json, type JsonObject } from './message.js';
import { declaredModes } from './removal.js';

/** What one question needs the client to have declared. */
export type Ask = 'sampling' | 'roots' | 'elicitation-form' | 'elicitation-url';

export type Question = {
  readonly key: string;
  readonly ask: Ask;
  readonly params: JsonObject;
};

/** What a result of type `input_required` holds: at least one of the two. */
export type Asking = {
  readonly questions: readonly Question[];
  readonly state: string | undefined;
};

const ASKING_METHODS: ReadonlySet<string> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
]);
/** Keys of questions and answers that are the gateway's own. */
const OWN_KEY_PREFIX = 'gw.';
/** More questions than this in one result are no dialogue. */
const MAX_QUESTIONS = 64;
const NO_PARAMS: JsonObject = {};

/** True for a method whose answer may be a question, and whose request may carry answers. */
export function mayAskFirst(method: string): boolean {
  return ASKING_METHODS.has(method);
}

/** True for a key of our own, in whatever case it is written. */
export function isOwnKey(key: string): boolean {
  return foldName(key.slice(0, OWN_KEY_PREFIX.length)) === OWN_KEY_PREFIX;
}

/** Reads the questions of a result; `undefined` where it breaks the specification or uses keys of ours. */
export function readAsking(result: JsonObject): Asking | undefined {
  const { requests = NO_PARAMS, state } = {
    requests: result['inputRequests'],
    state: result['requestState'],
  };
  if (!isObject(requests) || (state !== undefined && typeof state !== 'string')) return undefined;
  const keys = Object.keys(requests);
  if (keys.length > MAX_QUESTIONS || (keys.length === 0 && state === undefined)) return undefined;
  const questions: Question[] = [];
  for (const key of keys) {
    const question = isOwnKey(key) ? undefined : readQuestion(key, requests[key]);
    if (question === undefined) return undefined;
    questions.push(question);
  }
  return { questions, state };
}

function readQuestion(key: string, request: Json | undefined): Question | undefined {
  if (!isObject(request)) return undefined;
  const params = request['params'] ?? NO_PARAMS;
  if (!isObject(params)) return undefined;
  const ask = askOf(request['method'], params['mode']);
  return ask === undefined ? undefined : { key, ask, params };
}

function askOf(method: Json | undefined, mode: Json | undefined): Ask | undefined {
  if (method === 'sampling/createMessage') return 'sampling';
  if (method === 'roots/list') return 'roots';
  if (method !== 'elicitation/create') return undefined;
  if (mode === undefined || mode === 'form') return 'elicitation-form';
  return mode === 'url' ? 'elicitation-url' : undefined;
}

/** Whether grants and the capabilities of the very request both allow a question. */
export function mayAsk(ask: Ask, grants: Grants, capabilities: Json | undefined): boolean {
  if (!isObject(capabilities)) return false;
  const modes = declaredModes(capabilities['elicitation']);
  switch (ask) {
    case 'sampling':
      return grants.sampling && isObject(capabilities['sampling']);
    case 'roots':
      return grants.roots && isObject(capabilities['roots']);
    case 'elicitation-form':
      return grants.elicitation.form && modes.form;
    case 'elicitation-url':
      return grants.elicitation.url && modes.url;
  }
}
