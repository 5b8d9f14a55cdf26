// What a server asks of a client: sampling, elicitation in its two modes, roots. Which question a request
// is, and which ones a client has declared that it answers. Policy decides elsewhere whether one may pass.
// Source: MCP 2025-11-25, sampling, elicitation (modes), roots; lifecycle, capability negotiation.

import { foldName } from '../text/case-folding.js';
import { isObject, type Json, type JsonObject, type ServerRequestName } from './jsonrpc.js';

/** Every question there is, in the order in which records name them. */
export const SERVER_REQUEST_NAMES: readonly ServerRequestName[] = [
  'sampling',
  'elicitation/form',
  'elicitation/url',
  'roots',
];

/** Methods that ask a client for something. A `ping` asks for nothing and is not one of them. */
export const SERVER_REQUEST_METHODS: ReadonlySet<string> = new Set([
  'sampling/createMessage',
  'elicitation/create',
  'roots/list',
]);

/**
 * Which question a request of a server is. Elicitation without a mode is a form.
 * @returns `malformed` for a mode that no revision defines; `undefined` for a method that asks nothing.
 */
export function serverRequestNameOf(
  method: string,
  params: JsonObject | undefined,
): ServerRequestName | 'malformed' | undefined {
  switch (method) {
    case 'sampling/createMessage':
      return 'sampling';
    case 'roots/list':
      return 'roots';
    case 'elicitation/create':
      return readMode(params?.['mode']);
    default:
      return undefined;
  }
}

function readMode(mode: Json | undefined): ServerRequestName | 'malformed' {
  if (mode === undefined || mode === 'form') return 'elicitation/form';
  return mode === 'url' ? 'elicitation/url' : 'malformed';
}

/** True where a question is granted. */
export function isGranted(grants: Grants, name: ServerRequestName): boolean {
  switch (name) {
    case 'sampling':
      return grants.sampling;
    case 'elicitation/form':
      return grants.elicitation.form;
    case 'elicitation/url':
      return grants.elicitation.url;
    case 'roots':
      return grants.roots;
  }
}

/**
 * The questions that these capabilities of a client declare. Elicitation that names no mode means forms.
 * Source: MCP 2025-11-25, elicitation, capabilities.
 */
export function declaredServerRequests(
  capabilities: Json | undefined,
): readonly ServerRequestName[] {
  if (!isObject(capabilities)) return [];
  const declared: ServerRequestName[] = [];
  if (isObject(capabilities['sampling'])) declared.push('sampling');
  const elicitation = capabilities['elicitation'];
  if (isObject(elicitation)) {
    const asksUrl = isObject(elicitation['url']);
    if (isObject(elicitation['form']) || !asksUrl) declared.push('elicitation/form');
    if (asksUrl) declared.push('elicitation/url');
  }
  if (isObject(capabilities['roots'])) declared.push('roots');
  return declared;
}

// The questions of a server in 2026: a result that asks for input first, instead of a request. Reads what
// is asked; whether it may be asked, and its content, are judged elsewhere.
// Source: MCP 2026-07-28, multi-round-trip requests (InputRequiredResult).

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

// What a server may ask of a client, as one value: made by policy, used by admission and by whoever
// judges a question. Types and the empty grant only; nothing here decides.
// Source: MCP 2025-11-25 and 2026-07-28, sampling, elicitation, roots.

/** The questions that a server may put to one caller. */
export type Grants = {
  readonly sampling: boolean;
  readonly elicitation: { readonly form: boolean; readonly url: boolean };
  readonly roots: boolean;
};

/** Nothing may be asked. */
export const NO_GRANTS: Grants = Object.freeze({
  sampling: false,
  elicitation: Object.freeze({ form: false, url: false }),
  roots: false,
});
