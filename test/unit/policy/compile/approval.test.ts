// What rules and flows say about approvals: what a compiled rule carries of it, and each mistake with its place.

import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../../src/policy/compile/compile.js';
import type {
  ApprovalDocument,
  FlowDocument,
  PolicyContext,
  RuleDocument,
  WhatDocument,
} from '../../../../src/policy/compile/documents.js';
import { allRules, type RequireRule } from '../../../../src/policy/rules.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { CONTEXT, catalog, document } from '../samples.js';

const HOUR_MS = 3_600_000;
const TIMES = { expiresMs: 600_000, useMs: 120_000 };
const CALLER = { by: 'caller', proof: 'login', remember: 'none', ...TIMES } as const satisfies ApprovalDocument;
const REVIEWER = { by: 'reviewer', count: 1, ...TIMES } as const satisfies ApprovalDocument;
const TOOLS = { tools: ['delete_*'] };

type Require = Partial<Extract<RuleDocument, { effect: 'require' }>>;

function ruleThat(parts: Require): RuleDocument {
  return { id: 'ask', effect: 'require', who: { anyone: true }, what: TOOLS, ...parts };
}

function compile(rule: RuleDocument, context: Partial<PolicyContext> = {}) {
  const { policies, diagnostics } = compilePolicies([document([rule])], { ...CONTEXT, ...context });
  const found = diagnostics.map(({ severity, path, message, suggestion }) => {
    const meant = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`;
    return `${severity} ${path.slice(2).join('.')}: ${message}${meant}`;
  });
  return { found, rule: allRules(policies)[0] as RequireRule };
}

describe('a rule that asks', () => {
  it.each<[string, ApprovalDocument, object]>([
    ['the caller', CALLER, { by: 'caller', proof: 'login', remember: undefined, ...TIMES }],
    [
      'the caller, who is remembered',
      { ...CALLER, proof: 'client', remember: { forMs: 60_000, same: ['/owner', '/repo'] } },
      { by: 'caller', proof: 'client', remember: { forMs: 60_000, same: ['/owner', '/repo'] }, ...TIMES },
    ],
    ['a reviewer', REVIEWER, { by: 'reviewer', groups: undefined, count: 1, ...TIMES }],
    [
      'two reviewers of a group',
      { ...REVIEWER, reviewers: { groups: ['ops'] }, count: 2 },
      { by: 'reviewer', groups: ['ops'], count: 2, ...TIMES },
    ],
  ])('[AR-01] carries whom a rule asks: %s', (_, approval, terms) => {
    const { found, rule } = compile(ruleThat({ approval, reason: 'It is gone for good.' }));
    expect(found.filter((line) => line.startsWith('error'))).toEqual([]);
    expect(rule.approval).toEqual({ terms, reason: 'It is gone for good.', isBeyondLimits: false });
  });

  it.each<[string, WhatDocument, ApprovalDocument]>([
    ['tools', { tools: ['t'] }, CALLER],
    ['resources', { resources: ['repo://**'] }, CALLER],
    ['prompts', { prompts: ['p'] }, CALLER],
    ['sampling', { sampling: true }, REVIEWER],
    ['elicitation', { elicitation: ['form', 'url'] }, REVIEWER],
    ['all of them', { tools: ['t'], resources: ['repo://**'], prompts: ['p'], sampling: true }, REVIEWER],
  ])('[AR-01] may name %s', (_, what, approval) => {
    expect(compile(ruleThat({ what, approval })).found.filter((line) => line.startsWith('error'))).toEqual([]);
  });

  const ONLY = 'an approval is for tools, resources that are read, prompts, sampling and elicitation';
  it.each<[string, Require, readonly string[]]>([
    [
      'templates',
      { what: { templates: ['repo://{x}'] }, approval: CALLER },
      [`error what.templates: ${ONLY}: name the resources of the template instead`],
    ],
    ['roots', { what: { roots: true }, approval: REVIEWER }, [`error what.roots: ${ONLY}: allow roots, or do not`]],
    [
      'tasks, beside tools',
      { what: { ...TOOLS, tasks: ['cancel'] }, approval: CALLER },
      [`error what.tasks: ${ONLY}: a task is approved with the call that creates it, so name its tool`],
    ],
    [
      'sampling by the caller',
      { what: { sampling: true }, approval: CALLER },
      [
        'error approval.by: what a server requests of the caller is approved by somebody else; did you mean "reviewer"?',
      ],
    ],
    [
      'elicitation by the caller, beside tools',
      { what: { ...TOOLS, elicitation: ['form'] }, approval: CALLER },
      [
        'error approval.by: what a server requests of the caller is approved by somebody else; did you mean "reviewer"?',
      ],
    ],
    [
      'a question that stands too long',
      { approval: { ...REVIEWER, expiresMs: 169 * HOUR_MS } },
      ['error approval.expires: a question stands for 7d at most; did you mean "7d"?'],
    ],
    [
      'a yes that is used too late',
      { approval: { ...CALLER, useMs: HOUR_MS + 1 } },
      ['error approval.use: a yes is used within 1h at most; did you mean "1h"?'],
    ],
    [
      'a yes that is remembered too long',
      { approval: { ...CALLER, remember: { forMs: HOUR_MS + 1 } } },
      ['error approval.remember.for: a yes is remembered for 1h at most; did you mean "1h"?'],
    ],
    [
      'equal arguments of resources',
      { what: { resources: ['repo://**'] }, approval: { ...CALLER, remember: { forMs: 1, same: ['/x'] } } },
      ['error approval.remember.same: only tools and prompts have arguments'],
    ],
    [
      'a reason for nobody',
      { reason: 'Why?', maxResultBytes: 9 },
      ['error reason: this is for the person who is asked, and the rule asks nobody: add approval, or remove it'],
    ],
    [
      'findings without an approval',
      { when: '"email" in findings', maxResultBytes: 9 },
      ['error when: only rules with approval may read findings: what is found in arguments is known after other rules'],
    ],
    [
      'findings, and more than an approval',
      { when: '"email" in findings', approval: REVIEWER, maxResultBytes: 9, inspect: 'default' },
      ['inspect', 'maxResultBytes'].map(
        (key) =>
          `error ${key}: a rule that reads findings is evaluated after inspection, when it can only ask: put this into a rule of its own`,
      ),
    ],
    [
      'a question beyond limits that the rule does not have',
      { approval: { ...REVIEWER, asks: 'beyond-limits' } },
      ['error approval.asks: the rule has no limits: add limits, or remove this'],
    ],
    [
      'limits beyond which a server is asked about',
      {
        what: { sampling: true },
        limits: { per: 'subject', rate: { count: 1, windowMs: 1 } },
        approval: { ...REVIEWER, asks: 'beyond-limits' },
      },
      ['error approval.asks: requests of servers are always asked about'],
    ],
    [
      'findings of a server request',
      { what: { sampling: true }, when: '"email" in findings', approval: REVIEWER },
      ['error when: findings are those in arguments, and server requests have none'],
    ],
    [
      'findings that are taken for a text',
      { when: 'findings.startsWith("x")', approval: REVIEWER },
      ['error when: "startsWith" takes text, but findings is a list'],
    ],
  ])('[AR-01] reports %s', (_, parts, lines) => {
    expect(compile(ruleThat(parts)).found).toEqual(lines);
  });

  it('[AR-01] leaves findings to rules that ask', () => {
    for (const effect of ['allow', 'deny'] as const) {
      const written = { id: 'r', effect, who: { anyone: true }, what: TOOLS, when: 'size(findings) > 0' } as const;
      expect(compile(written).found).toEqual([expect.stringContaining('only rules with approval may read findings')]);
    }
  });

  it('[AR-01] reports equal arguments that the pinned tool does not have', () => {
    const inputSchema = { type: 'object', properties: { owner: {}, repo: {} } };
    const pins = () => catalog({ tools: { delete_repo: { inputSchema } } });
    const remember = (...same: string[]) => ({ ...CALLER, remember: { forMs: 1, same } });
    const what = { upstreams: ['github'], tools: ['delete_repo'] };
    expect(compile(ruleThat({ what, approval: remember('/owner', '/repo') }), { pins }).found).toEqual([]);
    expect(compile(ruleThat({ what, approval: remember('/owner', '/rep') }), { pins }).found).toEqual([
      'error approval.remember.same.1: the tool "delete_repo" has no argument /rep in its pinned schema; did you mean "repo"?',
    ]);
  });
});

describe('a client that may answer without a person', () => {
  const FORM = { ...CALLER, proof: 'client' } as const satisfies ApprovalDocument;
  const LABELS = { 'github/send': ['egress', 'trusted'] };
  const FLOW = { id: 'f', from: 'untrusted', to: 'egress', withinMs: HOUR_MS, effect: 'deny' } as const;
  const annotated = (annotations: JsonObject) => ({ definition: { annotations } });
  const pins = () =>
    catalog({
      tools: {
        read: annotated({ readOnlyHint: true }),
        delete: annotated({}),
        add: annotated({ destructiveHint: false }),
        send: annotated({ destructiveHint: false }),
      },
    });
  const warned = (parts: Require, context: Partial<PolicyContext> = { pins }) => {
    const what = { upstreams: ['github'], tools: ['*'] };
    const written = { ...document([ruleThat({ what, approval: FORM, ...parts })]), labels: LABELS, flows: [FLOW] };
    const { diagnostics } = compilePolicies([written], { ...CONTEXT, ...context });
    return diagnostics.filter(({ message }) => message.startsWith('a client may'));
  };

  it.each<[string, Require, string]>([
    ['destroys', {}, '"delete", which may destroy something'],
    ['destroys, by its hint', { when: 'tool.annotations.destructiveHint' }, '"delete", which may destroy something'],
    ['leaks', { what: { upstreams: ['github'], tools: ['send'] } }, '"send", to which a flow leads'],
    ['leaks, where others destroy', { when: '!tool.annotations.destructiveHint' }, '"send", to which a flow leads'],
  ])('[AR-01] is warned of where it guards what %s', (_, parts, guarded) => {
    expect(warned(parts)).toMatchObject([
      {
        severity: 'warning',
        path: ['rules', 0, 'approval', 'proof'],
        message: `a client may answer this without a person, and the rule guards ${guarded}`,
        suggestion: 'login',
      },
    ]);
  });

  it.each<[string, Require]>([
    ['what only reads', { what: { upstreams: ['github'], tools: ['read'] } }],
    ['what only adds', { what: { upstreams: ['github'], tools: ['add'] } }],
    ['anything, but after a login', { approval: CALLER }],
    ['anything, by a reviewer', { approval: REVIEWER }],
  ])('[AR-01] is not warned of where it guards %s', (_, parts) => {
    expect(warned(parts)).toEqual([]);
  });

  it('[AR-01] is warned of where nothing is pinned', () => {
    const upstreams = [{ name: 'github', strict: false }];
    const [found] = warned({ what: { upstreams: ['github'], tools: ['read'] } }, { upstreams, pins: () => undefined });
    expect(found?.message).toContain('tools of "github", of which no hint is pinned');
  });
});

describe('a caller who cannot log in', () => {
  it.each<[string, Partial<PolicyContext>, Require, readonly string[]]>([
    [
      'at the only issuer',
      { logins: [] },
      {},
      [
        'error approval: callers of "corp" cannot log in to approve this, so it is refused; write issuers.corp.login in the gateway file, or by: reviewer',
      ],
    ],
    [
      'at one of two',
      { issuers: ['corp', 'partner'], logins: ['corp'] },
      {},
      [
        'warning approval: callers of "partner" cannot log in to approve this, so it is refused; write issuers.partner.login in the gateway file, or by: reviewer',
      ],
    ],
    [
      'at one that the rule does not name',
      { issuers: ['corp', 'partner'], logins: ['corp'] },
      { who: { issuers: ['corp'] } },
      [],
    ],
    [
      'and answers a form',
      { issuers: ['corp'], logins: [] },
      { approval: { ...CALLER, proof: 'client' }, what: { prompts: ['p'] } },
      [
        'warning approval: callers of "corp" can answer a form and nothing else: what does not fit into one, or comes from a client without forms, is refused; write issuers.corp.login in the gateway file',
      ],
    ],
    ['and is not asked', { logins: [] }, { approval: REVIEWER }, []],
    ['as far as is known', {}, {}, []],
  ])('[AR-01] %s', (_, context, parts, lines) => {
    expect(compile(ruleThat({ approval: CALLER, ...parts }), context).found).toEqual(lines);
  });
});

describe('the text of a rule', () => {
  const textOf = (rule: RuleDocument) => compile(rule).rule.text;

  it('[AR-01] is a digest of what it says, whatever the order of its keys', () => {
    const one = textOf(ruleThat({ approval: CALLER, what: { tools: ['a'], prompts: ['p'] } }));
    expect(one).toMatch(/^[0-9a-f]{64}$/);
    expect(textOf(ruleThat({ what: { prompts: ['p'], tools: ['a'] }, approval: CALLER }))).toBe(one);
  });

  it.each<[string, Require]>([
    ['whom it asks', { approval: REVIEWER }],
    ['how long', { approval: { ...CALLER, useMs: 1 } }],
    ['a reason', { approval: CALLER, reason: 'Because.' }],
    ['its callers', { approval: CALLER, who: { subjects: ['ada'] } }],
    ['its targets', { approval: CALLER, what: { tools: ['delete_*', 'x'] } }],
    ['a condition', { approval: CALLER, when: 'true' }],
  ])('[AR-01] changes with %s', (_, parts) => {
    expect(textOf(ruleThat(parts))).not.toBe(textOf(ruleThat({ approval: CALLER })));
  });

  it('[AR-01] has what the file says for all of its rules', () => {
    const texts = ['github', 'mail'].map((upstream) => {
      const written = { ...document([ruleThat({ approval: CALLER })]), defaults: { upstreams: [upstream] } };
      return allRules(compilePolicies([written], CONTEXT).policies)[0]?.text;
    });
    expect(texts[0]).not.toBe(texts[1]);
  });
});

describe('a flow that asks', () => {
  const FLOW = { id: 'f', from: 'untrusted', to: 'egress', withinMs: HOUR_MS } as const;

  function compileFlow(flow: Omit<FlowDocument, keyof typeof FLOW>) {
    const labels = { 'mail/send': ['egress', 'trusted'] };
    const written = { ...document([]), labels, flows: [{ ...FLOW, ...flow }] };
    const { policies, diagnostics } = compilePolicies([written], CONTEXT);
    const found = diagnostics.map(({ path, message }) => `${path.join('.')}: ${message}`);
    return { found, flow: policies.flows?.of('mail', 'tool', 'send').flows[0] };
  }

  it('[AR-04] is a requirement with the text of the flow', () => {
    const { found, flow } = compileFlow({ effect: 'approve', approval: REVIEWER, reason: 'It leaves the house.' });
    expect(found).toEqual([]);
    expect(flow?.approval).toEqual({
      rule: 'main/f',
      text: expect.stringMatching(/^[0-9a-f]{64}$/),
      reason: 'It leaves the house.',
      terms: { by: 'reviewer', groups: undefined, count: 1, ...TIMES },
    });
  });

  it.each<[string, Omit<FlowDocument, keyof typeof FLOW>, readonly string[]]>([
    [
      'nobody',
      { effect: 'approve' },
      ['flows.0.effect: nobody is named who approves; add approval, such as approval: {by: reviewer}'],
    ],
    [
      'somebody, and refuses',
      { effect: 'deny', approval: REVIEWER, reason: 'x' },
      ['approval', 'reason'].map((key) => `flows.0.${key}: a flow that refuses asks nobody; write effect: approve`),
    ],
    [
      'a client',
      { effect: 'approve', approval: { ...CALLER, proof: 'client' } },
      ['flows.0.approval.proof: a flow is lifted by a person alone, and a client answers without one'],
    ],
    [
      'a caller, who is remembered',
      { effect: 'approve', approval: { ...CALLER, remember: { forMs: 1 } } },
      ['flows.0.approval.remember: a yes lifts a flow once, and is not remembered'],
    ],
    [
      'beyond limits',
      { effect: 'approve', approval: { ...REVIEWER, asks: 'beyond-limits' } },
      ['flows.0.approval.asks: a flow has no limits'],
    ],
    [
      'for too long',
      { effect: 'approve', approval: { ...REVIEWER, useMs: 2 * HOUR_MS } },
      ['flows.0.approval.use: a yes is used within 1h at most'],
    ],
  ])('[AR-01] reports one that asks %s', (_, flow, lines) => {
    expect(compileFlow(flow).found).toEqual(lines);
  });
});
