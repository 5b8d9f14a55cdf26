// Who is at the other end of a connection: the address for the record, and the certificate that the client
// has proved. A header speaks for an address only where a trusted proxy sends it, and never for a
// certificate: only the connection itself proves one.
// RFC 8705 §3 and §6.5.

import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import ipaddr from 'ipaddr.js';

/** Proxies behind one another; what lies further is not looked at. */
const MAX_HOPS = 32;

/** The address to record for a peer and the `X-Forwarded-For` that came from it. */
export type AddressOf = (peer: string, forwardedFor: string | undefined) => string;

/**
 * Follows `X-Forwarded-For` from its end for as long as those who wrote it are trusted: the first that is
 * not, or that is no address, ends it. `trusted` are addresses and CIDR ranges.
 */
export function createAddressOf(trusted: readonly string[]): AddressOf {
  if (trusted.length === 0) return (peer) => peer;
  const ranges = trusted.map((each) =>
    each.includes('/') ? ipaddr.parseCIDR(each) : hostRangeOf(ipaddr.process(each)),
  );
  const isTrusted = (address: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
    ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));

  return (peer, forwardedFor) => {
    const named = (forwardedFor ?? '').split(',');
    let address = peer;
    for (let hop = 0; hop < MAX_HOPS; hop += 1) {
      if (!ipaddr.isValid(address) || !isTrusted(ipaddr.process(address))) return address;
      const next = named.pop()?.trim() ?? '';
      if (!ipaddr.isValid(next)) return address;
      address = ipaddr.process(next).toString();
    }
    return address;
  };
}

function hostRangeOf(address: ipaddr.IPv4 | ipaddr.IPv6): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

const proved = new WeakMap<Socket, { readonly thumbprint: string | undefined }>();

/** What the client of this connection has proved counts no more: those whom it was proved to are gone. */
export function disproveCertificate(socket: Socket): void {
  proved.set(socket, { thumbprint: undefined });
}

/**
 * Thumbprint of the certificate that the client of this connection holds the key of and that a configured
 * authority has signed (`x5t#S256`); `undefined` for every other connection.
 */
export function certificateOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const known = proved.get(socket);
  if (known !== undefined) return known.thumbprint;
  const raw = socket.authorized ? socket.getPeerX509Certificate()?.raw : undefined;
  const thumbprint = raw === undefined ? undefined : hash('sha256', raw, 'base64url');
  proved.set(socket, { thumbprint });
  return thumbprint;
}
