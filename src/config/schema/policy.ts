// The JSON Schema of a policy file: rules with three effects, each with its own keys.
// Data only; policy/compile/ checks what the rules mean together. docs/contract.md §4.

import { SIZE_PATTERN } from '../units.js';
import {
  DIALECT,
  NOT_AVAILABLE,
  oneOfStrings,
  rate,
  record,
  type Schema,
  scopeList,
  text,
  textList,
  unavailable,
  union,
} from './definitions.js';

const RULE_ID_PATTERN = '^[a-z0-9][a-z0-9._-]{0,63}$';
const MAX_EXPRESSION_LENGTH = 4096;
const MAX_REASON_LENGTH = 200;
const MAX_CAPTURES = 64;
const MAX_POINTER_LENGTH = 256;
const MAX_RESULT_BYTES = 256 * 1024 * 1024;

function patterns(description: string): Schema {
  return textList(description, { minItems: 1 });
}

const WHO = record(
  'Callers. Keys are ANDed, members of a list ORed; identities are exact.',
  {
    anyone: { const: true, description: 'Every verified caller.' },
    issuers: textList('Names of issuers.', { minItems: 1 }),
    subjects: textList('The `sub` of the token.', { minItems: 1 }),
    clients: textList('The client of the token.', { minItems: 1 }),
    groups: textList('Groups of the token.', { minItems: 1 }),
    claims: {
      type: 'object',
      description: 'Exact values by claim name.',
      minProperties: 1,
      additionalProperties: {
        type: 'array',
        minItems: 1,
        items: { type: ['string', 'number', 'boolean'], title: 'text, a number, true or false' },
      },
    },
  },
  { minProperties: 1 },
);

const WHAT = record('Things. Kinds are a union; a kind that is not named is not matched.', {
  upstreams: patterns('Upstreams; `*` stands for every one.'),
  tools: patterns('Tools: exact names, `*` globs, or `re:` with an RE2 expression.'),
  resources: patterns('Resources: URI patterns, `*` within a segment and `**` across.'),
  templates: patterns('Resource templates by their uriTemplate, exactly.'),
  prompts: patterns('Prompts: exact names or globs.'),
  sampling: { const: true, title: 'true', description: 'Requests of servers for a completion.' },
  elicitation: {
    type: 'array',
    minItems: 1,
    uniqueItems: true,
    description: 'Requests of servers for input, by form or by a link.',
    items: { type: 'string', enum: ['form', 'url'] },
  },
  roots: { const: true, title: 'true', description: 'Requests of servers for roots.' },
});

const LIMITS = record(
  'How often.',
  {
    rate: rate('Calls in a window.'),
    per: oneOfStrings('Whose calls are counted together.', ['subject', 'client', 'rule'], {
      default: 'subject',
    }),
  },
  { required: ['rate'] },
);

const BASE: Readonly<Record<string, Schema>> = {
  id: text('Name of the rule, unique in its file.', {
    title: 'a rule id of lower-case letters, digits, ., - and _',
    pattern: RULE_ID_PATTERN,
  }),
  who: WHO,
  what: WHAT,
  args: {
    type: 'object',
    description:
      'JSON Schemas over top-level arguments; holds when each is present and valid. What the rule reads must be described by the schema of the tool, and stand there in one spelling.',
    minProperties: 1,
    additionalProperties: { type: ['object', 'boolean'], title: 'a JSON Schema' },
  },
  when: text('A CEL expression over args, uri, principal and tool.', {
    maxLength: MAX_EXPRESSION_LENGTH,
  }),
};

function rule(effect: string, description: string, keys: Readonly<Record<string, Schema>>): Schema {
  return record(
    description,
    { ...BASE, effect: { const: effect }, ...keys },
    {
      title: `${effect === 'allow' ? 'an' : 'a'} ${effect} rule`,
      required: ['id', 'effect', 'who', 'what'],
    },
  );
}

const RULE = union('effect', 'One rule.', [
  rule('allow', 'Grants, if all of it holds.', {
    scopes: scopeList('Scopes that the token must carry.', { minItems: 1 }),
    limits: LIMITS,
  }),
  rule('deny', 'Refuses; wins over everything.', {
    reason: text('What the caller is told.', { maxLength: MAX_REASON_LENGTH }),
  }),
  rule('require', 'Grants nothing; holds for whoever is allowed.', {
    approval: unavailable('Keys: `by`, `expires`.'),
    limits: LIMITS,
    inspect: text('Name of an inspection profile.'),
    maxResultBytes: {
      type: ['string', 'integer'],
      title: 'a size such as 64KiB or 1MiB',
      format: 'sallyport-size',
      pattern: SIZE_PATTERN,
      minimum: 1,
      maximum: MAX_RESULT_BYTES,
      description: 'Largest result.',
    },
    audit: record(
      'What the record keeps.',
      {
        capture: {
          type: 'array',
          minItems: 1,
          maxItems: MAX_CAPTURES,
          uniqueItems: true,
          description:
            'JSON pointers into the arguments of tools and prompts whose values are recorded, whether the call is allowed or refused: without secrets and personal data, cut at 128 characters, at most 64 of all rules.',
          items: {
            type: 'string',
            title: 'a JSON pointer such as /id',
            maxLength: MAX_POINTER_LENGTH,
            pattern: '^(/([^~/]|~[01])*)+$',
          },
        },
      },
      { required: ['capture'] },
    ),
  }),
]);

/** JSON Schema of `*.policy.yaml`. */
export const POLICY_SCHEMA: Schema = {
  $schema: DIALECT,
  $id: 'urn:sallyport:schema:policy:1',
  ...record(
    'A policy: who may use what.',
    {
      version: { const: 1, description: 'Version of this format.' },
      policy: text('Name of the policy, unique over all files.', {
        title: 'a policy name of lower-case letters, digits, ., - and _',
        pattern: RULE_ID_PATTERN,
      }),
      owner: text('Who answers for it; for readers of the file.'),
      mode: oneOfStrings('Whether the policy counts.', ['enforce', 'shadow'], {
        default: 'enforce',
        [NOT_AVAILABLE]: ['shadow'],
      }),
      rules: { type: 'array', description: 'The rules; their order never matters.', items: RULE },
      labels: unavailable('Labels of tools, for flows.'),
      flows: unavailable('Which labelled results may reach which tools.'),
      sensitive: unavailable('Places in results that hold sensitive values.'),
    },
    { title: 'a policy file', required: ['version', 'policy', 'rules'] },
  ),
};
