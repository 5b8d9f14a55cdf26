// The JSON Schemas of what Sallyport itself writes: lock files, and the lines of the audit log (`sallyport.audit/2` or
// `/1`), for programs that read them. Data only: pins/ recomputes the digests of a lock file, which a schema cannot do,
// and the gateway does not validate the events that it writes. docs/reference/definitions.md; docs/reference/audit.md.

import { type TSchema, Type } from '@sinclair/typebox';
import { DIALECT, list, literal, oneOfStrings, published, record, type Schema, text } from './declarations.js';

const SHA256 = Type.String({
  title: 'a SHA-256 digest in lower-case hex',
  pattern: '^[0-9a-f]{64}$',
  description: 'Digest of the domain tag and the RFC 8785 form of the whole definition.',
});

const WHO_AND_WHY = {
  by: Type.Optional(text('Who.')),
  at: Type.Optional(text('When, RFC 3339.')),
  note: Type.Optional(Type.String({ description: 'Why.' })),
};

const APPROVAL = record('Who approved it, when and why.', {
  ...WHO_AND_WHY,
  accepted: Type.Optional(
    list('The findings of the scan, of the tier block, that were accepted with it.', text('A finding.')),
  ),
});

const BLOCK = record('Who blocked it, when and why; only where `status` is `blocked`.', WHO_AND_WHY);

const STATUS = oneOfStrings('Where it stands; nothing but `approved` grants anything.', [
  'pending',
  'approved',
  'blocked',
]);
const DEFINITION = Type.Unsafe<object>({ type: 'object', description: 'The whole definition.' });
const INSTRUCTIONS = Type.String({ description: 'The whole text.' });

/** One reviewed version of an item, with its further versions. */
function pinned(description: string, member: string, content: TSchema) {
  const keys = {
    ...{ status: STATUS, sha256: SHA256, approval: Type.Optional(APPROVAL), block: Type.Optional(BLOCK) },
    [member]: content,
  };
  const variant = record('A further version.', keys);
  const variants = list('Further versions.', variant);
  return record(description, { ...keys, variants: Type.Optional(variants) });
}

function entries(description: string) {
  const additionalProperties = pinned('One pinned definition.', 'definition', DEFINITION);
  return Type.Unsafe<object>({ type: 'object', description, additionalProperties });
}

/** JSON Schema of `*.lock.yaml`. */
export const LOCK_SCHEMA = published(
  'urn:sallyport:schema:lock:1',
  record(
    'Approved definitions of one upstream. Written by `sallyport pin`, reviewed by people.',
    {
      lockfileVersion: literal(1, 'Version of this format.'),
      upstream: text('Name of the upstream in the gateway file.'),
      server: Type.Optional(
        record('What the server called itself when it was approved. A change is drift that hides nothing.', {
          name: text('Its name.'),
          title: Type.Optional(text('Its title.')),
          version: Type.Optional(text('Its version; another one is told and is no drift.')),
          websiteUrl: Type.Optional(text('Its page.')),
        }),
      ),
      instructions: Type.Optional(pinned('The instructions that the server may give to models.', 'text', INSTRUCTIONS)),
      tools: Type.Optional(entries('Tools by name.')),
      prompts: Type.Optional(entries('Prompts by name.')),
      resourceTemplates: Type.Optional(entries('Resource templates by uriTemplate.')),
      resources: Type.Optional(entries('Content of the `ui://` resources that tools refer to, by uri.')),
    },
    { title: 'a lock file' },
  ),
);

const TEXT: Schema = { type: 'string' };
const MAYBE_TEXT: Schema = { type: ['string', 'null'] };
const NUMBER: Schema = { type: ['number', 'null'], minimum: 0 };
const COUNT: Schema = { type: 'integer', minimum: 0 };
const TEXTS: Schema = { type: 'array', items: TEXT };

function group(description: string, properties: Readonly<Record<string, Schema>>): Schema {
  return { type: ['object', 'null'], description, properties };
}

const GATEWAY = group('Which gateway, under which files; of a request, by short hashes.', {
  instance: TEXT,
  host: TEXT,
  run: TEXT,
  epoch: TEXT,
  version: TEXT,
  config: TEXT,
  policy: TEXT,
  pins: TEXT,
});

const ACTOR = group('What the token proved.', {
  iss: MAYBE_TEXT,
  sub: MAYBE_TEXT,
  client_id: TEXT,
  act: {
    type: 'array',
    items: { type: 'object', properties: { iss: MAYBE_TEXT, sub: TEXT } },
  },
  token: group('The token, by a keyed hash.', {
    id: TEXT,
    aud: { type: ['string', 'array'], items: TEXT },
    scopes: TEXTS,
    exp: NUMBER,
    binding: { type: 'string', enum: ['none', 'dpop', 'mtls'] },
  }),
  groups_used: TEXTS,
});

const CLIENT = group('Where it came from, and what the client says of itself.', {
  ip: TEXT,
  self_reported: {
    type: ['object', 'null'],
    properties: { name: TEXT, version: TEXT },
  },
  era: MAYBE_TEXT,
  session: MAYBE_TEXT,
});

const TARGET = group('What was asked for.', {
  upstream: TEXT,
  endpoint: TEXT,
  method: MAYBE_TEXT,
  kind: MAYBE_TEXT,
  name: MAYBE_TEXT,
  shown_as: {
    ...TEXT,
    description: 'The name by which the client called the tool, where the gateway file gives it another (`tools`).',
  },
  definition: MAYBE_TEXT,
  pin: MAYBE_TEXT,
  request_id: { type: ['string', 'number', 'null'] },
  uris: { ...TEXTS, description: 'The resources that a subscription names, the first 64 of them.' },
});

const DECISION = group('What was decided, where and why.', {
  id: { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' },
  part_of: {
    type: 'string',
    description:
      'Id of the request that it is a part of: of a batch, or of a response that several backends of an endpoint make.',
  },
  verdict: { type: 'string', enum: ['allow', 'deny'] },
  action: { type: 'string', enum: ['forwarded', 'refused', 'withheld'] },
  mode: { type: 'string', enum: ['enforce', 'observe'] },
  stage: TEXT,
  policy: MAYBE_TEXT,
  rule: MAYBE_TEXT,
  reasons: TEXTS,
  causes: TEXTS,
  approval: {
    type: 'string',
    description: 'Id of the approval that was used, that is waited for, or because of which it was refused.',
  },
  detail: TEXT,
  shadow: {
    type: 'array',
    description: 'What policies that are not enforced would have decided.',
    items: {
      type: 'object',
      properties: {
        policy: { type: 'string', description: 'Of a policy with `mode: shadow`.' },
        rule: { type: 'string', description: 'The rule, as `policy/rule`.' },
        verdict: { type: 'string', enum: ['allow', 'deny'] },
        reason: TEXT,
      },
      required: ['verdict'],
    },
  },
});

const FINDINGS: Schema = {
  type: 'array',
  description: 'What detectors saw; never what was found.',
  items: group('One finding.', {
    detector: TEXT,
    direction: { type: 'string', enum: ['to-upstream', 'to-client'] },
    path: TEXT,
    count: NUMBER,
    action: TEXT,
  }),
};

const RESULT = group('What came back.', {
  status: { type: 'string', enum: ['ok', 'error', 'none'] },
  http: NUMBER,
  rpc_code: { type: ['integer', 'null'] },
  bytes: NUMBER,
  digest: MAYBE_TEXT,
  altered: {
    type: 'boolean',
    description: 'Whether the client got something else than the upstream sent; `findings` say what.',
  },
  list: {
    type: ['object', 'null'],
    properties: { advertised: NUMBER, visible: NUMBER },
  },
});

/** Of `auth.failure`: what was expected of a refused token, and what it says of itself, unverified. */
const REFUSED_TOKEN: Readonly<Record<string, Schema>> = {
  expected_issuer: TEXT,
  presented_issuer: TEXT,
  expected_audience: TEXT,
  presented_audience: TEXT,
  expected_type: TEXT,
  presented_type: TEXT,
};

const TIME_PATTERN = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$';
const TIME: Schema = { type: 'string', pattern: TIME_PATTERN };

const PARTY: Schema = { type: 'string', enum: ['caller', 'reviewer'] };

const ASKED_APPROVAL = group('A question to a person, and what became of it.', {
  id: TEXT,
  asked_by: { type: 'string', description: 'Id of the decision that asked.' },
  rules: { ...TEXTS, description: 'The rules and flows that ask, as `policy/rule`.' },
  rules_digest: { type: 'string', description: 'Digest of their texts.' },
  parties: { type: 'array', items: PARTY, description: 'Who is asked.' },
  waits_for: { type: 'array', items: PARTY, description: 'Who has not said yes.' },
  party: { ...PARTY, description: 'As whom somebody answered.' },
  proof: {
    type: 'string',
    enum: ['login', 'token', 'client'],
    description: '`client`: answered by the client, perhaps without a person.',
  },
  person: group('Who answered, as a login or a token proved it.', { iss: TEXT, sub: TEXT }),
  shown: { type: 'string', description: 'SHA-256 of what the person was shown.' },
  asked_at: TIME,
  expires_at: TIME,
  answered_at: TIME,
  usable_until: TIME,
  remembered_until: TIME,
  remembered: { type: 'boolean', description: 'The yes was given for an earlier call, and counted again.' },
});

export const EVENT_TYPES: readonly string[] = [
  ...['mcp.decision', 'mcp.outcome', 'auth.failure', 'pin.drift', 'pin.approval', 'pin.block'],
  ...['pin.finding', 'pin.first-use'],
  ...['approval.requested', 'approval.granted', 'approval.denied', 'approval.expired', 'approval.used'],
  ...['config.reload', 'admin.action', 'lifecycle', 'checkpoint'],
];

const EVENT_MEMBERS: Readonly<Record<string, Schema>> = {
  schema: {
    enum: ['sallyport.audit/2', 'sallyport.audit/1'],
    description:
      'In form 2 a line of a request leaves out what is null or empty, and an outcome what its decision says.',
  },
  id: { type: 'string', description: 'Id of the event.' },
  time: {
    type: 'string',
    description: 'RFC 3339, UTC, milliseconds.',
    pattern: TIME_PATTERN,
  },
  type: {
    type: 'string',
    enum: [...EVENT_TYPES],
  },
  gateway: GATEWAY,
  actor: ACTOR,
  client: CLIENT,
  target: TARGET,
  args: group('Arguments, by a keyed digest.', {
    digest: TEXT,
    bytes: NUMBER,
    keys: TEXTS,
    violations: {
      type: 'array',
      description: 'Of arguments-invalid: the first arguments that were refused, never a value.',
      items: { type: 'object', properties: { pointer: TEXT, keyword: TEXT } },
    },
    captured: { type: 'object', additionalProperties: TEXT },
  }),
  decision: DECISION,
  approval: ASKED_APPROVAL,
  findings: FINDINGS,
  result: RESULT,
  latency_ms: group('Milliseconds spent.', {
    total: NUMBER,
    auth: NUMBER,
    policy: NUMBER,
    inspect: NUMBER,
    upstream: NUMBER,
  }),
  trace: { type: ['object', 'null'], properties: { trace_id: TEXT, span_id: TEXT } },
  detail: {
    type: 'object',
    description:
      'What an event that is not of an exchange has to say; of a refusal at the edge, how many were suppressed.',
    properties: REFUSED_TOKEN,
    additionalProperties: { type: ['string', 'number', 'null'] },
  },
  chain: {
    type: 'object',
    description: 'Links each line to the bytes of the one before.',
    properties: { seq: COUNT, prev: TEXT, hash: TEXT },
    required: ['seq', 'prev', 'hash'],
  },
};

/** JSON Schema of an audit event. Events of later versions may have additional members. */
export const AUDIT_SCHEMA: Schema = {
  $schema: DIALECT,
  $id: 'urn:sallyport:schema:audit:2',
  type: 'object',
  description: 'One line of the audit log.',
  properties: EVENT_MEMBERS,
  required: ['schema', 'id', 'time', 'type', 'gateway', 'chain'],
};
