// Every key of an upstream and of an aggregate (`endpoints:`) in the gateway file: addresses, callers,
// credentials, TLS, pinning and limits. Data only; checks/upstreams.ts has what a schema cannot express.
// docs/reference/configuration.md; RFC 6749 §4.4, RFC 7523, RFC 8693, RFC 8707.

import { Type } from '@sinclair/typebox';
import {
  count,
  duration,
  flag,
  list,
  literal,
  MEANING,
  NETWORK,
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
  union,
} from './declarations.js';

export const HEADER_NAME: Schema = {
  type: 'string',
  title: 'the name of an HTTP header',
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$",
  [MEANING]: 'header-name',
};

const NONE = record('Nothing is sent.', { type: tag('none') }, { title: 'credentials of type none' });

const STATIC = record(
  'One header with a secret value is sent.',
  {
    type: tag('static'),
    header: Type.Unsafe<string>({ ...HEADER_NAME, description: 'Name of the header.' }),
    value: secret('Complete value of the header, for example `Bearer …`.', 'header-value'),
  },
  { title: 'credentials of type static' },
);

/** The authorization server, the client authentication to it, and the requested token. */
const TOKEN_REQUEST = {
  issuer: Type.Optional(text('Issuer identifier of the authorization server; its metadata name the token endpoint.')),
  tokenEndpoint: Type.Optional(text('Token endpoint, instead of `issuer`.')),
  network: NETWORK,
  plaintext: Type.Optional(PLAINTEXT),
  clientId: text('Client id of the gateway at that server.'),
  clientSecret: Type.Optional(secret('Client secret of the gateway.', 'client-secret')),
  clientAuthentication: oneOfStrings('How the secret is sent.', ['client_secret_basic', 'client_secret_post'], {
    default: 'client_secret_basic',
  }),
  privateKey: Type.Optional(
    secret(
      'Instead of a secret, the key that signs `private_key_jwt`: PKCS #8 in PEM, or a JSON Web Key.',
      'client-key',
    ),
  ),
  scopes: scopeList('Scopes to request; a token with any other scope is refused.', { default: [] }),
  resource: Type.Optional(
    text(
      'Resource indicator of the token (RFC 8707); by default, unless `audience` is given, the `url` of the upstream.',
    ),
  ),
  audience: Type.Optional(text('Audience of the token, for servers that do not know resource indicators.')),
};

const CLIENT_CREDENTIALS = record(
  'A token that the gateway asks for in its own name.',
  { type: tag('client-credentials'), ...TOKEN_REQUEST },
  { title: 'credentials of type client-credentials' },
);

const TOKEN_EXCHANGE = record(
  "A token that an authorization server issues for the caller's.",
  {
    type: tag('token-exchange'),
    ...TOKEN_REQUEST,
    actorToken: Type.Optional(secret('Token that identifies the gateway as the acting party.', 'actor-token')),
    actorTokenType: oneOfStrings('Type of the actor token.', ['jwt', 'access_token'], {
      default: 'jwt',
    }),
  },
  { title: 'credentials of type token-exchange' },
);

export const FILE = { [MEANING]: 'file-content' } as const;

/** TLS of a connection: how the server is verified, and the client certificate. */
export const CLIENT_TLS = record(
  'TLS verification of the server, and the client certificate of the gateway. Only with a `url` of TLS.',
  {
    ca: Type.Optional(
      text("File of the certificate authorities (PEM) that are trusted instead of the system's.", FILE),
    ),
    cert: Type.Optional(text('File of the client certificate of the gateway (PEM), with its chain.', FILE)),
    key: Type.Optional(secret('Private key of that certificate (PEM).', 'tls-key')),
    serverName: Type.Optional(
      Type.String({
        title: 'a host name',
        pattern: '^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$',
        description: 'Name that the certificate must contain; by default the host of `url`.',
      }),
    ),
    pins: Type.Optional(
      list(
        'Digests of the accepted public keys of the server (SubjectPublicKeyInfo).',
        Type.String({ title: 'sha256: and 64 lower-case hex digits', pattern: '^sha256:[0-9a-f]{64}$' }),
        { minItems: 1, uniqueItems: true },
      ),
    ),
  },
  { default: {} },
);

/** The signed assertion that names the caller to the upstream. */
export const IDENTITY = record("Adds a signed assertion of the caller's identity to every request; off if absent.", {
  header: Type.Unsafe<string>({
    ...HEADER_NAME,
    description: 'Header that contains the assertion.',
    default: 'Sallyport-Assertion',
  }),
  ttl: duration('How long the assertion is valid.', '60s'),
});

const AUDIENCES = named(
  'Audiences accepted by issuer name, for issuers that cannot mint `publicUrl` + `path`.',
  textList('Accepted audiences, compared exactly.', { minItems: 1 }),
  { default: {} },
);

/** Bounds the size of session ids: one session id carries a part for every backend. */
const MAX_BACKENDS = 16;
const PREFIX_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$';

const BACKEND = record('One upstream of the endpoint.', {
  prefix: Type.Optional(
    text('Prefix of the names of its tools and prompts; by default the name of the upstream and `_`.', {
      title: 'a prefix of letters, digits and _ . -',
      pattern: PREFIX_PATTERN,
    }),
  ),
});

export const AGGREGATE_SCHEMA = record(
  'Several upstreams as one MCP server, each under a prefix. Rules, pins, limits and records stay those of the upstreams.',
  {
    path: Type.Optional(text('Path on the data listener; by default `/<name>`.')),
    authentication: oneOfStrings('`none` is possible only if every backend has it.', ['required', 'none'], {
      default: 'required',
    }),
    issuers: Type.Optional(
      textList('Names of the issuers whose tokens are accepted here; every backend must accept each of them.', {
        minItems: 1,
      }),
    ),
    audiences: AUDIENCES,
    upstreams: named('The backends by name, in the order of the combined lists.', BACKEND, {
      minProperties: 1,
      maxProperties: MAX_BACKENDS,
    }),
  },
);

export const PINNING = record(
  'How definitions are compared with their pins in the lock file.',
  {
    mode: oneOfStrings(
      '`strict`: only pinned and approved items are listed or callable. `trust-on-first-use`: in addition, what the first listing showed is treated as approved, unless the scan blocks it; what is added or changed later needs an approval in the lock file. `off`: no pins; arguments and results are checked against the last listed definitions.',
      ['strict', 'trust-on-first-use', 'off'],
      { default: 'strict' },
    ),
    maxAge: duration('Calls are forwarded only if the definitions were verified within this time.', '60s'),
    verify: oneOfStrings(
      '`max-age`: a call rests on a listing that is no older than `maxAge`. `before-call`: the definitions are listed anew before each call, which is forwarded only if they still match; calls that arrive at the same time share a listing. Has no effect with `mode: off`.',
      ['max-age', 'before-call'],
      { default: 'max-age' },
    ),
    scan: oneOfStrings(
      'What happens to a definition that nobody approved and in which the scan finds a reason to block it. `block`: it is neither listed nor callable, with the reason `tool-poisoned`; the same holds for a definition that could not be scanned. `warn`: the finding is recorded only. `off`: nothing is scanned. With `mode: strict` such definitions are hidden in any case.',
      ['block', 'warn', 'off'],
      { default: 'block' },
    ),
    onDrift: oneOfStrings(
      'What is refused when a definition changed: the changed item, or the whole upstream.',
      ['hide-tool', 'stop-upstream'],
      { default: 'hide-tool' },
    ),
    // Without a caller there is no token to exchange.
    credentials: Type.Optional(
      union(
        'type',
        'How the gateway authenticates when it lists on its own behalf; by default like `credentials` of the upstream.',
        [NONE, STATIC, CLIENT_CREDENTIALS],
      ),
    ),
  },
  { default: {} },
);

export const LIMITS = record(
  'Limits on requests to this upstream and on their responses.',
  {
    requestTimeout: Type.Optional(
      duration(
        'Maximum wait for the first byte of a response. By default `2m` for calls, and `30s` for handshakes, lists, discovery and credentials.',
      ),
    ),
    streamIdle: duration('Maximum idle time of a stream.', '5m'),
    exchangeMax: duration(
      'Maximum duration of a request and its response, including events in between; GET streams and subscriptions are exempt.',
      '10m',
    ),
    keepAlive: duration('Interval of keep-alives on an idle stream.', '25s'),
    maxRequestBytes: size('Maximum size of a request body.', '4MiB'),
    maxResponseBytes: size(
      'Maximum decoded size of a response: a complete body, or all events of a stream that answers one request.',
      '8MiB',
    ),
    maxStreamBytesPerMinute: size(
      'Maximum bytes per minute on a long-lived stream: a GET stream, a subscription or an HTTP+SSE stream. Beyond that the stream ends with `rate-limited`.',
      '64MiB',
    ),
    maxListingBytesPerMinute: size(
      'Maximum bytes per minute that the gateway reads for its own listings. Beyond that the definitions are not verified until the next minute.',
      '32MiB',
    ),
    maxValues: count(
      'Maximum number of JSON values in one message, in either direction: objects, arrays, strings, numbers and literals.',
      { min: 100, max: 10_000_000 },
      100_000,
    ),
    concurrency: count(
      'Maximum requests in flight. Beside it there is a reserve for notifications, responses and what ends or answers something in progress (docs/reference/limits.md#what-one-caller-may-use).',
      { min: 1, max: 100_000 },
      100,
    ),
    concurrencyPerCaller: Type.Optional(
      count(
        'Maximum requests in flight of one caller, at most `concurrency`. By default half of `concurrency`, or all of it with `authentication: none`.',
        { min: 1, max: 100_000 },
      ),
    ),
    listTtl: duration('How long a client may cache a list.', '30s'),
  },
  { default: {} },
);

export const CONTENT_KINDS = ['auto', 'code', 'markup', 'text'] as const;
type ContentKind = (typeof CONTENT_KINDS)[number];
type Digests = string | readonly string[];
/** What a tool returns, as it is written: a kind, or a kind with the definitions that it was chosen for. */
type ToolContent = ContentKind | { readonly kind: ContentKind; readonly digest?: Digests };

const TOOL_NAME = { title: 'the name of a tool', minLength: 1 } as const;

const KIND: Schema = { type: 'string', enum: CONTENT_KINDS };
const DIGEST = '^[0-9a-f]{64}$';

const TOOL_CONTENT = Type.Unsafe<ToolContent>({
  type: ['string', 'object'],
  title: 'a kind, or {kind: …, digest: …}',
  description: 'Kind of what one tool returns.',
  if: { type: 'string' },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { enum: CONTENT_KINDS },
  else: {
    properties: {
      kind: { ...KIND, description: 'Kind of what the tool returns.' },
      digest: {
        type: ['string', 'array'],
        title: 'a SHA-256 digest in lower-case hex, or a list of them',
        description:
          'The `sha256` of the definition that the kind was chosen for. For any other definition of the tool the kind is `auto`.',
        pattern: DIGEST,
        minItems: 1,
        uniqueItems: true,
        items: { type: 'string', title: 'a SHA-256 digest in lower-case hex', pattern: DIGEST },
      },
    },
    required: ['kind'],
    additionalProperties: false,
  },
});

export const CONTENT = record(
  'What the server returns, which says how much of it is changed. Decided here alone, never by what a message says of itself.',
  {
    kind: oneOfStrings(
      '`auto`: what would act by itself is made inert. `code`: nothing is changed but secrets and personal data; the rest is flagged. `markup`: as `auto`, also inside code spans and fences, for hosts that render the whole text. `text`: as `auto`, but active content is flagged only, for hosts that show plain text.',
      CONTENT_KINDS,
      { default: 'auto' },
    ),
    tools: Type.Unsafe<Readonly<Record<string, ToolContent>>>({
      type: 'object',
      description:
        'Kinds by the exact name of a tool, instead of `kind`: a kind, or `{kind: …, digest: …}` with the `sha256` of the definition that it was chosen for, or a list of them. For another definition of the tool the kind is `auto`. Without a digest, `code` counts for a definition that is approved.',
      propertyNames: TOOL_NAME,
      additionalProperties: TOOL_CONTENT,
      default: {},
    }),
  },
  { default: {} },
);

type UndeclaredWord = 'declared' | 'observe' | 'any';

/** Words are short for a map with that `undeclared`; `declared` is the one for `refuse`. */
const ARGUMENTS = Type.Unsafe<
  | UndeclaredWord
  | {
      readonly undeclared: 'refuse' | 'observe' | 'any';
      readonly coerce: boolean;
      readonly drop: readonly string[];
    }
>({
  type: ['string', 'object'],
  title: 'declared, observe, any, or a map with undeclared, coerce and drop',
  description:
    'What happens to tool arguments that do not fit the input schema. The words `declared`, `observe` and `any` are short for a map with `undeclared: refuse`, `observe` or `any`.',
  pattern: '^(declared|observe|any)$',
  default: 'declared',
  properties: {
    undeclared: oneOfStrings(
      'Members that the input schema does not declare, in objects that it describes: refused (`refuse`), recorded as a finding (`observe`), or left to the schema as it is written (`any`).',
      ['refuse', 'observe', 'any'],
      { default: 'refuse' },
    ),
    coerce: flag(
      'Whether a string becomes a number, a boolean or JSON where the schema admits no string and nothing is lost: `"5"` for an integer, `"[1]"` for an array. Recorded as the finding `coerced-argument`.',
      false,
    ),
    drop: textList(
      'Names of arguments that are removed where the schema of the tool does not declare them, because some client adds them to every call. Recorded as the finding `dropped-argument`.',
      { default: [], maxItems: 32 },
    ),
  },
  additionalProperties: false,
});

/** One of the keys: a fixed value, a value for what is absent, or neither. */
const PARAMETER = record(
  'How one parameter is presented: exactly one of the keys.',
  {
    value: Type.Optional(
      Type.Unsafe<unknown>({
        description:
          'Value that every call has. Clients are not shown the parameter, and a call that has it is refused.',
      }),
    ),
    default: Type.Optional(
      Type.Unsafe<unknown>({
        description: 'Value of calls that leave the parameter out. Clients are shown it, and need not send it.',
      }),
    ),
    hide: Type.Optional(
      literal(true, 'Clients are not shown the parameter, no call has it, and one that sends it is refused.'),
    ),
  },
  { minProperties: 1, maxProperties: 1, title: '{value: …}, {default: …} or {hide: true}' },
);

const PRESENTED_TOOL = record('How one tool is presented. Its definition stays the one that was approved.', {
  name: Type.Optional(
    Type.String({
      title: 'the name of a tool, of letters, digits and _ . -',
      pattern: '^[A-Za-z0-9_.-]{1,128}$',
      description:
        'Name that clients use in place of the name that the server gives; that one is then unknown to them.',
    }),
  ),
  description: Type.Optional(text('Description that clients are shown in place of that of the server.')),
  parameters: named('Parameters of the tool that are presented otherwise, by name.', PARAMETER, {
    propertyNames: { title: 'the name of a parameter', minLength: 1 },
    default: {},
  }),
});

export const TOOLS = named(
  'Tools that clients are shown otherwise than the server offers them, by the names that the server gives. Applied after the comparison with pins: rules, pins, records and `content` have the names and the arguments of the server.',
  PRESENTED_TOOL,
  { propertyNames: TOOL_NAME, default: {} },
);

const FLOWS = record(
  'What flows of the policies make of lists of this upstream.',
  {
    lists: oneOfStrings(
      'Where results of the upstream begin a flow, its lists hold text that no pin holds: names and descriptions of resources, `_meta`. `cut`: this text is left out, and a list begins no flow. `count`: lists are delivered whole, and each counts as a result that was received.',
      ['cut', 'count'],
      { default: 'cut' },
    ),
  },
  { default: {} },
);

export const UPSTREAM_SCHEMA = record('One MCP server behind the gateway.', {
  url: text(
    'URL of the MCP endpoint: https, or http on loopback or, with `plaintext: accepted`, in a private network.',
  ),
  socket: Type.Optional(
    text(
      'Path of the Unix socket that the server listens on. No name is resolved then: `url`, which must be plain http, only provides the path and the Host header.',
    ),
  ),
  path: Type.Optional(text('Path on the data listener; by default `/<name>`.')),
  transport: oneOfStrings('Transport of the server.', ['streamable-http', 'http-sse'], {
    default: 'streamable-http',
  }),
  network: NETWORK,
  plaintext: Type.Optional(PLAINTEXT),
  authentication: oneOfStrings(
    '`none` accepts every caller; possible only on a loopback listener with a loopback `publicUrl`.',
    ['required', 'none'],
    { default: 'required' },
  ),
  issuers: Type.Optional(textList('Names of the issuers whose tokens are accepted here.', { minItems: 1 })),
  audiences: AUDIENCES,
  binding: oneOfStrings(
    'What tokens must be bound to: a key (`dpop`), a client certificate (`mtls`), or either (`any`). With `none`, unbound tokens are accepted too; a bound token always requires its proof.',
    ['none', 'any', 'dpop', 'mtls'],
    { default: 'none' },
  ),
  scopesSupported: scopeList('Scopes in the metadata document, which clients request by default: the minimal set.', {
    default: [],
  }),
  credentials: union(
    'type',
    "How the gateway authenticates to the server. The caller's token is never sent.",
    [NONE, STATIC, CLIENT_CREDENTIALS, TOKEN_EXCHANGE],
    { default: { type: 'none' } },
  ),
  required: flag(
    'Whether a gateway that starts is not ready before this upstream has been listed once, for at most `startup.wait`. Later it never makes the gateway unready.',
    false,
  ),
  sameAs: Type.Optional(
    text(
      'Name of another upstream of which this one is a second deployment, such as production of a staging server. Definitions that both offer in the same form are then no findings of shadowing. It approves nothing.',
    ),
  ),
  apps: flag(
    'Whether clients may declare the Apps extension, if rules let their caller read a `ui://` resource of the lock file. The gateway then lists twice, with and without the declaration, because servers may offer different definitions; both are pinned. Pins that were fetched without this setting lack what such clients are shown, which then counts as changed.',
    false,
  ),
  tls: CLIENT_TLS,
  identity: Type.Optional(IDENTITY),
  pinning: PINNING,
  arguments: ARGUMENTS,
  formats: oneOfStrings(
    'What `format` means in the schemas of the upstream. `annotation`: nothing is refused by it, as JSON Schema has it. `assertion`: date, time, date-time, email, uri, uuid and ipv4 are checked, in arguments and in structured results.',
    ['annotation', 'assertion'],
    { default: 'annotation' },
  ),
  inspect: text('Name of an inspection profile: `default`, `strict`, `developer`, or one of `inspection.profiles`.', {
    default: 'default',
  }),
  content: CONTENT,
  tools: TOOLS,
  flows: FLOWS,
  limits: LIMITS,
});
