// Patterns of policies: exact, globs, RE2; held against a slow reading of the same definition.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePattern, matchesPattern, type PatternSpace } from '../../../src/policy/patterns.js';

function matches(text: string, candidate: string, space: PatternSpace = 'name'): boolean {
  const result = compilePattern(text, space);
  if (!result.ok) throw new Error(result.why);
  return matchesPattern(result.pattern, candidate);
}

/** The definition, tried out in every way. Exponential: for short texts only. */
function matchesSlowly(glob: string, text: string, space: PatternSpace): boolean {
  const star = /^\*+/.exec(glob)?.[0];
  if (star === undefined) {
    if (glob === '') return text === '';
    return text !== '' && glob[0] === text[0] && matchesSlowly(glob.slice(1), text.slice(1), space);
  }
  for (let length = 0; length <= text.length; length++) {
    if (space === 'path' && star.length === 1 && text.slice(0, length).includes('/')) return false;
    if (matchesSlowly(glob.slice(star.length), text.slice(length), space)) return true;
  }
  return false;
}

describe('patterns', () => {
  it('takes strings without stars as exact, case and all [P-06]', () => {
    expect(matches('get_issue', 'get_issue')).toBe(true);
    expect(matches('get_issue', 'Get_issue')).toBe(false);
    expect(matches('get.issue', 'get_issue')).toBe(false);
    expect(matches('[a-z]?', 'b')).toBe(false);
  });

  it('matches globs wholly, and * within a segment of paths only [P-06]', () => {
    expect(matches('list_*', 'list_')).toBe(true);
    expect(matches('list_*', 'xlist_a')).toBe(false);
    expect(matches('*', 'a/b')).toBe(true);
    expect(matches('repo://acme/*', 'repo://acme/a', 'path')).toBe(true);
    expect(matches('repo://acme/*', 'repo://acme/a/b', 'path')).toBe(false);
    expect(matches('repo://acme/**', 'repo://acme/a/b', 'path')).toBe(true);
    expect(matches('repo://*/x/**/z', 'repo://a/x/b/c/z', 'path')).toBe(true);
    expect(matches('repo://acme/**', 'repo://acme', 'path')).toBe(false);
    expect(matches('a*a', 'a', 'name')).toBe(false);
  });

  it('agrees with the definition for every glob and text [P-06]', () => {
    const letters = fc.constantFrom('a', 'b', '/', '*', '**');
    const glob = fc.array(letters, { maxLength: 8 }).map((parts) => parts.join(''));
    const text = fc.array(fc.constantFrom('a', 'b', '/'), { maxLength: 9 }).map((p) => p.join(''));
    const space = fc.constantFrom<PatternSpace>('name', 'path');
    void fc.assert(
      fc.property(glob, text, space, (pattern, candidate, where) => {
        expect(matches(pattern, candidate, where)).toBe(matchesSlowly(pattern, candidate, where));
      }),
      { numRuns: 2000 },
    );
  });

  it('anchors re: patterns and refuses what is not RE2 [P-06]', () => {
    expect(matches('re:get|list', 'get')).toBe(true);
    expect(matches('re:get|list', 'getx')).toBe(false);
    expect(matches('re:get|list', 'xlist')).toBe(false);
    expect(matches('re:(a|aa)+', `${'a'.repeat(5000)}!`)).toBe(false);
    expect(compilePattern('re:(?=a)', 'name').ok).toBe(false);
    expect(compilePattern('re:(', 'name').ok).toBe(false);
    expect(compilePattern(`${'*a'.repeat(300)}`, 'name').ok).toBe(false);
  });
});
