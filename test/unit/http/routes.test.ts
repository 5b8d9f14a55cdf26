import { describe, expect, it } from 'vitest';
import { createConcurrencyLimits, hasForwardingHeader } from '../../../src/http/routes.js';

describe('headers that proxies add', () => {
  it.each([
    'forwarded',
    'via',
    'x-forwarded',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-port',
    'x-forwarded-prefix',
    'x-forwarded-proto',
    'x-forwarded-server',
    'x-original-forwarded-for',
    'x-original-host',
    'x-real-ip',
    'x-client-ip',
    'x-cluster-client-ip',
    'x-envoy-external-address',
    'true-client-ip',
    'cf-connecting-ip',
  ])('[H-06] are known: %s', (name) => {
    expect(hasForwardingHeader({ host: 'localhost', [name]: '' })).toBe(true);
  });

  it('[H-06] are told from those of clients', () => {
    const own = { host: 'localhost', origin: 'http://localhost', 'x-request-id': '1' };
    expect(hasForwardingHeader(own)).toBe(false);
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
