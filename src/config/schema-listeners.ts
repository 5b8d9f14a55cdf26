// The JSON Schema of the listeners in the gateway file: addresses, TLS, and what the data listener takes
// from browsers, proxies and proofs of possession. Values only. Contract §3 names the keys.

import {
  count,
  duration,
  oneOfStrings,
  record,
  type Schema,
  secret,
  text,
  textList,
} from './schema-parts.js';

const MAX_PORT = 65_535;

function listener(
  description: string,
  port: number,
  clientCa: string,
  more: Readonly<Record<string, Schema>>,
): Schema {
  return record(
    description,
    {
      host: text('Address to listen on.', { default: '127.0.0.1' }),
      port: count('Port to listen on; 0 takes a free one.', { min: 0, max: MAX_PORT }, port),
      ...more,
      tls: record(
        'TLS 1.2 and 1.3 on this listener. Without it the listener speaks plain HTTP, for a proxy that ends TLS. Certificates that change on disk are taken up by a reload, which the gateway does by itself.',
        {
          cert: text('Path of the certificate and its chain, PEM.'),
          key: secret('The private key of the certificate, PEM.'),
          clientCa: text(clientCa),
        },
        { required: ['cert', 'key'] },
      ),
    },
    { default: {} },
  );
}

const DPOP = record(
  'Proofs of possession (RFC 9449) of tokens that are bound to a key. Such a token is taken with its proof alone, whatever is set here.',
  {
    nonce: oneOfStrings(
      'Whether a proof must carry a nonce of the gateway, so that none can be signed for later.',
      ['off', 'required'],
      { default: 'off' },
    ),
    maxAge: duration('How old a proof may be, by its `iat`.', '60s'),
  },
  { default: {} },
);

export const LISTENERS_SCHEMA: Schema = record(
  'Where the gateway listens.',
  {
    data: listener(
      'For MCP clients.',
      8080,
      'Path of the authorities, PEM, whose client certificates are asked for and taken as proof of a binding (RFC 8705). A client may do without one; a token that is bound to one may not.',
      {
        allowedOrigins: textList(
          'Browser origins that may call, exactly. They get CORS answers; every other origin is refused.',
          { default: [] },
        ),
        trustedProxies: textList(
          'Addresses or CIDR ranges whose `X-Forwarded-For` is believed: for `client.ip` of the audit, and for nothing else.',
          { default: [] },
        ),
        dpop: DPOP,
      },
    ),
    ops: listener(
      'For probes and metrics.',
      9464,
      'Path of the authorities, PEM: `/metrics` is then shown to their client certificates alone, probes need none.',
      {},
    ),
    admin: listener(
      'For the console; opens only where `admin` is configured.',
      9090,
      'Path of the authorities, PEM: nobody connects without one of their client certificates.',
      {},
    ),
  },
  { default: {} },
);
