// Who may use what: a yes and a no hold for every call, and an "if" names the condition as it is written.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Access, accessTo } from '../../../src/policy/access.js';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { PolicyDocument, RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide } from '../../../src/policy/decide.js';
import { writtenRules } from '../../../src/policy/explain.js';
import type { Principal } from '../../../src/policy/principal.js';
import { call, rules } from './generated.js';
import { CONTEXT, catalog, document, principal } from './samples.js';

function compile(documents: readonly PolicyDocument[], context = CONTEXT) {
  const { policies, diagnostics } = compilePolicies(documents, context);
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  return { policies, written: writtenRules(documents) };
}

/** Every other rule without conditions, so that some calls are decided by who and what alone. */
function halfPlain(rule: RuleDocument, index: number): RuleDocument {
  const { id, effect, who, what } = rule;
  return index % 2 === 0 ? rule : ({ id, effect, who, what } as RuleDocument);
}

describe('[POL-11] access', () => {
  it('answers yes and no only where each call is decided so', () => {
    const seen = { yes: 0, no: 0, if: 0 };
    void fc.assert(
      fc.property(rules, call, fc.boolean(), (documents, query, isAnyone) => {
        const { policies, written } = compile([document(documents.map(halfPlain))]);
        const { groups, issuer } = query.principal;
        const known = isAnyone
          ? principal({ groups, issuer, subject: '', client: '', scopes: [], claims: {} })
          : query.principal;
        const found = accessTo(policies, written, { principal: known, isAnyone }, query);
        seen[found.access] += 1;
        const decision = decide(policies, query);
        if (found.access === 'no') expect(decision.verdict).toBe('deny');
        if (found.access === 'if') expect(found.rules.length).toBeGreaterThan(0);
        if (found.access !== 'yes' || (decision.verdict === 'deny' && decision.reason === 'arguments-invalid')) return;
        expect(decision).toMatchObject({ verdict: 'allow' });
        const binding = ['rate', 'budget', 'approval'];
        expect('obligations' in decision && decision.obligations.filter(({ kind }) => binding.includes(kind))).toEqual(
          [],
        );
      }),
      { numRuns: 100 },
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
  });

  const caller = (parts: Partial<Principal>) => principal({ subject: '', client: '', ...parts });
  const tool = (name: string) =>
    ({
      upstream: 'github',
      target: { kind: 'tool', name },
      catalog: catalog({ tools: { [name]: {} } }),
    }) as const;
  const ask = (written: readonly RuleDocument[], groups: readonly string[], name = 't_a'): Access => {
    const compiled = compile([document(written)]);
    const supposed = { principal: caller({ groups }), isAnyone: true };
    return accessTo(compiled.policies, compiled.written, supposed, tool(name));
  };
  const allow = (id: string, more: Partial<RuleDocument> = {}) =>
    ({ id, effect: 'allow', who: { groups: ['eng'] }, what: { tools: ['t_a'] }, ...more }) as RuleDocument;

  it('names the conditions of what may grant, refuse and ask as they are written', () => {
    expect(ask([allow('a')], ['eng'])).toEqual({
      access: 'yes',
      rules: [{ id: 'main/a', effect: 'allow', conditions: [] }],
    });
    expect(ask([allow('a')], [])).toEqual({ access: 'no', reason: 'no-matching-allow', rules: [] });
    const conditional = [
      allow('a', { scopes: ['repo'], args: { owner: { const: 'acme' } }, when: 'args.title == "x"' } as never),
      allow('b', { who: { subjects: ['ada'], groups: ['eng'] } }),
      { id: 'd', effect: 'deny', who: { anyone: true }, what: { tools: ['*'] }, when: 'args.title == "y"' } as never,
    ];
    expect(ask(conditional, ['eng'])).toEqual({
      access: 'if',
      rules: [
        {
          id: 'main/a',
          effect: 'allow',
          conditions: ['the token has the scope repo', 'args.owner: {"const":"acme"}', 'args.title == "x"'],
        },
        { id: 'main/b', effect: 'allow', conditions: ['subjects: ["ada"]'] },
        { id: 'main/d', effect: 'deny', conditions: ['args.title == "y"'] },
      ],
    });
    expect(ask([allow('a'), { ...allow('d'), effect: 'deny' } as RuleDocument], ['eng'])).toEqual({
      access: 'no',
      reason: 'denied-by-rule',
      rules: [{ id: 'main/d', effect: 'deny', conditions: [] }],
    });
  });
});
