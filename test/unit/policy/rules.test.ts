// Callers whose groups or claims their token leaves to another source: what grants does not match them,
// what restricts does, and an expression that reads them is an error.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileExpression } from '../../../src/policy/cel.js';
import type { WhoDocument } from '../../../src/policy/compile/documents.js';
import { compileWho } from '../../../src/policy/rules.js';
import { principal } from './samples.js';

const UNKNOWN = principal({ areGroupsUnknown: true });
const ELSEWHERE = principal({ claims: { _claim_names: { dept: 'src1' } } });
const EFFECTS = ['allow', 'deny', 'require'] as const;

const matches = (who: WhoDocument, caller = UNKNOWN) => EFFECTS.filter((effect) => compileWho(who, effect)(caller));

describe('[P-16] a caller for whom somebody acts', () => {
  const chain = (...actors: readonly { issuer?: string; subject: string }[]) =>
    principal({ issuerUrl: 'https://idp.example.com', actors });

  it('is matched by the current actor, and by no earlier one', () => {
    const who = { actors: ['agent'] };
    expect(matches(who, chain({ subject: 'agent' }, { subject: 'first' }))).toEqual([...EFFECTS]);
    expect(matches(who, chain({ subject: 'other' }, { subject: 'agent' }))).toEqual([]);
    expect(matches(who, chain())).toEqual([]);
    expect(matches({ ...who, subjects: ['bob'] }, chain({ subject: 'agent' }))).toEqual([]);
  });

  it('is granted nothing through an actor of another issuer with that name', () => {
    const [own, foreign] = ['https://idp.example.com', 'https://other.example.com'].map((issuer) =>
      chain({ subject: 'agent', issuer }),
    );
    expect(matches({ actors: ['agent'] }, own)).toEqual([...EFFECTS]);
    expect(matches({ actors: ['agent'] }, foreign)).toEqual(['deny', 'require']);
  });
});

describe('[TOK-09] a caller whose groups are unknown', () => {
  it('is in no group that grants, and in every group that restricts', () => {
    expect(matches({ groups: ['eng'] })).toEqual(['deny', 'require']);
    expect(matches({ groups: ['eng'], subjects: ['ada'] })).toEqual(['deny', 'require']);
    expect(matches({ groups: ['eng'], subjects: ['bob'] })).toEqual([]);
    expect(matches({ anyone: true })).toEqual([...EFFECTS]);
  });

  it('has a claim that is elsewhere in the same way, and one that is there as it is', () => {
    expect(matches({ claims: { dept: ['x'] } }, ELSEWHERE)).toEqual(['deny', 'require']);
    expect(matches({ claims: { other: ['x'] } }, ELSEWHERE)).toEqual([]);
    const both = principal({ claims: { _claim_names: { dept: 'src1' }, dept: 'y' } });
    expect(matches({ claims: { dept: ['x'] } }, both)).toEqual([]);
    const odd = principal({ claims: { _claim_names: 'dept' } });
    expect(matches({ claims: { dept: ['x'] } }, odd)).toEqual([]);
  });

  it.each(['"eng" in principal.groups', '!("eng" in principal.groups)', 'principal.groups.size() == 0'])(
    'makes an error of an expression that reads them: %s',
    (text) => {
      const compiled = compileExpression(text);
      if (!compiled.ok) throw new Error(compiled.why);
      const facts = { upstream: 'u', name: 't', annotations: {}, args: {}, uri: undefined };
      expect(compiled.expression.evaluate({ ...facts, principal: UNKNOWN })).toBe('error');
    },
  );

  it('never has more rights, nor fewer restrictions, than with any groups it may have', () => {
    const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 });
    fc.assert(
      fc.property(names, fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }), (has, named) => {
        const known = matches({ groups: named }, principal({ groups: has }));
        const unknown = matches({ groups: named });
        if (unknown.includes('allow')) expect(known).toContain('allow');
        for (const effect of ['deny', 'require'] as const) {
          if (known.includes(effect)) expect(unknown).toContain(effect);
        }
      }),
    );
  });
});
