// The questions of a server in 2026: a result that asks for input first, instead of a request. Reads what
// is asked; whether it may be asked, and its content, are judged elsewhere.
// Source: MCP 2026-07-28, multi-round-trip requests (InputRequiredResult).

import { foldName } from './case-folding.js';
import { isObject, type Json, type JsonObject, type QuestionName } from './message.js';
import { readQuestion } from './questions.js';

/** One question, by the key under which its answer comes. */
export type KeyedQuestion = {
  readonly key: string;
  readonly name: QuestionName;
  readonly params: JsonObject;
};

/** What a result of type `input_required` holds: at least one of the two. */
export type Asking = {
  readonly questions: readonly KeyedQuestion[];
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
const NO_MEMBERS: JsonObject = {};

/** True for a method whose answer may be a question, and whose request may carry answers. */
export function mayAskFirst(method: string): boolean {
  return ASKING_METHODS.has(method);
}

/** True for a key of our own, in whatever case it is written. */
export function isOwnKey(key: string): boolean {
  return foldName(key).startsWith(OWN_KEY_PREFIX);
}

/** Reads the questions of a result; `undefined` where it breaks the specification or uses keys of ours. */
export function readAsking(result: JsonObject): Asking | undefined {
  const requests = result['inputRequests'] ?? NO_MEMBERS;
  const state = result['requestState'];
  if (!isObject(requests) || !(state === undefined || typeof state === 'string')) return undefined;
  const keys = Object.keys(requests);
  if (keys.length > MAX_QUESTIONS || (keys.length === 0 && state === undefined)) return undefined;
  const questions: KeyedQuestion[] = [];
  for (const key of keys) {
    const question = isOwnKey(key) ? undefined : readKeyed(key, requests[key]);
    if (question === undefined) return undefined;
    questions.push(question);
  }
  return { questions, state };
}

function readKeyed(key: string, request: Json | undefined): KeyedQuestion | undefined {
  if (!isObject(request)) return undefined;
  const method = request['method'];
  const params = request['params'] ?? NO_MEMBERS;
  if (typeof method !== 'string' || !isObject(params)) return undefined;
  const name = readQuestion(method, params);
  return name === undefined || name === 'malformed' ? undefined : { key, name, params };
}
