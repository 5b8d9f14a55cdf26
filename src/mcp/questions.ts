// What a server asks of a client: sampling, elicitation in its two modes, roots. Which question a request
// is, and which ones a client has declared that it answers. Policy decides elsewhere whether one may pass.
// Source: MCP 2025-11-25, sampling, elicitation (modes), roots; lifecycle, capability negotiation.

import type { Grants } from './grants.js';
import { isObject, type Json, type JsonObject, type ServerRequestName } from './message.js';

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
