// The headers of a request to an upstream, built from an allow-list. Nothing of the client's request is
// copied by default, so a token, cookie or forwarding header cannot pass by accident (MCP security
// best practices, token passthrough; attacks 8, 9 and 47).

import type { Admitted } from '../mcp/admitted.js';
import type { HeaderPair } from '../mcp/translate/mirrored-headers.js';
import { LEGACY_SSE_VERSION } from '../mcp/versions.js';

/** Headers as undici takes them: name, value, name, value. */
export type HeaderList = string[];

const ACCEPT_BOTH = 'application/json, text/event-stream';

/** What every request to an upstream has; what it shows of us and of the caller comes from the presenter. */
export function baseHeaders(accept: string): HeaderList {
  return ['accept', accept, 'accept-encoding', 'identity', 'user-agent', 'sallyport'];
}

/**
 * Headers of a POST that carries an admitted message. The 2026 headers are the admitted ones: they were
 * compared with the body, so they say what the body says (MCP 2026-07-28, standard headers).
 */
export function messageHeaders(admitted: Admitted): HeaderList {
  const headers = baseHeaders(ACCEPT_BOTH);
  headers.push('content-type', 'application/json');
  if (admitted.era === '2026') {
    headers.push('mcp-protocol-version', admitted.version, 'mcp-method', admitted.rule.method);
    if (admitted.nameHeader !== undefined) headers.push('mcp-name', admitted.nameHeader);
    for (const name in admitted.paramHeaders) headers.push(name, admitted.paramHeaders[name] ?? '');
    return headers;
  }
  pushSession(headers, admitted.session);
  return headers;
}

/** Headers of a POST in the form of another era: those of its own, which were written from the body. */
export function formHeaders(own: readonly HeaderPair[]): HeaderList {
  const headers = baseHeaders(ACCEPT_BOTH);
  headers.push('content-type', 'application/json');
  for (const [name, value] of own) headers.push(name, value);
  return headers;
}

/** Headers of a GET or DELETE within a session. */
export function sessionHeaders(
  session: { readonly version: string; readonly upstreamSession: string | undefined },
  accept: string,
): HeaderList {
  const headers = baseHeaders(accept);
  pushSession(headers, session);
  return headers;
}

function pushSession(
  headers: HeaderList,
  session: { readonly version: string; readonly upstreamSession: string | undefined } | undefined,
): void {
  // A session of HTTP+SSE stands in the address.
  if (session === undefined || session.version === LEGACY_SSE_VERSION) return;
  if (session.upstreamSession !== undefined)
    headers.push('mcp-session-id', session.upstreamSession);
  // 2025-03-26 knows no such header (MCP 2025-06-18, transports, protocol version header).
  if (session.version !== '2025-03-26') headers.push('mcp-protocol-version', session.version);
}
