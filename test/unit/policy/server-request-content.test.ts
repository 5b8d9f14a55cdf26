// What rules say of the content of server requests: hosts of links, context and tools of sampling.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RuleDocument, WhatDocument } from '../../../src/policy/compile/documents.js';
import { allowedServerRequestsFor, decideServerRequest } from '../../../src/policy/decide.js';
import { readServerRequestContent } from '../../../src/policy/server-request-content.js';
import type { JsonObject, ServerRequestName } from '../../../src/protocol/jsonrpc.js';
import { catalog, compiled, policiesOf, principal } from './samples.js';

const ADA = principal();

function rule(effect: RuleDocument['effect'], what: WhatDocument, id: string = effect) {
  return { id, effect, who: { anyone: true }, what } as RuleDocument;
}

function verdict(rules: readonly RuleDocument[], name: ServerRequestName, params: JsonObject | undefined) {
  const link = params?.['url'];
  const content =
    params === undefined
      ? undefined
      : readServerRequestContent(name, params, typeof link === 'string' ? link : undefined);
  return decideServerRequest(policiesOf(rules), {
    ...{ principal: ADA, upstream: 'github', catalog: catalog(), name, content },
  });
}

const isAllowed = (...asked: Parameters<typeof verdict>) => verdict(...asked).verdict === 'allow';

describe('[Q-03] the hosts of links', () => {
  const HOSTS = ['login.example.com', '*.sso.example.com', 'login.example.com:8443', '[2001:db8::1]'];
  const allowed = [rule('allow', { elicitation: { url: HOSTS } })];
  const may = (url: string, rules = allowed) => isAllowed(rules, 'elicitation/url', { url });

  it.each([
    'https://login.example.com/a?b#c',
    'https://login.example.com:443/',
    'https://login.example.com./',
    'https://LOGIN.example.com/',
    'https://a.sso.example.com/',
    'https://a.b.sso.example.com/',
    'https://login.example.com:8443/',
    'https://[2001:db8::1]/',
  ])('that a rule names are allowed: %s', (url) => expect(may(url)).toBe(true));

  it.each([
    'https://sso.example.com/',
    'https://evilsso.example.com/',
    'https://login.example.com.evil.example/',
    'https://login.example.com:8444/',
    'https://a.sso.example.com:8443/',
    'https://login.example.com@evil.example/',
    'https://evil.example/login.example.com',
    'https://[2001:db8::2]/',
    'https://login%2eexample.com/',
    'https://login.example.com\\@evil.example/',
    'https://login.exa\tmple.com/',
    'https://login.example.com../',
    '/login.example.com',
    'not a link',
  ])('that no rule names are refused: %s', (url) => expect(may(url)).toBe(false));

  it('are not known where another member differs from that of the link in case', () => {
    const params = { url: 'https://login.example.com/', URL: 'https://evil.example/' };
    expect(isAllowed(allowed, 'elicitation/url', params)).toBe(false);
    expect(isAllowed([rule('allow', { elicitation: ['url'] })], 'elicitation/url', params)).toBe(true);
  });

  it('are denied by a rule that names them, and where they cannot be read', () => {
    const rules = [
      rule('allow', { elicitation: ['form', 'url'] }),
      rule('deny', { elicitation: { url: ['*.evil.example'] } }),
    ];
    expect(may('https://good.example/', rules)).toBe(true);
    expect(may('https://a.evil.example/', rules)).toBe(false);
    expect(may('https://a.evil.example./', rules)).toBe(false);
    expect(may('https://a%2eevil.example/', rules)).toBe(false);
    expect(isAllowed(rules, 'elicitation/form', {})).toBe(true);
  });

  it('say nothing of forms, which the same map may name', () => {
    const [url, both] = [
      [rule('allow', { elicitation: { url: ['a.example'] } })],
      [rule('allow', { elicitation: { form: true, url: ['a.example'] } })],
    ];
    expect(isAllowed(url, 'elicitation/form', {})).toBe(false);
    expect(isAllowed(both, 'elicitation/form', {})).toBe(true);
    expect(allowedServerRequestsFor(policiesOf(both), ADA, 'github').elicitation).toEqual({
      form: true,
      url: true,
    });
  });

  it('are declared by a client that some rule lets receive links', () => {
    const denied = rule('deny', { elicitation: { url: ['evil.example'] } });
    const grants = allowedServerRequestsFor(policiesOf([...allowed, denied]), ADA, 'github');
    expect(grants.elicitation).toEqual({ form: false, url: true });
  });

  it.each([
    ['https://login.example.com/', 'login.example.com'],
    ['Login.Example.com', 'login.example.com'],
    ['login.example.com:443', 'login.example.com'],
    ['login.example.com.', 'login.example.com'],
    ['*.Sso.example.com', '*.sso.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['*', undefined],
    ['*.', undefined],
    ['a.*.example', undefined],
    ['login.example.com/a b', undefined],
    ['2001:db8::1', undefined],
  ])('are written as in a URL: %s', (host, suggestion) => {
    const { diagnostics } = compiled([rule('allow', { elicitation: { url: [host] } })]);
    expect(diagnostics).toMatchObject([
      {
        severity: 'error',
        path: ['rules', 0, 'what', 'elicitation', 'url', 0],
        ...(suggestion && { suggestion }),
      },
    ]);
    expect(diagnostics[0]?.suggestion).toBe(suggestion);
  });
});

describe('[Q-03] what sampling asks for', () => {
  const sampling = (document: WhatDocument['sampling'], effect: RuleDocument['effect'] = 'allow') =>
    rule(effect, { sampling: document as true });
  const ALL = rule('allow', { sampling: true }, 'all');
  const may = (rules: readonly RuleDocument[], params: JsonObject) => isAllowed(rules, 'sampling', params);
  const tools = (...names: readonly string[]) => ({ tools: names.map((name) => ({ name })) });

  it('of context is one of the values that a rule lists, and none where it says nothing', () => {
    const rules = [sampling({ includeContext: ['none'] })];
    expect(may(rules, {})).toBe(true);
    expect(may(rules, { includeContext: 'none' })).toBe(true);
    expect(may(rules, { includeContext: 'thisServer' })).toBe(false);
    const other = [sampling({ includeContext: ['thisServer'] })];
    expect(may(other, { includeContext: 'thisServer' })).toBe(true);
    expect(may(other, {})).toBe(false);
    const denied = [ALL, sampling({ includeContext: ['allServers'] }, 'deny')];
    expect(may(denied, { includeContext: 'thisServer' })).toBe(true);
    expect(may(denied, { includeContext: 'allServers' })).toBe(false);
  });

  it('of tools must be named in full by a grant, and in part by a deny', () => {
    const rules = [sampling({ tools: ['search', 'read_*'] })];
    expect(may(rules, {})).toBe(true);
    expect(may(rules, tools('search', 'read_a'))).toBe(true);
    expect(may(rules, tools('search', 'write'))).toBe(false);
    const none = [sampling({ tools: false })];
    expect(may(none, {})).toBe(true);
    expect(may(none, tools())).toBe(true);
    expect(may(none, tools('search'))).toBe(false);
    const denied = [ALL, sampling({ tools: ['write_*'] }, 'deny')];
    expect(may(denied, tools('read'))).toBe(true);
    expect(may(denied, {})).toBe(true);
    expect(may(denied, tools('read', 'write_a'))).toBe(false);
  });

  it('must meet all that one rule says, or all that another does', () => {
    const rules = [
      sampling({ includeContext: ['none'], tools: ['search'] }),
      { ...sampling({ includeContext: ['thisServer'], tools: false }), id: 'other' },
    ];
    expect(may(rules, tools('search'))).toBe(true);
    expect(may(rules, { includeContext: 'thisServer' })).toBe(true);
    expect(may(rules, { includeContext: 'thisServer', ...tools('search') })).toBe(false);
  });

  it.each<JsonObject>([
    { includeContext: 'everything' },
    { includeContext: null },
    { includeContext: ['none'] },
    { IncludeContext: 'allServers' },
    { tools: {} },
    { tools: null },
    { tools: ['search'] },
    { tools: [{ title: 'search' }] },
    { Tools: [{ name: 'write' }] },
    { tools: [{ name: 'search', Name: 'write' }] },
  ])('fits no grant and every deny where it cannot be read: %j', (params) => {
    expect(may([sampling({ includeContext: ['none'], tools: ['*'] })], params)).toBe(false);
    expect(may([ALL], params)).toBe(true);
    expect(may([ALL, sampling({ includeContext: ['allServers'] }, 'deny')], params)).toBe(false);
    expect(may([ALL, sampling({ tools: ['x'] }, 'deny')], params)).toBe(false);
  });

  it('may be declared as far as some request with it would be allowed', () => {
    const without = (...rules: readonly RuleDocument[]) =>
      allowedServerRequestsFor(policiesOf(rules), ADA, 'github').withoutSampling;
    expect(without(ALL)).toBeUndefined();
    expect(without(sampling({ tools: false }))).toEqual(['tools']);
    expect(without(sampling({ includeContext: ['none'] }))).toEqual(['context']);
    expect(without(sampling({ includeContext: ['none'], tools: ['a'] }))).toEqual(['context']);
    expect(without(ALL, sampling({ tools: ['*'] }, 'deny'))).toEqual(['tools']);
    expect(without(ALL, sampling({ tools: ['a'] }, 'deny'))).toBeUndefined();
    const scopes = sampling({ includeContext: ['thisServer', 'allServers'] }, 'deny');
    expect(without(ALL, scopes)).toEqual(['context']);
    expect(without(sampling({ tools: false }), { ...ALL, id: 'b' })).toBeUndefined();
  });

  it('is named by a rule that restricts', () => {
    const { diagnostics } = compiled([sampling({ tools: false }, 'deny')]);
    expect(diagnostics).toMatchObject([{ severity: 'error', path: ['rules', 0, 'what', 'sampling', 'tools'] }]);
  });
});

describe('[Q-03] rules about content', () => {
  const samplings = fc.constantFrom<NonNullable<WhatDocument['sampling']>>(
    true,
    { includeContext: ['none'] },
    { includeContext: ['thisServer', 'allServers'] },
    { tools: ['a'] },
    { tools: ['*'] },
    { includeContext: ['none', 'thisServer'], tools: ['b*'] },
  );
  const rules = fc
    .array(fc.tuple(fc.constantFrom('allow', 'allow', 'deny'), samplings), { maxLength: 4 })
    .map((all) => all.map(([effect, sampling], at) => rule(effect as RuleDocument['effect'], { sampling }, `r${at}`)));
  const requests = fc.record(
    {
      includeContext: fc.constantFrom('none', 'thisServer', 'allServers', 'other'),
      tools: fc.subarray(['a', 'b', 'bc', 'd']).map((names) => names.map((name) => ({ name }))),
    },
    { requiredKeys: [] },
  );
  const may = (written: readonly RuleDocument[], params: JsonObject | undefined) =>
    isAllowed(written, 'sampling', params);

  it('never grant by a deny, never take away by an allow, and allow nothing that may not be declared', () => {
    let allowed = 0;
    const property = fc.property(rules, samplings, requests, (written, sampling, params) => {
      const before = may(written, params);
      if (before) allowed += 1;
      const denied = may([...written, rule('deny', { sampling }, 'more')], params);
      expect(denied && !before).toBe(false);
      const more = may([...written, rule('allow', { sampling }, 'more')], params);
      expect(before && !more).toBe(false);
      const grants = allowedServerRequestsFor(policiesOf(written), ADA, 'github');
      const needs = [
        ...((params.includeContext ?? 'none') === 'none' ? [] : (['context'] as const)),
        ...((params.tools ?? []).length === 0 ? [] : (['tools'] as const)),
      ];
      const isDeclared = grants.sampling && !needs.some((one) => grants.withoutSampling?.includes(one) === true);
      // A value that no revision defines is nothing that a client declares.
      expect(before && !isDeclared && params.includeContext !== 'other').toBe(false);
    });
    expect(() => fc.assert(property, { numRuns: 500 })).not.toThrow();
    expect(allowed).toBeGreaterThan(50);
  });
});
