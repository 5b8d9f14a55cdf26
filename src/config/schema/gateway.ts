// Every key of the gateway file: description, default, bounds and type. The published schema, the defaults,
// the types of the file and of its settings and the reference page are made of it. Data only; config/checks/
// has what a schema cannot express. docs/contract.md §3; RFC 9068, RFC 7662 (issuers).

import {
  count,
  duration,
  flag,
  list,
  literal,
  NETWORK,
  NOT_AVAILABLE,
  named,
  oneOfStrings,
  type Parsed,
  PLAINTEXT,
  published,
  record,
  SCOPE_PATTERN,
  scopeList,
  secret,
  tag,
  text,
  textList,
  typed,
  unavailable,
  union,
} from './definitions.js';
import type { Readable } from './readable.js';
import { AGGREGATE_SCHEMA, UPSTREAM_SCHEMA } from './upstream.js';

export const PII_ACTIONS = ['off', 'flag', 'redact', 'block'] as const;
export const PII_KINDS = ['card', 'iban', 'ssn'] as const;
type PiiAction = (typeof PII_ACTIONS)[number];
type Pii =
  | PiiAction
  | { readonly action: PiiAction; readonly kinds?: readonly (typeof PII_KINDS)[number][] };

export const PROFILE = record('What detectors do. A key that is absent has its default.', {
  request: record(
    'Arguments on the way to the upstream.',
    { secrets: oneOfStrings('Secrets.', ['off', 'flag', 'block'], { default: 'block' }) },
    { default: {} },
  ),
  result: record(
    'Everything on the way to the client.',
    {
      secrets: oneOfStrings('Secrets.', PII_ACTIONS, { default: 'redact' }),
      pii: typed<Pii, { default: Pii }>({
        type: ['string', 'object'],
        title: 'an action, or {action: …, kinds: […]}',
        description:
          'Personal data. Kinds: `card`, `iban`, `ssn`; all of them where none is listed.',
        default: 'redact',
        if: { type: 'string' },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { enum: PII_ACTIONS },
        else: {
          properties: {
            action: { type: 'string', enum: PII_ACTIONS },
            kinds: {
              type: 'array',
              minItems: 1,
              uniqueItems: true,
              items: { type: 'string', enum: PII_KINDS },
            },
          },
          required: ['action'],
          additionalProperties: false,
        },
      }),
      activeContent: oneOfStrings(
        'Markup, links and escape sequences that act when shown.',
        ['off', 'flag', 'neutralize', 'block'],
        { default: 'neutralize' },
      ),
      invisible: oneOfStrings('Characters that nobody sees.', ['off', 'flag', 'strip', 'block'], {
        default: 'strip',
      }),
      injection: oneOfStrings('Instructions to the model.', ['off', 'flag', 'block'], {
        default: 'flag',
      }),
    },
    { default: {} },
  ),
});

/** `inspection` in the gateway file. The profile `default` always exists. */
const INSPECTION = record(
  'Named sets of what detectors do.',
  {
    profiles: named('Profiles by name; `default` always exists.', PROFILE, {
      properties: { default: { ...PROFILE, default: {} } },
      default: {},
    }),
  },
  { default: {} },
);

const MAX_INTROSPECTIONS_PER_SECOND = 10_000;

type ClaimNames = string | readonly string[];

function claimNames(description: string, fallback: ClaimNames) {
  return typed<ClaimNames, { default: ClaimNames }>({
    type: ['string', 'array'],
    title: 'a claim name or a list of them',
    minLength: 1,
    minItems: 1,
    items: { type: 'string', minLength: 1, title: 'a claim name' },
    description,
    default: fallback,
  });
}

export const INTROSPECTION = record(
  'Present: every token of this issuer, of whatever form, is verified by asking it (RFC 7662).',
  {
    clientId: text('The client that the gateway is to the issuer.'),
    clientSecret: secret('The secret of that client.', 'client-secret'),
    authentication: oneOfStrings(
      'How the client proves itself.',
      ['client_secret_basic', 'client_secret_post'],
      { default: 'client_secret_basic' },
    ),
    endpoint: text('Where to ask; absent: where the metadata of the issuer says.'),
    cacheTtl: duration('How long an answer counts; never past the end of the token.', '30s'),
    maxPerSecond: count(
      'Questions a second; tokens never seen before get at most half of them.',
      { min: 2, max: MAX_INTROSPECTIONS_PER_SECOND },
      100,
    ),
  },
  { required: ['clientId', 'clientSecret'] },
);

/** JSON Schema of a value under `issuers`: how its tokens are verified, and which claims are read. */
export const ISSUER = record(
  'One authorization server.',
  {
    issuer: text('Its issuer identifier, exactly as tokens carry it in `iss`.'),
    network: NETWORK,
    plaintext: PLAINTEXT,
    algorithms: list(
      'Signature algorithms accepted from it. Required, unless its tokens are introspected.',
      typed<string>({
        type: 'string',
        enum: [
          ...['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512'],
          ...['PS256', 'PS384', 'PS512', 'EdDSA', 'Ed25519'],
        ],
      }),
      { minItems: 1, uniqueItems: true },
    ),
    tokenType: text(
      'The `typ` that its access tokens carry; `none` where they carry none. With any but `at+jwt`, tokens that look like other kinds are refused by their claims.',
      { default: 'at+jwt' },
    ),
    maxLifetime: duration('Longest lifetime of a token, from `iat` to `exp`.', '1h'),
    keysMaxAge: duration('How long its last good keys serve while it cannot be reached.', '1h'),
    introspection: INTROSPECTION,
    claims: record(
      'Where tokens say what; of several names the first present counts. A name is that of a claim, exactly; one that begins with `/` is a JSON Pointer, such as `/realm_access/roles`.',
      {
        client: claimNames('The client.', ['client_id', 'azp']),
        scope: claimNames('The scopes.', ['scope', 'scp']),
        groups: claimNames('The groups.', 'groups'),
      },
      { default: {} },
    ),
    scopeHierarchy: named(
      'Broad scopes, and the narrower ones that each includes.',
      scopeList('The scopes that it includes.', { minItems: 1 }),
      { propertyNames: { title: 'an OAuth scope', pattern: SCOPE_PATTERN }, default: {} },
    ),
  },
  { required: ['issuer'] },
);

const MAX_PORT = 65_535;

/** The keys that every listener has. */
function listener(port: number, clientCa: string) {
  return {
    host: text('Address to listen on.', { default: '127.0.0.1' }),
    port: count('Port to listen on; 0 takes a free one.', { min: 0, max: MAX_PORT }, port),
    tls: record(
      'TLS 1.2 and 1.3 on this listener. Without it the listener speaks plain HTTP, for a proxy that ends TLS. Certificates that change on disk are taken up by a reload, which the gateway does by itself.',
      {
        cert: text('Path of the certificate and its chain, PEM.'),
        key: secret('The private key of the certificate, PEM.', 'listener-key'),
        clientCa: text(clientCa),
      },
      { required: ['cert', 'key'] },
    ),
  };
}

export const DPOP = record(
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

const LISTENERS = record(
  'Where the gateway listens.',
  {
    data: record(
      'For MCP clients.',
      {
        ...listener(
          8080,
          'Path of the authorities, PEM, whose client certificates are asked for and taken as proof of a binding (RFC 8705). A client may do without one; a token that is bound to one may not.',
        ),
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
      { default: {} },
    ),
    ops: record(
      'For probes and metrics.',
      listener(
        9464,
        'Path of the authorities, PEM: `/metrics` is then shown to their client certificates alone, probes need none.',
      ),
      { default: {} },
    ),
    admin: record(
      'For the console; opens only where `admin` is configured.',
      listener(
        9090,
        'Path of the authorities, PEM: nobody connects without one of their client certificates.',
      ),
      { default: {} },
    ),
  },
  { default: {} },
);

export const STATE = union(
  'type',
  'Where shared state lives.',
  [
    record('In the process: one replica.', { type: tag('memory') }, { title: 'state memory' }),
    record(
      'In Redis or Valkey, shared by all replicas.',
      {
        type: tag('redis'),
        url: secret(
          'A `redis://` or `rediss://` URL, with the user and the password in it.',
          'store-url',
        ),
        prefix: text('What every key in the store begins with.', {
          title: 'up to 64 letters, digits, `.`, `_` and `-`',
          pattern: '^[A-Za-z0-9._-]{1,64}$',
          default: 'sallyport',
        }),
        commandTimeout: duration('How long one command may take.', '500ms'),
        maxAge: duration(
          'How old the newest look at the revocations may be; past it calls are refused.',
          '30s',
        ),
      },
      { title: 'state redis', required: ['type', 'url'] },
    ),
  ],
  { default: { type: 'memory' } },
);

export const AUDIT = record(
  'Where the record of what happened goes.',
  {
    sinks: list(
      'Destinations; each gets every event.',
      union('type', 'One destination.', [
        record(
          'A file; `audit.durability` says when a line in it counts.',
          { type: tag('file'), path: text('Path, relative to this file.') },
          { title: 'a sink of type file', required: ['type', 'path'] },
        ),
        record(
          'Standard output.',
          {
            type: tag('stdout'),
            durability: oneOfStrings(
              'Says that handing a line to the container runtime counts as durable.',
              ['handed-over'],
            ),
          },
          { title: 'a sink of type stdout' },
        ),
      ]),
      { minItems: 1, default: [{ type: 'file', path: './audit.jsonl' }] },
    ),
    durability: oneOfStrings(
      'What a decision in a file survives before anything leaves: `written` (handed to the operating system) the death of the process, `synced` power loss too.',
      ['written', 'synced'],
      { default: 'written' },
    ),
    onFailure: oneOfStrings(
      'What happens to calls while nothing durable can be written.',
      ['block', 'continue'],
      { default: 'block' },
    ),
    checkpoint: record(
      'Signed checkpoints of the chain.',
      {
        every: duration(
          'Time between two checkpoints; there is one after 10000 lines at the latest.',
          '30s',
        ),
      },
      { default: {} },
    ),
  },
  { default: {} },
);

export const METRICS = record(
  'Prometheus metrics.',
  {
    toolLabel: flag('Whether tools of the pins become a label.', false),
    maxSeries: count('Series of one metric before `_OTHER`.', { min: 100, max: 1_000_000 }, 5000),
  },
  { default: {} },
);

function role(description: string) {
  return textList(description, { minItems: 1 });
}

const ADMIN = record('Who may use the console and its API. Without it the listener stays shut.', {
  issuers: named(
    'By issuer name.',
    record(
      'Administrators that this issuer vouches for.',
      {
        audience: text('Audience of their tokens, compared exactly.'),
        roles: record(
          'Groups that hold each role.',
          {
            viewer: role('May look.'),
            reviewer: role('May also approve and block.'),
            admin: role('May do everything.'),
          },
          { minProperties: 1 },
        ),
      },
      { required: ['audience', 'roles'] },
    ),
    { minProperties: 1 },
  ),
  breakGlass: record(
    'The way in when no issuer can be reached.',
    { token: secret('The token, at least 32 characters.', 'break-glass-token') },
    { required: ['token'] },
  ),
});

/** JSON Schema of `config/gateway.yaml`. */
export const GATEWAY_SCHEMA = published(
  'urn:sallyport:schema:gateway:1',
  record(
    'Configuration of the gateway.',
    {
      version: literal(1, 'Version of this format.'),
      publicUrl: text('The URL under which clients reach the data listener.'),
      listeners: LISTENERS,
      keys: list(
        'Keys of the gateway: the first seals and signs, all open and verify. May be absent only where `publicUrl` is loopback.',
        secret('A key made by `sallyport keys new`.', 'gateway-key'),
        { minItems: 1 },
      ),
      issuers: named('Authorization servers by name.', ISSUER, { default: {} }),
      upstreams: named('MCP servers by name.', UPSTREAM_SCHEMA, { minProperties: 1 }),
      endpoints: named('Several upstreams under one path, by name.', AGGREGATE_SCHEMA, {
        default: {},
      }),
      policies: record(
        'Where policies are.',
        {
          dir: text('Folder of the `*.policy.yaml` files.'),
          mode: oneOfStrings('Whether policies are enforced.', ['enforce', 'observe'], {
            default: 'enforce',
            [NOT_AVAILABLE]: ['observe'],
          }),
          acceptUnenforced: unavailable('Goes with the mode `observe`.'),
        },
        { required: ['dir'] },
      ),
      pins: record('Where lock files are.', {
        dir: text('Folder of the `*.lock.yaml` files; `pins` in the policy folder where absent.'),
      }),
      inspection: INSPECTION,
      state: STATE,
      audit: AUDIT,
      metrics: METRICS,
      tracing: unavailable('Key: `otlp`.'),
      admin: ADMIN,
    },
    { title: 'the gateway file', required: ['version', 'publicUrl', 'upstreams', 'policies'] },
  ),
);

/** The gateway file after validation, with its defaults filled in: units and references still as written. */
export type GatewayFile = Parsed<typeof GATEWAY_SCHEMA>;
/** As much of it as can be read where it may be wrong. */
export type ReadableGateway = Readable<GatewayFile>;
