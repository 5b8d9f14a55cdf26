// Hosts of URLs: every trick that makes a host look like another or like a public one, by name. The answers are the same
// on every version of Node.

import { describe, expect, it } from 'vitest';
import { hostOfUrl, isPublicUrl, normalHost } from '../../../src/policy/hosts.js';

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
    ['https://XN--BCHER-KVA.example/', 'xn--bcher-kva.example'],
    ['https://r3---sn-a5mlrn7k.example/', 'r3---sn-a5mlrn7k.example'],
    ['https://例え.テスト/', 'xn--r8jz45g.xn--zckzah'],
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
    // Labels in Punycode that stand for nothing, or for what is written otherwise.
    'https://xn--a-ecp.ru/',
    'https://xn--/',
    'https://a.xn--a/',
    'https://xn--zzzzzzzzzzzzzzzzzz.example/',
    'https://xn--example-.com/',
    'https://xn--Bcher-KvA\u00fc.example/',
    'https://xn--strae-oqa\u00df.example/',
    'https://xn--example.com/',
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
  it.each([
    'https://example.com/',
    'https://example.com./',
    'https://a.b.example.co.uk/',
    'https://bücher.example.de/',
    'https://例え.みんな/',
    'http://93.184.216.34/',
    'https://[2606:4700::1111]/',
  ])('holds for %s', (url) => expect(isPublicUrl(url)).toBe(true));

  it.each([
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost/',
    'http://intranet/',
    'http://db.corp.internal/',
    'http://printer.local/',
    'http://metadata.google.internal/',
    // Names that only a cluster or a company network resolves.
    'http://db.production/',
    'http://vault.default.svc/',
    'http://vault.default.svc.cluster.local/',
    'http://kubernetes.default.svc.cluster/',
    'http://wiki.mycompany/',
    'http://redis.service.consul/',
    'http://gitlab.example.dc1/',
    'http://router.fritz.box.lan/',
    'http://nas.home.arpa/',
    'http://1.0.0.10.in-addr.arpa/',
    'http://com/',
    'http://com./',
    'http://a..com/',
    'http://db.corp/',
    'http://x.onion/',
    'http://example.test/',
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

describe('[P-46] normalHost', () => {
  it.each([
    ['ex%61mple.com', 'example.com'],
    ['straße.example', 'xn--strae-oqa.example'],
    ['%D1%80%D0%B0ypal.com', 'xn--ypal-43d9g.com'],
    ['0177.0.0.1', '127.0.0.1'],
  ])('of %s is %s', (written, host) => expect(normalHost(written)).toBe(host));

  it.each(['', '%', 'a%2fb', 'a%40b', '%00', 'a b', 'xn--a-ecp.ru'])('of %j is none', (written) =>
    expect(normalHost(written)).toBeUndefined(),
  );
});
