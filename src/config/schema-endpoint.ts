// The JSON Schema of one endpoint in the gateway file: several upstreams under one path.
// Values only; what the members must have in common is judged in checks-endpoints.ts.

import { named, record, type Schema, text, textList, words } from './schema-parts.js';

/** What one session id must carry for every member bounds how many there may be. */
const MAX_MEMBERS = 16;
const PREFIX_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$';

const MEMBER = record('One upstream of the endpoint.', {
  prefix: text(
    'What stands before the names of its tools and prompts; the name of the upstream and `_` where absent.',
    { title: 'a prefix of letters, digits and _ . -', pattern: PREFIX_PATTERN },
  ),
});

export const ENDPOINT_SCHEMA: Schema = record(
  'Several upstreams as one MCP server, each under a prefix. Rules, pins, limits and records stay those of the upstreams.',
  {
    path: text('Path on the data listener; `/<name>` where absent.'),
    authentication: words(
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
    upstreams: named('The members by name, in the order in which lists show them.', MEMBER, {
      minProperties: 1,
      maxProperties: MAX_MEMBERS,
    }),
  },
  { required: ['upstreams'] },
);
