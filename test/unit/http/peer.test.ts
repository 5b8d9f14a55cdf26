import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAddressOf } from '../../../src/http/peer.js';
import { preflightHeaders } from '../../../src/http/request-checks.js';

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
