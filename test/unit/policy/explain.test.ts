// Explanations say what decisions are: the same rules, and the same verdict from them; what is not known is never
// guessed.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide } from '../../../src/policy/decide.js';
import { type CallFacts, explainRules, verdictOf, writtenRules } from '../../../src/policy/explain.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { call, rules } from './generated.js';
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
        const rule = decision.rule === undefined ? {} : { rule: `${decision.policy}/${decision.rule}` };
        const { verdict: decided } = decision;
        expect(verdict).toEqual(
          decision.verdict === 'allow'
            ? { verdict: decided, ...rule }
            : { verdict: decided, reason: decision.reason, ...rule },
        );
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
});
