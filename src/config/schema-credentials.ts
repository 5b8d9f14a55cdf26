// The JSON Schema of what the gateway presents to an upstream, and of how it knows the upstream: its
// credentials, the connection's TLS, and the assertion that tells who calls. Values only.
// Contract §3; RFC 6749 §4.4, RFC 7523, RFC 8693, RFC 8707.

import {
  duration,
  networkOf,
  oneOfStrings,
  record,
  type Schema,
  scopeList,
  secret,
  text,
  union,
} from './schema-parts.js';

const HEADER_PATTERN = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$";

function headerName(description: string, more: Schema = {}): Schema {
  const title = 'the name of an HTTP header';
  return { type: 'string', title, pattern: HEADER_PATTERN, description, ...more };
}

const NONE = record(
  'Nothing is sent.',
  { type: { const: 'none' } },
  { title: 'credentials of type none' },
);

const STATIC = record(
  'One header with a secret value is sent.',
  {
    type: { const: 'static' },
    header: headerName('Name of the header.'),
    value: secret('The whole value of the header, for example `Bearer …`.'),
  },
  { title: 'credentials of type static', required: ['type', 'header', 'value'] },
);

/** How the gateway reaches the authorization server, proves itself there, and what it asks for. */
const TOKEN_REQUEST: Readonly<Record<string, Schema>> = {
  issuer: text('Issuer identifier of the authorization server, whose metadata name the endpoint.'),
  tokenEndpoint: text('The token endpoint itself, in place of `issuer`.'),
  network: networkOf(true),
  clientId: text('The gateway as a client of that server.'),
  clientSecret: secret('Its secret.'),
  clientAuthentication: oneOfStrings(
    'How the secret is sent.',
    ['client_secret_basic', 'client_secret_post'],
    { default: 'client_secret_basic' },
  ),
  privateKey: secret(
    'In place of a secret, the key that signs `private_key_jwt`: PKCS #8 in PEM, or a JSON Web Key.',
  ),
  scopes: scopeList('Scopes to ask for; a token with others is refused.', { default: [] }),
  resource: text(
    'Resource indicator of the token (RFC 8707); the `url` of the upstream where neither this nor `audience` is given.',
  ),
  audience: text('Audience of the token, for servers that do not know resource indicators.'),
};

const CLIENT_CREDENTIALS = record(
  'A token that the gateway asks for in its own name.',
  { type: { const: 'client-credentials' }, ...TOKEN_REQUEST },
  { title: 'credentials of type client-credentials', required: ['type', 'clientId'] },
);

const TOKEN_EXCHANGE = record(
  "A token that an authorization server issues for the caller's.",
  {
    type: { const: 'token-exchange' },
    ...TOKEN_REQUEST,
    actorToken: secret('Token of the gateway as the acting party.'),
    actorTokenType: oneOfStrings('Its type.', ['jwt', 'access_token'], { default: 'jwt' }),
  },
  { title: 'credentials of type token-exchange', required: ['type', 'clientId'] },
);

/** What the upstream gets from us when a caller's message leaves. */
export function callerCredentials(description: string, more: Schema = {}): Schema {
  const shapes = [NONE, STATIC, CLIENT_CREDENTIALS, TOKEN_EXCHANGE];
  return { ...union('type', description, shapes), ...more };
}

/** What it gets when the gateway speaks for itself: no caller, so nothing to exchange. */
export function ownCredentials(description: string): Schema {
  return union('type', description, [NONE, STATIC, CLIENT_CREDENTIALS]);
}

/** How the connection knows the upstream, and the upstream the connection. */
export const UPSTREAM_TLS: Schema = record(
  'How the upstream proves itself, and the gateway to it. Only with an https `url`.',
  {
    ca: text("File of the authorities (PEM) that are trusted in place of the system's."),
    cert: text('File of the certificate (PEM) that the gateway shows, with its chain.'),
    key: secret('Private key of that certificate (PEM).'),
    serverName: {
      type: 'string',
      title: 'a host name',
      pattern: '^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$',
      description: 'Name that the certificate must carry; that of `url` where absent.',
    },
    pins: {
      type: 'array',
      minItems: 1,
      uniqueItems: true,
      items: {
        type: 'string',
        title: 'sha256: and 64 lower-case hex digits',
        pattern: '^sha256:[0-9a-f]{64}$',
      },
      description:
        "Digests of the public keys (SubjectPublicKeyInfo) of which the server's must be one.",
    },
  },
  { default: {} },
);

/** How the upstream learns who calls. */
export const UPSTREAM_IDENTITY: Schema = record(
  'A signed assertion of who calls goes along with every request; off where absent.',
  {
    header: headerName('Header that carries it.', { default: 'Sallyport-Assertion' }),
    ttl: duration('How long it is valid.', '60s'),
  },
);
