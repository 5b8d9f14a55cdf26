// What the gateway reads of a request is plain values: copies of it lose nothing, and all share one shape.

import type { IncomingMessage, ServerResponse } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAddressOf, createConcurrencyLimits, toIncoming } from '../../../src/http/request.js';

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

describe('the address of the record', () => {
  const of = createAddressOf(['10.0.0.0/8', '2001:db8::/32', '192.0.2.1']);

  it.each([
    ['198.51.100.9', '203.0.113.1', '198.51.100.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '203.0.113.1', '203.0.113.1'],
    ['::ffff:10.0.0.1', '203.0.113.1', '203.0.113.1'],
    ['2001:db8::1', '203.0.113.1, 10.9.9.9', '203.0.113.1'],
    ['192.0.2.1', '203.0.113.1', '203.0.113.1'],
    ['192.0.2.2', '203.0.113.1', '192.0.2.2'],
    ['10.0.0.1', '203.0.113.1, 198.51.100.9', '198.51.100.9'],
    ['10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
    ['10.0.0.1', '203.0.113.1:4711', '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['', '203.0.113.1', ''],
  ])('[BND-28] of peer %s with %j is %s', (peer, forwarded, expected) => {
    expect(of(peer, forwarded)).toBe(expected);
  });

  it('[BND-28] is always one that the peer or a trusted proxy has named, never other text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(of('10.0.0.1', text)).toMatch(/^[0-9a-f.:]+$/);
        expect(createAddressOf([])('10.0.0.1', text)).toBe('10.0.0.1');
      }),
    );
    const long = Array(5_000).fill('10.0.0.2').join(',');
    expect(of('10.0.0.1', long)).toBe('10.0.0.2');
  });
});

const limitOf = (concurrency: number, concurrencyPerCaller = concurrency) => ({
  concurrency,
  concurrencyPerCaller,
});
const routeOf = (upstream: string, ...given: Parameters<typeof limitOf>) => ({
  ...{ upstream, maxRequestBytes: 1 },
  ...limitOf(...given),
});

describe('[MRG-19] places at an upstream', () => {
  it('are shared by its own path and by every endpoint, and given back once', () => {
    const limits = createConcurrencyLimits();
    const aggregate = {
      ...routeOf('all', 0),
      backends: new Map([
        ['left', limitOf(1)],
        ['right', limitOf(2)],
      ]),
    };
    const own = routeOf('left', 1);
    const first = limits.forOne(aggregate);
    expect([
      first.acquire('ann', 'left'),
      first.acquire('ann', 'left'),
      first.acquire('ann', 'right'),
    ]).toEqual([...[true, true, true]]);
    expect(limits.forOne(own).acquire('ann')).toBe(false);
    const second = limits.forOne(aggregate);
    expect([second.acquire('ann', 'left'), second.acquire('ann', 'right')]).toEqual([false, true]);
    expect(limits.forOne(aggregate).acquire('ann', 'stranger')).toBe(false);
    first.release();
    first.release();
    const third = limits.forOne(own);
    expect([third.acquire('ann'), third.acquire('ann')]).toEqual([true, true]);
    expect(limits.forOne(own).acquire('ann')).toBe(false);
    third.release();
    second.release();
  });
});

describe('[H-10] a caller', () => {
  it('has its quota of the places of an upstream, on whatever path, and the others have the rest', () => {
    const limits = createConcurrencyLimits();
    const own = routeOf('left', 4, 2);
    const aggregate = { ...routeOf('all', 0), backends: new Map([['left', limitOf(4, 2)]]) };
    const [first, second] = [limits.forOne(own), limits.forOne(aggregate)];
    expect([first.acquire('ann'), second.acquire('ann', 'left')]).toEqual([true, true]);
    expect(limits.forOne(own).acquire('ann')).toBe(false);
    expect(limits.forOne(aggregate).acquire('ann', 'left')).toBe(false);
    const others = [limits.forOne(own), limits.forOne(own), limits.forOne(own)];
    expect(others.map((one, index) => one.acquire(`other ${index}`))).toEqual([true, true, false]);
    // What is given back is the caller's again, and no more than that.
    second.release();
    expect(limits.forOne(own).acquire('ann')).toBe(true);
    expect(limits.forOne(own).acquire('ann')).toBe(false);
  });

  it('has another quota at another upstream', () => {
    const limits = createConcurrencyLimits();
    expect(limits.forOne(routeOf('left', 2, 1)).acquire('ann')).toBe(true);
    expect(limits.forOne(routeOf('left', 2, 1)).acquire('ann')).toBe(false);
    expect(limits.forOne(routeOf('right', 2, 1)).acquire('ann')).toBe(true);
  });
});
