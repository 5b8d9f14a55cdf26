// The questions of a server in 2026: a result that asks for input first, instead of a request. Reads what
// is asked; whether it may be asked, and its content, are judged elsewhere.
// Source: MCP 2026-07-28, multi-round-trip requests (InputRequiredResult).

import { foldName } from './case-folding.js';
import { isObject, type Json, type JsonObject, type ServerRequestName } from './message.js';
import { serverRequestNameOf } from './questions.js';

/** One question, by the key under which its answer comes. */
export type InputRequest = {
  readonly key: string;
  readonly name: ServerRequestName;
  readonly params: JsonObject;
};

/** What a result of type `input_required` holds: at least one of the two. */
export type InputRequiredResult = {
  readonly inputRequests: readonly InputRequest[];
  readonly state: string | undefined;
};

const INPUT_REQUIRED_METHODS: ReadonlySet<string> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
]);
/** Keys of questions and answers that are the gateway's own. */
const OWN_KEY_PREFIX = 'gw.';
/** More questions than this in one result are no dialogue. */
const MAX_INPUT_REQUESTS = 64;
const NO_MEMBERS: JsonObject = {};

/** True for a method whose answer may be a question, and whose request may carry answers. */
export function canRequireInput(method: string): boolean {
  return INPUT_REQUIRED_METHODS.has(method);
}

/** True for a key of our own, in whatever case it is written. */
export function isOwnKey(key: string): boolean {
  return foldName(key).startsWith(OWN_KEY_PREFIX);
}

/** Reads the questions of a result; `undefined` where it breaks the specification or uses keys of ours. */
export function readInputRequiredResult(result: JsonObject): InputRequiredResult | undefined {
  const requests = result['inputRequests'] ?? NO_MEMBERS;
  const state = result['requestState'];
  if (!isObject(requests) || !(state === undefined || typeof state === 'string')) return undefined;
  const keys = Object.keys(requests);
  if (keys.length > MAX_INPUT_REQUESTS || (keys.length === 0 && state === undefined))
    return undefined;
  const inputRequests: InputRequest[] = [];
  for (const key of keys) {
    const inputRequest = isOwnKey(key) ? undefined : readKeyed(key, requests[key]);
    if (inputRequest === undefined) return undefined;
    inputRequests.push(inputRequest);
  }
  return { inputRequests, state };
}

function readKeyed(key: string, request: Json | undefined): InputRequest | undefined {
  if (!isObject(request)) return undefined;
  const method = request['method'];
  const params = request['params'] ?? NO_MEMBERS;
  if (typeof method !== 'string' || !isObject(params)) return undefined;
  const name = serverRequestNameOf(method, params);
  return name === undefined || name === 'malformed' ? undefined : { key, name, params };
}
