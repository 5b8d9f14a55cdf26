// Explanations say what decisions are: the same rules, and the same verdict from them; what is not known is never
// guessed; and a change that was tried has the effect that it promises.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide } from '../../../src/policy/decide.js';
import { type CallFacts, explainRules, verdictOf, writtenRules } from '../../../src/policy/explain.js';
import { findChange } from '../../../src/policy/nearest-change.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { call, pins, rules } from './generated.js';
import { CONTEXT, document, principal } from './samples.js';

function compile(written: readonly RuleDocument[]) {
  const documents = [document(written)];
  const { policies, diagnostics } = compilePolicies(documents, CONTEXT);
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  return { policies, written: writtenRules(documents) };
}

describe('explanations', () => {
  it('[POL-01] follow the same rules to the same verdict as decide', () => {
    void fc.assert(
      fc.property(rules, call, (documents, query) => {
        const { policies, written } = compile(documents);
        const facts: CallFacts = { ...query, args: { all: query.args } };
        const decision = decide(policies, query);
        const explained = explainRules(policies, written, facts);
        const verdict = verdictOf(explained, facts);
        expect(verdict.verdict).toBe(decision.verdict);
        const own = explained.find(({ id }) => id === `${decision.policy}/${decision.rule}`);
        if (decision.verdict === 'allow') expect(own).toMatchObject({ effect: 'allow', state: 'holds' });
        if (decision.verdict === 'deny' && decision.reason === 'denied-by-rule')
          expect(own).toMatchObject({ effect: 'deny', state: 'holds' });
      }),
      { numRuns: 200 },
    );
  });

  it('[POL-02] are unknown rather than wrong where groups, claims or arguments are not known', () => {
    const hidden = fc.record({
      groups: fc.subarray(['eng', 'ops']),
      names: fc.boolean(),
      values: fc.subarray(['owner', 'title']),
    });
    let known = 0;
    void fc.assert(
      fc.property(rules, call, hidden, (documents, query, seen) => {
        const { policies, written } = compile(documents);
        const values = Object.entries(query.args).flatMap(([name, value]) => {
          if (!seen.values.includes(name) || value === undefined) return [];
          // A captured number may have been a text.
          return [[name, value === '7' ? ['7', 7] : [value]] as [string, Json[]]];
        });
        const facts: CallFacts = {
          ...query,
          principal: principal({
            ...query.principal,
            claims: {},
            groups: query.principal.groups.filter((group) => seen.groups.includes(group)),
          }),
          args: {
            names: seen.names ? new Set(Object.keys(query.args)) : undefined,
            values: new Map(values),
            bytes: JSON.stringify(query.args).length,
            areValid: false,
          },
          unknown: new Set(['groups', 'claims']),
        };
        const verdict = verdictOf(explainRules(policies, written, facts), facts);
        if (verdict.verdict === 'unknown') {
          expect(verdict.causes.length).toBeGreaterThan(0);
          return;
        }
        known += 1;
        expect(verdict.verdict).toBe(decide(policies, query).verdict);
      }),
      { numRuns: 300 },
    );
    expect(known).toBeGreaterThan(40);
  });

  it('[POL-03] name a change, and one that was tried has its effect', () => {
    let tried = 0;
    void fc.assert(
      fc.property(rules, call, (documents, query) => {
        const { policies, written } = compile(documents);
        const facts: CallFacts = { ...query, args: { all: query.args } };
        const explained = explainRules(policies, written, facts);
        const decision = decide(policies, query);
        const change = findChange(policies, written, query, explained, (parts) => principal(parts));
        if (query.target.kind === 'resource' && query.target.uri.includes(' ')) {
          expect(change).toBeUndefined();
          return;
        }
        expect(change?.to).toBe(decision.verdict === 'allow' ? 'deny' : 'allow');
        expect(change?.steps.length).toBeGreaterThan(0);
        if (change?.isTried === true) tried += 1;
        if (decision.verdict === 'deny') return;
        // Whatever an allow rests on can be taken away.
        expect(change?.isTried).toBe(true);
        const named = change?.steps.map((step) => step.rule);
        const rest = documents.filter(({ id }) => named?.includes(`main/${id}`) === false);
        expect(decide(compile(rest).policies, query).verdict).toBe('deny');
      }),
      { numRuns: 200 },
    );
    expect(tried).toBeGreaterThan(10);
  });
});

describe('the least change', () => {
  const ALLOW: RuleDocument = {
    id: 'read',
    effect: 'allow',
    who: { groups: ['eng'] },
    what: { tools: ['t_a'] },
    scopes: ['s1'],
    args: { owner: { const: 'acme' } },
  };

  it('is everything that the nearest rule lacks, in its clauses', () => {
    const { policies, written } = compile([ALLOW, { ...ALLOW, id: 'far', scopes: ['s1', 's2'] }]);
    const query = {
      principal: principal({ groups: ['ops'] }),
      upstream: 'github',
      target: { kind: 'tool', name: 't_a' } as const,
      args: { owner: 'other' },
      catalog: pins,
    };
    const facts: CallFacts = { ...query, args: { all: query.args } };
    const explained = explainRules(policies, written, facts);
    const change = findChange(policies, written, query, explained, (parts) => principal(parts));
    expect(change).toEqual({
      to: 'allow',
      isTried: true,
      steps: [
        { of: 'caller', rule: 'main/read', text: 'a group of "eng"' },
        { of: 'token', rule: 'main/read', text: 'the scope s1' },
        {
          of: 'arguments',
          rule: 'main/read',
          pointer: '/owner',
          text: 'must be the one allowed value; for example "acme"',
        },
      ],
    });
  });

  it('[POL-03] name an argument that the definition does not declare', () => {
    const { policies, written } = compile([
      { id: 'all', effect: 'allow', who: { anyone: true }, what: { tools: ['*'] } },
    ]);
    const query = fc
      .sample(call, { seed: 1, numRuns: 500 })
      .map((one) => ({
        ...one,
        target: { kind: 'tool', name: 't_a' } as const,
        args: { owner: 'acme', Owner: 'other' },
      }))
      .find((one) => decide(policies, one).verdict === 'deny');
    if (query === undefined) throw new Error('nothing was refused');
    const explained = explainRules(policies, written, { ...query, args: { all: query.args } });
    const change = findChange(policies, written, query, explained, (parts) => principal(parts));
    const facts: CallFacts = { ...query, args: { all: query.args } };
    expect(verdictOf(explained, facts).verdict).toBe('deny');
    expect(change?.steps).toContainEqual({
      of: 'arguments',
      pointer: '/Owner',
      text: 'the definition does not declare it',
    });
  });
});
