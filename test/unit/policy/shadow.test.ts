// Policies that are not enforced, for all policies and calls: they change no decision, and what is said of them is what
// they would decide.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { PolicyDocument, RuleDocument } from '../../../src/policy/compile/documents.js';
import { decideRequest } from '../../../src/policy/decide.js';
import type { Decision } from '../../../src/policy/decision.js';
import type { PolicySet } from '../../../src/policy/rules.js';
import { decideShadows } from '../../../src/policy/shadow.js';
import { call, pins, rules } from './generated.js';
import { CONTEXT, document, principal } from './samples.js';

function compile(documents: readonly PolicyDocument[], mode?: 'observe'): PolicySet {
  return compilePolicies(documents, { ...CONTEXT, mode }).policies;
}

function shown(decision: Decision) {
  const { verdict, policy, rule } = decision;
  const reason = decision.verdict === 'deny' ? decision.reason : undefined;
  return { verdict, reason, rule: rule === undefined ? undefined : `${policy}/${rule}` };
}

const BY_RULES = [...['no-matching-allow', 'denied-by-rule', 'policy-error', 'insufficient-scope'], 'rate-limited'];

describe('policies that are not enforced', () => {
  it('[POL-05] change no decision in shadow, and would decide what is recorded of them', () => {
    let differing = 0;
    void fc.assert(
      fc.property(rules, rules, call, (enforced, shadowed, query) => {
        const base = document(enforced, 'base');
        const next = document(shadowed, 'next');
        const set = compile([base, { ...next, mode: 'shadow' }]);
        const decision = decideRequest(set, query);
        expect(decision).toEqual(decideRequest(compile([base]), query));
        const { shadow, captures } = decideShadows(set, query, decision);
        expect(captures).toBeUndefined();
        const would = shown(decideRequest(compile([base, next]), query));
        const isSame = JSON.stringify(would) === JSON.stringify(shown(decision));
        expect(shadow).toEqual(isSame ? [] : [{ ...would, policy: 'next' }]);
        differing += shadow.length;
      }),
      { numRuns: 60 },
    );
    expect(differing).toBeGreaterThan(3);
  });

  it('[POL-06] refuse no request of a client under observe, while pins and schemas do', () => {
    void fc.assert(
      fc.property(rules, call, (written, query) => {
        const base = document(written, 'base');
        const [enforced, observed] = [compile([base]), compile([base], 'observe')];
        const decision = decideRequest(observed, query);
        const would = decideRequest(enforced, query);
        // What servers request is decided by the rules as ever.
        if (query.target.kind === 'server-request') expect(shown(decision)).toEqual(shown(would));
        else if (decision.verdict === 'deny') expect(BY_RULES).not.toContain(decision.reason);
        if (decision.verdict === 'deny') expect(would.verdict).toBe('deny');
        if (decision.verdict === 'allow' && query.target.kind !== 'server-request') {
          expect(decision.rule).toBe('observe');
          const kinds = new Set(decision.obligations.map(({ kind }) => kind));
          expect([...kinds].filter((kind) => kind !== 'inspect')).toEqual([]);
        }
        expect(decideShadows(observed, query, decision).shadow).toEqual([{ ...shown(would), policy: undefined }]);
      }),
      { numRuns: 120 },
    );
  });

  it('[POL-05] cost nothing where there are none', () => {
    expect(compile([document([])]).shadow).toBeUndefined();
  });

  it('[POL-05] have labels and flows that are not evaluated, with a warning', () => {
    const flows = {
      labels: { 'github/get_issue': ['sensitive'], 'github/create_issue': ['egress'] },
      flows: [{ id: 'no-leak', from: 'sensitive', to: 'egress', within: '10m', effect: 'deny' }],
    } as unknown as Partial<PolicyDocument>;
    const base = { ...document([], 'base'), ...flows };
    expect(compile([base]).flows).toBeDefined();
    expect(compile([base], 'observe').flows).toBeUndefined();
    const { policies, diagnostics } = compilePolicies([{ ...base, mode: 'shadow' }], CONTEXT);
    expect(policies.flows).toBeUndefined();
    expect(diagnostics.map(({ severity, path }) => [severity, ...path])).toContainEqual(['warning', 'labels']);
  });
});

describe('[AR-05] a policy in shadow that asks', () => {
  const TIMES = { expiresMs: 1, useMs: 1 };
  const allow = { id: 'all', effect: 'allow', who: { anyone: true }, what: { tools: ['*'] } } as const;
  const ask = {
    id: 'ask',
    effect: 'require',
    who: { anyone: true },
    what: { tools: ['t_*'] },
    approval: { by: 'reviewer', count: 1, ...TIMES },
  } as const satisfies RuleDocument;
  const required = { verdict: 'deny', reason: 'approval-required', rule: 'next/ask', policy: 'next' };
  const query = { principal: principal(), upstream: 'github', args: {}, catalog: pins };
  const target = { kind: 'tool', name: 't_a' } as const;

  it('is recorded as the refusal that it would be until somebody says yes', () => {
    const set = compile([document([allow], 'base'), { ...document([ask], 'next'), mode: 'shadow' }]);
    const decision = decideRequest(set, { ...query, target });
    expect(decision).toMatchObject({ verdict: 'allow', obligations: [] });
    expect(decideShadows(set, { ...query, target }, decision).shadow).toEqual([required]);
    const other = { ...query, target: { kind: 'tool', name: 'u_c' } } as const;
    expect(decideShadows(set, other, decideRequest(set, other)).shadow).toEqual([]);
  });

  it('asks nobody under observe', () => {
    const set = compile([document([allow, ask], 'next')], 'observe');
    const decision = decideRequest(set, { ...query, target });
    expect(decision).toMatchObject({ verdict: 'allow', obligations: [] });
    expect(decideShadows(set, { ...query, target }, decision).shadow).toEqual([{ ...required, policy: undefined }]);
  });
});
