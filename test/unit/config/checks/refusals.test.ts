import { describe, expect, it } from 'vitest';
import { diagnosticLines, GOOD, KEY_HEX, LOCAL, read } from '../reading.js';

/** The good text with one part written otherwise. */
function swap(part: string, by: string, text: string = GOOD): string {
  expect(text).toContain(part);
  return text.replace(part, by);
}

const PLAIN = 'error plain http is possible only on loopback';
const PLAIN_ORIGIN =
  'error plain http is never sent to public addresses; for a server in a private network write "network: private" and "plaintext: accepted", for one on this machine "network: loopback"';

describe('[C-07, MCP-66] serve refuses to start: origins', () => {
  it.each([
    [
      'publicUrl is plain http outside loopback',
      swap('https://mcp', 'http://mcp'),
      `2:12 ${PLAIN}; did you mean "https://mcp.example.com"?`,
    ],
    [
      'an issuer is plain http outside loopback',
      swap('https://idp', 'http://idp'),
      `6:13 ${PLAIN_ORIGIN}; did you mean "https://idp.example.com"?`,
    ],
    [
      'an upstream is plain http outside loopback',
      swap('https://github', 'http://github'),
      `10:10 ${PLAIN_ORIGIN}; did you mean "https://github.example.com/mcp"?`,
    ],
    [
      'an address is not in its network',
      swap('github.example.com/mcp', '10.0.0.1/mcp'),
      '10:10 error this address is not in the network "public"; did you mean "network: private"?',
    ],
    [
      'a loopback address is written in another spelling',
      swap('github.example.com/mcp', '[::ffff:127.0.0.1]/mcp'),
      '10:10 error this URL is not in normal form; identifiers are compared exactly; did you mean "https://[::ffff:7f00:1]/mcp"?',
    ],
    [
      'an address is one of cloud metadata',
      swap('github.example.com/mcp', '169.254.169.254/mcp'),
      '10:10 error the gateway never connects to this address: it is link-local, a metadata address or reserved',
    ],
    [
      'a URL carries a password',
      swap('https://github', 'https://me:pw@github'),
      '10:10 error a URL carries no user name or password',
    ],
    ['a URL has a fragment', swap('example.com/mcp', 'example.com/mcp#x'), '10:10 error a URL here has no fragment'],
    [
      'an issuer is no URL',
      swap('https://idp.example.com', 'idp.example.com'),
      '6:13 error expected a URL that begins with https:// or http://',
    ],
    [
      'the name of a host stands for nothing, which only some versions of Node see',
      swap('github.example.com/mcp', 'xn--a.example.com/mcp'),
      '10:10 error expected a URL that begins with https:// or http://',
    ],
    [
      'publicUrl is not in normal form',
      swap('https://mcp.example.com', 'https://MCP.example.com:443'),
      '2:12 error this URL is not in normal form; identifiers are compared exactly; did you mean "https://mcp.example.com"?',
    ],
    [
      'publicUrl has a query',
      swap('https://mcp.example.com', 'https://mcp.example.com/?a=b'),
      '2:12 error a public URL has no query',
    ],
    [
      'publicUrl has a path of the well-known space',
      swap('https://mcp.example.com', 'https://mcp.example.com/.well-known/x'),
      '2:12 error paths below /.well-known are taken',
    ],
    [
      'two issuers have one identifier',
      swap('upstreams:', '  other: {issuer: "https://idp.example.com", algorithms: [ES256]}\nupstreams:'),
      '8:19 error the issuer "corp" has this identifier too',
    ],
  ])('%s', (_, text, line) => expect(diagnosticLines(text)).toContain(line));
});

describe('serve refuses to start: content', () => {
  const withContent = (tools: string): string =>
    swap('issuers: [corp]', `issuers: [corp]\n    pinning: {mode: "off"}\n    content: {tools: {${tools}}}`);

  it('without pins, code is chosen for no definition', () => {
    expect(diagnosticLines(withContent('read_file: code'))).toEqual([
      '13:34 error without pins, "code" needs the digest of the definition: {kind: code, digest: …}, as "sallyport dev" prints it',
    ]);
  });

  it.each(['read_file: text', `read_file: {kind: code, digest: ${'a1'.repeat(32)}}`])('%s needs no pin', (tools) =>
    expect(diagnosticLines(withContent(tools))).toEqual([]),
  );
});

describe('[LEG-10] serve refuses to start: times', () => {
  it('an exchange must end before its first byte may come', () => {
    const limits = 'issuers: [corp]\n    limits: {requestTimeout: 30s, exchangeMax: 10s}';
    expect(diagnosticLines(swap('issuers: [corp]', limits))).toEqual([
      '12:48 error "exchangeMax" is shorter than "requestTimeout"',
    ]);
  });
});

describe('[H-10] serve refuses to start: places of a caller', () => {
  it('must not be more than there are', () => {
    const limits = 'issuers: [corp]\n    limits: {concurrency: 10, concurrencyPerCaller: 11}';
    expect(diagnosticLines(swap('issuers: [corp]', limits))).toEqual([
      '12:53 error "concurrencyPerCaller" exceeds "concurrency"',
    ]);
  });
});

describe('[C-08] serve refuses to start: keys and secrets', () => {
  it('keys are missing outside loopback', () => {
    expect(diagnosticLines(swap('keys: [{env: KEY}]\n', ''))).toEqual([
      '1:1 error the key "keys" is missing: outside loopback the gateway needs a key of its own',
    ]);
  });

  it.each([
    ['unset', {}, '3:14 error the environment variable "GONE" is not set'],
    ['empty', { GONE: '' }, '3:14 error the environment variable "GONE" is empty'],
    [
      'no key',
      { GONE: 'hunter2-hunter2' },
      '3:8 error the environment variable "GONE" holds no gateway key: expected 32 bytes as base64 or hex, or what `sallyport keys new` prints',
    ],
  ])('a secret in the environment is %s', (_, env, line) => {
    expect(diagnosticLines(swap('env: KEY', 'env: GONE'), { env })).toEqual([line]);
  });

  it.each([
    ['missing', {}, '3:15 error the file "key" cannot be read'],
    ['empty', { '/srv/config/key': '\n' }, '3:15 error the file "key" is empty'],
  ])('a secret file is %s', (_, files, line) => {
    expect(diagnosticLines(swap('env: KEY', 'file: key'), { files })).toEqual([line]);
  });

  it.each([
    ['text', '"hunter2-hunter2"', 'found text'],
    ['a number', '271828182', 'found a number'],
    ['an empty map', '{}', 'found an empty map'],
    ['both', '{env: A, file: b}', 'not both'],
  ])('%s where a secret belongs is refused and not echoed', (_, written, message) => {
    const lines = diagnosticLines(`${GOOD}admin: {breakGlass: {token: ${written}}}\n`);
    expect(lines).toEqual([`13:29 error expected a secret reference, {env: NAME} or {file: PATH}, ${message}`]);
  });

  it('no fault ever shows a secret or what stands in its place', () => {
    const secret = 'hunter2'.repeat(5);
    const texts = [
      `${GOOD}admin: {breakGlass: {token: ${secret}}}\n`,
      `${GOOD}admin: {breakGlass: ${secret}}\n`,
      swap('keys: [{env: KEY}]', `keys: ${secret}`),
      swap('keys: [{env: KEY}]', `keys: [${secret}]`),
      swap('issuers: [corp]', `issuers: [corp]\n    credentials: ${secret}`),
      swap('issuers: [corp]', `issuers: [corp]\n    credentials: {type: static, header: A, value: ${secret}}`),
      swap('env: KEY', 'env: LEAK'),
    ];
    for (const text of texts) {
      const { diagnostics } = read(text, { env: { LEAK: secret } });
      expect(diagnostics.length).toBeGreaterThan(0);
      expect(JSON.stringify(diagnostics)).not.toContain('hunter2');
    }
  });

  it('a key stands twice', () => {
    const lines = diagnosticLines(swap('[{env: KEY}]', '[{env: KEY}, {env: B}]'), {
      env: { B: KEY_HEX },
    });
    expect(lines).toEqual([
      '3:20 error the environment variable "B" holds the same key as an earlier entry; remove one of the two',
    ]);
  });

  it('a break-glass token is short, a header value holds a line break', () => {
    const text = swap(
      'issuers: [corp]',
      'issuers: [corp]\n    credentials: {type: static, header: A, value: {env: H}}',
    );
    const env = { H: 'a\r\nb: c', T: 'short' };
    expect(diagnosticLines(`${text}admin: {breakGlass: {token: {env: T}}}\n`, { env })).toEqual([
      '12:51 error the environment variable "H" holds no value of an HTTP header: expected one line of visible ASCII characters',
      '14:29 error the environment variable "T" holds a secret shorter than 32 characters; use a longer one',
    ]);
  });
});

describe('[C-09] serve refuses to start: upstreams', () => {
  const second = (text: string): string => swap('policies:', `  web:\n${text}policies:`);

  it.each([
    [
      'two share a path',
      second('    url: https://w.example.com/\n    path: /github\n    issuers: [corp]\n'),
      '14:11 error the path "/github" belongs to the upstream "github"',
    ],
    [
      'one takes the HTTP+SSE paths of another',
      second('    url: https://w.example.com/\n    path: /github/sse\n    issuers: [corp]\n'),
      '14:11 error the path "/github/sse" belongs to the upstream "github"',
    ],
    [
      'two accept the same audience of one issuer',
      second(
        '    url: https://w.example.com/\n    issuers: [corp]\n    audiences: {corp: ["https://mcp.example.com/github"]}\n',
      ),
      '15:24 error the upstream "github" accepts this audience of "corp" too',
    ],
    [
      'the console accepts the audience of an upstream',
      `${GOOD}admin: {issuers: {corp: {audience: "https://mcp.example.com/github", roles: {viewer: [a]}}}}\n`,
      '13:36 error the upstream "github" accepts this audience of "corp" too',
    ],
    [
      'one has no issuer',
      swap('    issuers: [corp]\n', ''),
      '9:3 error the key "issuers" is missing: name the issuers whose tokens callers may use',
    ],
    ['one has an empty list of issuers', swap('[corp]', '[]'), '11:14 error this list must not be empty'],
    ['an issuer is unknown', swap('[corp]', '[crop]'), '11:15 error unknown issuer "crop"; did you mean "corp"?'],
    [
      'an audience is of an issuer that does not vouch here',
      swap('[corp]', '[corp]\n    audiences: {crop: [a]}'),
      '12:17 error "crop" is not among the issuers of this upstream; did you mean "corp"?',
    ],
    [
      'an inspection profile is unknown',
      swap('[corp]', '[corp]\n    inspect: defualt'),
      '12:14 error unknown inspection profile "defualt"; did you mean "default"?',
    ],
    [
      'a credential takes a header of the gateway',
      swap('[corp]', '[corp]\n    credentials: {type: static, header: Mcp-Session-Id, value: {env: KEY}}'),
      '12:41 error the gateway sets this header itself',
    ],
    [
      'authentication: none beside issuers',
      swap('[corp]', '[corp]\n    authentication: none'),
      '12:21 error an upstream has issuers or "authentication: none", not both',
    ],
  ])('%s', (_, text, line) => expect(diagnosticLines(text)).toContain(line));

  it.each([
    ['github', 'a path starts with /', '/github'],
    ['/github/', 'a path has no trailing slash', '/github'],
    ['/a//b', 'a path has no empty segment', '/a/b'],
    ['/a/../b', 'a path has no dot segment', undefined],
    ['/a%2fb', 'a path has no percent-encoding', undefined],
    ['/', 'a path has no trailing slash', undefined],
    ['/.well-known/x', 'paths below /.well-known are taken', undefined],
    ['/.Well-Known', 'paths below /.well-known are taken', undefined],
    ['"/a b"', 'a path is made of letters, digits and . _ ~ -', undefined],
    ['"/a?b"', 'a path is made of letters, digits and . _ ~ -', undefined],
  ])('the path %s', (path, message, suggestion) => {
    const suggestionText = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`;
    expect(diagnosticLines(swap('[corp]', `[corp]\n    path: ${path}`))).toEqual([
      `12:11 error ${message}${suggestionText}`,
    ]);
  });

  it('metadata documents of two upstreams would share a path', () => {
    const text = swap(
      'mcp.example.com',
      'mcp.example.com/x',
      second('    url: https://w.example.com/\n    path: /x/github\n    issuers: [corp]\n'),
    );
    expect(diagnosticLines(text)).toEqual(['14:11 error the path "/x/github" belongs to the upstream "github"']);
  });

  it('authentication: none off loopback', () => {
    const open = '7:21 error "authentication: none" needs';
    expect(diagnosticLines(swap('policies:', 'listeners: {data: {host: 0.0.0.0}}\npolicies:', LOCAL))).toEqual([
      `${open} a data listener on loopback`,
    ]);
    const far = swap('http://127.0.0.1:8080', 'https://mcp.example.com', LOCAL);
    expect(diagnosticLines(far)).toContain(`${open} a loopback publicUrl`);
  });
});

describe('[C-10] serve refuses to start: listeners, audit, console', () => {
  it.each([
    [
      'two listeners share an address',
      `${GOOD}listeners: {ops: {port: 8080, host: 0.0.0.0}}\n`,
      '13:25 error the listener "data" has this address too',
    ],
    [
      'a listener has a name for an address',
      `${GOOD}listeners: {data: {host: mcp.example.com}}\n`,
      '13:26 error expected an IP address or localhost',
    ],
    [
      'an origin is not one',
      `${GOOD}listeners: {data: {allowedOrigins: ["https://a.example.com/"]}}\n`,
      '13:37 error this is not an origin as browsers send it; did you mean "https://a.example.com"?',
    ],
    [
      'every origin is allowed',
      `${GOOD}listeners: {data: {allowedOrigins: ["*"]}}\n`,
      '13:37 error expected an origin such as https://inspector.example.com',
    ],
    [
      'a proxy is not an address',
      `${GOOD}listeners: {data: {trustedProxies: [proxy.internal]}}\n`,
      '13:37 error expected an IP address or a CIDR range',
    ],
    [
      'stdout alone with onFailure: block',
      `${GOOD}audit: {sinks: [{type: stdout}]}\n`,
      '13:17 error stdout alone with "onFailure: block" needs "durability: handed-over"; did you mean "{type: stdout, durability: handed-over}"?',
    ],
    [
      'durability: synced without a file',
      `${GOOD}audit: {sinks: [{type: stdout, durability: handed-over}], durability: synced}\n`,
      '13:71 error "synced" needs a sink of type file',
    ],
    [
      'audit files that hold a few lines each',
      `${GOOD}audit: {rotate: {size: 1KiB}}\n`,
      '13:24 error this is less than 1MiB',
    ],
    [
      'audit files that are removed while a run may write them',
      `${GOOD}audit: {retain: 1d}\n`,
      '13:17 error this is shorter than "rotate.age" and twice "checkpoint.every" together: make it longer',
    ],
    [
      'two sinks write one file',
      `${GOOD}audit: {sinks: [{type: file, path: a}, {type: file, path: ./a}]}\n`,
      '13:59 error another sink has this path',
    ],
    ['no sink', `${GOOD}audit: {sinks: []}\n`, '13:16 error this list must not be empty'],
    ['a console without a credential', `${GOOD}admin: {}\n`, '13:1 error the console needs "issuers" or "breakGlass"'],
    [
      'a console whose issuer is unknown',
      `${GOOD}admin: {issuers: {crop: {audience: a, roles: {viewer: [a]}}}}\n`,
      '13:19 error unknown issuer "crop"; did you mean "corp"?',
    ],
  ])('%s', (_, text, line) => expect(diagnosticLines(text)).toContain(line));

  it('accepts stdout alone where somebody says that it is durable, or that calls may go on', () => {
    for (const audit of [
      '{sinks: [{type: stdout, durability: handed-over}]}',
      '{sinks: [{type: stdout}], onFailure: continue}',
    ]) {
      expect(diagnosticLines(`${GOOD}audit: ${audit}\n`)).toEqual([]);
    }
  });
});

describe('[POL-06] policies that are not enforced', () => {
  const policies = (more: string) => diagnosticLines(swap('dir: policies', `dir: policies, ${more}`));

  it('are a choice that is made twice, and a warning', () => {
    expect(policies('mode: observe')).toEqual([
      '12:33 error with "observe" no rule is enforced, which needs "acceptUnenforced: true"',
    ]);
    expect(policies('mode: observe, acceptUnenforced: true')).toEqual([
      '12:33 warning no policy is enforced: every verified caller may use whatever is pinned',
    ]);
    expect(policies('acceptUnenforced: true')).toEqual(['12:27 error "acceptUnenforced" goes with "mode: observe"']);
  });
});

describe('[C-11] what is read and refused', () => {
  const upstream = (text: string): string => swap('[corp]', `[corp]\n    ${text}`);

  it('accepts tls where it is empty', () => expect(diagnosticLines(upstream('tls: {}'))).toEqual([]));
});

describe('[C-04] unknown words', () => {
  it.each([
    [
      'publicURL',
      swap('publicUrl', 'publicURL'),
      '2:1 error the gateway file has no key "publicURL"; did you mean "publicUrl"?',
    ],
    ['an issuer key', swap('algorithms', 'algorithm'), '7:5 error unknown key "algorithm"; did you mean "algorithms"?'],
    [
      'a pinning mode',
      swap('[corp]', '[corp]\n    pinning: {mode: strcit}'),
      '12:21 error "strcit" is not one of strict, trust-on-first-use, off; did you mean "strict"?',
    ],
    [
      'a truth value',
      `${GOOD}metrics: {toolLabel: yes}\n`,
      '13:22 error expected true or false, found text; did you mean "true"?',
    ],
    [
      'a unit',
      `${GOOD}audit: {checkpoint: {every: 30}}\n`,
      '13:29 error expected a duration such as 30s, 5m or 1h, found a number; did you mean "30s"?',
    ],
    [
      'a size',
      swap('[corp]', '[corp]\n    limits: {maxRequestBytes: 1MB}'),
      '12:31 error expected a size such as 64KiB or 1MiB; did you mean "1MiB"?',
    ],
    [
      'an algorithm',
      swap('[ES256]', '[none]'),
      '7:18 error "none" is not one of ES256, ES384, ES512, RS256, RS384, RS512, PS256, PS384, PS512, EdDSA, Ed25519',
    ],
    ['a list', swap('[ES256]', 'ES256'), '7:17 error expected a list, found text; did you mean "[ES256]"?'],
    ['a version', swap('version: 1', 'version: 2'), '1:10 error expected 1, found 2'],
    [
      'a name',
      swap('  github:', '  GitHub:'),
      '9:3 error "GitHub" is not a name of lower-case letters, digits, - and _; did you mean "github"?',
    ],
    [
      'a credential type',
      swap('[corp]', '[corp]\n    credentials: {type: statik}'),
      '12:25 error "statik" is not one of none, static, client-credentials, token-exchange; did you mean "static"?',
    ],
    [
      'a key of static credentials',
      swap('[corp]', '[corp]\n    credentials: {type: static, header: A, valeu: {env: KEY}}'),
      '12:44 error credentials of type static has no key "valeu"; did you mean "value"?',
    ],
  ])('%s', (_, text, line) => expect(diagnosticLines(text)).toContain(line));
});
