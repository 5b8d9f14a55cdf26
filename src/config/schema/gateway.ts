// Every key of the gateway file: description, default, bounds and type. The published schema, the defaults,
// the types of the file and of its settings and the reference page are made of it. Data only; config/checks/
// has what a schema cannot express. docs/reference/configuration.md; RFC 9068, RFC 7662 (issuers).

import { type Static, Type } from '@sinclair/typebox';
import {
  count,
  duration,
  flag,
  list,
  literal,
  moved,
  NAME_PATTERN,
  NAME_TITLE,
  NETWORK,
  named,
  oneOfStrings,
  PLAINTEXT,
  pause,
  period,
  published,
  record,
  SCOPE_PATTERN,
  type SecretReference,
  type SettingsOf,
  scopeList,
  secret,
  size,
  tag,
  text,
  textList,
  union,
} from './declarations.js';
import { AGGREGATE_SCHEMA, CLIENT_TLS, FILE, HEADER_NAME, UPSTREAM_SCHEMA } from './upstream.js';

export const PII_ACTIONS = ['off', 'flag', 'redact', 'block'] as const;
export const PII_KINDS = ['card', 'iban', 'ssn'] as const;
type PiiAction = (typeof PII_ACTIONS)[number];
type Pii = PiiAction | { readonly action: PiiAction; readonly kinds?: readonly (typeof PII_KINDS)[number][] };

export const PROFILE = record('What detectors do. A key that is absent has its default.', {
  request: record(
    'Arguments sent to the upstream.',
    {
      secrets: oneOfStrings('Secrets.', ['off', 'flag', 'block'], { default: 'block' }),
      links: oneOfStrings(
        'Signatures of signed links, and user names in addresses without a password.',
        ['off', 'flag', 'block'],
        { default: 'flag' },
      ),
      marks: Type.Optional(
        oneOfStrings(
          'Redaction marks of this gateway, which would overwrite what was redacted. By default `block` where the content is of the kind `code`, and `flag` elsewhere.',
          ['off', 'flag', 'block'],
        ),
      ),
    },
    { default: {} },
  ),
  result: record(
    'Everything sent to the client.',
    {
      secrets: oneOfStrings('Secrets.', PII_ACTIONS, { default: 'redact' }),
      links: oneOfStrings('Signatures of signed links, and user names in addresses without a password.', PII_ACTIONS, {
        default: 'flag',
      }),
      pii: Type.Unsafe<Pii>({
        type: ['string', 'object'],
        title: 'an action, or {action: …, kinds: […]}',
        description: 'Personal data. Kinds: `card`, `iban`, `ssn`; by default all of them.',
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
        'Markup, links and escape sequences that take effect when displayed.',
        ['off', 'flag', 'neutralize', 'block'],
        { default: 'neutralize' },
      ),
      invisible: oneOfStrings('Invisible characters.', ['off', 'flag', 'strip', 'block'], {
        default: 'strip',
      }),
      injection: oneOfStrings('Instructions to the model.', ['off', 'flag', 'block'], {
        default: 'flag',
      }),
    },
    { default: {} },
  ),
});

/** `inspection` in the gateway file. Some profiles exist without being written (profiles.ts). */
const INSPECTION = record(
  'Inspection of content.',
  {
    profiles: named(
      'Profiles by name; `default`, `strict` and `developer` always exist, and one that is written here takes their place.',
      PROFILE,
      {
        properties: { default: { ...PROFILE, default: {} } },
        default: {},
      },
    ),
  },
  { default: {} },
);

const MAX_INTROSPECTIONS_PER_SECOND = 10_000;

type ClaimNames = string | readonly string[];

function claimNames(description: string, fallback: ClaimNames) {
  return Type.Unsafe<ClaimNames>({
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
  'If present, every token of this issuer, including JWTs, is verified by introspection (RFC 7662).',
  {
    clientId: text('Client id of the gateway at the issuer.'),
    clientSecret: secret('Client secret of the gateway at the issuer.', 'client-secret'),
    authentication: oneOfStrings('How the gateway authenticates.', ['client_secret_basic', 'client_secret_post'], {
      default: 'client_secret_basic',
    }),
    endpoint: Type.Optional(text('Introspection endpoint; by default the one in the metadata of the issuer.')),
    cacheTtl: duration('How long a response is cached; never beyond the expiry of the token.', '30s'),
    maxPerSecond: count(
      'Maximum introspection requests per second; tokens that were not seen before may use at most half of them.',
      { min: 2, max: MAX_INTROSPECTIONS_PER_SECOND },
      100,
    ),
  },
);

export const LOGIN = record(
  'If present, people of this issuer can log in with a browser (OpenID Connect, authorization code flow with PKCE): administrators at the console, where `admin.issuers` has this issuer, and callers who are asked for an approval. The ID token of an administrator must contain the groups.',
  {
    clientId: text('Client id of the gateway at the issuer, for logins.'),
    clientSecret: secret('Client secret of the gateway at the issuer.', 'client-secret'),
    authentication: oneOfStrings(
      'How the gateway authenticates at the token endpoint.',
      ['client_secret_basic', 'client_secret_post'],
      { default: 'client_secret_basic' },
    ),
    scopes: scopeList('Scopes to request; `openid` is one of them.', { default: ['openid'] }),
    match: Type.Optional(
      text(
        'The claim that tells one person where the subject does not: where the issuer gives each client another `sub` (pairwise), or where callers and reviewers have different issuers. It counts where access token and ID token both carry it as text, and only the issuer may be able to set it: `email`, `preferred_username`, `upn` and `name` are refused.',
      ),
    ),
  },
);

/** JSON Schema of a value under `issuers`: how its tokens are verified, and which claims are read. */
export const ISSUER = record('One authorization server.', {
  issuer: text('Issuer identifier, exactly as in the `iss` claim of its tokens.'),
  network: NETWORK,
  plaintext: Type.Optional(PLAINTEXT),
  algorithms: Type.Optional(
    list(
      'Accepted signature algorithms. Required unless its tokens are introspected.',
      Type.String({
        enum: [
          ...['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512'],
          ...['PS256', 'PS384', 'PS512', 'EdDSA', 'Ed25519'],
        ],
      }),
      { minItems: 1, uniqueItems: true },
    ),
  ),
  tokenType: text(
    'The `typ` header of its access tokens; `none` if they have none. Unless it is `at+jwt`, tokens whose claims show another kind of token are refused.',
    { default: 'at+jwt' },
  ),
  maxLifetime: duration('Maximum lifetime of a token, from `iat` to `exp`.', '1h'),
  keysMaxAge: duration('How long the last fetched key set stays valid while the issuer is unreachable.', '1h'),
  introspection: Type.Optional(INTROSPECTION),
  claims: record(
    'Claims to read; of several names the first that is present is used. A name matches exactly; one that begins with `/` is a JSON Pointer, for example `/realm_access/roles`.',
    {
      client: claimNames('The client.', ['client_id', 'azp']),
      scope: claimNames('The scopes.', ['scope', 'scp']),
      groups: claimNames('The groups.', 'groups'),
    },
    { default: {} },
  ),
  traceContext: oneOfStrings(
    'What becomes of a trace (`traceparent`) that callers of this issuer name, where `tracing` is configured: it is `replaced` by one of the gateway that links to it, `continued`, or `continued-with-sampling`: continued, and exported if its sampled flag says so, within `tracing.callerSampledPerSecond`. Before an upstream where a flow ends it is always replaced.',
    ['replaced', 'continued', 'continued-with-sampling'],
    { default: 'replaced' },
  ),
  scopeHierarchy: named(
    'Broad scopes and the narrower scopes that each of them includes.',
    scopeList('The scopes that it includes.', { minItems: 1 }),
    { propertyNames: { title: 'an OAuth scope', pattern: SCOPE_PATTERN }, default: {} },
  ),
  login: Type.Optional(LOGIN),
});

const MAX_PORT = 65_535;

/** The keys that every listener has. */
function listener(port: number, clientCa: string) {
  return {
    host: text('Address to listen on.', { default: '127.0.0.1' }),
    port: count('Port to listen on; 0 chooses a free port.', { min: 0, max: MAX_PORT }, port),
    tls: Type.Optional(
      record(
        'TLS 1.2 and 1.3 on this listener. Without it the listener serves plain HTTP, for a proxy that ends TLS. Changed certificate files are loaded automatically.',
        {
          cert: text('Path of the certificate and its chain, PEM.'),
          key: secret('The private key of the certificate, PEM.', 'listener-key'),
          clientCa: Type.Optional(text(clientCa)),
        },
      ),
    ),
  };
}

export const DPOP = record(
  'DPoP proofs (RFC 9449) for tokens that are bound to a key. Such a token always requires its proof, regardless of these settings.',
  {
    nonce: oneOfStrings(
      'Whether a proof must contain a nonce of the gateway, so that proofs cannot be signed in advance.',
      ['off', 'required'],
      { default: 'off' },
    ),
    maxAge: duration('Maximum age of a proof, by its `iat`.', '60s'),
  },
  { default: {} },
);

const SHADOWING_EXCEPTION = record('An exception.', {
  items: list(
    'Both definitions.',
    Type.String({ title: 'the name of an upstream, a slash and the name of a definition', pattern: '^[^/]+/.+$' }),
    { minItems: 2, maxItems: 2, uniqueItems: true },
  ),
  owner: text('Who answers for it.'),
  until: Type.String({
    title: 'a date, such as 2027-01-31',
    pattern: '^\\d{4}-\\d{2}-\\d{2}$',
    description: 'The last day on which it holds, in UTC.',
  }),
});

export const LISTENERS = record(
  'Listeners of the gateway.',
  {
    data: record(
      'The listener for MCP clients.',
      {
        ...listener(
          8080,
          'Path of the certificate authorities (PEM) whose client certificates are requested and accepted as proof of possession (RFC 8705). A client may connect without a certificate, but a token that is bound to one requires it.',
        ),
        allowedOrigins: textList(
          'Browser origins that may call, compared exactly. They receive CORS headers; every other origin is refused.',
          { default: [] },
        ),
        trustedProxies: textList(
          'Addresses or CIDR ranges of proxies whose `X-Forwarded-For` is trusted, for `client.ip` in the audit log and nothing else.',
          { default: [] },
        ),
        dpop: DPOP,
      },
      { default: {} },
    ),
    ops: record(
      'The listener for probes and metrics.',
      listener(
        9464,
        'Path of certificate authorities (PEM): `/metrics` then requires a client certificate of one of them; probes do not.',
      ),
      { default: {} },
    ),
    admin: record(
      'The listener for the console; opens only if `admin` is configured.',
      listener(
        9090,
        'Path of certificate authorities (PEM): every connection then requires a client certificate of one of them.',
      ),
      { default: {} },
    ),
  },
  { default: {} },
);

export const STATE = union(
  'type',
  'Storage of shared state.',
  [
    record('In the process: one replica.', { type: tag('memory') }, { title: 'state memory' }),
    record(
      'In Redis or Valkey, shared by all replicas.',
      {
        type: tag('redis'),
        url: secret('A `redis://` or `rediss://` URL, including user and password.', 'store-url'),
        prefix: text('Prefix of every key in the store.', {
          title: 'up to 64 letters, digits, `.`, `_` and `-`',
          pattern: '^[A-Za-z0-9._-]{1,64}$',
          default: 'sallyport',
        }),
        commandTimeout: duration('Timeout of one command.', '500ms'),
        maxAge: duration(
          'Maximum age of the last successful read of the revocations; beyond that calls are refused.',
          '30s',
        ),
        afterLoss: oneOfStrings(
          'What holds of flows and budgets while the store, which began empty, cannot yet have what they look back on: requests that need it are refused, or they hold only for what it has counted since.',
          ['refuse', 'degrade'],
          { default: 'refuse' },
        ),
        readiness: oneOfStrings(
          'Whether the gateway stays ready (`/readyz`) while the store cannot be read. `lenient`: it does, also while calls are refused, so that replicas that all lack the store do not all leave the balancer. `strict`: it is not ready once the last successful read is older than two thirds of `maxAge`, so that a balancer can take it out before calls are refused. Before its first successful read it is never ready.',
          ['lenient', 'strict'],
          { default: 'lenient' },
        ),
      },
      { title: 'state redis' },
    ),
  ],
  { default: { type: 'memory' } },
);

/** When a gateway that has started counts as ready for the first time. */
export const STARTUP = record(
  'What a gateway that has started waits for before it is ready for the first time.',
  {
    wait: pause(
      'How long it waits at most for the keys of the issuers and for the upstreams that are `required`; after that it is ready without them, and controls are `degraded`. For the shared store it waits without limit.',
      '60s',
    ),
  },
  { default: {} },
);

/** How a gateway ends at SIGTERM. */
export const SHUTDOWN = record(
  'How the gateway ends at SIGTERM. Give it `delay` and `drain` and some seconds more before it is killed.',
  {
    delay: pause(
      'How long it goes on to accept requests while it is no longer ready, until balancers send no more. SIGINT leaves this out.',
      '5s',
    ),
    drain: pause(
      'How long it then waits for requests in progress; what still runs is ended with `gateway-stopping`.',
      '45s',
    ),
  },
  { default: {} },
);
/** What every receiver of audit lines has. */
const DELIVERY = {
  name: Type.Optional(
    Type.String({
      title: NAME_TITLE,
      pattern: NAME_PATTERN,
      description: 'Name of the receiver in metrics, controls and the file that has its position; by default its type.',
    }),
  ),
  format: oneOfStrings(
    'Form of a line: as it is in the file, or an event of the Open Cybersecurity Schema Framework that has the line in `raw_data`.',
    ['native', 'ocsf'],
    { default: 'native' },
  ),
  network: NETWORK,
  plaintext: Type.Optional(PLAINTEXT),
  tls: CLIENT_TLS,
};

/** Headers with the values of secrets. */
function secretHeaders(description: string) {
  return Type.Unsafe<Readonly<Record<string, SecretReference>>>({
    type: 'object',
    description,
    propertyNames: HEADER_NAME,
    additionalProperties: secret('Complete value of the header.', 'header-value'),
    default: {},
  });
}

const HEADERS = secretHeaders('Headers of every request, such as `Authorization`.');
const HTTP_URL = 'https, or http on loopback or, with `plaintext: accepted`, in a private network';

const DELIVERIES = [
  record(
    'A receiver of syslog messages (RFC 5424) over TLS or TCP. Needs a sink of type file.',
    {
      type: tag('syslog'),
      url: text(
        '`tls://host:6514`, or `tcp://host:601` on loopback or, with `plaintext: accepted`, in a private network.',
      ),
      maxMessage: size(
        'Size up to which the receiver takes messages: 8 KiB is what rsyslog takes unless it is told otherwise. In place of a longer line its id, time, type and place in the chain are sent.',
        '8KiB',
      ),
      facility: oneOfStrings(
        'Facility of the messages.',
        [
          ...(['audit', 'auth', 'authpriv', 'daemon', 'user', 'local0', 'local1'] as const),
          ...(['local2', 'local3', 'local4', 'local5', 'local6', 'local7'] as const),
        ],
        { default: 'audit' },
      ),
      ...DELIVERY,
    },
    { title: 'a sink of type syslog' },
  ),
  record(
    'A receiver of OpenTelemetry logs (OTLP/HTTP, JSON). Needs a sink of type file.',
    {
      type: tag('otlp'),
      url: text(`The whole URL, such as \`https://collector:4318/v1/logs\`: ${HTTP_URL}.`),
      headers: HEADERS,
      ...DELIVERY,
    },
    { title: 'a sink of type otlp' },
  ),
  record(
    'A receiver of batches of lines (`application/x-ndjson`, POST). Needs a sink of type file.',
    {
      type: tag('http'),
      url: text(`The URL: ${HTTP_URL}.`),
      headers: HEADERS,
      secret: Type.Optional(
        secret(
          'Key that batches are signed with, as Standard Webhooks defines it: 24 to 64 bytes as base64, with or without `whsec_` in front.',
          'webhook-secret',
        ),
      ),
      ...DELIVERY,
    },
    { title: 'a sink of type http' },
  ),
] as const;

export const DELIVERED = union('type', 'A receiver.', DELIVERIES);

export const AUDIT = record(
  'The audit log.',
  {
    sinks: list(
      'Destinations; each receives every event. Those of the types file and stdout say when a decision counts; the others get the lines of the first file sink behind it, and delay no call.',
      union('type', 'Type of the destination.', [
        record(
          'Files, of each run its own; `audit.durability` says when a line in them counts.',
          {
            type: tag('file'),
            path: text(
              'Path, relative to this file. Beside `audit.jsonl` each run writes `audit-<start>-<instance>.jsonl`.',
            ),
          },
          { title: 'a sink of type file' },
        ),
        record(
          'Standard output.',
          {
            type: tag('stdout'),
            durability: Type.Optional(
              oneOfStrings('States that a line counts as durable once standard output has accepted it.', [
                'handed-over',
              ]),
            ),
          },
          { title: 'a sink of type stdout' },
        ),
        ...DELIVERIES,
      ]),
      { minItems: 1, default: [{ type: 'file', path: './audit.jsonl' }] },
    ),
    durability: oneOfStrings(
      'What a decision in a file survives before anything is forwarded: with `written` (handed to the operating system) the end of the process, with `synced` (on disk) a power failure too.',
      ['written', 'synced'],
      { default: 'written' },
    ),
    onFailure: oneOfStrings('Whether calls are refused while nothing durable can be written.', ['block', 'continue'], {
      default: 'block',
    }),
    checkpoint: record(
      'Signed checkpoints of the chain.',
      {
        every: duration('Time between two checkpoints; one is written after 10,000 lines at the latest.', '30s'),
      },
      { default: {} },
    ),
    rotate: record(
      'When a run goes on in its next file.',
      {
        size: size('Size from which on no more is written to a file.', '256MiB'),
        age: duration('Age from which on no more is written to a file.', '24h'),
        compress: oneOfStrings(
          'Whether files that are no longer written are compressed, once every receiver has their lines. Not for a shipper of your own that reads the files: it may come too late.',
          ['none', 'gzip'],
          { default: 'none' },
        ),
      },
      { default: {} },
    ),
    minFree: Type.Optional(
      count(
        'The control `audit-space` is degraded while less of the volume of the audit files is free than so many percent; by default 10 percent, or 5 GiB if that is less.',
        { min: 0, max: 100 },
      ),
    ),
    retain: Type.Optional(
      period(
        'How long a file is kept after its last line; without it, for good. What is older is removed, the oldest first, once a signed checkpoint in the current file says so.',
      ),
    ),
  },
  { default: {} },
);

/** RFC 9110 §5.6.2. */
const HEADER_PATTERN = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$";
const OTLP_HEADER = secret('The value of the header.', 'header-value');

export const METRICS = record(
  'Prometheus metrics.',
  {
    toolLabel: flag('Whether names of pinned tools are a label.', false),
    maxSeries: count(
      'Maximum series of one metric; further ones count as `_OTHER`.',
      { min: 100, max: 1_000_000 },
      5000,
    ),
  },
  { default: {} },
);

export const TRACING = record(
  'Traces of requests (W3C Trace Context), exported as OpenTelemetry spans. Without it nothing is traced, and trace context is treated like any other header or member of `_meta`.',
  {
    otlp: record('Where spans are sent: a receiver of OTLP over HTTP, such as an OpenTelemetry collector.', {
      url: text(
        'URL that spans are posted to, such as `https://collector.example.com:4318/v1/traces`: https, or http on loopback or, with `plaintext: accepted`, in a private network.',
      ),
      headers: Type.Optional(
        named('Headers of each request by name, such as the credentials for the receiver.', OTLP_HEADER, {
          propertyNames: { title: 'a header name', pattern: HEADER_PATTERN },
        }),
      ),
      network: NETWORK,
      plaintext: Type.Optional(PLAINTEXT),
      ca: Type.Optional(
        text("File of the certificate authorities (PEM) that are trusted instead of the system's.", FILE),
      ),
      timeout: duration('Timeout of one request.', '10s'),
    }),
    sampling: Type.Number({
      title: 'a number from 0 to 1',
      minimum: 0,
      maximum: 1,
      default: 0.01,
      description:
        'Share of the requests whose spans are exported. Where the trace of a caller is `continued-with-sampling`, its sampled flag decides instead.',
    }),
    callerSampledPerSecond: count(
      'The most requests a second that are exported because the sampled flag of a trace that is `continued-with-sampling` says so; further ones are not exported.',
      { min: 1, max: 1_000 },
      10,
    ),
    callers: oneOfStrings(
      'Whether spans tell callers apart: with `hashed` by `user.hash`, a keyed hash of issuer and subject.',
      ['none', 'hashed'],
      { default: 'none' },
    ),
  },
);

function role(description: string) {
  return textList(description, { minItems: 1 });
}

const ADMIN = record('Who may use the console and its API. Without it the listener does not open.', {
  publicUrl: Type.Optional(
    text(
      'The URL by which browsers reach the admin listener, without a path. Required where an issuer of the console has `login`; logins return to its `/login/callback`, and its host is accepted in `Host`.',
    ),
  ),
  issuers: Type.Optional(
    named(
      'Access by issuer name.',
      record('Administrators that this issuer vouches for.', {
        audience: text('Audience of their tokens, compared exactly.'),
        roles: record(
          'Groups that hold each role.',
          {
            viewer: Type.Optional(role('May read.')),
            reviewer: Type.Optional(role('May also see definitions, revoke tokens, subjects and sessions, and block.')),
            admin: Type.Optional(role('May also lift revocations and blocks.')),
          },
          { minProperties: 1 },
        ),
        login: moved('belongs to "issuers.<name>.login", which the console and approvals share'),
      }),
      { minProperties: 1 },
    ),
  ),
  breakGlass: Type.Optional(
    record('Access when no issuer is reachable.', {
      token: secret('The token, at least 32 characters.', 'break-glass-token'),
    }),
  ),
});

/** Who is told that something waits for a reviewer. */
export const WEBHOOK = record('A receiver of messages. Each says that a request waits for a reviewer, and where.', {
  url: secret(
    'URL that messages are posted to: https, or http on loopback or, with `plaintext: accepted`, in a private network. Whoever knows the URL of a chat may write there, so it is a secret.',
    'webhook-url',
  ),
  format: oneOfStrings(
    'Form of the messages: JSON, or what an incoming webhook of Slack or a workflow of Microsoft Teams takes.',
    ['json', 'slack', 'teams'],
    { default: 'json' },
  ),
  secret: Type.Optional(
    secret(
      'Key that messages are signed with: 24 to 64 bytes as base64, with or without `whsec_` in front. Required with `format: json`.',
      'webhook-secret',
    ),
  ),
  network: NETWORK,
  plaintext: Type.Optional(PLAINTEXT),
  ca: Type.Optional(text("File of the certificate authorities (PEM) that are trusted instead of the system's.", FILE)),
});

const APPROVALS = record(
  'What surrounds the approvals that policies ask for.',
  {
    webhooks: named('Receivers of messages by name; `admin.publicUrl` is where their links lead.', WEBHOOK, {
      default: {},
    }),
  },
  { default: {} },
);

export const POLICIES = record('Policies.', {
  dir: text('Folder of the `*.policy.yaml` files.'),
  mode: oneOfStrings(
    'Whether policies are enforced. With `observe`, no rule refuses a request of a client; what would have been decided is recorded, and the control `policy` is `off`.',
    ['enforce', 'observe'],
    { default: 'enforce' },
  ),
  acceptUnenforced: Type.Optional(literal(true, 'Required with `mode: observe`.', { title: 'true' })),
});

/** JSON Schema of `config/gateway.yaml`. */
export const GATEWAY_SCHEMA = published(
  'urn:sallyport:schema:gateway:1',
  record(
    'Configuration of the gateway.',
    {
      version: literal(1, 'Version of this format.'),
      publicUrl: text('The URL by which clients reach the data listener.'),
      listeners: LISTENERS,
      keys: Type.Optional(
        list(
          'Keys of the gateway: the first encrypts and signs, all decrypt and verify. May be absent only if `publicUrl` is loopback.',
          secret('A key made by `sallyport keys new`.', 'gateway-key'),
          { minItems: 1 },
        ),
      ),
      issuers: named('Authorization servers by name.', ISSUER, { default: {} }),
      upstreams: named('MCP servers by name.', UPSTREAM_SCHEMA),
      endpoints: named('Several upstreams under one path, by name.', AGGREGATE_SCHEMA, {
        default: {},
      }),
      policies: POLICIES,
      pins: Type.Optional(
        record('Lock files.', {
          dir: Type.Optional(text('Folder of the `*.lock.yaml` files; by default `pins` in the policy folder.')),
          signers: Type.Optional(
            named(
              'Who may sign lock files, by name. If present, every lock file must be signed.',
              record('One signer.', {
                publicKey: secret(
                  'The public key: Ed25519, or ECDSA with P-256 or P-384, as PEM or as a JSON Web Key.',
                  'signer-key',
                ),
              }),
              { minProperties: 1 },
            ),
          ),
          require: Type.Optional(
            count(
              'How many different signers must have signed each lock file; 1 if absent. At most the number of different keys.',
              { min: 1, max: 16 },
            ),
          ),
          shadowing: Type.Optional(
            list(
              'Pairs of definitions of two upstreams that may stand side by side although one could pass for the other or gives orders about it.',
              SHADOWING_EXCEPTION,
            ),
          ),
        }),
      ),
      inspection: INSPECTION,
      state: STATE,
      startup: STARTUP,
      shutdown: SHUTDOWN,
      audit: AUDIT,
      metrics: METRICS,
      tracing: Type.Optional(TRACING),
      admin: Type.Optional(ADMIN),
      approvals: APPROVALS,
    },
    { title: 'the gateway file' },
  ),
);

/** The gateway file after validation, with its defaults filled in: units and references still as written. */
export type GatewayFile = Static<typeof GATEWAY_SCHEMA>;
/** The same with its units resolved and its references read. */
export type GatewayConfig = SettingsOf<typeof GATEWAY_SCHEMA>;
