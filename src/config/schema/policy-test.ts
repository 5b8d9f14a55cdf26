// Every key of a file of policy tests, and of a caller as `explain` takes it: who asks for what, and what has to be
// decided. Data only. docs/contract.md §4 (tests).

import type { Json } from '../../protocol/jsonrpc.js';
import {
  list,
  literal,
  named,
  oneOfStrings,
  type Parsed,
  published,
  record,
  scopeList,
  text,
  textList,
  typed,
} from './definitions.js';

/** A caller who is supposed to have a token that says this. */
export const CALLER = record(
  'A caller, by what its token says.',
  {
    issuer: text('Name of the issuer; by default the only one of the gateway file.'),
    subject: text('The `sub` of the token.', { default: 'someone' }),
    client: text('The client of the token.', { default: 'some-client' }),
    groups: textList('Groups of the token.', { default: [] }),
    scopes: scopeList('Scopes that the token states.', { default: [] }),
    claims: typed<Readonly<Record<string, Json>>, { readonly default: object }>({
      type: 'object',
      description: 'Other claims of the token.',
      default: {},
    }),
  },
  { title: 'a caller' },
);

export type CallerDocument = Parsed<typeof CALLER>;

const TARGET_TITLE = 'an upstream and a name, such as github/get_issue';
const TARGET_PATTERN = '^[a-z0-9][a-z0-9_-]{0,62}/.+$';

function target(description: string) {
  return text(description, { title: TARGET_TITLE, pattern: TARGET_PATTERN });
}

const CASE = record(
  'One case: exactly one of `call`, `get`, `read` and `list`, and what is expected of it.',
  {
    name: text('What the case is about.'),
    as: text('Name of one of the principals.'),
    call: target('A tool that is called: `upstream/tool`.'),
    get: target('A prompt: `upstream/prompt`.'),
    read: target('A resource: `upstream/uri`.'),
    list: text('An upstream whose items are listed.'),
    kind: oneOfStrings('Which list.', ['tools', 'prompts', 'templates'], { default: 'tools' }),
    args: typed<Readonly<Record<string, Json>>, { readonly default: object }>({
      type: 'object',
      description: 'Arguments of a tool or prompt.',
      default: {},
    }),
    limits: oneOfStrings(
      'Rate limits are not counted over cases; `exhausted` says that each one that applies is used up.',
      ['exhausted'],
    ),
    expect: oneOfStrings('The verdict; not for `list`.', ['allow', 'deny']),
    reason: text('The reason of a refusal.'),
    rule: text('The rule that decides, as `policy/rule`.'),
    items: textList('Of `list`: all names that are listed, in any order.'),
    contains: textList('Of `list`: names that are listed.', { minItems: 1 }),
    lacks: textList('Of `list`: names that are not listed.', { minItems: 1 }),
  },
  { title: 'a case', required: ['name', 'as'] },
);

export type PolicyTestCase = Parsed<typeof CASE>;

/** JSON Schema of `*.policy.test.yaml`. */
export const POLICY_TEST_SCHEMA = published(
  'urn:sallyport:schema:policy-test:1',
  record(
    'Tests of policies.',
    {
      version: literal(1, 'Version of this format.'),
      principals: named('Callers by name.', CALLER, { minProperties: 1 }),
      cases: list('The cases.', CASE, { minItems: 1 }),
    },
    { title: 'a file of policy tests', required: ['version', 'principals', 'cases'] },
  ),
);

export type PolicyTestFile = Parsed<typeof POLICY_TEST_SCHEMA>;
