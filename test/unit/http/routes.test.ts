import { describe, expect, it } from 'vitest';
import { hasForwardingHeader } from '../../../src/http/routes.js';

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
