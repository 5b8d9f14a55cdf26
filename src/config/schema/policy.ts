// Every key of a policy file: rules with three effects, each with its own keys; and of a file of policy tests: who asks
// for what, and what has to be decided, with a caller as `explain` takes it. Data only; policy/compile/ checks what the
// rules mean together. docs/reference/policies.md.

import { type Static, Type } from '@sinclair/typebox';
import type { Json, JsonObject, TaskUse } from '../../protocol/jsonrpc.js';
import {
  count,
  duration,
  list,
  literal,
  MEANING,
  named,
  oneOfStrings,
  published,
  rate,
  record,
  SIZE_PATTERN,
  type Size,
  scopeList,
  tag,
  text,
  textList,
  union,
} from './declarations.js';

const RULE_ID_PATTERN = '^[a-z0-9][a-z0-9._-]{0,63}$';
const LABEL_PATTERN = '^[a-z][a-z0-9-]{0,31}$';
const LABEL_TITLE = 'a label of lower-case letters, digits and -';
const MAX_LABELS = 16;
const MAX_EXPRESSION_LENGTH = 4096;
const MAX_REASON_LENGTH = 200;
const MAX_CAPTURES = 64;
const MAX_POINTER_LENGTH = 256;
const MAX_SENSITIVE = 32;
const MAX_REMEMBERED = 16;
/** Places in content are whole blocks or their texts: a result with anything less of a block would not be valid. */
const POINTER = {
  title: 'a JSON pointer such as /structuredContent/ssn, /content/*/text or /arguments/ssn',
  maxLength: MAX_POINTER_LENGTH,
  pattern: '^/(?:(?:structuredContent|arguments)(?:/(?:[^~/]|~[01])*)*|content(?:/(?:\\*|0|[1-9][0-9]*)(?:/text)?)?)$',
};
type SensitiveEntry = { readonly pointer: string; readonly effect?: 'redact' | 'tag' };
/** Charges are counted in millionths, exactly. */
const MAX_BUDGET = 1_000_000_000;
const MAX_RESULT_BYTES = 256 * 1024 * 1024;

function patterns(description: string) {
  return textList(description, { minItems: 1 });
}

const WHO = record(
  'Callers. Keys are ANDed, members of a list are ORed; identities are compared exactly.',
  {
    anyone: Type.Optional(literal(true, 'Every verified caller.')),
    issuers: Type.Optional(textList('Names of issuers.', { minItems: 1 })),
    subjects: Type.Optional(textList('The `sub` of the token.', { minItems: 1 })),
    clients: Type.Optional(textList('The client of the token.', { minItems: 1 })),
    groups: Type.Optional(textList('Groups of the token.', { minItems: 1 })),
    actors: Type.Optional(
      textList(
        'The `sub` of the current actor, who acts for the subject (`act`, RFC 8693). Earlier actors of the chain are not compared.',
        { minItems: 1 },
      ),
    ),
    claims: Type.Optional(
      Type.Unsafe<Readonly<Record<string, readonly (string | number | boolean)[]>>>({
        type: 'object',
        description: 'Exact values by claim name.',
        minProperties: 1,
        additionalProperties: {
          type: 'array',
          minItems: 1,
          items: { type: ['string', 'number', 'boolean'], title: 'text, a number, true or false' },
        },
      }),
    ),
  },
  { minProperties: 1 },
);

const SAMPLING = Type.Unsafe<
  | true
  | {
      readonly includeContext?: readonly ('none' | 'thisServer' | 'allServers')[];
      readonly tools?: readonly string[] | false;
    }
>({
  type: ['boolean', 'object'],
  not: { const: false },
  title: 'true, or a map with includeContext and tools',
  description: 'Sampling requests of servers; with a map, those with this content.',
  minProperties: 1,
  properties: {
    includeContext: list(
      'The context that a request asks for. A request that says nothing asks for `none`.',
      Type.String({ enum: ['none', 'thisServer', 'allServers'] }),
      { minItems: 1, uniqueItems: true },
    ),
    tools: {
      type: ['array', 'boolean'],
      not: { const: true },
      title: 'false or a list of names of tools',
      description:
        'The tools that a request hands to the model, by exact names or globs. An allow rule matches if all of them are listed, any other rule if one is. `false`, in allow rules, names requests without tools.',
      minItems: 1,
      uniqueItems: true,
      items: { type: 'string', minLength: 1, title: 'text' },
    },
  },
  additionalProperties: false,
});

const ELICITATION = Type.Unsafe<
  readonly ('form' | 'url')[] | { readonly form?: true; readonly url?: readonly string[] }
>({
  type: ['array', 'object'],
  title: 'a list of form and url, or a map with the hosts of links',
  description: 'Elicitation requests of servers, by form or by URL. A map names the hosts that links may lead to.',
  items: { type: 'string', enum: ['form', 'url'] },
  minItems: 1,
  uniqueItems: true,
  minProperties: 1,
  properties: {
    form: literal(true, 'Forms.', { title: 'true' }),
    url: textList(
      'Links to these hosts: exact names, or `*.` and a name for all names below it, with a port unless it is 443.',
      { minItems: 1, title: 'a list of hosts' },
    ),
  },
  additionalProperties: false,
});

const WHAT = record('Targets. The kinds are a union; a kind that is not named is not matched.', {
  upstreams: Type.Optional(patterns('Upstreams; `*` means all.')),
  tools: Type.Optional(patterns('Tools: exact names, globs with `*`, or `re:` and an RE2 expression.')),
  resources: Type.Optional(patterns('Resources: URI patterns, `*` within a segment and `**` across.')),
  templates: Type.Optional(patterns('Resource templates: exact values of `uriTemplate`.')),
  prompts: Type.Optional(patterns('Prompts: exact names or globs.')),
  sampling: Type.Optional(SAMPLING),
  elicitation: Type.Optional(ELICITATION),
  roots: Type.Optional(literal(true, 'Requests of servers for roots.', { title: 'true' })),
  tasks: Type.Optional(
    list(
      'Requests about tasks, by what they do; `get` is the status and the result. A rule that names a tool also applies to the tasks of its calls.',
      Type.Unsafe<TaskUse>({ type: 'string', enum: ['get', 'list', 'update', 'cancel'] }),
      { minItems: 1, uniqueItems: true },
    ),
  ),
});

const BUDGET = record(
  'An amount that all rules which name the budget spend together, over several tools. A call is charged when it is allowed, and nothing is returned. Without the shared store calls are refused with `store-unavailable`; with `state.type: memory` a budget ends with the process.',
  {
    name: text('Name of the budget. Rules that name the same one state the same `per`, `within` and `max`.', {
      title: 'a budget name of lower-case letters, digits, ., - and _',
      pattern: RULE_ID_PATTERN,
    }),
    cost: text(
      'A CEL expression: what a call costs. A call whose cost is missing, negative or no finite number is refused.',
      { maxLength: MAX_EXPRESSION_LENGTH },
    ),
    per: oneOfStrings('Whose calls are charged together.', ['subject', 'client', 'all'], {
      default: 'subject',
    }),
    within: duration('The time after which a charge no longer counts.', '1d'),
    max: count('The most that may be spent within this time.', { min: 1, max: MAX_BUDGET }),
  },
);

const LIMITS = record('Rate limit and budget; at least one of them.', {
  rate: Type.Optional(rate('Calls per window.')),
  per: oneOfStrings('Which calls are counted together.', ['subject', 'client', 'rule'], {
    default: 'subject',
  }),
  budget: Type.Optional(BUDGET),
});

const BASE = {
  id: text('Name of the rule, unique in its file.', {
    title: 'a rule id of lower-case letters, digits, ., - and _',
    pattern: RULE_ID_PATTERN,
  }),
  who: WHO,
  what: WHAT,
  args: Type.Optional(
    Type.Unsafe<Readonly<Record<string, JsonObject | boolean>>>({
      type: 'object',
      description:
        'JSON Schemas of top-level arguments; matches if each is present and valid. The schema of the tool must describe every argument that the rule reads, with one spelling.',
      minProperties: 1,
      additionalProperties: { type: ['object', 'boolean'], title: 'a JSON Schema' },
    }),
  ),
  when: Type.Optional(
    text('A CEL expression over args, uri, principal and tool.', {
      maxLength: MAX_EXPRESSION_LENGTH,
    }),
  ),
};

const APPROVAL_KEYS = {
  asks: Type.Optional(
    oneOfStrings(
      'Of a rule with `limits`: `beyond-limits` lets calls within its limits pass, and asks about a call that they would refuse, which is then not counted. By default every call is asked about, and refused beyond the limits.',
      ['beyond-limits'],
    ),
  ),
  expires: duration(
    'How long the question can be answered, and how long a no holds for the same call; at most 7d.',
    '10m',
  ),
  use: duration('How long a yes may be used; at most 1h.', '2m'),
};

const REMEMBER = Type.Unsafe<
  'none' | { readonly for: Static<ReturnType<typeof duration>>; readonly same?: readonly string[] }
>({
  type: ['string', 'object'],
  title: 'none, or a map with for and same',
  description: 'Whether a yes counts again for the same caller, client, tool and definition.',
  default: 'none',
  pattern: '^none$',
  properties: {
    for: duration('For how long after it; at most 1h.'),
    same: list(
      'JSON pointers to the arguments that have to be equal. Without it, all of them.',
      Type.String({
        title: 'a JSON pointer such as /owner',
        maxLength: MAX_POINTER_LENGTH,
        pattern: '^(/([^~/]|~[01])*)+$',
      }),
      { minItems: 1, maxItems: MAX_REMEMBERED, uniqueItems: true },
    ),
  },
  required: ['for'],
  additionalProperties: false,
});

const APPROVAL = union('by', 'Who has to say yes before a request is forwarded.', [
  record(
    'The person on whose behalf the call is made.',
    {
      by: tag('caller'),
      proof: oneOfStrings(
        'How it is known that a person answers: `login`, by a login at the issuer a moment before; `client`, not at all, because a client answers a form.',
        ['login', 'client'],
        { default: 'login' },
      ),
      ...APPROVAL_KEYS,
      remember: REMEMBER,
    },
    { title: 'an approval by the caller' },
  ),
  record(
    'Somebody else: a reviewer of the gateway.',
    {
      by: tag('reviewer'),
      reviewers: Type.Optional(
        record('Which reviewers; by default all.', {
          groups: textList('Groups of the reviewer, who is in one of them.', { minItems: 1 }),
        }),
      ),
      count: count('How many persons have to say yes.', { min: 1, max: 3 }, 1),
      ...APPROVAL_KEYS,
    },
    { title: 'an approval by a reviewer' },
  ),
]);

const RULE = union('effect', 'Effect of the rule.', [
  record(
    'Grants, if all of it holds.',
    {
      ...BASE,
      effect: tag('allow'),
      scopes: Type.Optional(scopeList('Scopes that the token must have.', { minItems: 1 })),
      limits: Type.Optional(LIMITS),
    },
    { title: 'an allow rule' },
  ),
  record(
    'Refuses; wins over everything.',
    {
      ...BASE,
      effect: tag('deny'),
      reason: Type.Optional(text('Text for the caller.', { maxLength: MAX_REASON_LENGTH })),
    },
    { title: 'a deny rule' },
  ),
  record(
    'Grants nothing; holds for whoever is allowed.',
    {
      ...BASE,
      effect: tag('require'),
      approval: Type.Optional(APPROVAL),
      reason: Type.Optional(
        text('With `approval`: what the person reads who is asked.', { maxLength: MAX_REASON_LENGTH }),
      ),
      limits: Type.Optional(LIMITS),
      inspect: Type.Optional(text('Name of an inspection profile.')),
      maxResultBytes: Type.Optional(
        Type.Unsafe<Size | number>({
          type: ['string', 'integer'],
          title: 'a size such as 64KiB or 1MiB',
          format: 'sallyport-size',
          pattern: SIZE_PATTERN,
          minimum: 1,
          maximum: MAX_RESULT_BYTES,
          description: 'Maximum size of a result.',
          [MEANING]: 'size',
        }),
      ),
      audit: Type.Optional(
        record('What the audit log records.', {
          capture: list(
            'JSON pointers to arguments of tools and prompts whose values are recorded, whether the call is allowed or refused: without secrets and personal data, truncated to 128 characters, at most 64 over all rules.',
            Type.String({
              title: 'a JSON pointer such as /id',
              maxLength: MAX_POINTER_LENGTH,
              pattern: '^(/([^~/]|~[01])*)+$',
            }),
            { minItems: 1, maxItems: MAX_CAPTURES, uniqueItems: true },
          ),
        }),
      ),
    },
    { title: 'a require rule' },
  ),
]);

const FLOW = record(
  'After results with the labels `from`, requests with the label `to` are refused for a while, or put to a person.',
  {
    id: text('Name of the flow, unique among the flows and rules of its file.', {
      title: 'an id of lower-case letters, digits, ., - and _',
      pattern: RULE_ID_PATTERN,
    }),
    from: Type.Unsafe<string | readonly string[]>({
      type: ['string', 'array'],
      title: 'a label, or a list of labels',
      description: 'The label of the results; of several, each must have been received.',
      pattern: LABEL_PATTERN,
      minItems: 1,
      maxItems: MAX_LABELS,
      uniqueItems: true,
      items: { type: 'string', title: LABEL_TITLE, pattern: LABEL_PATTERN },
    }),
    to: text('The label of the requests that are refused or put to a person.', {
      title: LABEL_TITLE,
      pattern: LABEL_PATTERN,
    }),
    within: duration('For how long after the results.', '10m'),
    effect: oneOfStrings(
      '`deny` refuses the request. `approve` puts a call of a tool, a resource that is read and a prompt to a person, whose yes lifts this flow for that one request; everything else is refused.',
      ['deny', 'approve'],
    ),
    approval: Type.Optional(APPROVAL),
    reason: Type.Optional(
      text('With `approve`: what the person reads who is asked.', { maxLength: MAX_REASON_LENGTH }),
    ),
  },
  { title: 'a flow' },
);

/** JSON Schema of `*.policy.yaml`. */
export const POLICY_SCHEMA = published(
  'urn:sallyport:schema:policy:1',
  record(
    'A policy: who may use what.',
    {
      version: literal(1, 'Version of this format.'),
      policy: text('Name of the policy, unique over all files.', {
        title: 'a policy name of lower-case letters, digits, ., - and _',
        pattern: RULE_ID_PATTERN,
      }),
      owner: Type.Optional(text('Who is responsible for the policy; informational.')),
      mode: oneOfStrings(
        'Whether the policy is enforced. With `shadow`, its rules decide nothing; what they would decide is recorded.',
        ['enforce', 'shadow'],
        { default: 'enforce' },
      ),
      defaults: Type.Optional(
        record(
          'What rules of this file that do not say it themselves are about.',
          {
            issuers: Type.Optional(
              textList('`who.issuers` of rules for particular callers, not of `anyone`.', {
                minItems: 1,
              }),
            ),
            upstreams: Type.Optional(patterns('`what.upstreams`.')),
          },
          { minProperties: 1 },
        ),
      ),
      rules: list('The rules; their order does not matter.', RULE),
      labels: Type.Optional(
        Type.Unsafe<Readonly<Record<string, readonly string[]>>>({
          type: 'object',
          description:
            'Labels for flows, by upstream (everything of it) or `UPSTREAM/TOOL`, where the tool may be a glob. Results are `untrusted` unless they are labelled `trusted`.',
          minProperties: 1,
          additionalProperties: {
            type: 'array',
            minItems: 1,
            maxItems: MAX_LABELS,
            uniqueItems: true,
            items: { type: 'string', title: LABEL_TITLE, pattern: LABEL_PATTERN },
          },
        }),
      ),
      flows: Type.Optional(
        list('What is refused, or put to a person, for a while after a result was received.', FLOW, {
          minItems: 1,
        }),
      ),
      sensitive: Type.Optional(
        Type.Unsafe<Readonly<Record<string, readonly (string | SensitiveEntry)[]>>>({
          type: 'object',
          description:
            'Sensitive fields by `UPSTREAM/TOOL`, where the tool may be a glob. In results they are redacted or tagged; in arguments they are kept out of the audit log. Other members that repeat a redacted number as a number keep it.',
          minProperties: 1,
          additionalProperties: {
            type: 'array',
            minItems: 1,
            maxItems: MAX_SENSITIVE,
            uniqueItems: true,
            items: {
              ...POINTER,
              type: ['string', 'object'],
              title: `${POINTER.title}, or {pointer, effect}`,
              properties: {
                pointer: {
                  ...POINTER,
                  type: 'string',
                  description: 'The place; `*` stands for every item or member.',
                },
                effect: {
                  type: 'string',
                  enum: ['redact', 'tag'],
                  description:
                    'What happens in results: `redact` (the default) replaces the value, and `tag` names the place in `_meta["dev.sallyport/taint"]`.',
                },
              },
              required: ['pointer'],
              additionalProperties: false,
            },
          },
        }),
      ),
    },
    { title: 'a policy file' },
  ),
);

/** Any object, by default an empty one. */
function jsonObject(description: string) {
  return Type.Unsafe<Readonly<Record<string, Json>>>({
    ...{ type: 'object', description, default: {} },
  });
}

/** A caller who is supposed to have a token that says this. */
export const CALLER = record(
  'A caller, by what its token says.',
  {
    issuer: Type.Optional(text('Name of the issuer; by default the only one of the gateway file.')),
    subject: text('The `sub` of the token.', { default: 'someone' }),
    client: text('The client of the token.', { default: 'some-client' }),
    groups: textList('Groups of the token.', { default: [] }),
    scopes: scopeList('Scopes that the token states.', { default: [] }),
    claims: jsonObject('Other claims of the token.'),
  },
  { title: 'a caller' },
);

export type CallerDocument = Static<typeof CALLER>;

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
    call: Type.Optional(target('A tool that is called: `upstream/tool`.')),
    get: Type.Optional(target('A prompt: `upstream/prompt`.')),
    read: Type.Optional(target('A resource: `upstream/uri`.')),
    list: Type.Optional(text('An upstream whose items are listed.')),
    kind: oneOfStrings('Which list.', ['tools', 'prompts', 'templates'], { default: 'tools' }),
    args: jsonObject('Arguments of a tool or prompt.'),
    limits: Type.Optional(
      oneOfStrings('Rate limits are not counted over cases; `exhausted` says that each one that applies is used up.', [
        'exhausted',
      ]),
    ),
    findings: textList('Detectors that find something in the arguments, for rules that read `findings`.', {
      default: [],
    }),
    expect: Type.Optional(
      oneOfStrings('The verdict; not for `list`. `approve`: allowed once a person has said yes.', [
        'allow',
        'approve',
        'deny',
      ]),
    ),
    reason: Type.Optional(text('The reason of a refusal.')),
    rule: Type.Optional(text('The rule that decides, as `policy/rule`; of `approve`, a rule that asks.')),
    items: Type.Optional(textList('Of `list`: all names that are listed, in any order.')),
    contains: Type.Optional(textList('Of `list`: names that are listed.', { minItems: 1 })),
    lacks: Type.Optional(textList('Of `list`: names that are not listed.', { minItems: 1 })),
  },
  { title: 'a case' },
);

export type PolicyTestCase = Static<typeof CASE>;

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
    { title: 'a file of policy tests' },
  ),
);

export type PolicyTestFile = Static<typeof POLICY_TEST_SCHEMA>;
