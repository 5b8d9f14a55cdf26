// The JSON Schema of the gateway file. Its defaults are the defaults: reading fills them in from here.
// Values only. Contract §3 names every key; what a schema cannot say is in the checks-*.ts files.

import { AGGREGATE_SCHEMA } from './schema-endpoint.js';
import { INSPECTION_SCHEMA } from './schema-inspection.js';
import { ISSUER_SCHEMA } from './schema-issuer.js';
import { LISTENERS_SCHEMA } from './schema-listeners.js';
import {
  count,
  DIALECT,
  duration,
  flag,
  NOT_AVAILABLE,
  named,
  oneOfStrings,
  record,
  type Schema,
  secret,
  text,
  textList,
  unavailable,
  union,
} from './schema-parts.js';
import { UPSTREAM_SCHEMA } from './schema-upstream.js';

const STATE = {
  ...union('type', 'Where shared state lives.', [
    record(
      'In the process: one replica.',
      { type: { const: 'memory' } },
      { title: 'state memory' },
    ),
    record(
      'In Redis or Valkey, shared by all replicas.',
      {
        type: { const: 'redis' },
        url: secret('A `redis://` or `rediss://` URL, with the user and the password in it.'),
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
  ]),
  default: { type: 'memory' },
};

const AUDIT = record(
  'Where the record of what happened goes.',
  {
    sinks: {
      type: 'array',
      minItems: 1,
      description: 'Destinations; each gets every event.',
      default: [{ type: 'file', path: './audit.jsonl' }],
      items: union('type', 'One destination.', [
        record(
          'A file, synced before a call leaves.',
          { type: { const: 'file' }, path: text('Path, relative to this file.') },
          { title: 'a sink of type file', required: ['type', 'path'] },
        ),
        record(
          'Standard output.',
          {
            type: { const: 'stdout' },
            durability: oneOfStrings(
              'Says that handing a line to the container runtime counts as durable.',
              ['handed-over'],
            ),
          },
          { title: 'a sink of type stdout' },
        ),
      ]),
    },
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

const METRICS = record(
  'Prometheus metrics.',
  {
    toolLabel: flag('Whether tools of the pins become a label.', false),
    maxSeries: count('Series of one metric before `_OTHER`.', { min: 100, max: 1_000_000 }, 5000),
  },
  { default: {} },
);

function role(description: string): Schema {
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
    { token: secret('The token, at least 32 characters.') },
    { required: ['token'] },
  ),
});

/** JSON Schema of `config/gateway.yaml`. */
export const GATEWAY_SCHEMA: Schema = {
  $schema: DIALECT,
  $id: 'urn:sallyport:schema:gateway:1',
  ...record(
    'Configuration of the gateway.',
    {
      version: { const: 1, description: 'Version of this format.' },
      publicUrl: text('The URL under which clients reach the data listener.'),
      listeners: LISTENERS_SCHEMA,
      keys: {
        type: 'array',
        items: secret('A key made by `sallyport keys new`.'),
        minItems: 1,
        description:
          'Keys of the gateway: the first seals and signs, all open and verify. May be absent only where `publicUrl` is loopback.',
      },
      issuers: named('Authorization servers by name.', ISSUER_SCHEMA, { default: {} }),
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
      inspection: INSPECTION_SCHEMA,
      state: STATE,
      audit: AUDIT,
      metrics: METRICS,
      tracing: unavailable('Key: `otlp`.'),
      admin: ADMIN,
    },
    { title: 'the gateway file', required: ['version', 'publicUrl', 'upstreams', 'policies'] },
  ),
};
