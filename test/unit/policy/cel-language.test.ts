// The functions for paths and URLs: every trick that makes a path leave its folder or a host look public, by name.

import { describe, expect, it } from 'vitest';
import { compileExpression } from '../../../src/policy/cel.js';
import { hostOfUrl, isPathUnder, isPublicUrl } from '../../../src/policy/cel-language.js';

describe('[P-46] path.under', () => {
  it.each([
    'reports/a',
    'reports',
    'reports/',
    './reports/x',
    'reports/a/../b',
    'x/../reports/b',
    'reports%2fa',
  ])('holds for %s', (path) => expect(isPathUnder(path, 'reports/')).toBe(true));

  it.each([
    ['climbing', 'reports/../secret'],
    ['climbing out', '../reports/a'],
    ['another name', 'reports2/a'],
    ['another case', 'Reports/a'],
    ['absolute', '/reports/a'],
    ['a drive', 'C:reports/a'],
    ['a server', '//host/reports/a'],
    ['a server by backslashes', '\\\\host\\reports'],
    ['home', '~/reports/a'],
    ['a URL', 'https://example.com/reports/a'],
    ['nothing', ''],
  ])('does not hold for %s', (_what, path) => {
    expect(isPathUnder(path, 'reports/')).toBe(false);
  });

  it.each([
    ['encoded dots', 'reports/%2e%2e/secret'],
    ['encoded slash', 'reports%2f..%2fsecret'],
    ['encoded twice', 'reports/%252e%252e/secret'],
    ['encoded six times', 'reports/%252525252525' + '2e%2e/secret'],
    ['encoded without end', `reports/%${'25'.repeat(40)}2e./secret`],
    ['malformed escape', 'reports/%zz'],
    ['overlong UTF-8', 'reports/%c0%ae%c0%ae/secret'],
    ['backslashes', 'reports\\..\\secret'],
    ['encoded backslash', 'reports/%5c..%5csecret/..'],
    ['NUL', 'reports/a\0/../../secret'],
    ['encoded NUL', 'reports/a%00'],
    ['a line end', 'reports/a\n'],
    ['three dots', 'reports/.../secret'],
    ['dots and a blank', 'reports/.. /secret'],
    ['dots and parameters', 'reports/..;/secret'],
    ['full-width dots', 'reports/\uff0e\uff0e/secret'],
    ['a full-width slash', 'reports/a\uff0f..\uff0f..\uff0fsecret'],
    ['a full-width escape', 'reports/\uff052e\uff052e/secret'],
    ['a slash that only some decode', 'reports/a%2fb/../../secret'],
    ['a slash that few decode', 'reports/a%252fb/../../secret'],
    ['an escape that only some decode', 'reports/a%5cb/../../secret'],
    ['a backslash that is a letter to some', 'reports/a\\b/../../secret'],
    ['a full-width slash and an encoded one', 'reports/a%2fb\uff0f..\uff0f..\uff0fsecret'],
    ['an empty name that counts for some', 'x//../reports/a'],
    ['dots with an invisible character', 'reports/.\u200b./secret'],
    ['dots before an invisible character', 'reports/..\ufeff/secret'],
    ['a dot with a soft hyphen', 'reports/\u00ad../secret'],
    ['a folder that only some fold', '\uff52eports/a'],
    ['a URL of a file', 'file:///srv/reports/a'],
    ['a URL of a file without a slash', 'file:reports/a'],
    ['an encoded URL of a file', 'file%3a///reports/a'],
    ['a URL of a file in another', 'jar:File:/reports/a'],
    ['encoded dots into the folder', 'x/%2e%2e/reports/a'],
  ])('has no answer for %s', (_what, path) => {
    expect(isPathUnder(path, 'reports/')).toBeUndefined();
  });

  it('compares absolute paths with absolute folders, and anything relative with an empty one', () => {
    expect(isPathUnder('/srv/a', '/srv')).toBe(true);
    expect(isPathUnder('/srv/../etc', '/srv')).toBe(false);
    expect(isPathUnder('srv/a', '/srv')).toBe(false);
    expect(isPathUnder('/etc', '/')).toBe(true);
    expect(isPathUnder('a/b', '')).toBe(true);
    expect(isPathUnder('../a', '')).toBe(false);
    expect(isPathUnder('notes: today/a', 'notes: today')).toBe(true);
    expect(isPathUnder('../../a', '')).toBe(false);
    expect(isPathUnder('C:/../a', '')).toBe(false);
  });

  it('has no answer for an absolute path that only some readers find in the folder', () => {
    expect(isPathUnder('//srv/reports/a', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('\\\\srv\\reports', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('/../srv/reports/a', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('/a/../../srv/reports', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('//other/reports/a', '/srv/reports')).toBe(false);
  });

  it.each(['..', '../a', 'https://example.com/a', 'file:a', 'C:/a', '~/a', '//host/a', 'a/..;b'])(
    'has no answer for a folder that is none: %s',
    (folder) => expect(isPathUnder('a', folder)).toBeUndefined(),
  );

  it('is an error of the policy with such a folder', () => {
    const folder = (text: string) => compileExpression(`path.under(args.p, "${text}")`);
    expect(folder('https://example.com/a')).toMatchObject({
      ok: false,
      why: 'path.under() takes a folder such as "reports/" or "/srv/reports"',
    });
    expect(folder('/srv/reports').ok).toBe(true);
  });
});

describe('[P-46] url.host', () => {
  it.each([
    ['https://Example.COM:8443/a', 'example.com'],
    ['https://example.com./', 'example.com'],
    ['https://user:pass@example.com/', 'example.com'],
    ['https://good.example@evil.example/', 'evil.example'],
    ['https://bücher.example/', 'xn--bcher-kva.example'],
    ['https://ｅxample.com/', 'example.com'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://[::FFFF:7f00:1]:80/', '::ffff:7f00:1'],
    ['ftp://example.com', 'example.com'],
    ['WSS://example.com?x', 'example.com'],
    ['https://a_b.example-c.com#/@evil.example', 'a_b.example-c.com'],
    ['http://127.1/', '127.0.0.1'],
    ['http://[0:0:0:0:0:0:0:1]/', '::1'],
  ])('of %s is %s', (url, host) => expect(hostOfUrl(url)).toBe(host));

  it.each([
    'example.com',
    '//example.com/',
    'https:example.com',
    'https:/example.com',
    'https:\\\\example.com',
    'https://example.com\\@evil.example/',
    'https://a@b@c/',
    'https://exam\tple.com/',
    ' https://example.com/',
    'https://ex%61mple.com/',
    'https://example.com../',
    'https:///path',
    'https://[::1/',
    'https://256.256.256.256/',
    'http://0177.0.0.01/',
    'http://0127.0.0.1./',
    'http://8.8.8.010/',
    'http://０１27.0.0.1/',
    'https://a:b:c/',
    'javascript:alert(1)',
    // Relative references have no host of their own.
    '/a',
    'a/b?c',
    '?q',
    '#f',
    '',
    '///example.com/',
    'https:///example.com/',
    // Userinfo that readers split differently.
    'https://good.example:80@evil.example:80@other.example/',
    'https://good.example%40evil.example/',
    'https://[::1]@[::2]@evil.example/',
    // Characters that some readers drop.
    'https://exam\nple.com/',
    'https://example.com\u0000.evil.example/',
    'https://example.com\u00a0/',
    '\u0001https://example.com/',
    'https://example\u007f.com/',
    // Names that readers of old and new IDNA write differently.
    'https://straße.example/',
    'https://STRAẞE.example/',
    'https://βόλος.example/',
    'https://a\u200db.example/',
    'https://xn--a-ecp.ru/',
    // Hosts whose end readers see elsewhere.
    'https://example.com;evil.example/',
    'https://example.com,evil.example/',
    'https://example.com&evil.example/',
    'https://example.com$evil.example/',
    'https://(example.com)/',
    // Addresses.
    'http://[fe80::1%25eth0]/',
    'http://[fe80::1%eth0]/',
    'http://[::1]evil.example/',
    'http://1.2.3.4.5/',
    'http://0x100000000/',
    'http://1.2.3.08/',
    // Other schemes, whose hosts are opaque to some readers.
    'file://example.com/etc/passwd',
    'gopher://example.com/',
    'ssh://git@example.com/',
    'foo://EXAMPLE.com/',
    'view-source:https://example.com/',
    'blob:https://example.com/1',
    'data:text/html,x',
    'httpſ://example.com/',
    `https://${'a'.repeat(9000)}/`,
  ])('of %s is not known', (url) => expect(hostOfUrl(url)).toBeUndefined());
});

describe('[P-46] url.isPublic', () => {
  it.each(['https://example.com/', 'http://93.184.216.34/', 'https://[2606:4700::1111]/'])(
    'holds for %s',
    (url) => expect(isPublicUrl(url)).toBe(true),
  );

  it.each([
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost/',
    'http://intranet/',
    'http://db.corp.internal/',
    'http://printer.local/',
    'http://metadata.google.internal/',
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0/',
    'http://10.1.2.3/',
    'http://172.16.0.1./',
    'http://192.168.1.1/',
    'http://100.64.0.1/',
    'http://169.254.169.254/latest/meta-data',
    'http://[::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://[::ffff:a00:1]/',
    'http://[64:ff9b::a00:1]/',
    'http://[fe80::1]/',
    'http://[fd00::1]/',
    'http://[2002:7f00:1::]/',
    'http://example.com@10.0.0.1/',
    'http://①②⑦.0.0.1/',
    'http://127。0。0。1/',
  ])('does not hold for %s', (url) => expect(isPublicUrl(url)).toBe(false));

  it.each([
    'not a url',
    '',
    'http:example.com',
    'http://017700000001/',
    'http://8.8.8.010/',
    'http://0127.0.0.1/',
    'https://example.com\\@10.0.0.1/',
    '//example.com/',
    'file://example.com/etc/passwd',
    'http://[fe80::1%25eth0]/',
  ])('has no answer for %s', (url) => expect(isPublicUrl(url)).toBeUndefined());
});
