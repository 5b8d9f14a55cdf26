// Every key of an upstream and of an aggregate (`endpoints:`) in the gateway file: addresses, callers,
// credentials, TLS, pinning and limits. Data only; checks/upstreams.ts has what a schema cannot express.
// docs/contract.md §3; RFC 6749 §4.4, RFC 7523, RFC 8693, RFC 8707.

import {
  count,
  duration,
  flag,
  list,
  MEANING,
  NETWORK,
  NOT_AVAILABLE,
  named,
  oneOfStrings,
  PLAINTEXT,
  record,
  type Schema,
  scopeList,
  secret,
  size,
  tag,
  text,
  textList,
  typed,
  union,
} from './definitions.js';

const HEADER_NAME: Schema = {
  type: 'string',
  title: 'the name of an HTTP header',
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$",
  [MEANING]: 'header-name',
};

const NONE = record(
  'Nothing is sent.',
  { type: tag('none') },
  { title: 'credentials of type none' },
);

const STATIC = record(
  'One header with a secret value is sent.',
  {
    type: tag('static'),
    header: typed<string>({ ...HEADER_NAME, description: 'Name of the header.' }),
    value: secret('The whole value of the header, for example `Bearer …`.', 'header-value'),
  },
  { title: 'credentials of type static', required: ['type', 'header', 'value'] },
);

/** The authorization server, the client authentication to it, and the requested token. */
const TOKEN_REQUEST = {
  issuer: text('Issuer identifier of the authorization server, whose metadata name the endpoint.'),
  tokenEndpoint: text('The token endpoint itself, in place of `issuer`.'),
  network: NETWORK,
  plaintext: PLAINTEXT,
  clientId: text('The gateway as a client of that server.'),
  clientSecret: secret('Its secret.', 'client-secret'),
  clientAuthentication: oneOfStrings(
    'How the secret is sent.',
    ['client_secret_basic', 'client_secret_post'],
    { default: 'client_secret_basic' },
  ),
  privateKey: secret(
    'In place of a secret, the key that signs `private_key_jwt`: PKCS #8 in PEM, or a JSON Web Key.',
    'client-key',
  ),
  scopes: scopeList('Scopes to ask for; a token with others is refused.', { default: [] }),
  resource: text(
    'Resource indicator of the token (RFC 8707); the `url` of the upstream where neither this nor `audience` is given.',
  ),
  audience: text('Audience of the token, for servers that do not know resource indicators.'),
};

const CLIENT_CREDENTIALS = record(
  'A token that the gateway asks for in its own name.',
  { type: tag('client-credentials'), ...TOKEN_REQUEST },
  { title: 'credentials of type client-credentials', required: ['type', 'clientId'] },
);

const TOKEN_EXCHANGE = record(
  "A token that an authorization server issues for the caller's.",
  {
    type: tag('token-exchange'),
    ...TOKEN_REQUEST,
    actorToken: secret('Token of the gateway as the acting party.', 'actor-token'),
    actorTokenType: oneOfStrings('Its type.', ['jwt', 'access_token'], { default: 'jwt' }),
  },
  { title: 'credentials of type token-exchange', required: ['type', 'clientId'] },
);

const FILE = { [MEANING]: 'file-content' } as const;

/** TLS of the connection: how the server is verified, and the client certificate. */
const UPSTREAM_TLS = record(
  'How the upstream proves itself, and the gateway to it. Only with an https `url`.',
  {
    ca: text("File of the authorities (PEM) that are trusted in place of the system's.", FILE),
    cert: text('File of the certificate (PEM) that the gateway shows, with its chain.', FILE),
    key: secret('Private key of that certificate (PEM).', 'tls-key'),
    serverName: typed<string>({
      type: 'string',
      title: 'a host name',
      pattern: '^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$',
      description: 'Name that the certificate must carry; that of `url` where absent.',
    }),
    pins: list(
      "Digests of the public keys (SubjectPublicKeyInfo) of which the server's must be one.",
      typed<string>({
        type: 'string',
        title: 'sha256: and 64 lower-case hex digits',
        pattern: '^sha256:[0-9a-f]{64}$',
      }),
      { minItems: 1, uniqueItems: true },
    ),
  },
  { default: {} },
);

/** The signed assertion that names the caller to the upstream. */
export const IDENTITY = record(
  'A signed assertion of who calls goes along with every request; off where absent.',
  {
    header: typed<string, { default: string }>({
      ...HEADER_NAME,
      description: 'Header that carries it.',
      default: 'Sallyport-Assertion',
    }),
    ttl: duration('How long it is valid.', '60s'),
  },
);

/** Bounds the size of session ids: one session id carries a part for every backend. */
const MAX_BACKENDS = 16;
const PREFIX_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$';

const BACKEND = record('One upstream of the endpoint.', {
  prefix: text(
    'What stands before the names of its tools and prompts; the name of the upstream and `_` where absent.',
    { title: 'a prefix of letters, digits and _ . -', pattern: PREFIX_PATTERN },
  ),
});

export const AGGREGATE_SCHEMA = record(
  'Several upstreams as one MCP server, each under a prefix. Rules, pins, limits and records stay those of the upstreams.',
  {
    path: text('Path on the data listener; `/<name>` where absent.'),
    authentication: oneOfStrings(
      '`none` is possible only if every backend has it.',
      ['required', 'none'],
      { default: 'required' },
    ),
    issuers: textList(
      'Names of the issuers whose tokens are accepted here; every backend must accept each of them.',
      { minItems: 1 },
    ),
    audiences: named(
      'Audiences accepted by issuer name, for issuers that cannot mint `publicUrl` + `path`.',
      textList('Accepted audiences, compared exactly.', { minItems: 1 }),
      { default: {} },
    ),
    upstreams: named('The backends by name, in the order in which lists show them.', BACKEND, {
      minProperties: 1,
      maxProperties: MAX_BACKENDS,
    }),
  },
  { required: ['upstreams'] },
);

export const PINNING = record(
  'How definitions are held to their pins in the lock file.',
  {
    mode: oneOfStrings(
      '`strict`: only what is pinned and approved is listed or callable. `off`: no pins; arguments and results are held to what was listed last.',
      ['strict', 'trust-on-first-use', 'off'],
      { default: 'strict', [NOT_AVAILABLE]: ['trust-on-first-use'] },
    ),
    maxAge: duration('No call leaves unless definitions were verified within this time.', '60s'),
    onDrift: oneOfStrings(
      'What a changed definition stops: itself, or the whole upstream.',
      ['hide-tool', 'stop-upstream'],
      { default: 'hide-tool' },
    ),
    // Without a caller there is no token to exchange.
    credentials: union(
      'type',
      "What the gateway sends when it lists for itself; the upstream's `credentials` where absent.",
      [NONE, STATIC, CLIENT_CREDENTIALS],
    ),
  },
  { default: {} },
);

export const LIMITS = record(
  'Limits on requests to this upstream and on their responses.',
  {
    requestTimeout: duration('Longest wait for the first byte of a response.', '30s'),
    streamIdle: duration('Longest silence on a stream.', '5m'),
    exchangeMax: duration(
      'Longest duration of a request and its response, whatever arrives meanwhile; GET streams and subscriptions are exempt.',
      '10m',
    ),
    keepAlive: duration('How often a keep-alive is sent on a silent stream.', '25s'),
    maxRequestBytes: size('Largest request body.', '1MiB'),
    maxResponseBytes: size(
      'Largest response, decoded: a complete body, or all events of a stream that answers one request.',
      '8MiB',
    ),
    maxStreamBytesPerMinute: size(
      'Most bytes per minute on a long-lived stream: a GET stream, a subscription or an HTTP+SSE stream. Beyond that the stream ends with `rate-limited`.',
      '64MiB',
    ),
    maxListingBytesPerMinute: size(
      'Most bytes per minute that the gateway reads for its own listings. Beyond that the definitions are not verified until the next minute.',
      '32MiB',
    ),
    maxValues: count(
      'Most JSON values in one message, in either direction: objects, arrays, strings, numbers and literals.',
      { min: 100, max: 10_000_000 },
      100_000,
    ),
    concurrency: count('Requests in flight.', { min: 1, max: 100_000 }, 100),
    concurrencyPerCaller: count(
      'Requests in flight of one caller, up to all of `concurrency`. Where absent half of it, and all where nobody is authenticated.',
      { min: 1, max: 100_000 },
    ),
    listTtl: duration('Longest time that a client may keep a list.', '30s'),
  },
  { default: {} },
);

export const UPSTREAM_SCHEMA = record(
  'One MCP server behind the gateway.',
  {
    url: text(
      'URL of the MCP endpoint: https, or http on loopback or, with `plaintext: accepted`, in a private network.',
    ),
    socket: text(
      'Path of the Unix socket that the server listens on. Nothing is resolved then: `url`, which is plain http, gives only path and Host.',
    ),
    path: text('Path on the data listener; `/<name>` where absent.'),
    transport: oneOfStrings('How the server speaks.', ['streamable-http', 'http-sse'], {
      default: 'streamable-http',
    }),
    network: NETWORK,
    plaintext: PLAINTEXT,
    authentication: oneOfStrings(
      '`none` lets every caller in; possible only on a loopback listener with a loopback `publicUrl`.',
      ['required', 'none'],
      { default: 'required' },
    ),
    issuers: textList('Names of the issuers that may vouch for callers here.', { minItems: 1 }),
    audiences: named(
      'Audiences accepted by issuer name, for issuers that cannot mint `publicUrl` + `path`.',
      textList('Accepted audiences, compared exactly.', { minItems: 1 }),
      { default: {} },
    ),
    binding: oneOfStrings(
      'What tokens must be bound to here: a key by proofs of possession (`dpop`), a client certificate (`mtls`), either (`any`). With `none` an unbound token is taken too; a bound one is never taken without its proof.',
      ['none', 'any', 'dpop', 'mtls'],
      { default: 'none' },
    ),
    scopesSupported: scopeList('Scopes that the metadata document offers: the minimal set.', {
      default: [],
    }),
    credentials: union(
      'type',
      "What the server gets from us. Never the caller's token.",
      [NONE, STATIC, CLIENT_CREDENTIALS, TOKEN_EXCHANGE],
      { default: { type: 'none' } },
    ),
    apps: flag(
      'Hosts may declare the Apps extension, where rules let their caller read a `ui://` resource of the lock file. The gateway then lists twice, with the declaration and without, because servers may offer something else to each; both are pinned. Pins that were fetched without it lack what hosts are shown, which then counts as changed.',
      false,
    ),
    tls: UPSTREAM_TLS,
    identity: IDENTITY,
    pinning: PINNING,
    inspect: text('Name of an inspection profile.', { default: 'default' }),
    limits: LIMITS,
  },
  { required: ['url'] },
);
