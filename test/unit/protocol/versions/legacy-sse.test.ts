import { describe, expect, it } from 'vitest';
import type { SessionFacts } from '../../../../src/protocol/admitted-request.js';

import {
  checkLegacySse,
  legacySseAddress,
  probesForLegacySse,
  readEndpoint,
  sessionInQuery,
} from '../../../../src/protocol/versions/legacy-sse.js';
import { checkSession } from '../../../../src/protocol/versions/session.js';

const BASE = new URL('https://old.example:8443/mcp/events?v=1');
const CHANNEL: SessionFacts = {
  version: '2024-11-05',
  target: { kind: 'legacy-sse', messageEndpoint: '/post' },
};

describe('the address that a server wants messages at', () => {
  it.each([
    ['/post?s=1', '/post?s=1'],
    ['post', '/mcp/post'],
    ['?s=1', '/mcp/events?s=1'],
    ['https://old.example:8443/x', '/x'],
    ['HTTPS://OLD.EXAMPLE:8443/x#part', '/x'],
  ])('[V-07] is path and query of its own origin: %s', (value, path) => {
    expect(readEndpoint(value, BASE)).toBe(path);
  });

  it.each([
    '',
    'https://old.example/x',
    'http://old.example:8443/x',
    '//old.example.evil.example:8443/x',
    '\\\\evil.example\\x',
    'https://old.example:8443@evil.example/x',
    'https://user@old.example:8443/x',
    'data:text/plain,x',
    `/${'x'.repeat(3000)}`,
  ])('[V-07] is nowhere else: %s', (value) => {
    expect(readEndpoint(value, BASE)).toBeUndefined();
  });
});

describe('a GET that probes for HTTP+SSE', () => {
  it.each([
    ['text/event-stream', true],
    ['Text/Event-Stream', true],
    ['application/json, TEXT/EVENT-STREAM;q=0.5', true],
    ['text/event-stream;q=0', false],
    ['text/event-stream; Q=0.0, */*', false],
    ['*/*', false],
    ['', false],
    [undefined, false],
  ])('[V-10] names the media type of streams: %s is %s', (accept, isProbe) => {
    expect(probesForLegacySse({ accept })).toBe(isProbe);
    expect(probesForLegacySse({ accept, 'last-event-id': '1' })).toBe(false);
  });
});

describe('a session of a channel', () => {
  it('[V-10] stands in one form of query alone', () => {
    const query = new URL(legacySseAddress('https://a.example/x/message', 'Ab_-9')).search.slice(1);
    expect(sessionInQuery(query)).toBe('Ab_-9');
    for (const other of ['', 'session=', 'Session=A', 'session=A&session=B', 'x=1&session=A', 'session=%41'])
      expect(sessionInQuery(other)).toBeUndefined();
  });

  const check = (session: SessionFacts | undefined, more: Record<string, string> = {}) =>
    checkLegacySse({ headers: { 'mcp-session-id': 'sealed', ...more }, openSession: () => session }, {});

  it('[V-10] opens on its channel, and on no other transport; nor do others here', () => {
    expect(check(CHANNEL)).toMatchObject({ kind: 'session', version: '2024-11-05' });
    expect(check(CHANNEL, { 'mcp-protocol-version': '2024-11-05' })).toMatchObject({
      kind: 'session',
    });
    expect(check({ ...CHANNEL, version: '2025-11-25' })).toMatchObject({ status: 404 });
    expect(check(undefined)).toMatchObject({ status: 404 });
    const elsewhere = checkSession({ 'mcp-session-id': 'sealed' }, () => CHANNEL, {});
    expect(elsewhere).toMatchObject({ kind: 'error', status: 404 });
  });

  it.each([
    { 'mcp-protocol-version': '2025-11-25' },
    { 'mcp-protocol-version': '2026-07-28' },
    { 'mcp-method': 'tools/call' },
    { 'mcp-param-x': '1' },
    { 'last-event-id': '1' },
  ])('[V-10] claims no other era: %j', (headers) => {
    expect(check(CHANNEL, headers as Record<string, string>)).toMatchObject({ status: 400 });
  });
});
