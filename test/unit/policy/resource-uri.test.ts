// One resource, one spelling: what is the same URI, and what has more than one reading.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normalizeUri, normalizeUriPattern } from '../../../src/policy/resource-uri.js';

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
