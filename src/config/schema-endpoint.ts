// The JSON Schema of one endpoint in the gateway file: several upstreams under one path.
// Values only; what the members must have in common is judged in checks-endpoints.ts.

import { named, oneOfStrings, record, type Schema, text, textList } from './schema-parts.js';

/** What one session id must carry for every member bounds how many there may be. */
const MAX_BACKENDS = 16;
const PREFIX_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$';

const BACKEND = record('One upstream of the endpoint.', {
  prefix: text(
    'What stands before the names of its tools and prompts; the name of the upstream and `_` where absent.',
    { title: 'a prefix of letters, digits and _ . -', pattern: PREFIX_PATTERN },
  ),
});

export const AGGREGATE_SCHEMA: Schema = record(
  'Several upstreams as one MCP server, each under a prefix. Rules, pins, limits and records stay those of the upstreams.',
  {
    path: text('Path on the data listener; `/<name>` where absent.'),
    authentication: oneOfStrings(
      '`none` is possible only where every member has it.',
      ['required', 'none'],
      {
        default: 'required',
      },
    ),
    issuers: textList(
      'Names of the issuers that may vouch for callers here; every member must accept each of them.',
      { minItems: 1 },
    ),
    audiences: named(
      'Audiences accepted by issuer name, for issuers that cannot mint `publicUrl` + `path`.',
      textList('Accepted audiences, compared exactly.', { minItems: 1 }),
      { default: {} },
    ),
    upstreams: named('The members by name, in the order in which lists show them.', BACKEND, {
      minProperties: 1,
      maxProperties: MAX_BACKENDS,
    }),
  },
  { required: ['upstreams'] },
);
