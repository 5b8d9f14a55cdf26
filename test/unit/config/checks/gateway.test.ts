// What the gateway file may say of issuers, of the console and of the store, and what it may not.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { includedScopes } from '../../../../src/config/checks/gateway.js';
import { diagnosticLines, GOOD, KEY_HEX, LOCAL, lineOf, read } from '../reading.js';

const SECRET_ENV = { KEY: '0123456789abcdef'.repeat(4), CLIENT: 'of the client' };
const ASKED = `introspection: {clientId: gw, clientSecret: {env: CLIENT}}`;

/** The good text, with other members of the issuer in place of its algorithms. */
function issuerWith(...members: readonly string[]): string {
  return GOOD.replace('    algorithms: [ES256]\n', members.map((one) => `    ${one}\n`).join(''));
}

describe('[TOK-16] an issuer', () => {
  it('that is asked about its tokens has its defaults, and its secret', () => {
    const { settings } = read(issuerWith(ASKED), { env: SECRET_ENV });
    expect(settings?.issuers.get('corp')).toMatchObject({
      algorithms: [],
      introspection: {
        clientId: 'gw',
        clientSecret: 'of the client',
        authentication: 'client_secret_basic',
        endpoint: undefined,
        cacheTtlMs: 30_000,
        maxPerSecond: 100,
      },
    });
  });

  it('says how long keys serve, and what scopes include', () => {
    const { settings } = read(
      issuerWith(
        'algorithms: [ES256]',
        'keysMaxAge: 10m',
        'scopeHierarchy: {all: [repo], repo: ["repo:read", "repo:write"]}',
      ),
      { env: SECRET_ENV },
    );
    const corp = settings?.issuers.get('corp');
    expect(corp?.keysMaxAgeMs).toBe(600_000);
    expect({ ...corp?.impliedScopes }).toEqual({
      all: ['repo', 'repo:read', 'repo:write'],
      repo: ['repo:read', 'repo:write'],
    });
  });

  it.each([
    ['no way to verify', issuerWith(), 'the key "algorithms" is missing, or "introspection"'],
    ['two ways', issuerWith('algorithms: [ES256]', ASKED), 'by signature or introspected, not both'],
    ['no client', issuerWith('introspection: {}'), 'clientId'],
    [
      'a secret in the file',
      issuerWith('introspection: {clientId: gw, clientSecret: plainly}'),
      'expected a secret reference',
    ],
    [
      'an empty secret',
      issuerWith('introspection: {clientId: gw, clientSecret: {env: NONE}}'),
      'the environment variable "NONE" is not set',
    ],
    [
      'a plain endpoint',
      issuerWith(ASKED.replace('}}', '}, endpoint: "http://idp.example.com/i"}')),
      'plain http is never sent to public addresses',
    ],
    [
      'an endpoint in another network',
      issuerWith(ASKED.replace('}}', '}, endpoint: "https://10.0.0.1/i"}')),
      'this address is not in the network "public"',
    ],
    ['the type of proofs', issuerWith('algorithms: [ES256]', 'tokenType: dpop+jwt'), 'no access tokens'],
    [
      'the type of grants',
      issuerWith('algorithms: [ES256]', 'tokenType: application/oauth-id-jag+jwt'),
      'no access tokens',
    ],
    [
      'a pointer that is none',
      issuerWith('algorithms: [ES256]', 'claims: {groups: ["/a~2b"]}'),
      'this is not a JSON Pointer',
    ],
    [
      'a scope that includes itself',
      issuerWith('algorithms: [ES256]', 'scopeHierarchy: {a: [b], b: [c], c: [b]}'),
      'the scope "b" includes itself',
    ],
    ['a scope that is none', issuerWith('algorithms: [ES256]', 'scopeHierarchy: {"a b": [c]}'), 'an OAuth scope'],
    ['an empty list', issuerWith('algorithms: [ES256]', 'scopeHierarchy: {a: []}'), 'not be empty'],
  ])('with %s is a mistake', (_title, text, message) => {
    const reading = read(text, { env: SECRET_ENV });
    expect(reading.settings).toBeUndefined();
    const lines = reading.diagnostics.map(lineOf).join('\n');
    expect(lines).toContain(message);
    expect(lines).not.toContain('plainly');
  });

  it('that is asked stands alone among those of an upstream', () => {
    const second = `  other:\n    issuer: https://other.example.com\n    ${ASKED}\n`;
    const text = issuerWith(ASKED)
      .replace('upstreams:\n', `${second}upstreams:\n`)
      .replace('issuers: [corp]', 'issuers: [corp, other]');
    expect(diagnosticLines(text, { env: SECRET_ENV }).join('\n')).toContain(
      'one issuer of an upstream may be introspected, not several',
    );
  });
});

describe('[TOK-13] a hierarchy of scopes', () => {
  const scope = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const hierarchies = fc
    .dictionary(scope, fc.uniqueArray(scope, { maxLength: 4 }))
    .map((entries) => new Map(Object.entries(entries)));

  it('is closed, grows with its entries, and ends on circles', () => {
    fc.assert(
      fc.property(hierarchies, scope, (hierarchy, start) => {
        const implied = includedScopes(start, hierarchy);
        for (const direct of hierarchy.get(start) ?? []) expect(implied).toContain(direct);
        for (const one of implied) {
          for (const further of includedScopes(one, hierarchy)) expect(implied).toContain(further);
        }
      }),
    );
  });
});

const CONSOLE_ENV = { KEY: KEY_HEX, SECRET: 'secret-of-the-console' };
const LOGIN = 'login: {clientId: console, clientSecret: {env: SECRET}}';

function withConsole(publicUrl: string | undefined, login = LOGIN, text = GOOD): string {
  const url = publicUrl === undefined ? '' : `publicUrl: ${JSON.stringify(publicUrl)}, `;
  return `${withLogin(login, text)}admin: {${url}issuers: {corp: {audience: a, roles: {viewer: [x]}}}}\n`;
}

function withLogin(login: string, text = GOOD): string {
  return text.replace('  corp:\n', `  corp:\n    ${login}\n`);
}

describe('[CON-10] the settings of the console', () => {
  it('have the login of each issuer, with its defaults', () => {
    const { settings } = read(withConsole('https://console.example.com'), { env: CONSOLE_ENV });
    expect(settings?.admin?.publicUrl?.href).toBe('https://console.example.com/');
    expect(settings?.issuers.get('corp')?.login).toEqual({
      ...{ clientId: 'console', clientSecret: 'secret-of-the-console', scopes: ['openid'] },
      authentication: 'client_secret_basic',
    });
  });

  it.each([
    ['no URL to return to', undefined, LOGIN, 'the key "publicUrl" of "admin" is missing'],
    ['plain http', 'http://console.example.com', LOGIN, 'plain http is possible only on loopback'],
    ['a path', 'https://example.com/console', LOGIN, 'served at the root of its host'],
    ['no URL at all', 'console', LOGIN, 'expected a URL'],
    [
      'scopes without an ID token',
      'https://console.example.com',
      LOGIN.replace('}}', '}, scopes: [groups]}'),
      'without the scope "openid"',
    ],
    ['no secret', 'https://console.example.com', 'login: {clientId: x}', '"clientSecret" is missing'],
  ])('are refused with %s', (_, publicUrl, login, message) => {
    const found = diagnosticLines(withConsole(publicUrl, login), { env: CONSOLE_ENV });
    expect(found.some((line) => line.includes(message))).toBe(true);
  });

  it('are accepted with plain http on loopback', () => {
    expect(diagnosticLines(withConsole('http://127.0.0.1:9090'), { env: CONSOLE_ENV })).toEqual([]);
  });

  it('are refused where the issuer introspects its tokens, because nothing verifies an ID token', () => {
    const introspecting = GOOD.replace(
      'algorithms: [ES256]',
      'introspection: {clientId: gateway, clientSecret: {env: SECRET}}',
    );
    const found = diagnosticLines(withConsole('https://console.example.com', LOGIN, introspecting), {
      env: CONSOLE_ENV,
    });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('an ID token is verified by its signature');
  });
});

describe('the login of an issuer', () => {
  const lines = (text: string) => diagnosticLines(text, { env: CONSOLE_ENV });

  it('needs no console', () => {
    expect(lines(withLogin(LOGIN))).toEqual([]);
  });

  it('is refused in its former place, with the place that it has now', () => {
    const found = lines(`${GOOD}admin: {issuers: {corp: {audience: a, roles: {viewer: [x]}, ${LOGIN}}}}\n`);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('"login" belongs to "issuers.corp.login"');
  });

  it.each([
    ...['email', 'preferred_username', 'upn', 'name', 'Email', '/email', '/profile/email', 'nickname', 'unique_name'],
    ...['phone_number', '/preferred_username'],
  ])('does not match people by %j, which they can set', (claim) => {
    const found = lines(withLogin(LOGIN.replace('}}', `}, match: ${JSON.stringify(claim)}}`)));
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('users or administrators can set');
  });

  it.each([
    ['tid', 'the same for several people'],
    ['iss', 'the same for several people'],
    ['/groups', 'the same for several people'],
    ['sub', 'compared in any case'],
    ['/a~2', 'not a JSON Pointer'],
    ['', 'found empty text'],
  ])('does not match people by %j', (claim, message) => {
    const found = lines(withLogin(LOGIN.replace('}}', `}, match: ${JSON.stringify(claim)}}`)));
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(message);
  });

  it.each(['oid', 'employee_number', '/person/id', 'https://corp.example/person'])('matches people by %j', (claim) => {
    const text = withLogin(LOGIN.replace('}}', `}, match: ${JSON.stringify(claim)}}`));
    expect(read(text, { env: CONSOLE_ENV }).settings?.issuers.get('corp')?.login?.match).toBe(claim);
  });
});

const STORE = 'redis://gateway:secret-of-the-store@store.internal:6380/2';

function linesOfState(state: string, url: string = STORE, text: string = GOOD): readonly string[] {
  return diagnosticLines(`${text}state: ${state}\n`, { env: { KEY: KEY_HEX, STORE: url } });
}

describe('[REV-20] the settings of the store', () => {
  it('are those of memory unless they say otherwise', () => {
    expect(read(GOOD, { env: { KEY: KEY_HEX } }).settings?.state).toEqual({ type: 'memory' });
    const text = `${GOOD}state: {type: redis, url: {env: STORE}}\n`;
    expect(read(text, { env: { KEY: KEY_HEX, STORE } }).settings?.state).toEqual({
      type: 'redis',
      url: STORE,
      prefix: 'sallyport',
      commandTimeoutMs: 500,
      maxAgeMs: 30_000,
      afterLoss: 'refuse',
      readiness: 'lenient',
    });
  });

  it.each([
    ['no URL', '{type: redis}', STORE, 'error the key "url" is missing'],
    ['another scheme', '{type: redis, url: {env: STORE}}', 'https://x', 'no redis:// or rediss://'],
    ['no host', '{type: redis, url: {env: STORE}}', 'redis://', 'no redis:// or rediss://'],
    ['too short an age', '{type: redis, url: {env: STORE}, maxAge: 1s}', STORE, 'shorter than 2s'],
    [
      'a command that outlives it',
      '{type: redis, url: {env: STORE}, maxAge: 2s, commandTimeout: 1500ms}',
      STORE,
      'longer than half of "maxAge"',
    ],
    ['a prefix with a brace', '{type: redis, url: {env: STORE}, prefix: "a}b"}', STORE, 'expected up to 64 letters'],
  ])('are refused with %s', (_, state, url, message) => {
    const found = linesOfState(state, url);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(message);
    expect(found[0]).not.toContain('secret-of');
  });

  it('are refused on loopback without a key that replicas could share', () => {
    const found = linesOfState('{type: redis, url: {env: STORE}}', STORE, LOCAL);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('a shared store needs "keys"');
  });
});
