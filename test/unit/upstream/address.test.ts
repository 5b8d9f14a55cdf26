import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAddressAllowed } from '../../../src/upstream/safe-fetch.js';

type Row = readonly [
  address: string,
  allowed: { readonly public: boolean; readonly private: boolean; readonly loopback: boolean },
];
const NOWHERE = { public: false, private: false, loopback: false };
const EVERYWHERE_OUTSIDE = { public: true, private: true, loopback: false };
const INSIDE = { public: false, private: true, loopback: false };
const LOOPBACK = { public: false, private: false, loopback: true };

const ROWS: readonly Row[] = [
  ['93.184.216.34', EVERYWHERE_OUTSIDE],
  ['2606:4700::1111', EVERYWHERE_OUTSIDE],
  ['::ffff:93.184.216.34', EVERYWHERE_OUTSIDE],
  ['64:ff9b::5db8:d822', EVERYWHERE_OUTSIDE],
  ['10.1.2.3', INSIDE],
  ['172.16.0.1', INSIDE],
  ['192.168.1.1', INSIDE],
  ['fd12:3456::1', INSIDE],
  ['::ffff:10.0.0.1', INSIDE],
  ['64:ff9b::a00:1', INSIDE],
  ['127.0.0.1', LOOPBACK],
  ['127.8.8.8', LOOPBACK],
  ['::1', LOOPBACK],
  ['::ffff:127.0.0.1', LOOPBACK],
  ['64:ff9b::7f00:1', LOOPBACK],
  ['169.254.169.254', NOWHERE],
  ['::ffff:169.254.169.254', NOWHERE],
  ['64:ff9b::a9fe:a9fe', NOWHERE],
  ['fd00:ec2::254', NOWHERE],
  ['168.63.129.16', NOWHERE],
  ['fe80::1', NOWHERE],
  ['fe80::1%eth0', NOWHERE],
  ['100.64.0.1', NOWHERE],
  ['100.100.100.200', NOWHERE],
  ['192.0.0.192', NOWHERE],
  ['0.0.0.0', NOWHERE],
  ['255.255.255.255', NOWHERE],
  ['224.0.0.1', NOWHERE],
  ['::', NOWHERE],
  ['::7f00:1', NOWHERE],
  ['64:ff9b:1::7f00:1', NOWHERE],
  ['2002:7f00:1::', NOWHERE],
  ['2001:db8::1', NOWHERE],
  ['4000::1', NOWHERE],
  ['ff02::1', NOWHERE],
  ['example.com', NOWHERE],
  ['', NOWHERE],
];

describe('the addresses of a network', () => {
  for (const [address, allowed] of ROWS) {
    it(`[A-01] judges ${address === '' ? 'the empty string' : address}`, () => {
      expect({
        public: isAddressAllowed(address, 'public'),
        private: isAddressAllowed(address, 'private'),
        loopback: isAddressAllowed(address, 'loopback'),
      }).toEqual(allowed);
    });
  }

  it('[A-01] judges every IPv4 address alike in its mapped and NAT64 spellings', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(
        fc.tuple(octet, octet, octet, octet),
        fc.constantFrom('public' as const, 'private' as const, 'loopback' as const),
        (octets, network) => {
          const plain = octets.join('.');
          const [a, b, c, d] = octets;
          const tail = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
          const verdict = isAddressAllowed(plain, network);
          expect(isAddressAllowed(`::ffff:${plain}`, network)).toBe(verdict);
          expect(isAddressAllowed(`64:ff9b::${tail}`, network)).toBe(verdict);
        },
      ),
    );
  });
});
