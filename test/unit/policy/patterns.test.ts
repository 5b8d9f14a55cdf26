// Patterns of policies: exact, globs, RE2; held against a slow reading of the same definition. Normal forms of URIs:
// what is the same resource, and what has more than one reading.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compilePattern,
  matchesPattern,
  normalizeUri,
  normalizeUriPattern,
  type PatternSpace,
} from '../../../src/policy/patterns.js';

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

describe('normal forms of URIs', () => {
  it('brings equal spellings together [P-07]', () => {
    const spellings: readonly (readonly [string, string])[] = [
      ['REPO://Acme/Read', 'repo://acme/Read'],
      ['repo://acme', 'repo://acme/'],
      ['repo://acme/%61%2D%7e', 'repo://acme/a-~'],
      ['repo://acme/a/./b/../c', 'repo://acme/a/c'],
      ['repo://acme/a/%2e%2E/b', 'repo://acme/b'],
      ['repo://acme/a/..', 'repo://acme/'],
      ['https://example.com:443/x', 'https://example.com/x'],
      ['https://example.com.:0443/x', 'https://example.com/x'],
      ['https://example.com:8443/x', 'https://example.com:8443/x'],
      ['file://localhost/etc/hosts', 'file:///etc/hosts'],
      ['repo://acme/%c3%a9', 'repo://acme/%C3%A9'],
      ['urn:isbn:0451450523', 'urn:isbn:0451450523'],
      ['repo://acme/x?q=%2f', 'repo://acme/x?q=%2F'],
    ];
    for (const [written, normal] of spellings) expect(normalizeUri(written), written).toBe(normal);
  });

  it('refuses what has more than one reading [P-07]', () => {
    const refused = [
      'https://user@example.com/',
      'https://example.com@evil.example/',
      'repo://acme/a%2fb',
      'repo://acme/a%5Cb',
      'repo://acme/a%00',
      'repo://acme/%0d%0a',
      'repo://acme/%252e%252e/x',
      'repo://acme/%c0%ae%c0%ae/x',
      'repo://acme/%zz',
      'repo://acme/../x',
      'repo://acme/a/../../x',
      'repo://acme/%2e%2e/x',
      'file:////etc/passwd',
      'repo://acme//x',
      'repo:\\\\acme\\x',
      'repo://acme/a b',
      'repo://acme/a\u0000',
      'repo://acme/é',
      'https:example.com/x',
      'https:/example.com/x',
      'https:///x',
      'http://0x7f.1/',
      'http://2130706433/',
      'http://0177.0.0.1/',
      'http://ex%61mple.com/',
      'note:a/../b',
      '/relative',
      '',
      'repo:',
      `repo://acme/${'a'.repeat(9000)}`,
    ];
    for (const uri of refused) expect(normalizeUri(uri), uri).toBeUndefined();
  });

  it('is stable: the normal form of a normal form is itself, and nothing ever climbs [P-07]', () => {
    const piece = fc.constantFrom('a', '..', '.', '%2e', '%2E%2e', 'B', '%41', '%2f', '', 'x%20y');
    const uri = fc
      .array(piece, { minLength: 1, maxLength: 7 })
      .map((pieces) => `Repo://Acme/${pieces.join('/')}`);
    void fc.assert(
      fc.property(uri, (written) => {
        const normal = normalizeUri(written);
        if (normal === undefined) return;
        expect(normalizeUri(normal)).toBe(normal);
        expect(normal).toMatch(/^repo:\/\/acme\//);
        expect(normal.split('/')).not.toContain('..');
        expect(normal).not.toMatch(/%2f|%41|\/\.(\/|$)/i);
      }),
    );
  });

  it('writes patterns as the URIs are written, or finds that none can match [P-07]', () => {
    expect(normalizeUriPattern('REPO://Acme/%61/**')).toBe('repo://acme/a/**');
    expect(normalizeUriPattern('repo://acme')).toBe('repo://acme/');
    expect(normalizeUriPattern('re:repo://.*')).toBe('re:repo://.*');
    expect(normalizeUriPattern('repo://acme/../**')).toBeUndefined();
    expect(normalizeUriPattern('readme')).toBeUndefined();
  });
});
