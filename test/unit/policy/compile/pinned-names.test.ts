// Names by the globs that match them: the same ones as by comparing each.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PinnedNames } from '../../../../src/policy/compile/pinned-names.js';
import { compilePattern, matchesPattern } from '../../../../src/policy/patterns.js';

const text = (unit: fc.Arbitrary<string>) => fc.string({ unit, maxLength: 5 });
const letter = fc.constantFrom('a', 'b', '_', '\u{1f600}', '\ud83d', 'é');

describe('[P-05] the names that match a pattern', () => {
  it('are those that match it when compared one by one', () => {
    const patterns = fc.oneof(
      text(fc.oneof(letter, fc.constant('*'))),
      fc.constantFrom('re:a.*', 're:(a|b)*', '*', '**', 'a*', '*a'),
    );
    const property = fc.property(
      fc.array(text(letter), { maxLength: 30 }),
      fc.array(patterns, { minLength: 1, maxLength: 5 }),
      (names, written) => {
        const pinned = new PinnedNames(names);
        for (const one of written) {
          const compiled = compilePattern(one, 'name');
          if (!compiled.ok) throw new Error(compiled.why);
          const { pattern } = compiled;
          const expected = [...new Set(names)].filter((name) => matchesPattern(pattern, name));
          expect([...pinned.matching(pattern)].sort()).toEqual(expected.sort());
        }
      },
    );
    expect(() => fc.assert(property)).not.toThrow();
  });
});
