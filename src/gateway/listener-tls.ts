// TLS of the listeners, for node:tls: versions, ciphers, and what is asked of clients. Whether a certificate
// proves anything is decided where it is used.
// RFC 8446; RFC 9325 §3 and §4; RFC 7301 (HTTP/1.1 alone is spoken).

import { constants } from 'node:crypto';
import type { TlsOptions } from 'node:tls';
import type { TlsSettings } from '../config/settings.js';

/** A handshake that takes longer is nobody's. */
const HANDSHAKE_WITHIN_MS = 10_000;

/** Forward secrecy and authenticated encryption, nothing else (RFC 9325 §4.2). */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/**
 * Options of a listener. With authorities for clients a certificate is asked for; one that they did not
 * sign, or none at all, ends the handshake only where one is `required`.
 */
export function secureOptions(
  tls: TlsSettings | undefined,
  clients: 'asked' | 'required',
): TlsOptions | undefined {
  if (tls === undefined) return undefined;
  const { cert, key, clientCa } = tls;
  return {
    cert,
    key,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: true,
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_WITHIN_MS,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(clientCa === undefined
      ? {}
      : { ca: clientCa, requestCert: true, rejectUnauthorized: clients === 'required' }),
  };
}
