import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadGateway } from '../../../src/config/load.js';
import { diagnosticLines, FILE, filesOf, GOOD, KEY_HEX, LOCAL, read, settingsOf } from './reading.js';

/** The gateway file of the contract, with every key that a reader may meet. */
const EVERY_KEY = `version: 1
publicUrl: https://mcp.example.com
listeners:
  data: {host: 0.0.0.0, port: 8080, allowedOrigins: [], trustedProxies: []}
  ops: {host: 0.0.0.0, port: 9464}
  admin: {host: 127.0.0.1, port: 9090}
keys: [{file: /run/secrets/sallyport-key}]
issuers:
  corp:
    issuer: https://idp.example.com
    network: public
    algorithms: [ES256, RS256]
    tokenType: at+jwt
    maxLifetime: 1h
    claims: {client: [client_id, azp], scope: [scope, scp], groups: groups}
upstreams:
  github:
    url: https://github-mcp.internal/mcp
    path: /github
    transport: streamable-http
    network: private
    authentication: required
    issuers: [corp]
    audiences: {corp: ["api://github"]}
    scopesSupported: [github:read]
    credentials: {type: static, header: X-Api-Key, value: {env: API_KEY}}
    tls: {}
    pinning: {mode: strict, maxAge: 60s, onDrift: hide-tool, credentials: {type: none}}
    inspect: default
    limits: {requestTimeout: 30s, streamIdle: 5m, maxRequestBytes: 1MiB, maxResponseBytes: 8MiB, concurrency: 100, listTtl: 30s}
policies: {dir: ../policies, mode: enforce}
pins: {dir: ../policies/pins}
inspection:
  profiles:
    default:
      request: {secrets: block}
      result: {secrets: redact, pii: {action: block, kinds: [iban]}, activeContent: neutralize, invisible: strip, injection: flag}
state: {type: memory}
audit: {sinks: [{type: file, path: ./audit.jsonl}, {type: stdout, durability: handed-over}], durability: written, onFailure: block, checkpoint: {every: 30s}}
metrics: {toolLabel: false, maxSeries: 5000}
admin: {issuers: {corp: {audience: https://mcp.example.com/admin, roles: {viewer: [sec], reviewer: [leads], admin: [platform]}}}, breakGlass: {token: {file: /run/secrets/break-glass}}}
`;
const AROUND = {
  env: { API_KEY: 'value-of-the-header' },
  files: {
    '/run/secrets/sallyport-key': `${KEY_HEX}\n`,
    '/run/secrets/break-glass': 'break-glass-'.repeat(3),
  },
};

describe('[C-01] a gateway file becomes settings', () => {
  it('fills in the defaults of the contract', () => {
    const settings = settingsOf(GOOD);
    expect(settings.listeners).toEqual({
      data: {
        host: '127.0.0.1',
        port: 8080,
        allowedOrigins: [],
        trustedProxies: [],
        dpop: { nonce: 'off', maxAgeMs: 60_000 },
      },
      ops: { host: '127.0.0.1', port: 9464 },
    });
    expect(settings.issuers.get('corp')).toEqual({
      name: 'corp',
      issuer: 'https://idp.example.com',
      network: 'public',
      algorithms: ['ES256'],
      tokenType: 'at+jwt',
      traceContext: 'replaced',
      maxLifetimeMs: 3_600_000,
      keysMaxAgeMs: 3_600_000,
      introspection: undefined,
      impliedScopes: {},
      claims: { client: ['client_id', 'azp'], scope: ['scope', 'scp'], groups: ['groups'] },
    });
    const github = settings.upstreams.get('github');
    expect(github).toMatchObject({
      path: '/github',
      resource: 'https://mcp.example.com/github',
      network: 'public',
      authentication: 'required',
      scopesSupported: [],
      credentials: { type: 'none' },
      pinning: {
        mode: 'strict',
        maxAgeMs: 60_000,
        onDrift: 'hide-tool',
        credentials: { type: 'none' },
      },
      inspect: 'default',
    });
    expect({ ...github?.audiences }).toEqual({ corp: ['https://mcp.example.com/github'] });
    expect(github?.limits).toEqual({
      maxStreamBytesPerMinute: 64 * 1024 * 1024,
      maxListingBytesPerMinute: 32 * 1024 * 1024,
      maxValues: 100_000,
      requestTimeoutMs: 120_000,
      handshakeTimeoutMs: 30_000,
      streamIdleMs: 300_000,
      exchangeMaxMs: 600_000,
      keepAliveMs: 25_000,
      maxRequestBytes: 4_194_304,
      maxResponseBytes: 8_388_608,
      concurrency: 100,
      concurrencyPerCaller: 50,
      listTtlMs: 30_000,
    });
    expect([...settings.profiles.keys()].sort()).toEqual(['default', 'developer', 'strict']);
    expect(settings.profiles.get('default')).toEqual({
      name: 'default',
      request: { secrets: 'block', links: 'flag' },
      result: {
        secrets: 'redact',
        links: 'flag',
        pii: { action: 'redact', kinds: ['card', 'iban', 'ssn'] },
        activeContent: 'neutralize',
        invisible: 'strip',
        injection: 'flag',
      },
    });
    expect(settings.audit).toEqual({
      sinks: [{ type: 'file', path: '/srv/config/audit.jsonl' }],
      deliveries: [],
      durability: 'written',
      onFailure: 'block',
      checkpointEveryMs: 30_000,
      rotate: { size: 268_435_456, ageMs: 86_400_000, compress: 'none' },
      minFree: undefined,
      retainMs: undefined,
    });
    expect(settings.metrics).toEqual({ toolLabel: false, maxSeries: 5000 });
    expect(settings.admin).toBeUndefined();
    expect(settings.policiesDir).toBe('/srv/config/policies');
    expect(settings.pinsDir).toBe('/srv/config/policies/pins');
  });

  it.each(['\n', '\r\n'])('takes the line end off a secret, in a variable as in a file: %j', (end) => {
    const env = { API_KEY: `${AROUND.env.API_KEY}${end}` };
    const { credentials } = settingsOf(EVERY_KEY, { ...AROUND, env }).upstreams.get('github') ?? {};
    expect(credentials).toMatchObject({ value: AROUND.env.API_KEY });
  });

  it('reads every key of the contract', () => {
    const settings = settingsOf(EVERY_KEY, AROUND);
    const github = settings.upstreams.get('github');
    expect({ ...github?.audiences }).toEqual({ corp: ['api://github'] });
    expect(github?.credentials).toEqual({
      type: 'static',
      header: 'x-api-key',
      value: AROUND.env.API_KEY,
    });
    expect(github?.pinning.credentials).toEqual({ type: 'none' });
    expect(settings.profiles.get('default')?.result.pii).toEqual({
      action: 'block',
      kinds: ['iban'],
    });
    expect(settings.policiesDir).toBe('/srv/policies');
    expect(settings.audit.sinks[1]).toEqual({ type: 'stdout' });
    expect(settings.admin?.issuers['corp']?.roles.reviewer).toEqual(['leads']);
    expect(settings.admin?.breakGlassToken).toBe(AROUND.files['/run/secrets/break-glass']);
    expect(settings.keys).toHaveLength(1);
  });

  it('fills what a profile leaves out, and keeps the profile "default" beside others', () => {
    const { profiles } = settingsOf(`${GOOD}inspection: {profiles: {lax: {result: {injection: off}}}}\n`);
    expect(profiles.get('lax')?.result).toMatchObject({ injection: 'off', secrets: 'redact' });
    expect(profiles.get('lax')?.request.secrets).toBe('block');
    expect(profiles.has('default')).toBe(true);
  });

  it('makes resources of publicUrl with a path', () => {
    for (const slash of ['', '/']) {
      const text = GOOD.replace('mcp.example.com', `mcp.example.com/gate${slash}`);
      const settings = settingsOf(text);
      expect(settings.publicBase).toBe('https://mcp.example.com/gate');
      expect(settings.upstreams.get('github')?.resource).toBe('https://mcp.example.com/gate/github');
      expect(settings.upstreams.get('github')?.path).toBe('/github');
    }
  });

  it('needs no key on loopback, and allows authentication: none there', () => {
    const settings = settingsOf(LOCAL);
    expect(settings.keys).toEqual([]);
    expect(settings.upstreams.get('demo')).toMatchObject({ authentication: 'none', issuers: [] });
  });

  it('freezes what it returns', () => {
    const settings = settingsOf(EVERY_KEY, AROUND);
    const values: unknown[] = [settings, settings.listeners.data, settings.audit.sinks];
    values.push(...settings.upstreams.values(), ...settings.issuers.values());
    values.push(settings.upstreams.get('github')?.audiences, settings.admin?.issuers['corp']?.roles);
    for (const value of values) expect(Object.isFrozen(value)).toBe(true);
  });

  it('hashes the bytes of the file, not its secrets', () => {
    const one = settingsOf(GOOD);
    expect(one.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(settingsOf(GOOD, { env: { KEY: 'f'.repeat(64) } }).hash).toBe(one.hash);
    expect(settingsOf(`${GOOD}# a comment\n`).hash).not.toBe(one.hash);
  });

  it('keeps names like "constructor" apart from the prototype', () => {
    const text = GOOD.replaceAll('corp', 'constructor').replaceAll('github:', 'constructor:');
    const upstream = settingsOf(text).upstreams.get('constructor');
    expect(upstream?.audiences['constructor']).toEqual(['https://mcp.example.com/constructor']);
    expect(diagnosticLines(GOOD.replace('[corp]', '[constructor]'))).toEqual([
      '11:15 error unknown issuer "constructor"; the gateway file has "corp"',
    ]);
  });
});

describe('[C-06] all mistakes in one run', () => {
  it('reports a missing file at 1:1, as unreadable', () => {
    const reading = loadGateway(FILE, { readFile: filesOf({}).readFile, env: {} });
    expect(reading).toEqual({
      settings: undefined,
      outline: undefined,
      policiesDir: undefined,
      diagnostics: [
        {
          ...{ file: FILE, line: 1, column: 1, severity: 'error', rule: 'unreadable' },
          message: 'the gateway file cannot be read; name another with -c',
        },
      ],
    });
  });

  it('reports all mistakes of shape, in the order of the file', () => {
    const text = GOOD.replace('version: 1', 'version: 1\nmetrics: {toolLabel: ture, maxSerie: 9}')
      .replace('algorithms: [ES256]', 'algorithms: [ES265]')
      .replace('[corp]', '[crop]');
    expect(diagnosticLines(text)).toEqual([
      '2:22 error expected true or false, found text; did you mean "true"?',
      '2:28 error unknown key "maxSerie"; did you mean "maxSeries"?',
      '2:38 error expected a whole number from 100 to 1000000',
      '8:18 error "ES265" is not one of ES256, ES384, ES512, RS256, RS384, RS512, PS256, PS384, PS512, EdDSA, Ed25519; did you mean "ES256"?',
    ]);
    expect(read(text)).toMatchObject({ settings: undefined, outline: undefined });
  });

  it('reports what is inside a misspelt key, and of the key only that it is misspelt', () => {
    const text = GOOD.replace('upstreams:', 'upstreems:').replace('url: ', 'ulr: ').replace('[corp]', 'corp');
    expect(diagnosticLines(text)).toEqual([
      '8:1 error the gateway file has no key "upstreems"; did you mean "upstreams"?',
      '10:5 error unknown key "ulr"; did you mean "url"?',
      '11:14 error expected a list, found text; did you mean "[corp]"?',
    ]);
    expect(diagnosticLines(GOOD.replace('issuers:\n', 'issuer:\n'))).toEqual([
      '4:1 error the gateway file has no key "issuer"; did you mean "issuers"?',
    ]);
    expect(diagnosticLines(GOOD.replace(/issuers:\n.*\n.*\n.*\n/, 'isuers:\n'))).toEqual([
      '4:1 error the gateway file has no key "isuers"; did you mean "issuers"?',
      '4:8 error expected a map, found nothing',
    ]);
  });

  it('reports, if the shape is right, all mistakes of meaning and of secrets', () => {
    const text = GOOD.replace('env: KEY', 'env: GONE')
      .replace('https://github', 'http://github')
      .replace('[corp]', '[crop]');
    expect(diagnosticLines(text)).toEqual([
      '3:14 error the environment variable "GONE" is not set',
      '10:10 error plain http is never sent to public addresses; for a server in a private network write "network: private" and "plaintext: accepted", for one on this machine "network: loopback"; did you mean "https://github.example.com/mcp"?',
      '11:15 error unknown issuer "crop"; did you mean "corp"?',
    ]);
    expect(read(text).settings).toBeUndefined();
  });

  it('never crashes, whatever the file holds (property)', () => {
    const lines = GOOD.split('\n');
    const change = fc.record({
      line: fc.nat(lines.length - 1),
      text: fc.oneof(
        fc.string(),
        fc.constantFrom('a: [', 'keys: 3', 'upstreams: [1]', 'issuers: {corp: 4}', 'audit: {sinks: x}'),
        fc.constantFrom('admin: {issuers: []}', 'listeners: {data: []}', 'policies: ~', '  - 1'),
      ),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 4 }), (changes) => {
        const text = [...lines];
        for (const { line, text: written } of changes) text[line] = written;
        const { settings, diagnostics } = read(text.join('\n'));
        expect(settings === undefined).toBe(diagnostics.length > 0);
      }),
      { numRuns: 300 },
    );
  });

  it('never crashes on any value of any key (property)', () => {
    const json = fc.json({ maxDepth: 3 });
    const key = fc.constantFrom('publicUrl', 'listeners', 'keys', 'issuers', 'upstreams', 'policies');
    const more = fc.constantFrom('pins', 'inspection', 'state', 'audit', 'metrics', 'admin', 'tls');
    fc.assert(
      fc.property(fc.oneof(key, more), json, (name, value) => {
        const text = `${GOOD.replace(new RegExp(`^${name}:.*\n(?:  .*\n)*`, 'm'), '')}${name}: ${value}\n`;
        read(text);
      }),
      { numRuns: 300 },
    );
  });

  it.each(['maxLifetime', 'keysMaxAge'])('reports a map in place of the duration %s, whatever its keys', (key) => {
    const text = GOOD.replace('[ES256]', `[ES256]\n    ${key}: {toString: x, valueOf: y}`);
    expect(diagnosticLines(text)).toEqual([
      expect.stringContaining('expected a duration such as 30s, 5m or 1h, found a map'),
    ]);
  });

  it('names the file as it was asked for', () => {
    expect(read('a: 1').diagnostics[0]?.file).toBe(FILE);
  });
});
