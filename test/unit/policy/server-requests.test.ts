// What servers may ask of a caller: decided by the same rules, and all kinds of them.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { allowedServerRequestsFor, decideServerRequest, mayShowApps } from '../../../src/policy/decide.js';
import type { ServerRequestName } from '../../../src/protocol/jsonrpc.js';
import { catalog, compiled, policiesOf, principal } from './samples.js';

const SERVER_REQUEST_NAMES = ['sampling', 'elicitation/form', 'elicitation/url', 'roots'] as const;
const ALL = { sampling: true, elicitation: ['form', 'url'], roots: true } as const;
const ANYONE = { anyone: true } as const;
const ADA = principal();

function allow(what: RuleDocument['what'], more: object = {}): RuleDocument {
  return { id: 'a', effect: 'allow', who: ANYONE, what, ...more } as RuleDocument;
}

function deny(what: RuleDocument['what'], more: object = {}): RuleDocument {
  return { id: 'd', effect: 'deny', who: ANYONE, what, ...more } as RuleDocument;
}

function granted(rules: readonly RuleDocument[], caller = ADA): readonly ServerRequestName[] {
  const policies = policiesOf(rules);
  return SERVER_REQUEST_NAMES.filter(
    (name) =>
      decideServerRequest(policies, {
        principal: caller,
        upstream: 'github',
        catalog: catalog(),
        name,
      }).verdict === 'allow',
  );
}

describe('[Q-01] questions', () => {
  test('are granted by nothing but a rule that names them', () => {
    expect(granted([])).toEqual([]);
    expect(granted([allow({ tools: ['*'], resources: ['**'], prompts: ['*'] })])).toEqual([]);
    expect(granted([allow({ sampling: true })])).toEqual(['sampling']);
    expect(granted([allow({ elicitation: ['url'] })])).toEqual(['elicitation/url']);
    expect(granted([allow({ roots: true, upstreams: ['mail'] })])).toEqual([]);
    expect(granted([allow(ALL)])).toEqual([...SERVER_REQUEST_NAMES]);
  });

  test('are taken away by a deny, one by one', () => {
    expect(granted([allow(ALL), deny({ elicitation: ['form'] })])).toEqual(['sampling', 'elicitation/url', 'roots']);
  });

  test('need the scopes and the conditions of their rule', () => {
    expect(granted([allow(ALL, { scopes: ['ask'] })])).toEqual([]);
    const caller = principal({ scopes: ['ask'] });
    expect(granted([allow(ALL, { scopes: ['ask'] })], caller)).toHaveLength(4);
    expect(granted([allow(ALL, { when: 'principal.subject == "bob"' })])).toEqual([]);
    expect(granted([allow(ALL, { when: 'principal.subject == "ada"' })])).toHaveLength(4);
    // An error of a deny rule denies (docs/contract.md, law 5).
    const failing = deny({ roots: true }, { when: 'principal.claims.level > 3' });
    expect(granted([allow(ALL), failing])).toEqual(['sampling', 'elicitation/form', 'elicitation/url']);
  });

  test('stop where the upstream is stopped', () => {
    const policies = policiesOf([allow(ALL)]);
    const stopped = catalog({ isStopped: true });
    const asked = { principal: ADA, upstream: 'github', catalog: stopped } as const;
    expect(decideServerRequest(policies, { ...asked, name: 'sampling' })).toMatchObject({
      verdict: 'deny',
      reason: 'tool-changed',
    });
  });

  test('owe the limits and profiles of their rules', () => {
    const limits = { rate: { count: 1, windowMs: 1000 }, per: 'subject' };
    const strict = {
      id: 'r',
      effect: 'require',
      who: ANYONE,
      what: { sampling: true },
      inspect: 'careful',
    } as RuleDocument;
    const policies = policiesOf([allow(ALL, { limits }), strict]);
    const asked = { principal: ADA, upstream: 'github', catalog: catalog() } as const;
    const decision = decideServerRequest(policies, { ...asked, name: 'sampling' });
    expect(decision.verdict === 'allow' && decision.obligations.map(({ kind }) => kind)).toEqual(['rate', 'inspect']);
  });

  test('have no arguments: a rule for them alone may not read any', () => {
    const { diagnostics } = compiled([allow(ALL, { args: { owner: { const: 'acme' } } })]);
    expect(diagnostics).toMatchObject([{ severity: 'error', path: ['rules', 0, 'args'] }]);
    const capturing = { id: 'r', effect: 'require', who: { anyone: true }, what: ALL } as const;
    const captured = compiled([{ ...capturing, audit: { capture: ['/owner'] } }]);
    expect(captured.diagnostics).toMatchObject([{ severity: 'error', path: ['rules', 0, 'audit', 'capture'] }]);
    const mixed = compiled([allow({ ...ALL, tools: ['*'] }, { args: { a: true } })]);
    expect(mixed.diagnostics.map(({ severity }) => severity)).not.toContain('error');
  });

  test('are told to admission as one value that says what decisions say', () => {
    const what = fc.record(
      {
        sampling: fc.constant(true as const),
        elicitation: fc.subarray(['form', 'url'] as const, { minLength: 1 }),
        roots: fc.constant(true as const),
      },
      { requiredKeys: [] },
    );
    const property = fc.property(fc.array(fc.tuple(fc.boolean(), what), { maxLength: 5 }), (written) => {
      const rules = written
        .filter(([, named]) => Object.keys(named).length > 0)
        .map(([isDeny, named], index) => {
          const rule = isDeny ? deny(named) : allow(named);
          return { ...rule, id: `r${index}` };
        });
      const grants = allowedServerRequestsFor(policiesOf(rules), ADA, 'github');
      const named = granted(rules);
      expect(grants).toEqual({
        sampling: named.includes('sampling'),
        elicitation: {
          form: named.includes('elicitation/form'),
          url: named.includes('elicitation/url'),
        },
        roots: named.includes('roots'),
      });
    });
    expect(() => fc.assert(property)).not.toThrow();
  });
});

describe('[APP-06] apps', () => {
  const APP = 'ui://weather/view.html';
  const pinned = {
    upstream: 'github',
    mode: 'strict',
    names: () => ['ui://a/b.html', APP],
  } as const;
  const mayShow = (rules: readonly RuleDocument[], names = pinned.names): boolean =>
    mayShowApps(policiesOf(rules), ADA, { ...pinned, names });

  test('are shown to whoever may read one that stands in the lock file', () => {
    expect(mayShow([])).toBe(false);
    expect(mayShow([allow({ tools: ['*'] })])).toBe(false);
    expect(mayShow([allow({ resources: ['ui://other/**'] })])).toBe(false);
    expect(mayShow([allow({ resources: [APP] })])).toBe(true);
    expect(mayShow([allow({ resources: ['**'] })])).toBe(true);
    expect(mayShow([allow({ resources: ['**'] })], () => [])).toBe(false);
  });

  test('are taken away by a deny', () => {
    const all = allow({ resources: ['**'] });
    expect(mayShow([all, deny({ resources: ['ui://**'] })])).toBe(false);
    expect(mayShow([all, deny({ resources: [APP] })])).toBe(true);
  });

  test('are shown without pinning: then the rules of each URI decide alone', () => {
    const catalogOff = { ...pinned, mode: 'off', names: () => [] } as const;
    expect(mayShowApps(policiesOf([]), ADA, catalogOff)).toBe(true);
  });
});
