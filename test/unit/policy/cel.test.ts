// CEL in policies: what compiles, what it sees, and that every failure is a value.

import { describe, expect, it } from 'vitest';
import { compileExpression, type Expression } from '../../../src/policy/cel.js';
import type { ExpressionFacts } from '../../../src/policy/cel-language.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { principal } from './samples.js';

function facts(args: JsonObject, more: Partial<ExpressionFacts> = {}): ExpressionFacts {
  return {
    principal: principal({ groups: ['eng'], scopes: ['github:read'], claims: { level: 3 } }),
    upstream: 'github',
    name: 'get_issue',
    annotations: { readOnlyHint: true },
    args,
    uri: undefined,
    ...more,
  };
}

function evaluate(text: string, args: JsonObject = {}, more: Partial<ExpressionFacts> = {}): string {
  const result = compileExpression(text);
  if (!result.ok) throw new Error(result.why);
  return result.expression.evaluate(facts(args, more));
}

function compiledReads(text: string): Pick<Expression, 'reads'> {
  const result = compileExpression(text);
  if (!result.ok) throw new Error(result.why);
  return result.expression;
}

function errorOf(text: string): string {
  const result = compileExpression(text);
  return result.ok ? 'accepted' : `${result.why} (${result.suggestion ?? ''})`;
}

describe('evaluation', () => {
  it('sees arguments, principal, tool and the URI [P-40]', () => {
    expect(evaluate('args.title.size() < 5', { title: 'abc' })).toBe('holds');
    expect(evaluate('args.title.size() < 5', { title: 'abcdef' })).toBe('fails');
    expect(evaluate('"eng" in principal.groups && principal.claims.level == 3')).toBe('holds');
    expect(evaluate('tool.upstream == "github" && tool.annotations.readOnlyHint')).toBe('holds');
    expect(evaluate('uri.startsWith("repo://")', {}, { uri: 'repo://acme/' })).toBe('holds');
    expect(evaluate('args.list.all(x, x.n > 0.5)', { list: [{ n: 1 }, { n: 2 }] })).toBe('holds');
    expect(evaluate('args.name.matches("^[a-z]+$")', { name: 'abc' })).toBe('holds');
  });

  it('turns every failure into the value error [P-41]', () => {
    expect(evaluate('args.missing == 1')).toBe('error');
    expect(evaluate('args.title', { title: 'text' })).toBe('error');
    expect(evaluate('args.title < 5', { title: 'text' })).toBe('error');
    expect(evaluate('uri == "x"')).toBe('error');
    expect(evaluate('true', { big: 'x'.repeat(17_000) })).toBe('error');
    expect(evaluate('true', { big: '€'.repeat(6_000) })).toBe('error');
    expect(evaluate('true', { many: Array.from({ length: 2001 }, () => 1) })).toBe('error');
    expect(evaluate('has(args.missing)')).toBe('fails');
  });

  it('is not deceived by member names that mean something to the library [P-42]', () => {
    const wrapped = { $typeName: 'google.protobuf.BoolValue', value: true };
    expect(evaluate('args.flag', { flag: wrapped })).toBe('error');
    expect(evaluate('args.flag.value', { flag: wrapped })).toBe('holds');
    expect(evaluate('args.constructor.name == "Object"', { constructor: { name: 'Object' } })).toBe('holds');
    expect(evaluate('has(args.toString)')).toBe('fails');
    expect(evaluate('has(args.force)', { force: null })).toBe('holds');
    expect(evaluate('"force" in args', { force: null })).toBe('holds');
  });
});

describe('compilation', () => {
  it('finds unknown names, members and functions, and says what was meant [P-43]', () => {
    expect(errorOf('arg.title == "a"')).toBe('unknown name "arg" (args)');
    expect(errorOf('"a" in principal.group')).toBe('principal has no member "group" (groups)');
    expect(errorOf('args.t.startWith("a")')).toBe('unknown function "startWith" (startsWith)');
    expect(errorOf('tool == {}')).toMatch(/name a member of tool/);
    expect(errorOf('principal[args.x] == "a"')).toMatch(/name a member of principal/);
    expect(errorOf('args.title ==')).toMatch(/not valid CEL/);
    expect(errorOf('google.protobuf.Timestamp{} == args.x')).toMatch(/messages/);
    expect(errorOf('args.n + 1 == 2.0')).toMatch(/write 1.0/);
    expect(errorOf('args.replace("a", "b") == "b"')).toMatch(/unknown function/);
  });

  it('bounds the cost before anything runs [P-44]', () => {
    const nested = 'comprehensions (all, exists, map, filter) may not nest ()';
    expect(errorOf('args.a.all(x, x.all(y, y > 1.0))')).toBe(nested);
    expect(errorOf('args.a.map(x, x).all(y, y > 1.0)')).toBe(nested);
    expect(errorOf('args.a.all(x, x > 1.0) && args.b.exists(y, y > 1.0)')).toBe('accepted');
    expect(errorOf('args.a.all(x, x in args.a)')).toMatch(/may not read args/);
    expect(errorOf('args.a.all(x, args.t.size() > 3)')).toMatch(/may not read args/);
    expect(errorOf('args.a.all(x, x in principal.groups && x.size() < 9)')).toBe('accepted');
    expect(errorOf('args.t.matches(args.p)')).toMatch(/literal/);
    expect(errorOf('args.t.matches("(?=a)")')).toMatch(/RE2/);
    expect(errorOf(`args.t == "${'x'.repeat(2100)}"`)).toMatch(/longer/);
    expect(errorOf(`${'('.repeat(1000)}true${')'.repeat(1000)}`)).toMatch(/not valid CEL|nested/);
  });

  it('reads the text of every argument, under any name and at any depth [P-47]', () => {
    const args = { a: { b: ['x', { c: 'secret' }] }, n: 1.5, yes: true, none: null };
    expect(evaluate('anyArg(a, a == "secret")', args)).toBe('holds');
    expect(evaluate('anyArg(a, a.contains("other"))', args)).toBe('fails');
    expect(evaluate('anyArg(value, value == "1.5") && anyArg(v, v == "true")', args)).toBe('holds');
    expect(evaluate('anyArg(a, a == "null" || a == "c")', args)).toBe('fails');
    expect(evaluate('anyArg(a, true)', {})).toBe('fails');
    expect(evaluate('!anyArg(a, a.contains("://") && !url.isPublic(a))', { u: 'http://10.0.0.1/' })).toBe('fails');
    expect(evaluate('anyArg(a, a.contains("x"))', { big: 'x'.repeat(17_000) })).toBe('error');
    expect(errorOf('args.l.all(x, anyArg(a, a == x))')).toMatch(/may not nest/);
    expect(errorOf('anyArg(a, a == args.x && a.contains(args.y))')).toMatch(/may not read args/);
    expect(errorOf('anyArg("a", true)')).toMatch(/anyArg takes a name/);
    expect(errorOf('anyArg(a)')).toMatch(/anyArg takes a name/);
    expect(errorOf('texts.exists(a, true)')).toMatch(/unknown name/);
    const { reads } = compiledReads('anyArg(a, a == "x")');
    expect(reads).toMatchObject({ argumentPaths: [], readsAnyArgument: true });
  });

  it('has functions for paths and URLs, whatever a local variable is called [P-46]', () => {
    const args = { p: 'reports/../x', u: 'https://user@Example.com./' };
    expect(evaluate('path.under(args.p, "reports/")', args)).toBe('fails');
    expect(evaluate('url.host(args.u) == "example.com" && url.isPublic(args.u)', args)).toBe('holds');
    expect(evaluate('url.host(args.p) == "x"', args)).toBe('error');
    const unclear = { p: 'x/%2e%2e/secrets/key', u: 'http:example.com' };
    for (const condition of ['path.under(args.p, "secrets/")', 'url.isPublic(args.u)'])
      for (const negation of ['', '!']) expect(evaluate(`${negation}${condition}`, unclear)).toBe('error');
    expect(evaluate('path.under(args.n, "x")', { n: 1 })).toBe('error');
    expect(evaluate('args.l.all(path, path.under(path, "x"))', { l: ['x/a', 'x/b'] })).toBe('holds');
    expect(errorOf('path.unter(args.p, "x")')).toBe('unknown function "path.unter" (path.under)');
    expect(errorOf('path == "x"')).toMatch(/unknown name "path"/);
    expect(compiledReads('path.under(args.p, "x")').reads.argumentPaths).toEqual([['p']]);
  });

  it('reports what is read, and what is read without asking first [P-45]', () => {
    const result = compileExpression(
      'has(args.a) && args.a.b["c"] == 1 && "d" in args && args.d > 1 && args.e[0].f == 2',
    );
    if (!result.ok) throw new Error(result.why);
    const { reads } = result.expression;
    expect(reads.argumentPaths).toContainEqual(['a', 'b', 'c']);
    expect(reads.argumentPaths).toContainEqual(['e']);
    expect(reads.unguarded).toEqual(['e']);
    expect([...reads.toolMembers]).toEqual([]);
    for (const text of ['tool.annotations.x', 'tool["annotations"].x', 'has(.tool.annotations.x)']) {
      const read = compileExpression(text);
      expect(read.ok && [...read.expression.reads.toolMembers], text).toEqual(['annotations']);
    }
    const caller = compiledReads(
      'principal.claims["tier"].x == tool.name && principal.groups.exists(g, g == "a")',
    ).reads;
    expect(caller.principalPaths).toEqual([['claims', 'tier', 'x'], ['groups']]);
    expect([...caller.toolMembers]).toEqual(['name']);
  });
});

describe('the terms of an expression', () => {
  function termsOf(text: string) {
    const result = compileExpression(text);
    if (!result.ok) throw new Error(result.why);
    return result.expression.terms;
  }

  it.each([
    ['args.a == 1.0', ['args.a == 1.0']],
    [
      '(has(args.a) && (args.b || args.c)) && "a && b" == args.t',
      ['has(args.a)', 'args.b || args.c', '"a && b" == args.t'],
    ],
    ['args.a ? args.b && args.c : true', ['args.a ? args.b && args.c : true']],
    ['anyArg(a, a == "&&") && args.l.all(x, x > 1.0)', ['anyArg(a, a == "&&")', 'args.l.all(x, x > 1.0)']],
  ])('are what && joins, whatever stands in texts and brackets: %s', (text, terms) => {
    expect(termsOf(text).map((term) => term.text())).toEqual(terms);
  });

  it('read each for itself', () => {
    const reads = termsOf('principal.subject == "a" && args.b == tool.name').map((term) => term.reads);
    expect(reads.map(({ argumentPaths }) => argumentPaths)).toEqual([[], [['b']]]);
    expect(reads.map(({ principalPaths }) => principalPaths)).toEqual([[['subject']], []]);
  });
});
