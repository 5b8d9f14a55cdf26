// What credentials, TLS and identity of an upstream need, and what they become.

import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { makeAuthority } from '../../../support/tls.js';
import { diagnosticLines, FOLDER, GOOD, type Surroundings, settingsOf } from '../reading.js';

const authority = makeAuthority();
const own = authority.issue();
const other = authority.issue();
const expired = authority.issue({ notAfter: new Date(Date.now() - 1000) });
const { privateKey: weak } = generateKeyPairSync('rsa', { modulusLength: 1024 });

const AROUND: Surroundings = {
  env: { SECRET: 'client secret-of-it', OWN: 'Own key-of-the-gateway', ACTOR: 'head.claims.sign' },
  files: {
    [`${FOLDER}/ca.pem`]: authority.cert,
    [`${FOLDER}/tls/own.pem`]: `${own.cert}${authority.cert}`,
    [`${FOLDER}/tls/own.key`]: own.key,
    [`${FOLDER}/tls/other.key`]: other.key,
    [`${FOLDER}/expired.pem`]: expired.cert,
    [`${FOLDER}/none.pem`]: 'no certificate',
    [`${FOLDER}/weak.key`]: weak.export({ type: 'pkcs8', format: 'pem' }).toString(),
    [`${FOLDER}/key.json`]: JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })),
  },
};

function upstream(...lines: readonly string[]): string {
  return GOOD.replace('    issuers: [corp]\n', `    issuers: [corp]\n${lines.map((line) => `    ${line}\n`).join('')}`);
}

function diagnosticsOf(...lines: readonly string[]): readonly string[] {
  return diagnosticLines(upstream(...lines), AROUND).map((line) => line.replace(/^\S+ /, ''));
}

function github(...lines: readonly string[]) {
  return settingsOf(upstream(...lines), AROUND).upstreams.get('github');
}

const SERVER = 'issuer: https://as.example.com, clientId: gateway, clientSecret: {env: SECRET}';
const EXCHANGE = `credentials: {type: token-exchange, ${SERVER}}`;
const OWN = 'pinning: {credentials: {type: static, header: X-Own, value: {env: OWN}}}';

describe('[CRD-03] credentials', () => {
  it('are read with their defaults', () => {
    const request = {
      server: { kind: 'issuer', url: 'https://as.example.com' },
      network: 'public',
      clientId: 'gateway',
      authentication: { method: 'client_secret_basic', secret: 'client secret-of-it' },
      scopes: [],
      resource: 'https://github.example.com/mcp',
      audience: undefined,
      own: {
        audiences: ['https://mcp.example.com/github'],
        base: 'https://mcp.example.com',
      },
    };
    const found = github(`credentials: {type: client-credentials, ${SERVER}}`);
    expect(found?.credentials).toEqual({ type: 'client-credentials', request });
    expect(found?.pinning.credentials).toEqual({ type: 'client-credentials', request });
    expect(github(EXCHANGE, OWN)).toMatchObject({
      credentials: { type: 'token-exchange', request, actor: undefined },
      pinning: {
        credentials: { type: 'static', header: 'x-own', value: 'Own key-of-the-gateway' },
      },
    });
  });

  it('ask for an audience in place of a resource, where one is named', () => {
    const found = github(
      'credentials: {type: token-exchange, tokenEndpoint: https://as.example.com/token, clientId: g, privateKey: {file: key.json}, audience: api, actorToken: {env: ACTOR}}',
      OWN,
    );
    expect(found?.credentials).toMatchObject({
      request: {
        server: { kind: 'token-endpoint', url: 'https://as.example.com/token' },
        authentication: { method: 'private_key_jwt' },
        resource: undefined,
        audience: 'api',
      },
      actor: { token: 'head.claims.sign', type: 'jwt' },
    });
  });

  it.each([
    [
      'a server and a proof',
      ['credentials: {type: client-credentials, clientId: gateway}'],
      [
        'error one of the keys "clientSecret" and "privateKey" is missing',
        'error one of the keys "issuer" and "tokenEndpoint" is missing',
      ],
    ],
    [
      'one of each',
      [
        `credentials: {type: client-credentials, ${SERVER}, tokenEndpoint: https://as.example.com/t, privateKey: {file: key.json}}`,
      ],
      ['error "issuer" or "tokenEndpoint", not both', 'error "clientSecret" or "privateKey", not both'],
    ],
    [
      'https outside loopback',
      [`credentials: {type: client-credentials, ${SERVER.replace('https', 'http')}}`],
      [
        'error plain http is never sent to public addresses; for a server in a private network write "network: private" and "plaintext: accepted", for one on this machine "network: loopback"; did you mean "https://as.example.com"?',
      ],
    ],
    [
      'an audience that is not ours',
      [`credentials: {type: client-credentials, ${SERVER}, resource: https://mcp.example.com/github}`],
      ['error this is an audience of the gateway itself'],
    ],
    [
      'a key that can sign',
      [
        `credentials: {type: client-credentials, issuer: https://as.example.com, clientId: g, privateKey: {file: weak.key}}`,
      ],
      [
        'error the file "weak.key" holds a key that cannot sign: expected RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519',
      ],
    ],
    [
      'for an exchange, a credential of the gateway itself',
      [EXCHANGE],
      ['error token-exchange needs "pinning.credentials": the gateway lists for itself, without a caller'],
    ],
    [
      'for the gateway itself, no exchange',
      [`pinning: {credentials: {type: token-exchange, ${SERVER}}}`],
      ['error "token-exchange" is not one of none, static, client-credentials'],
    ],
  ])('need %s', (_, lines, expected) => {
    expect(diagnosticsOf(...lines)).toEqual(expected);
  });
});

describe('[CRD-03] audiences of the gateway', () => {
  const CORP = '{corp: [api://mail]}';
  const more = `upstreams:
  mail: {url: https://mail.example.com/mcp, issuers: [corp], audiences: ${CORP}}
`;
  const parts = `endpoints:
  both: {issuers: [corp], upstreams: {github: {}, mail: {}}}
admin: {issuers: {corp: {audience: urn:admins, roles: {viewer: [sec]}}}}
`;
  const textOf = (line: string): string => upstream(line).replace('upstreams:\n', more).concat(parts);

  it.each(['api://mail', 'https://mcp.example.com/both', 'urn:admins'])(
    'are asked for by no credential: %s',
    (audience) => {
      const line = `credentials: {type: client-credentials, ${SERVER}, audience: "${audience}"}`;
      const found = diagnosticLines(textOf(line), AROUND).map((one) => one.replace(/^\S+ /, ''));
      expect(found).toEqual(['error this is an audience of the gateway itself']);
    },
  );

  it('are known to whoever judges what is issued', () => {
    const line = `credentials: {type: client-credentials, ${SERVER}}`;
    const found = settingsOf(textOf(line), AROUND).upstreams.get('github')?.credentials;
    expect(found).toMatchObject({
      request: {
        own: {
          audiences: expect.arrayContaining([
            ...['api://mail', 'https://mcp.example.com/both', 'urn:admins'],
            'https://mcp.example.com/github',
          ]),
        },
      },
    });
  });
});

describe('[CRD-03] tls', () => {
  it('is read from files beside the gateway file, which are watched', () => {
    const text = upstream('tls: {ca: ca.pem, cert: tls/own.pem, key: {file: tls/own.key}, serverName: mcp.internal}');
    const settings = settingsOf(text, AROUND);
    expect(settings.upstreams.get('github')?.tls).toEqual({
      ca: authority.cert,
      client: { cert: `${own.cert}${authority.cert}`, key: own.key.trimEnd() },
      serverName: 'mcp.internal',
      pins: [],
    });
    expect(settings.watchedFiles).toEqual([`${FOLDER}/ca.pem`, `${FOLDER}/tls/own.pem`, `${FOLDER}/tls/own.key`]);
  });

  it.each([
    ['a file', 'tls: {ca: gone.pem}', 'error the file "gone.pem" cannot be read'],
    [
      'a certificate',
      'tls: {ca: none.pem}',
      'error the file "none.pem" holds no certificate in PEM, or one that cannot be read',
    ],
    [
      'the key of the certificate',
      'tls: {cert: tls/own.pem, key: {file: tls/other.key}}',
      'error this is not the private key of the certificate',
    ],
    ['both halves', 'tls: {cert: tls/own.pem}', 'error "cert" needs "key" beside it'],
    [
      'a key',
      'tls: {cert: tls/own.pem, key: {env: SECRET}}',
      'error the environment variable "SECRET" holds no private key in PEM',
    ],
    ['pins that can be compared', 'tls: {pins: [abc]}', 'error expected sha256: and 64 lower-case hex digits'],
    [
      'a certificate that still holds',
      'tls: {ca: expired.pem}',
      'warning the certificate of the file "expired.pem" has expired',
    ],
  ])('needs %s', (_, line, expected) => {
    expect(diagnosticsOf(line)).toEqual([expected]);
  });

  it('belongs to https', () => {
    const plain = upstream('network: loopback', 'tls: {serverName: a}')
      .replace('https://github.example.com', 'http://127.0.0.1:3001')
      .replace('https://mcp.example.com', 'http://127.0.0.1:8080');
    expect(diagnosticLines(plain, AROUND)).toEqual(['13:5 error this URL is reached without TLS']);
  });
});

describe('[CRD-03] identity', () => {
  it('is off unless it is there, and has defaults', () => {
    expect(github()?.identity).toBeUndefined();
    expect(github('identity: {}')?.identity).toEqual({
      header: 'sallyport-assertion',
      ttlMs: 60_000,
      audience: 'https://github.example.com/mcp',
    });
  });

  it.each([
    ['Authorization', 'error the gateway sets this header itself'],
    ['Mcp-Name', 'error the gateway sets this header itself'],
    ['Host', 'error the gateway sets this header itself'],
  ])('cannot stand in %s', (header, expected) => {
    expect(diagnosticsOf(`identity: {header: ${header}}`)).toEqual([expected]);
  });

  it('cannot stand where a credential stands, or live long', () => {
    const credential = 'credentials: {type: static, header: X-Caller, value: {env: SECRET}}';
    expect(diagnosticsOf(credential, 'identity: {header: x-caller}')).toEqual([
      'error "credentials" has this header too',
    ]);
    expect(diagnosticsOf('identity: {ttl: 1h}')).toEqual(['error an assertion is valid for 1s to 10m']);
  });
});

describe('[CRD-03] the page on credentials', () => {
  const page = readFileSync(new URL('../../../../docs/reference/upstream-credentials.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);

  it.each(blocks)('shows what is accepted: %#', (block) => {
    const around: Surroundings = {
      env: {
        ...AROUND.env,
        AS_SECRET: 'secret of a client',
        UPSTREAM_AUTHORIZATION: 'Bearer is-long-enough',
      },
      files: {
        ...AROUND.files,
        [`${FOLDER}/tls/internal-ca.pem`]: authority.cert,
        [`${FOLDER}/tls/sallyport.pem`]: own.cert,
        [`${FOLDER}/tls/sallyport.key`]: own.key,
        '/run/secrets/as-key': own.key,
      },
    };
    expect(diagnosticLines(upstream(...block.trimEnd().split('\n')), around)).toEqual([]);
  });

  it('shows every kind', () => {
    expect(blocks).toHaveLength(5);
  });
});

describe('[CRD-14] a secret that is too short to be recognized where it comes back', () => {
  it.each([
    ['a header, whose scheme does not count', 'credentials: {type: static, header: X, value: {env: S}}'],
    [
      'a client secret',
      'credentials: {type: client-credentials, issuer: https://as.example.com, clientId: g, clientSecret: {env: S}}',
    ],
  ])('is warned of: %s', (_what, line) => {
    const lines = (value: string): readonly string[] =>
      diagnosticLines(upstream(line), { env: { S: value } }).map((one) => one.replace(/^\S+ /, ''));
    const warning = /^warning the environment variable "S" holds a secret shorter than 12 characters/;
    expect(lines('elevenchars')).toEqual([expect.stringMatching(warning)]);
    expect(lines('twelve-chars')).toEqual([]);
    const behindScheme = line.includes('header') ? [expect.stringMatching(warning)] : [];
    expect(lines('Bearer elevenchars')).toEqual(behindScheme);
  });
});
