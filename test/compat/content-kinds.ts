// What clients and servers of the content profiles meet: the kinds of content, and the clients that dev configures.

import { expect } from 'vitest';
import { bearer, errorOf, post, resultOf, SESSION_VERSION } from '../support/wire-client.js';
import { type CompatRow, withWorld } from './rig.js';

/** The handshake of mcp-remote 0.15: it names its method in a header before any version is agreed. */
const INITIALIZE = JSON.stringify({
  method: 'initialize',
  params: {
    protocolVersion: SESSION_VERSION,
    capabilities: {},
    clientInfo: { name: 'mcp-remote-fallback-test', version: '0.0.0' },
  },
  jsonrpc: '2.0',
  id: 0,
});

export const rows: readonly CompatRow[] = [
  {
    id: 'handshake-of-mcp-remote',
    area: 'clients',
    source: 'mcp-remote 0.15.1, typescript-sdk 2',
    given:
      'A client sends Mcp-Method with its initialize, before a version is agreed, and no version header.',
    verdict: 'accepts',
    sees: 'The session opens; a header that differs from the body is refused with header-mismatch.',
    run: () =>
      withWorld({}, async ({ access }) => {
        const opened = await post(access, INITIALIZE, { 'mcp-method': 'initialize' });
        expect(resultOf(opened)).toMatchObject({ protocolVersion: SESSION_VERSION });
        const other = await post(access, INITIALIZE, { 'mcp-method': 'tools/list' });
        expect([other.status, errorOf(other)['code']]).toEqual([400, -32020]);
      }),
  },
  {
    id: 'probe-of-mcp-remote',
    area: 'clients',
    source: 'mcp-remote 0.15.1',
    given: 'A client looks with a GET whether the endpoint speaks HTTP+SSE, and leaves at once.',
    verdict: 'accepts',
    sees: 'A stream of HTTP+SSE opens, and the handshake over Streamable HTTP works beside it.',
    run: () =>
      withWorld({}, async ({ access }) => {
        const leaving = new AbortController();
        const probe = await fetch(access.url, {
          headers: { accept: 'application/json, text/event-stream', ...bearer(access.token) },
          signal: leaving.signal,
        });
        expect([probe.status, probe.headers.get('content-type')]).toEqual([
          200,
          'text/event-stream',
        ]);
        leaving.abort();
        const opened = await post(access, INITIALIZE, { 'mcp-method': 'initialize' });
        expect(opened.status).toBe(200);
      }),
  },
];
