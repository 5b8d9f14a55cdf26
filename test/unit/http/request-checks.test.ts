import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasForwardingHeader, preflightHeaders, servedHosts } from '../../../src/http/request-checks.js';

describe('the answer to a preflight', () => {
  it('[BND-24] repeats nothing but names of one grammar', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const allowed = preflightHeaders(['POST'], text)['access-control-allow-headers'];
        expect(allowed).toMatch(/^[a-z0-9!#$%&'*+.^_`|~-]+(, [a-z0-9!#$%&'*+.^_`|~-]+)*$/);
      }),
    );
    const many = Array.from({ length: 500 }, (_, at) => `mcp-param-${at}`).join(',');
    const allowed = preflightHeaders(['POST'], many)['access-control-allow-headers'] ?? '';
    expect(allowed.split(', ').length).toBeLessThan(80);
  });
});

describe('the hosts that are served', () => {
  it.each([
    ['https://mcp.example.com', ['mcp.example.com', 'mcp.example.com:443'], ['mcp.example.com:80', 'mcp.example.com.']],
    ['http://localhost', ['localhost', 'localhost:80', '127.0.0.1:8080'], ['localhost:443']],
    ['https://mcp.example.com:8443', ['mcp.example.com:8443'], ['mcp.example.com', 'mcp.example.com:443']],
  ])('have the default port of their scheme or none: %s', (url, served, foreign) => {
    const hosts = servedHosts(new URL(url), 8080);
    expect(served.filter((host) => !hosts.has(host))).toEqual([]);
    expect(foreign.filter((host) => hosts.has(host))).toEqual([]);
  });
});

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
