// Sensitive fields of policies: which tool has which, and what `validate` says of mistakes.

import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { PolicyDocument } from '../../../src/policy/compile/documents.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { catalog } from './samples.js';

const OUTPUT: JsonObject = {
  type: 'object',
  properties: {
    ssn: { type: 'string' },
    salary: { type: 'number' },
    age: { type: ['integer', 'null'] },
    cards: { type: 'array', items: { type: 'object', properties: { number: { type: 'string' } } } },
    byName: { type: 'object', additionalProperties: { type: 'object', properties: { ssn: {} } } },
  },
  required: ['ssn', 'salary', 'age'],
};
const INPUT: JsonObject = { type: 'object', properties: { id: { type: 'string' } } };

function pinned() {
  const base = catalog({
    upstream: 'crm',
    tools: {
      get_customer: { inputSchema: INPUT, definition: { outputSchema: OUTPUT } },
      find_customer: { inputSchema: INPUT },
    },
  });
  const compiled = compileSchema(OUTPUT);
  if (!compiled.ok) throw new Error(compiled.why);
  return {
    ...base,
    statusOf: (...[kind, name]: Parameters<typeof base.statusOf>) => {
      const status = base.statusOf(kind, name);
      return name !== 'get_customer' || status.pinned === undefined
        ? status
        : { ...status, pinned: { ...status.pinned, output: compiled.schema } };
    },
  };
}

function compile(...documents: readonly Partial<PolicyDocument>[]) {
  const { policies, diagnostics } = compilePolicies(
    documents.map((document, index) => ({
      ...{ file: `${index}.yaml`, policy: `p${index}`, rules: [] },
      ...document,
    })),
    {
      ...{ hash: 'h', profiles: [], issuers: [], upstreams: [{ name: 'crm', strict: true }] },
      pins: () => pinned(),
    },
  );
  const shown = diagnostics.map(
    ({ path, severity, message, suggestion }) =>
      `${path.join('.')} ${severity} ${message}${suggestion === undefined ? '' : ` (${suggestion})`}`,
  );
  return { sensitive: policies.sensitive, shown };
}

describe('sensitive fields', () => {
  it('[SF-01] are those of all policies that are enforced; redaction wins over a tag', () => {
    const { sensitive, shown } = compile(
      {
        sensitive: {
          'crm/get_*': [{ pointer: '/structuredContent/ssn', effect: 'tag' }, '/content'],
          'crm/get_customer': ['/arguments/id'],
        },
        labels: { 'crm/*': ['private'] },
      },
      { sensitive: { 'crm/get_customer': ['/structuredContent/ssn'] } },
      { mode: 'shadow', sensitive: { 'crm/find_customer': ['/content'] } },
    );
    expect(shown.filter((line) => / error /.test(line))).toEqual([]);
    expect(shown).toContainEqual(
      expect.stringMatching(/^sensitive warning this policy is not enforced/),
    );
    expect(sensitive?.of('crm', 'get_customer')).toEqual({
      results: [
        {
          pointer: '/structuredContent/ssn',
          effect: 'redact',
          steps: ['structuredContent', 'ssn'],
        },
        { pointer: '/content', effect: 'redact', steps: ['content', '*'] },
      ],
      arguments: [{ pointer: '/arguments/id', effect: 'redact', steps: ['arguments', 'id'] }],
      labels: ['private', 'untrusted'],
    });
    expect(sensitive?.of('crm', 'find_customer')).toBeUndefined();
    expect(sensitive?.of('other', 'get_customer')).toBeUndefined();
    expect(compile({}).sensitive).toBeUndefined();
  });

  it('[SF-01] stay in force where no rule is', () => {
    const { policies } = compilePolicies(
      [{ file: 'p', policy: 'p', rules: [], sensitive: { 'crm/get_customer': ['/content'] } }],
      {
        ...{ hash: 'h', profiles: [], issuers: [], upstreams: [{ name: 'crm', strict: false }] },
        mode: 'observe',
      },
    );
    expect(policies.sensitive?.of('crm', 'get_customer')?.results).toHaveLength(1);
  });
});

describe('mistakes', () => {
  const one = (target: string, ...fields: NonNullable<PolicyDocument['sensitive']>[string]) =>
    compile({ sensitive: { [target]: fields } }).shown;

  it.each([
    [
      'an unknown upstream',
      one('crn/get_customer', '/content'),
      'sensitive.crn/get_customer error no upstream is named "crn"; write UPSTREAM/TOOL (crm/get_customer)',
    ],
    [
      'a tool that is not pinned',
      one('crm/get_custmer', '/content'),
      'sensitive.crm/get_custmer error no tool named "get_custmer" is pinned for "crm" (crm/get_customer)',
    ],
    [
      'no tool',
      one('crm', '/content'),
      'sensitive.crm error the name of the tool is missing (crm/*)',
    ],
    [
      'a glob that matches nothing',
      one('crm/x_*', '/content'),
      'sensitive.crm/x_* note "x_*" matches no tool that is pinned for "crm"',
    ],
    [
      'a tagged argument',
      one('crm/get_customer', { pointer: '/arguments/id', effect: 'tag' }),
      'sensitive.crm/get_customer.0.pointer error /arguments/id cannot be tagged, because only results are sent to the client; without "effect", the argument is kept out of the audit log',
    ],
    [
      'all structured content',
      one('crm/get_customer', '/structuredContent'),
      'sensitive.crm/get_customer.0 error structured content cannot be redacted as a whole, because it must stay an object; name its members (/structuredContent/*)',
    ],
    [
      'a place that the output schema does not describe',
      one('crm/get_customer', '/structuredContent/snn'),
      'sensitive.crm/get_customer.0 warning the pinned outputSchema of the tool "get_customer" does not describe /structuredContent/snn (/structuredContent/ssn)',
    ],
    [
      'a place in a list that the output schema does not describe',
      one('crm/get_customer', '/structuredContent/cards/*/nummer'),
      'sensitive.crm/get_customer.0 warning the pinned outputSchema of the tool "get_customer" does not describe /structuredContent/cards/*/nummer (/structuredContent/cards/*/number)',
    ],
    [
      'a place that the input schema does not describe',
      one('crm/get_customer', '/arguments/name'),
      'sensitive.crm/get_customer.0 warning the pinned inputSchema of the tool "get_customer" does not describe /arguments/name',
    ],
    [
      'a place that cannot be checked',
      one('crm/find_customer', '/structuredContent/ssn'),
      'sensitive.crm/find_customer.0 note the tool "find_customer" has no pinned outputSchema, so whether /structuredContent/ssn exists cannot be checked',
    ],
    [
      'a place that none of several tools has',
      one('crm/*', '/structuredContent/snn'),
      'sensitive.crm/*.0 warning no pinned outputSchema of the tools that match describes /structuredContent/snn (/structuredContent/ssn)',
    ],
    [
      'a place that cannot be redacted',
      one('crm/get_customer', '/structuredContent/salary'),
      'sensitive.crm/get_customer.0 warning the pinned outputSchema of the tool "get_customer" requires /structuredContent/salary and admits neither text nor null there, so every result with it is withheld',
    ],
    [
      'a number, which other members may repeat',
      one('crm/get_customer', '/structuredContent/age'),
      'sensitive.crm/get_customer.0 note other members that repeat the number /structuredContent/age as a number keep it; name such members too',
    ],
  ])('[SF-09] %s', (_, shown, line) => {
    expect(shown).toEqual([line]);
  });

  it.each([
    '/structuredContent/ssn',
    '/structuredContent/cards/*/number',
    '/structuredContent/cards/0/number',
    '/structuredContent/byName/*/ssn',
    '/structuredContent/*',
    '/arguments',
    '/arguments/id',
    '/content/*/text',
  ])('[SF-09] none: %s', (pointer) => {
    expect(one('crm/get_customer', pointer)).toEqual([]);
    expect(one('crm/*', pointer)).toEqual([]);
  });
});
