// Server requests: sampling, elicitation in its two modes, and roots. Identifies them, reads which ones a
// client declares, and reads the input requests that take their place in 2026. Whether one is allowed, and
// its content, is checked elsewhere.
// Source: MCP 2025-11-25, sampling, elicitation (modes), roots; lifecycle, capability negotiation;
// MCP 2026-07-28, sampling, elicitation, roots, multi-round-trip requests (InputRequiredResult).

import { foldName } from '../text/json-members.js';
import type { Json } from './jsonrpc.js';
import { isObject, type JsonObject, type ServerRequestName } from './jsonrpc.js';

/**
 * Which server request this is. Elicitation without a mode is form mode.
 * @returns `malformed` for a mode that no revision defines; `undefined` for a method that is no server
 * request.
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

export function isGranted(grants: ServerRequestGrants, name: ServerRequestName): boolean {
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
 * The server requests that a client's capabilities declare. Elicitation without a mode means form mode.
 * Source: MCP 2025-11-25, elicitation, capabilities.
 */
export function declaredServerRequests(capabilities: Json | undefined): readonly ServerRequestName[] {
  if (!isObject(capabilities)) return [];
  const declared: ServerRequestName[] = [];
  if (isObject(capabilities['sampling'])) declared.push('sampling');
  const elicitation = capabilities['elicitation'];
  if (isObject(elicitation)) {
    const declaresUrlMode = isObject(elicitation['url']);
    if (isObject(elicitation['form']) || !declaresUrlMode) declared.push('elicitation/form');
    if (declaresUrlMode) declared.push('elicitation/url');
  }
  if (isObject(capabilities['roots'])) declared.push('roots');
  return declared;
}

/** One input request, by the key under which its response comes. */
export type InputRequest = {
  readonly key: string;
  readonly name: ServerRequestName;
  readonly params: JsonObject;
};

/** The content of a result of type `input_required`: at least one of the two. */
export type InputRequiredResult = {
  readonly inputRequests: readonly InputRequest[];
  readonly state: string | undefined;
};

/** The input requests that a task has already made, by a hash of their content. */
export type RememberedInputRequests = {
  has(requestHash: string): boolean;
  add(requestHash: string): void;
};

const INPUT_REQUIRED_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);
/** Keys of input requests and their responses that are the gateway's own. */
const OWN_KEY_PREFIX = 'gw.';
/** The key under which the gateway asks for an approval. */
export const APPROVAL_KEY = 'gw.approval';

/** Whether a plain yes stands in the answer to the gateway's form. Decline and cancel refuse, and so does what is unclear. */
export function isApproved({ action, content }: JsonObject): boolean {
  return action === 'accept' && isObject(content) && content['approve'] === true;
}

/** Whether the user has said no in the client, to a form or to a link. */
export function isDeclined({ action }: JsonObject): boolean {
  return action === 'decline' || action === 'cancel';
}

/** A result with more input requests is refused. */
const MAX_INPUT_REQUESTS = 64;
const NO_MEMBERS: JsonObject = {};

/** True for a method whose result may ask for input, and whose request may carry the responses. */
export function canRequireInput(method: string): boolean {
  return INPUT_REQUIRED_METHODS.has(method);
}

/** True for a key of the gateway's own, in any case. */
export function isOwnKey(key: string): boolean {
  return foldName(key).startsWith(OWN_KEY_PREFIX);
}

/** The input requests of a result; `undefined` if it violates the specification or uses the gateway's own keys. */
export function readInputRequiredResult(result: JsonObject): InputRequiredResult | undefined {
  const requests = result['inputRequests'] ?? NO_MEMBERS;
  const state = result['requestState'];
  if (!isObject(requests) || !(state === undefined || typeof state === 'string')) return undefined;
  const keys = Object.keys(requests);
  if (keys.length > MAX_INPUT_REQUESTS || (keys.length === 0 && state === undefined)) return undefined;
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

/** What a client declares that it supports of sampling (MCP 2025-11-25, sampling, capabilities). */
type SamplingCapability = 'context' | 'tools';

/** The server requests that policy allows for one caller; admission and the check of server requests use them. */
export type ServerRequestGrants = {
  readonly sampling: boolean;
  /** What of sampling is not allowed, by the capability that declares it; absent if nothing. */
  readonly withoutSampling?: readonly SamplingCapability[];
  readonly elicitation: { readonly form: boolean; readonly url: boolean };
  readonly roots: boolean;
};

export const NO_GRANTS: ServerRequestGrants = Object.freeze({
  sampling: false,
  elicitation: Object.freeze({ form: false, url: false }),
  roots: false,
});
