// The types of expressions: what could only fail or never hold with the pinned schema is found, and nothing else.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileCost, compileExpression, type Expression } from '../../../src/policy/cel.js';
import { kindsInSchema } from '../../../src/policy/cel-types.js';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { catalog, compiled, principal } from './samples.js';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    number: { type: 'integer' },
    flag: { type: 'boolean' },
    list: { type: 'array', items: { type: 'string' } },
    map: { type: 'object', properties: { deep: { type: 'number' } } },
    either: { type: ['string', 'number'] },
    maybe: { type: ['string', 'null'] },
    any: {},
    choice: { anyOf: [{ type: 'string' }, { type: 'number' }] },
  },
};

function expressionOf(text: string): Expression {
  const result = compileExpression(text);
  if (!result.ok) throw new Error(result.why);
  return result.expression;
}

const errorIn = (text: string) => expressionOf(text).typeError({ kindsAt: (path) => kindsInSchema(SCHEMA, path) });

describe('[P-55] the types of a condition', () => {
  it.each([
    ['args.number == "5"', '"==" compares with text, but args.number is a number'],
    ['"5" != args.number', '"!=" compares with a number, but its operand is text'],
    ['args.text > 5', '">" compares with a number, but args.text is text'],
    ['args.list < args.list', '"<" takes text or a number or true or false, but args.list is a list'],
    ['args.number.startsWith("5")', '"startsWith" takes text, but args.number is a number'],
    ['path.under(args.map, "a")', '"path.under" takes text, but args.map is a map'],
    ['url.isPublic(args.list)', '"url.isPublic" takes text, but args.list is a list'],
    ['args.flag.size() > 1', '"size" takes text or a list or a map, but args.flag is true or false'],
    ['"a" in args.text', '"in" takes a list or a map, but args.text is text'],
    ['!args.text', '"!" takes true or false, but args.text is text'],
    ['args.flag && args.number', '"&&" takes true or false, but args.number is a number'],
    ['args.number', 'the expression must give true or false, but gives a number'],
    ['args.map.deep == "a"', '"==" compares with text, but args.map.deep is a number'],
    ['args["number"] == "5"', '"==" compares with text, but args.number is a number'],
    ['args.either == true', '"==" compares with true or false, but args.either is text or a number'],
    ['has(args.number) && args.number == "5"', '"==" compares with text, but args.number is a number'],
    ['principal.groups == "eng"', '"==" compares with text, but principal.groups is a list'],
    ['"a" + 1 == "a1"', '"+" takes two operands of one type, but the first is text and the second is an int'],
    [
      'args.text + args.number == "a1"',
      '"+" takes two operands of one type, but args.text is text and args.number is a double',
    ],
    [
      'args.number * args.text.size() > 1.0',
      '"*" takes two operands of one type, but args.number is a double and the second is an int',
    ],
    ['args.number % 2.0 == 0.0', '"%" takes an int or a uint, but args.number is a double'],
    ['args.flag + args.flag == 2', '"+" takes text or a list or a number, but args.flag is true or false'],
    ['args.list - args.list == []', '"-" takes a number, but args.list is a list'],
    ['(args.text + "a") > 1', '">" compares with a number, but its operand is text'],
    ['1 / 0 > args.number', '1 / 0 always fails'],
    ['args.number > int("much")', 'int("much") always fails'],
    ['timestamp(args.text) < timestamp("tomorrow")', 'timestamp("tomorrow") always fails'],
    ['args.list.exists(x, x == string(duration("1 day")))', 'string(duration("1 day")) always fails'],
    ['"yes"', 'the expression must give true or false, but gives text'],
  ])('%s is an error', (text, why) => expect(errorIn(text)).toBe(why));

  it.each([
    'args.number == 5 && args.number < 5.5',
    'args.text == "a" || args.text.size() < 3',
    'args.text in ["a"] && "a" in args.list && "k" in args.map',
    'args.either == "a" || args.either == 1',
    'args.maybe == null || args.maybe.startsWith("a")',
    'args.text != null',
    'args.any == 1 || args.any == "a" || args.any',
    'args.choice > 1',
    'args.unknown == 1',
    'args.map.other == 1',
    'args.list.all(x, x.startsWith("a"))',
    'args.list.exists(x, x == 1)',
    'args.list[0] == 1',
    'anyArg(a, a.contains("x"))',
    'string(args.number) == "5" && int(args.text) == 5 && dyn(args.text) == 5',
    'args.flag ? args.number > 1.0 : args.text == "a"',
    'timestamp(args.text) < timestamp("2026-01-01T00:00:00Z")',
    'args.number + 1.0 > 2.0 && -args.number < 0.0',
    '.args.number == 5',
    'args.text + "b" == "ab" && args.list + ["a"] == ["a", "a"] && args.any + 1.0 > 2.0',
    'args.either + "a" == "ba" || args.either + 1.0 > 2.0',
    'int(args.number) % 2 == 0 && args.text.size() + 1 < 5 && args.number > args.text.size()',
    'timestamp(args.text) - timestamp("2026-01-01T00:00:00Z") < duration("1h") + duration("1m")',
    'args.number / 0.0 > 1.0 && 1 + 1 == 2 && "a" + "b" == "ab"',
    'has(principal.claims.tier) && principal.claims.tier == 1',
    'tool.annotations.destructiveHint && "eng" in principal.groups && principal.subject < "b"',
  ])('%s is none', (text) => expect(errorIn(text)).toBeUndefined());

  it('are no error where some arguments that the schema admits make it true, and others false', () => {
    const operand = fc.oneof(
      fc.constantFrom('args.text', 'args.number', 'args.flag', 'args.list', 'args.map', 'args.any'),
      fc.constantFrom('"a"', '5', '5.0', 'true', '["a"]', 'null', 'args.text.size()'),
    );
    const operator = fc.constantFrom('==', '!=', '<', '>=', 'in', '&&', '+', '-', '*', '%');
    const values = fc.record({
      text: fc.constantFrom('a', 'b', ''),
      number: fc.constantFrom(0, 5, 9),
      flag: fc.boolean(),
      list: fc.constantFrom([], ['a']),
      map: fc.constantFrom({}, { deep: 1 }),
      any: fc.constantFrom('a', 5, true, ['a']),
    });
    const sample = fc.sample(values, 60);
    const evaluate = (expression: Expression, args: JsonObject) =>
      expression.evaluate({
        ...{ principal: principal(), upstream: 'u', name: 't', annotations: {}, args },
        uri: undefined,
      });
    let flagged = 0;
    const property = fc.property(operand, operator, operand, (left, sign, right) => {
      const text = `${left} ${sign} ${right}`;
      const isCalculated = '+-*%'.includes(sign);
      const compiled = compileExpression(isCalculated ? `${text} == ${text}` : text);
      // Arguments are never combined with a literal that is no double.
      if (!compiled.ok) return;
      const { expression } = compiled;
      if (expression.typeError({ kindsAt: (path) => kindsInSchema(SCHEMA, path) }) === undefined) return;
      flagged += 1;
      const results = new Set(sample.map((args) => evaluate(expression, args as JsonObject)));
      expect(results.has('holds') && (isCalculated || results.has('fails'))).toBe(false);
    });
    expect(() => fc.assert(property, { numRuns: 400 })).not.toThrow();
    expect(flagged).toBeGreaterThan(20);
  });
});

describe('[P-55] a rule with types that do not fit', () => {
  const pins = catalog({
    tools: {
      a_one: { inputSchema: { type: 'object', properties: { n: { type: 'number' } } } },
      a_two: { inputSchema: { type: 'object', properties: { n: { type: 'string' } } } },
    },
    prompts: { p: { definition: { name: 'p', arguments: [{ name: 'n', required: true }] } } },
  });
  const found = (what: RuleDocument['what'], when: string) => {
    const rule = {
      id: 'r',
      effect: 'deny',
      who: { anyone: true },
      what: { upstreams: ['github'], ...what },
      when,
    } as RuleDocument;
    return compiled([rule], { pins: () => pins }).diagnostics.flatMap(({ severity, message }) =>
      message.includes('compares') ? [`${severity} ${message}`] : [],
    );
  };

  it('is an error for a tool that it names, and a warning where a glob names others too', () => {
    const when = 'has(args.n) && args.n == "5"';
    const message = '"==" compares with text, but args.n is a number, as pinned for the tool "a_one"';
    expect(found({ tools: ['a_one'] }, when)).toEqual([`error ${message}`]);
    expect(found({ tools: ['a_*'] }, when)).toEqual([`warning ${message}`]);
    expect(found({ tools: ['a_two'] }, when)).toEqual([]);
    expect(found({ prompts: ['p'] }, when)).toEqual([]);
    expect(found({ prompts: ['p'] }, 'args.n == 5')).toHaveLength(1);
  });

  it.each([
    'tool.name == "a_one" ? args.n == 5.0 : args.n == "5"',
    '(tool.name == "a_one" && args.n > 5.0) || (tool.name == "a_two" && args.n == "5")',
    '(tool.name != "a_two" || args.n == "5") && !(tool.name == "a_one" && args.n < 5.0)',
  ])('is none where the name of the tool decides: %s', (when) => {
    expect(found({ tools: ['a_one', 'a_two'] }, when)).toEqual([]);
    const swapped = when.replaceAll(/a_(one|two)/g, (_, n) => (n === 'one' ? 'a_two' : 'a_one'));
    expect(found({ tools: ['a_one', 'a_two'] }, swapped)).not.toEqual([]);
  });

  it('is found in the cost of a budget', () => {
    const compiledCost = compileCost('args.text');
    expect(compiledCost.ok && compiledCost.cost.typeError({ kindsAt: (path) => kindsInSchema(SCHEMA, path) })).toBe(
      'the expression must give a number, but gives text',
    );
  });
});
