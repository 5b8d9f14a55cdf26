import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { FlowDocument, PolicyDocument } from '../../../src/policy/compile/documents.js';
import {
  type FlowSet,
  findViolation,
  historiesRead,
  historiesWritten,
  RECORD_EVERY_MS,
} from '../../../src/policy/flows.js';
import { catalog, principal } from './samples.js';

const MINUTE_MS = 60_000;
const UPSTREAMS = [
  { name: 'github', strict: true },
  { name: 'wiki', strict: false },
];
const FLOW: FlowDocument = { id: 'f', from: 'untrusted', to: 'egress', withinMs: MINUTE_MS };

function compile(document: Partial<PolicyDocument>, areInForce = false) {
  const pinned = catalog({ tools: { get_issue: {}, create_issue: {} } });
  const { policies, diagnostics } = compilePolicies(
    [{ file: 'p.yaml', policy: 'p', rules: [], ...document }],
    {
      ...{ hash: 'h', upstreams: UPSTREAMS, profiles: [], issuers: [] },
      pins: (upstream) => (upstream === 'github' ? pinned : undefined),
      areInForce,
    },
  );
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
  const both = { policy: 'p', id: 'g', from: ['a', 'b'], to: 'x', withinMs: MINUTE_MS };
  const mark = (decision: string, ageMs: number) => ({ decision, ageMs });

  it('[FL-01] needs every label within the time, and names the decisions', () => {
    const history = (
      entries: readonly (readonly [string, { decision: string; ageMs: number }])[],
    ) => findViolation([both], new Map(entries));
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
    [
      'its own results, of a trusted upstream',
      { github: ['trusted'], 'github/create_*': ['egress'] },
      false,
    ],
    ['everything of an upstream', { github: ['egress'] }, true],
  ])('[FL-07] warns of a target that a flow refuses because of %s', (_, given, expected) => {
    const { shown } = compile({ labels: given, flows: [FLOW] });
    expect(shown.some((line) => line.includes('warning the results of'))).toBe(expected);
    const both = { ...FLOW, from: ['untrusted', 'sensitive'] };
    const other = compile({ labels: { ...given, wiki: ['sensitive'] }, flows: [both] });
    expect(other.shown.some((line) => line.includes('warning the results of'))).toBe(false);
  });

  it('[FL-07] pins that change are no error of policies in force', () => {
    const { shown } = compile(
      { labels: { ...labels, 'github/gone': ['egress'] }, flows: [FLOW] },
      true,
    );
    expect(shown).toContainEqual(expect.stringContaining('labels.github/gone warning no tool'));
    expect(shown.filter((line) => line.includes(' error '))).toEqual([]);
  });
});
