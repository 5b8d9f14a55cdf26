// What the gateway reads of a request is plain values: copies of it lose nothing, and all share one shape.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { toIncoming } from '../../../src/http/request.js';

describe('a request as the gateway sees it', () => {
  it('[PRF-04] has no accessors, so that a copy of it is the same and tells of the same leave', () => {
    const request = { method: 'POST', headers: {}, socket: {} } as unknown as IncomingMessage;
    const response = { destroyed: false, on: () => undefined } as unknown as ServerResponse;
    const facts = {
      id: '00000000-0000-4000-8000-000000000000',
      receivedAt: 1,
      startedMs: 1,
      route: { upstream: 'files', maxRequestBytes: 1, concurrency: 1, concurrencyPerCaller: 1 },
      query: '',
      repeated: new Set<string>(),
      body: new Uint8Array(0),
      remoteAddress: '192.0.2.1',
    };
    const incoming = toIncoming(request, response, facts, () => true);
    const described = Object.values(Object.getOwnPropertyDescriptors(incoming));
    expect(described.length).toBeGreaterThan(10);
    expect(described.filter(({ get }) => get !== undefined)).toEqual([]);
    expect({ ...incoming }.signal).toBe(incoming.signal);
  });
});
