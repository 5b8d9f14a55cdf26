import { describe, expect, it } from 'vitest';
import { maskArguments } from '../../../src/approvals/masking.js';

describe('maskArguments', () => {
  it.each([
    ['{"a": 1.50, "b":"x"}', ['/b'], '{"a": 1.50, "b":"[masked]"}'],
    ['{"a":[{"k":"one"},{"k":"two"}]}', ['/a/1/k'], '{"a":[{"k":"one"},{"k":"[masked]"}]}'],
    ['{"a":{"b":{"c":1}}}', ['/a/b/c', '/a/b'], '{"a":{"b":"[masked]"}}'],
    ['{"a/b":1,"~":2}', ['/a~1b', '/~0'], '{"a/b":"[masked]","~":"[masked]"}'],
    ['{"0":"x","n":9007199254740993}', ['/0'], '{"0":"[masked]","n":9007199254740993}'],
    ['{"a":1}', ['/b', '/a/b', '/a/0'], '{"a":1}'],
    ['"all"', [''], '"[masked]"'],
  ])('%s with %j masked is %s', (args, sensitive, masked) => {
    expect(maskArguments({ args, sensitive })).toBe(masked);
  });
});
