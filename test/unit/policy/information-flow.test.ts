// Labels, flows and sensitive fields of policies: which tool has which, and what `validate` says of mistakes.

import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { FlowDocument, PolicyDocument } from '../../../src/policy/compile/documents.js';
import {
  type FlowSet,
  findViolations,
  historiesRead,
  historiesWritten,
  RECORD_EVERY_MS,
} from '../../../src/policy/information-flow.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { catalog, principal } from './samples.js';

const MINUTE_MS = 60_000;
const UPSTREAMS = [
  { name: 'github', strict: true },
  { name: 'wiki', strict: false },
];
const FLOW: FlowDocument = { id: 'f', from: 'untrusted', to: 'egress', withinMs: MINUTE_MS, effect: 'deny' };

function compile(document: Partial<PolicyDocument>, areInForce = false) {
  const pinned = catalog({ tools: { get_issue: {}, create_issue: {} } });
  const { policies, diagnostics } = compilePolicies([{ file: 'p.yaml', policy: 'p', rules: [], ...document }], {
    ...{ hash: 'h', upstreams: UPSTREAMS, profiles: [], issuers: [] },
    pins: (upstream) => (upstream === 'github' ? pinned : undefined),
    areInForce,
  });
  const shown = diagnostics.map(
    ({ path, severity, message, suggestion }) =>
      `${path.join('.')} ${severity} ${message}${suggestion === undefined ? '' : ` (${suggestion})`}`,
  );
  return { flows: policies.flows, shown };
}

function flowsOf(document: Partial<PolicyDocument>): FlowSet {
  const { flows, shown } = compile(document);
  expect(shown.filter((line) => / error /.test(line))).toEqual([]);
  if (flows === undefined) throw new Error('there are no flows');
  return flows;
}

describe('labels', () => {
  const flows = flowsOf({
    labels: {
      wiki: ['trusted'],
      'wiki/fetch': ['untrusted'],
      'wiki/private_*': ['sensitive'],
      github: ['sensitive'],
      'github/create_*': ['egress', 'trusted'],
    },
    flows: [FLOW, { ...FLOW, id: 'g', from: ['sensitive', 'untrusted'] }],
  });

  it.each([
    ['wiki', 'tool', 'search', []],
    ['wiki', 'tool', 'fetch', ['untrusted']],
    ['wiki', 'tool', 'private_page', ['sensitive']],
    ['wiki', 'tool', 'Private_Page ', ['sensitive']],
    ['wiki', 'tool', 'FETCH', ['untrusted']],
    ['wiki', 'resource', 'wiki://fetch', []],
    ['wiki', 'prompt', 'fetch', []],
    ['github', 'tool', 'get_issue', ['sensitive', 'untrusted']],
    ['github', 'tool', 'create_issue', ['sensitive']],
    ['github', 'resource', 'repo://x', ['sensitive', 'untrusted']],
    ['other', 'tool', 'anything', ['untrusted']],
  ])('[FL-02] a result of %s %s %s leaves %j', (upstream, kind, name, leaves) => {
    expect(flows.of(upstream, kind, name).leaves).toEqual(leaves);
  });

  it('[FL-02] make a request one that flows may refuse', () => {
    const of = (upstream: string, kind: string, name: string) =>
      flows.of(upstream, kind, name).flows.map(({ id }) => id);
    expect(of('github', 'tool', 'create_issue')).toEqual(['f', 'g']);
    expect(of('github', 'tool', 'get_issue')).toEqual([]);
    expect(of('github', 'prompt', 'create_issue')).toEqual([]);
    expect(of('wiki', 'tool', 'create_issue')).toEqual([]);
  });

  it('[FL-02] that no flow looks for leave nothing', () => {
    const sensitive = flowsOf({
      labels: { 'github/get_issue': ['sensitive'], 'github/create_issue': ['egress'] },
      flows: [{ ...FLOW, from: 'sensitive' }],
    });
    expect(sensitive.of('wiki', 'tool', 'x').leaves).toEqual([]);
    expect(sensitive.of('github', 'tool', 'get_issue').leaves).toEqual(['sensitive']);
  });

  it('[FL-02] of several files apply together, and policies without flows have none', () => {
    expect(compile({ labels: { wiki: ['trusted'] } }).flows).toBeUndefined();
  });
});

describe('a violation', () => {
  const both = { policy: 'p', id: 'g', from: ['a', 'b'], to: 'x', withinMs: MINUTE_MS, approval: undefined };
  const mark = (decision: string, ageMs: number) => ({ decision, ageMs });

  it('[FL-01] needs every label within the time, and names the decisions', () => {
    const history = (entries: readonly (readonly [string, { decision: string; ageMs: number }])[]) =>
      findViolations([both], new Map(entries))[0];
    expect(history([['a', mark('1', 5)]])).toBeUndefined();
    expect(
      history([
        ['a', mark('1', 5)],
        ['b', mark('2', MINUTE_MS)],
      ]),
    ).toEqual({
      flow: both,
      causes: ['1', '2'],
      leftMs: RECORD_EVERY_MS,
    });
    const late = MINUTE_MS + RECORD_EVERY_MS;
    expect(
      history([
        ['a', mark('1', 5)],
        ['b', mark('2', late)],
      ]),
    ).toBeUndefined();
    expect(
      history([
        ['a', mark('1', 5)],
        ['b', mark('1', 5)],
      ])?.causes,
    ).toEqual(['1']);
  });
});

describe('histories', () => {
  const reads = (...[writer, reader]: Parameters<typeof historiesRead>[0][]) => {
    const written = new Set(historiesWritten(writer as never));
    return historiesRead(reader as never).some((history) => written.has(history));
  };
  const agent = { subject: 'agent' };
  const ada = principal({ subject: 'ada' });
  const adaByAgent = principal({ subject: 'ada', actors: [agent] });
  const bobByAgent = principal({ subject: 'bob', actors: [agent] });
  const agentItself = principal({ subject: 'agent' });

  it.each([
    ['of a subject, for any client', ada, principal({ subject: 'ada', client: 'other' }), true],
    ['of a subject, for another one', ada, principal({ subject: 'bob' }), false],
    ['of a subject of another issuer', ada, principal({ subject: 'ada', issuerUrl: 'x' }), false],
    ['of a subject through an actor, for the subject', adaByAgent, ada, true],
    ['of a subject, for the subject through an actor', ada, adaByAgent, true],
    ['of an actor for a subject, for the actor itself', adaByAgent, agentItself, true],
    ['of an actor itself, for whom it acts for', agentItself, bobByAgent, true],
    ['of an actor for one subject, for another subject', adaByAgent, bobByAgent, false],
    [
      'of an actor of another issuer',
      principal({ subject: 'ada', actors: [{ issuer: 'x', subject: 'agent' }] }),
      agentItself,
      false,
    ],
  ])('[FL-04] %s', (_, writer, reader, expected) => {
    expect(reads(writer, reader)).toBe(expected);
  });
});

describe('mistakes', () => {
  const labels = { 'github/create_issue': ['egress'] };
  it.each([
    [
      'an unknown upstream',
      { labels: { ...labels, 'gihub/get_issue': ['sensitive'] }, flows: [FLOW] },
      'labels.gihub/get_issue error no upstream is named "gihub"; a label is given to UPSTREAM or UPSTREAM/TOOL (github/get_issue)',
    ],
    [
      'a tool that is not pinned',
      { labels: { ...labels, 'github/get_isue': ['sensitive'] }, flows: [FLOW] },
      'labels.github/get_isue error no tool named "get_isue" is pinned for "github" (github/get_issue)',
    ],
    [
      'a glob that matches nothing',
      { labels: { ...labels, 'github/x_*': ['egress'] }, flows: [FLOW] },
      'labels.github/x_* note "x_*" matches no tool that is pinned for "github"',
    ],
    [
      'a glob of trust that matches nothing',
      { labels: { ...labels, 'github/x_*': ['trusted'] }, flows: [FLOW] },
      'labels.github/x_* warning "x_*" matches no tool that is pinned for "github"',
    ],
    [
      'no tool',
      { labels: { ...labels, 'github/': ['egress'] }, flows: [FLOW] },
      'labels.github/ error the name of the tool is missing',
    ],
    [
      'a flow without sinks',
      { labels, flows: [{ ...FLOW, to: 'egres' }] },
      'flows.0.to error nothing is labelled "egres", so this flow refuses nothing (egress)',
    ],
    [
      'a flow without sources',
      { labels, flows: [{ ...FLOW, from: ['untrusted', 'secret'] }] },
      'flows.0.from.1 error nothing is labelled "secret", so this flow never begins',
    ],
    [
      'a repeated id',
      { labels, flows: [FLOW, FLOW] },
      'flows.1.id error another rule or flow of this policy has the id "f"; rename one of the two',
    ],
    [
      'a label without a flow',
      { labels: { ...labels, wiki: ['internal'] }, flows: [FLOW] },
      'labels.wiki.0 note no flow names the label "internal"',
    ],
  ])('[FL-07] %s', (_, document, line) => {
    expect(compile(document).shown).toContain(line);
  });

  it('[FL-07] says nothing of a label without a flow where results are tagged with it', () => {
    const sensitive = { 'wiki/search': [{ pointer: '/content', effect: 'tag' as const }] };
    const document = { labels: { ...labels, wiki: ['internal'] }, flows: [FLOW] };
    const note = 'labels.wiki.0 note no flow names the label "internal"';
    expect(compile({ ...document, sensitive }).shown).not.toContain(note);
    expect(compile(document).shown).toContain(note);
  });

  it.each([
    ['its own results', { 'github/create_*': ['egress'] }, true],
    ['its own results, trusted', { 'github/create_*': ['egress', 'trusted'] }, false],
    ['its own results, of a trusted upstream', { github: ['trusted'], 'github/create_*': ['egress'] }, false],
    ['everything of an upstream', { github: ['egress'] }, true],
  ])('[FL-07] warns of a target that a flow refuses because of %s', (_, given, expected) => {
    const { shown } = compile({ labels: given, flows: [FLOW] });
    expect(shown.some((line) => line.includes('warning the results of'))).toBe(expected);
    const both = { ...FLOW, from: ['untrusted', 'sensitive'] };
    const other = compile({ labels: { ...given, wiki: ['sensitive'] }, flows: [both] });
    expect(other.shown.some((line) => line.includes('warning the results of'))).toBe(false);
  });

  it('[FL-07] pins that change are no error of policies in force', () => {
    const { shown } = compile({ labels: { ...labels, 'github/gone': ['egress'] }, flows: [FLOW] }, true);
    expect(shown).toContainEqual(expect.stringContaining('labels.github/gone warning no tool'));
    expect(shown.filter((line) => line.includes(' error '))).toEqual([]);
  });
});

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

function compileFields(...documents: readonly Partial<PolicyDocument>[]) {
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
    const { sensitive, shown } = compileFields(
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
    expect(shown).toContainEqual(expect.stringMatching(/^sensitive warning this policy is not enforced/));
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
    expect(compileFields({}).sensitive).toBeUndefined();
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

  it('[SF-01] and flows do not, which a warning at them says', () => {
    const flow = { id: 'f', from: ['untrusted'], to: 'egress', withinMs: 1_000, effect: 'deny' } as const;
    const context = {
      hash: 'h',
      profiles: [],
      issuers: [],
      upstreams: [{ name: 'crm', strict: false }],
    };
    const document = {
      file: 'p',
      policy: 'p',
      rules: [],
      labels: { crm: ['egress'] },
      flows: [flow],
    };
    for (const [mode, count] of [
      ['observe', 1],
      ['enforce', 0],
    ] as const) {
      const { policies, diagnostics } = compilePolicies([document], { ...context, mode });
      const found = diagnostics.filter(({ message }) => message.includes('refuse nothing'));
      expect(found.map(({ severity }) => severity)).toEqual(Array(count).fill('warning'));
      expect(policies.flows === undefined).toBe(mode === 'observe');
    }
  });
});

describe('mistakes', () => {
  const one = (target: string, ...fields: NonNullable<PolicyDocument['sensitive']>[string]) =>
    compileFields({ sensitive: { [target]: fields } }).shown;

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
    ['no tool', one('crm', '/content'), 'sensitive.crm error the name of the tool is missing (crm/*)'],
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
