// The JSON Schema of one upstream in the gateway file: where it is, who may call, how it is guarded.
// Values only. Contract §3 names every key and its default.

import {
  callerCredentials,
  ownCredentials,
  UPSTREAM_IDENTITY,
  UPSTREAM_TLS,
} from './schema-credentials.js';
import {
  count,
  duration,
  flag,
  NOT_AVAILABLE,
  named,
  networkOf,
  oneOfStrings,
  record,
  type Schema,
  scopeList,
  size,
  text,
  textList,
} from './schema-parts.js';

const PINNING = record(
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
    credentials: ownCredentials(
      "What the gateway sends when it lists for itself; the upstream's `credentials` where absent.",
    ),
  },
  { default: {} },
);

const LIMITS = record(
  'Bounds of every exchange with this upstream.',
  {
    requestTimeout: duration('Longest wait for the first byte of an answer.', '30s'),
    streamIdle: duration('Longest silence on a stream.', '5m'),
    exchangeMax: duration(
      'Longest time of an exchange, whatever comes meanwhile; streams of GET and subscriptions are exempt.',
      '10m',
    ),
    keepAlive: duration('How often a silent stream tells its client that it lives.', '25s'),
    maxRequestBytes: size('Largest request body.', '1MiB'),
    maxResponseBytes: size(
      'Largest answer, decoded: a whole body, or all events of a stream that answers one request.',
      '8MiB',
    ),
    maxStreamBytesPerMinute: size(
      'Most that a stream of its own may bring in a minute: of GET, of a subscription, or a channel of HTTP+SSE. Past it the stream ends with `rate-limited`.',
      '64MiB',
    ),
    maxListingBytesPerMinute: size(
      "Most that the gateway's own listing reads in a minute. Past it the definitions are not verified until the next minute.",
      '32MiB',
    ),
    maxValues: count(
      'Most JSON values in one message, in either direction: objects, arrays, strings, numbers and literals.',
      { min: 100, max: 10_000_000 },
      100_000,
    ),
    concurrency: count('Requests in flight.', { min: 1, max: 100_000 }, 100),
    listTtl: duration('Longest time that a client may keep a list.', '30s'),
  },
  { default: {} },
);

export const UPSTREAM_SCHEMA: Schema = record(
  'One MCP server behind the gateway.',
  {
    url: text('Endpoint of the server: https, or http on loopback.'),
    path: text('Path on the data listener; `/<name>` where absent.'),
    transport: oneOfStrings('How the server speaks.', ['streamable-http', 'http-sse'], {
      default: 'streamable-http',
    }),
    network: networkOf(true),
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
    credentials: callerCredentials("What the server gets from us. Never the caller's token.", {
      default: { type: 'none' },
    }),
    apps: flag(
      'Hosts may declare the Apps extension, where rules let their caller read a `ui://` resource of the lock file. The gateway then lists twice, with the declaration and without, because servers may offer something else to each; both are pinned. Pins that were fetched without it lack what hosts are shown, which then counts as changed.',
      false,
    ),
    tls: UPSTREAM_TLS,
    identity: UPSTREAM_IDENTITY,
    pinning: PINNING,
    inspect: text('Name of an inspection profile.', { default: 'default' }),
    limits: LIMITS,
  },
  { required: ['url'] },
);
