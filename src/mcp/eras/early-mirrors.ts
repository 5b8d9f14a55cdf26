// Headers of the stateless era on a message of a session. Clients of both eras send them with every
// request; here they mirror nothing, decide nothing and are not sent on. They are overlooked where a
// reader that did trust them would read what the body says, and are left to be refused everywhere else.
// Source: MCP 2026-07-28, transports, validation of standard headers by intermediaries.

import { type HeaderMap, matchesName, matchesPlain } from '../headers.js';
import type { Message } from '../message.js';
import { SESSION_VERSIONS } from '../versions.js';
import { NAME_SOURCES } from './stateless.js';

type Call = Extract<Message, { readonly kind: 'request' | 'notification' }>;

/**
 * The headers without `Mcp-Method` and `Mcp-Name`, where both say what the body says and the version
 * header names a revision of sessions; otherwise the headers as they are.
 */
export function withoutAgreedMirrors(headers: HeaderMap, call: Call): HeaderMap {
  if (headers['mcp-method'] === undefined && headers['mcp-name'] === undefined) return headers;
  const { 'mcp-method': method, 'mcp-name': name, ...others } = headers;
  const version = headers['mcp-protocol-version']?.trim();
  if (version === undefined || !SESSION_VERSIONS.includes(version)) return headers;
  const isAgreed = matchesPlain(method, call.method) && agreesWithName(name, call);
  return isAgreed ? others : headers;
}

function agreesWithName(header: string | undefined, call: Call): boolean {
  if (header === undefined) return true;
  const source = NAME_SOURCES.get(call.method);
  const bodyValue = source === undefined ? undefined : call.params?.[source];
  return typeof bodyValue === 'string' && matchesName(header, bodyValue);
}
