// JSON Schema of the file of stdio servers, which `sallyport stdio --config` serves and `add` writes. Part of no gateway:
// `serve` never reads it, because it starts no program. docs/reference/commands.md#stdio.

import { type Static, Type } from '@sinclair/typebox';
import { list, named, published, record, SECRET_TITLE, text } from './declarations.js';

const VARIABLE_TITLE = 'the name of an environment variable';

/** Where the value of a variable is; relative to this file. */
const VALUE = Type.Unsafe<{ readonly file: string } | { readonly env: string }>({
  type: 'object',
  title: SECRET_TITLE,
  properties: { env: { type: 'string', minLength: 1 }, file: { type: 'string', minLength: 1 } },
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
});

const SERVER = record(
  'One stdio server.',
  {
    command: list('The program and its arguments; no shell is used.', Type.String({ title: 'text' }), { minItems: 1 }),
    integrity: Type.Optional(
      text('Integrity of the npm package that `npx` runs, as `npm view` tells it; checked before each start.', {
        title: 'an integrity such as sha512-…',
        pattern: '^sha(?:256|384|512)-[A-Za-z0-9+/]+={0,2}$',
      }),
    ),
    env: Type.Optional(
      Type.Unsafe<Readonly<Record<string, Static<typeof VALUE>>>>({
        type: 'object',
        description: 'Variables that it gets besides those that programs need.',
        propertyNames: { title: VARIABLE_TITLE, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
        additionalProperties: VALUE,
      }),
    ),
    cwd: Type.Optional(text('The folder that it is started in. Default: that of this file.')),
  },
  { title: 'a stdio server' },
);

export const STDIO_SCHEMA = published(
  'urn:sallyport:schema:stdio:1',
  record(
    'Stdio servers, which one adapter serves, each at its name.',
    {
      listen: text('Where the adapter listens: HOST:PORT on loopback, or unix:PATH.'),
      token: record('The token that the gateway presents.', {
        file: text('Its file, relative to this one; written if it does not exist.'),
      }),
      servers: named('The servers by name.', SERVER),
    },
    { title: 'a file of stdio servers' },
  ),
);
