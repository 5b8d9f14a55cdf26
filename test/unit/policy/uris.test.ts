// URIs of resources: what is one, how it is written in normal form, which readings it has, and that no spelling takes it
// past a rule.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide } from '../../../src/policy/decide.js';
import { normalizeUri, normalizeUriPattern, readUri } from '../../../src/policy/uris.js';
import { catalog, policiesOf, principal } from './samples.js';

const CALLER = principal({ groups: ['eng'] });
const CATALOG = catalog({});

type Written = { readonly allow: readonly string[]; readonly deny?: readonly string[] };

function rulesOf({ allow, deny = [] }: Written, when?: string): readonly RuleDocument[] {
  const condition = when === undefined ? {} : { when };
  return [
    { id: 'yes', effect: 'allow', who: { anyone: true }, what: { resources: allow } },
    ...(deny.length === 0
      ? []
      : [
          {
            id: 'no',
            effect: 'deny' as const,
            who: { anyone: true as const },
            what: { resources: deny },
            ...condition,
          },
        ]),
  ];
}

function verdictOf(uri: string, written: Written, when?: string): string {
  const policies = policiesOf(rulesOf(written, when));
  return decide(policies, {
    principal: CALLER,
    upstream: 'github',
    target: { kind: 'resource', uri },
    args: {},
    catalog: CATALOG,
  }).verdict;
}

/** What RFC 3986 calls a URI. */
const URIS: readonly string[] = [
  'postgres://u@h/db',
  'postgres://user:pass@db.example:5432/name?sslmode=require',
  'postgres://%2Fvar%2Frun%2Fpg/db',
  'note:x',
  'note:',
  'note:?draft',
  'note://',
  'note:///x',
  'note:/x',
  'note:a/../b',
  'urn:isbn:0451450523',
  'mailto:a@b.example',
  'tel:+1-816-555-1212',
  'news:comp.infosystems.www.servers.unix',
  'data:text/plain;base64,QQ==',
  'git+ssh://host/path.git',
  'x-a.b+c:thing',
  'ldap://[2001:db8::7]/c=GB?objectClass?one',
  'http://[::1]:8080/x',
  'http://[v1.fe80:a]/x',
  'https:example.com/x',
  'https:/example.com/x',
  'https:///x',
  'http://0x7f.1/',
  'http://2130706433/',
  'http://ex%61mple.com/',
  'https://user@example.com/',
  'file:////server/share',
  'file:etc',
  'x://host:/',
  'x://@host/',
  'x://:80/',
  'repo://acme//x',
  'repo://acme/x//',
  'repo://acme/a%2fb',
  'repo://acme/a%5Cb',
  'repo://acme/a%00b',
  'repo://acme/%0d%0a',
  'repo://acme/%FF%20%7F',
  'repo://acme/%c0%ae%c0%ae/x',
  'repo://acme/%252e%252e/x',
  'repo://acme/100%25',
  'repo://acme/../x',
  'repo://acme/a/../../x',
  'repo://acme/%2e%2e/x',
  'repo://acme/x;v=1,2/(y)!$&=@:',
];

const NO_URIS: readonly string[] = [
  'repo://acme/%zz',
  'repo://acme/%2',
  'repo:\\\\acme\\x',
  'repo://acme/a b',
  'repo://acme/a\u0000',
  'repo://acme/é',
  'repo://a@b@c/',
  'repo://host:port/',
  '1x:y',
  '/relative',
  'relative',
  '',
  `repo://acme/${'a'.repeat(9000)}`,
  `repo://acme/%${'25'.repeat(200)}2f`,
];

describe('what is a URI', () => {
  it.each(URIS)('%s is read under a pattern that covers everything', (uri) => {
    expect(readUri(uri)).toBeDefined();
    expect(verdictOf(uri, { allow: ['**', '**#**'] })).toBe('allow');
  });

  it.each(NO_URIS)('%s is none', (uri) => {
    expect(readUri(uri)).toBeUndefined();
    expect(verdictOf(uri, { allow: ['**'] })).toBe('deny');
  });

  it.each(URIS)('%s is in normal form once it was brought there', (uri) => {
    const normal = normalizeUri(uri) ?? '';
    expect(normalizeUri(normal)).toBe(normal);
  });
});

describe('normal forms of URIs', () => {
  it.each([
    ['REPO://Acme/Read', 'repo://acme/Read'],
    ['repo://acme', 'repo://acme/'],
    ['repo://acme/%61%2D%7e', 'repo://acme/a-~'],
    ['repo://acme/a/./b/../c', 'repo://acme/a/c'],
    ['repo://acme/a/%2e%2E/b', 'repo://acme/b'],
    ['repo://acme/a/..', 'repo://acme/'],
    ['https://example.com:443/x', 'https://example.com/x'],
    ['https://example.com.:0443/x', 'https://example.com/x'],
    ['https://example.com:8443/x', 'https://example.com:8443/x'],
    ['https://User@EXAMPLE.com/x', 'https://User@example.com/x'],
    ['file://localhost/etc/hosts', 'file:///etc/hosts'],
    ['file:/etc/hosts', 'file:///etc/hosts'],
    ['repo://acme/%c3%a9', 'repo://acme/%C3%A9'],
    ['URN:isbn:0451450523', 'urn:isbn:0451450523'],
    ['repo://acme/x?q=%2f', 'repo://acme/x?q=%2F'],
    ['note:/a/..//b', 'note:/.//b'],
  ])('%s is %s', (written, normal) => {
    expect(normalizeUri(written)).toBe(normal);
  });
});

describe('patterns of resources', () => {
  it.each([
    ['REPO://Acme/%61/**', ['repo://acme/a/**']],
    ['repo://acme', ['repo://acme/']],
    ['repo://*', ['repo://*/']],
    ['NOTE:*', ['note:*']],
    ['https://Example.com:443/**', ['https://example.com/**']],
    ['postgres://User@Host:*/**', ['postgres://User@host:*/**']],
    ['re:repo://.*', ['re:repo://.*']],
    ['x://h/a%2fb/**', ['x://h/a%2Fb/**', 'x://h/a/b/**']],
    ['repo://acme/../**', undefined],
    ['readme', undefined],
  ])('%s is written %j', (pattern, normal) => {
    expect(normalizeUriPattern(pattern)).toEqual(normal);
  });

  it.each([
    ['postgres://u@h/db', 'postgres://u@h/**', 'allow'],
    ['postgres://u@h/db', 'postgres://u@h/db', 'allow'],
    ['postgres://u@h/db', 'postgres://*@h/**', 'allow'],
    ['postgres://u@h/db', 'postgres://**', 'allow'],
    ['postgres://u@h/db', 'postgres://other@h/**', 'deny'],
    ['postgres://u@h/db', 'postgres://h/**', 'deny'],
    ['https://api.example:x@evil.example/', 'https://api.example:*/**', 'deny'],
    ['https://api.example@evil.example/', 'https://api.example*/**', 'deny'],
    ['https://api.example%2f@evil.example/', 'https://api.example/**', 'deny'],
    ['note:x', 'note:*', 'allow'],
    ['NOTE:x', 'note:x', 'allow'],
    ['note:x', 'note://**', 'deny'],
    ['urn:isbn:1', 'urn:isbn:*', 'allow'],
    ['mailto:a@b.example', 'mailto:*@b.example', 'allow'],
    ['note://hello', 'note://*', 'allow'],
    ['repo://acme/a%2fb', 'repo://acme/**', 'deny'],
    ['repo://acme/a%2fb', 'repo://**', 'allow'],
    ['repo://acme/a%2fb', 'repo://acme/*%2f*', 'allow'],
    ['repo://acme/a%2fb/%2e%2e/c', 'repo://acme/**', 'deny'],
    ['repo://acme/a?b=%2fc', 'repo://acme/**', 'allow'],
    ['repo://acme/a%252fb', 'repo://acme/**', 'deny'],
    ['repo://acme/a%2fb', 'repo://acme/a%2Fb', 'allow'],
    ['repo://acme/a/b', 'repo://acme/a%2Fb', 'deny'],
    ['repo://acme/a%2f..%2f..%2fb', 'repo://acme/a*/**', 'deny'],
    ['repo://acme//x', 'repo://acme/**', 'deny'],
    ['repo://acme//x', 'repo://acme//**', 'allow'],
    ['repo://acme//x', 'repo:**', 'allow'],
    ['repo://acme/x/', 'repo://acme/**', 'allow'],
    ['repo://acme/x#y', 'repo://acme/**', 'deny'],
    ['repo://acme/x#', 'repo://acme/**', 'deny'],
    ['repo://acme/x#y', '**', 'deny'],
    ['repo://acme/x#y', '**#**', 'allow'],
    ['repo://acme/x#y', 'repo://acme/x#y', 'allow'],
    ['repo://u@acme//x#y', '**#**', 'allow'],
    ['repo://acme/x%23y', 'repo://acme/**', 'allow'],
    ['repo://acme/../x', 'repo://acme/**', 'deny'],
    ['repo://acme/../x', 'repo://**', 'allow'],
    ['http://0x7f.1/', 'http://0x7f.1/', 'allow'],
    ['http://0x7f.1/', 'http://0x*/', 'deny'],
    ['http://0x7f.1/', 'http://**', 'allow'],
    ['ui://widget', 'ui://widget', 'deny'],
  ])('%s under %s: %s', (uri, pattern, verdict) => {
    expect(verdictOf(uri, { allow: [pattern] })).toBe(verdict);
  });

  it.each([
    ['repo://acme/secret/x', 'repo://acme/secret/**'],
    ['REPO://ACME/secret/x', 'repo://acme/secret/**'],
    ['repo://acme/s%65cret/x', 'repo://acme/secret/**'],
    ['repo://acme/s%2565cret/x', 'repo://acme/secret/**'],
    ['repo://acme//secret/x', 'repo://acme/secret/**'],
    ['repo://acme/secret//x', 'repo://acme/secret/x'],
    ['repo://acme/secret%2fx', 'repo://acme/secret/**'],
    ['repo://acme/secret%5cx', 'repo://acme/secret/**'],
    ['repo://acme/secret%252fx', 'repo://acme/secret/**'],
    ['repo://acme/open/../secret/x', 'repo://acme/secret/**'],
    ['repo://acme/open/%2e%2e/secret/x', 'repo://acme/secret/**'],
    ['repo://acme/open%2f..%2fsecret/x', 'repo://acme/secret/**'],
    ['repo://acme/open/%252e%252e/secret/x', 'repo://acme/secret/**'],
    ['repo://acme/open/%c0%ae%c0%ae/secret/x', 'repo://acme/secret/**'],
    ['repo://acme/../secret/x', 'repo://acme/secret/**'],
    ['repo://open/../secret/x', 'repo://secret/**'],
    ['repo://acme/secret%00.txt', 'repo://acme/secret'],
    ['repo://user@acme/secret/x', 'repo://acme/secret/**'],
    ['https://a@internal.example/', 'https://internal.example/**'],
    ['https:internal.example/x', 'https://internal.example/**'],
    ['https:/internal.example/x', 'https://internal.example/**'],
    ['https:///internal.example/x', 'https://internal.example/**'],
    ['https://internal%2eexample/x', 'https://internal.example/**'],
    ['http://0x7f.1/', 'http://127.0.0.1/**'],
    ['http://2130706433/', 'http://127.0.0.1/**'],
    ['file:/etc/passwd', 'file:///etc/**'],
    ['file:etc/passwd', 'file:///etc/**'],
    // Names that only some versions of a URL parser take.
    ['https:xn--a/x', 'https://xn--a/**'],
    ['https:/XN--A.example/x', 'https://xn--a.example/**'],
    ['https:u@xn--a:8443/x', 'https://u@xn--a:8443/**'],
    ['https:%E4%BE%8B.example/x', 'https://xn--fsq.example/**'],
    ['https:%F0%96%BA%A0.example/x', 'https://xn--zs0f.example/**'],
    ['https:a!b.example/x', 'https://a!b.example/**'],
    ['file:////etc/passwd', 'file:///etc/**'],
    ['note:/secret', 'note:///secret'],
    ['note:a/../secret', 'note:secret'],
    ['note:secret%3Bx', 'note:secret;x'],
    ['repo://acme/a/b', 'repo://acme/a%2Fb'],
    ['repo://acme/x?path=%2Fetc%2Fpasswd', 'repo://acme/x?path=/etc/**'],
    ['repo://acme/x', 'repo://acme/x#y'],
    ['repo://acme/secret', 'repo://acme/secret/**'],
    ['repo://acme/secret/', 'repo://acme/secret'],
    ['repo://acme/secret?a#b', 'repo://acme/secret'],
    ['note://secret', 'note:secret'],
    ['note:secret', 'note://secret'],
    ['note://SECRET', 'note:SECRET'],
    ['repo:acme/secret', 'repo://acme/secret'],
    ['repo://acme/x?b=2&a=%31', 'repo://acme/x?a=1'],
  ])('%s is denied by %s', (uri, pattern) => {
    expect(verdictOf(uri, { allow: ['**'], deny: [pattern] })).toBe('deny');
  });

  it.each([
    ['repo://acme/x?a=1', 'repo://acme/x?a=2'],
    ['repo://acme/x', 'repo://acme/x?a=1'],
    ['repo://acme/secrets', 'repo://acme/secret'],
    ['repo://acme/a/secret', 'repo://acme/secret'],
    ['repo://acme/Secret', 'repo://acme/secret'],
    ['repo://other/secret', 'repo://acme/secret'],
    ['note://acme/secret', 'repo://acme/secret'],
  ])('%s is not denied by %s', (uri, pattern) => {
    expect(verdictOf(uri, { allow: ['**'], deny: [pattern] })).toBe('allow');
  });

  it('shows a spelling without fragment, query and slash to conditions, and adds nothing to it', () => {
    const all = { allow: ['**', '**#**'], deny: ['**', '**#**'] };
    const when = '!(uri in ["repo://acme/open", "repo://acme/open/one"])';
    expect(verdictOf('repo://acme/open', all, when)).toBe('allow');
    for (const end of ['#x', '?x', '/'])
      expect(verdictOf(`repo://acme/x.env${end}`, all, 'uri.endsWith(".env")')).toBe('deny');
  });

  it('shows every reading of a URI to the conditions of rules', () => {
    const all = { allow: ['**'], deny: ['**'] };
    const when = 'uri.startsWith("repo://acme/secret/")';
    expect(verdictOf('repo://acme/open%2f..%2fsecret/x', all, when)).toBe('deny');
    expect(verdictOf('repo://acme/open%2f..%2fpublic/x', all, when)).toBe('allow');
  });
});

/** What servers do to a path, in some order. */
const STEPS: Readonly<Record<string, (path: string) => string>> = {
  decode: (path) =>
    path.replace(/%(2[EFef]|5[Cc]|25|6[1-9A-Fa-f]|7[0-9A])/g, (_written, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
  resolve: (path) => new URL(`http://host${path}`).pathname,
  collapse: (path) => path.replaceAll('\\', '/').replace(/\/+/g, '/'),
};

describe('no spelling bypasses a rule', () => {
  it('whatever a server decodes, resolves and collapses, in whatever order', async () => {
    const piece = fc.constantFrom(
      ...['open', 'secret', '..', '.', '', '%2e%2e', '%252e%252e', '%2f', '%5C', '%252f'],
      ...['s%65cret', '..%2f', '%2fsecret', 'secret%2f', '%2e.', 'open%2f..'],
    );
    const paths = fc.array(piece, { minLength: 1, maxLength: 6 }).map((all) => `/${all.join('/')}`);
    const orders = fc.array(fc.constantFrom(...Object.keys(STEPS)), { maxLength: 6 });
    const denying = policiesOf(rulesOf({ allow: ['**'], deny: ['repo://acme/secret', 'repo://acme/secret/**'] }));
    const allowing = policiesOf(rulesOf({ allow: ['repo://acme/open', 'repo://acme/open/**'] }));
    const ask = (policies: typeof denying, uri: string): string =>
      decide(policies, {
        principal: CALLER,
        upstream: 'github',
        target: { kind: 'resource', uri },
        args: {},
        catalog: CATALOG,
      }).verdict;
    await fc.assert(
      fc.asyncProperty(paths, orders, (path, order) => {
        const uri = `repo://acme${path}`;
        const last = [...order, 'collapse', 'resolve'].reduce((text, step) => STEPS[step]?.(text) ?? text, path);
        if (/^\/secret(?:\/|$)/.test(last)) expect([uri, last, ask(denying, uri)]).toEqual([uri, last, 'deny']);
        if (!/^\/open(?:\/|$)/.test(last)) expect([uri, last, ask(allowing, uri)]).toEqual([uri, last, 'deny']);
        return Promise.resolve();
      }),
      { numRuns: 3000 },
    );
  });
});
