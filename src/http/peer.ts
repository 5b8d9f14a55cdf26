// Determines the peer of a connection: the address for the record, and the client certificate. A header names
// the address only if a trusted proxy sent it, and never a certificate, which only the connection itself can
// prove.
// Source: RFC 8705 §3 and §6.5.

import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import ipaddr from 'ipaddr.js';

/** How many proxies in a row are followed. */
const MAX_HOPS = 32;

/** Maps a peer and the `X-Forwarded-For` it sent to the address to record. */
export type AddressOf = (peer: string, forwardedFor: string | undefined) => string;

/**
 * Follows `X-Forwarded-For` from its end as long as the proxies that wrote it are trusted. The first address
 * that is not trusted, or is not valid, ends it. `trusted` holds addresses and CIDR ranges.
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

const clientCertificates = new WeakMap<Socket, { readonly thumbprint: string | undefined }>();

/** Discards the client certificate of this connection, because the trusted authorities were replaced. */
export function discardCertificate(socket: Socket): void {
  clientCertificates.set(socket, { thumbprint: undefined });
}

/**
 * The SHA-256 thumbprint (`x5t#S256`) of the client certificate of this connection, if it was signed by a
 * configured authority; `undefined` for any other connection. The TLS handshake has proved possession of its
 * key.
 */
export function certificateOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const known = clientCertificates.get(socket);
  if (known !== undefined) return known.thumbprint;
  const raw = socket.authorized ? socket.getPeerX509Certificate()?.raw : undefined;
  const thumbprint = raw === undefined ? undefined : hash('sha256', raw, 'base64url');
  clientCertificates.set(socket, { thumbprint });
  return thumbprint;
}
