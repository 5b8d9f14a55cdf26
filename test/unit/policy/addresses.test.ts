import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AddressClass, arrivesAt, isAddressAllowed } from '../../../src/policy/addresses.js';

type Row = readonly [address: string, allowed: { readonly [one in AddressClass]: boolean }];
const NOWHERE = { public: false, private: false, loopback: false, 'private-only': false };
const EVERYWHERE_OUTSIDE = { ...NOWHERE, public: true, private: true };
const INSIDE = { ...NOWHERE, private: true, 'private-only': true };
const LOOPBACK = { ...NOWHERE, loopback: true };

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
  ['64:ff9b::7f00:1', NOWHERE],
  ['169.254.169.254', NOWHERE],
  ['::ffff:169.254.169.254', NOWHERE],
  ['64:ff9b::a9fe:a9fe', NOWHERE],
  ['fd00:ec2::254', NOWHERE],
  ['fd20:ce::254', NOWHERE],
  ['fd00:c1::a9fe:a9fe', NOWHERE],
  ['fd00:42::42', NOWHERE],
  ['fd00:a9fe:a9fe::1', NOWHERE],
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
        'private-only': isAddressAllowed(address, 'private-only'),
      }).toEqual(allowed);
    });
  }

  it('[A-01] judges every IPv4 address alike in its mapped and NAT64 spellings', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    const first = fc.oneof(octet, fc.constantFrom(10, 127, 169, 172, 192));
    fc.assert(
      fc.property(
        fc.tuple(first, octet, octet, octet),
        fc.constantFrom<AddressClass>('public', 'private', 'loopback', 'private-only'),
        (octets, network) => {
          const plain = octets.join('.');
          const [a, b, c, d] = octets;
          const tail = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
          const verdict = isAddressAllowed(plain, network);
          expect(isAddressAllowed(`::ffff:${plain}`, network)).toBe(verdict);
          // A NAT64 gateway is another machine, so no address behind it is this one's loopback.
          const isTranslated = network !== 'loopback' && verdict;
          expect(isAddressAllowed(`64:ff9b::${tail}`, network)).toBe(isTranslated);
        },
      ),
    );
  });
});

describe('a listener of the gateway', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1', false, true],
    ['127.0.0.1', '::ffff:127.0.0.1', false, true],
    ['127.0.0.1', '127.0.0.2', false, false],
    ['localhost', '127.0.0.1', false, true],
    ['localhost', '::1', false, true],
    ['localhost', '10.0.0.5', true, false],
    ['0.0.0.0', '127.0.0.1', false, true],
    ['0.0.0.0', '10.0.0.5', true, true],
    ['0.0.0.0', '10.0.0.5', false, false],
    ['0.0.0.0', '::1', false, false],
    ['::', '::1', false, true],
    ['::', '127.0.0.1', false, true],
    ['10.0.0.5', '10.0.0.5', false, true],
    ['10.0.0.5', '10.0.0.6', false, false],
    ['fd12::1', 'fd12:0:0::1', false, true],
    ['10.0.0.5', 'gateway.example.com', true, false],
    ['gateway.example.com', '10.0.0.5', true, false],
  ])('[A-13] on %s is reached at %s (an own address: %s): %s', (host, address, isOwn, expected) => {
    expect(arrivesAt({ host, port: 8080 }, { address, port: 8080, isOwn })).toBe(expected);
    expect(arrivesAt({ host, port: 8080 }, { address, port: 8081, isOwn })).toBe(false);
  });
});
