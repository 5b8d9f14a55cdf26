// What a session says once and a stateless request says every time: who the client is, and what it declares.
// Source: MCP 2026-07-28, requests (`_meta`); mcp-spec.md §2.3.

import { applyEdits } from '../../mcp/json.js';
import { isObject, type Json } from '../../mcp/message.js';
import { capabilitiesFor, type RequestEnvelope } from '../../mcp/translate/to-stateless.js';
import type { AuthorizedRequest } from '../../settle/settle.js';

/** What a handshake says of the client, as a stateless request carries it. */
export function handshakeEnvelope(
  gatewayVersion: string,
  { admitted }: AuthorizedRequest,
): RequestEnvelope {
  const params: unknown = JSON.parse(applyEdits(admitted.text, admitted.edits));
  const declared = isObject(params) && isObject(params['params']) ? params['params'] : {};
  const { capabilities, clientInfo } = declared as { readonly [name: string]: Json | undefined };
  const own = envelopeOf(gatewayVersion, { allowedServerRequests: [], apps: false }, undefined);
  return {
    ...own,
    capabilities: isObject(capabilities) ? capabilities : {},
    clientInfo: isObject(clientInfo) ? clientInfo : own.clientInfo,
  };
}

/** What a request of a session carries in place of the session's own words. */
export function envelopeOf(
  gatewayVersion: string,
  declared: Parameters<typeof capabilitiesFor>[0],
  logLevel: string | undefined,
): RequestEnvelope {
  const clientInfo = { name: 'sallyport', version: gatewayVersion };
  return { capabilities: capabilitiesFor(declared), clientInfo, logLevel };
}
