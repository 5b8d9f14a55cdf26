// An issuer for tests that mints whatever a test asks for and misbehaves on request. Loopback only.
// For a real authorization server see oidc-provider.ts.

import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  SignJWT,
} from 'jose';
import type { IssuerSettings } from '../../src/config/settings.js';
import { canary } from './canary.js';

/** What the issuer's endpoints do instead of answering as they should. */
export type Misbehaviour =
  | 'none'
  | 'down'
  | 'error'
  | 'silent'
  | 'html'
  | 'huge'
  | 'redirect'
  | 'wrong-issuer'
  | 'foreign-keys';

export type SigningKey = {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  readonly publicJwk: JWK;
};

/** `undefined` removes a claim or header member that is there by default. */
export type MintOptions = {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly key?: SigningKey;
};

/** The JSON of an answer about a token; `asked` has the form and the header that came. */
export type IntrospectionAnswers = (
  token: string,
  asked: { readonly form: URLSearchParams; readonly authorization: string | undefined },
) => unknown;

export type TestIssuer = {
  readonly issuer: string;
  /** Requests so far, by path. */
  readonly hits: ReadonlyMap<string, number>;
  /** Settings that fit this issuer. */
  settings(overrides?: Partial<IssuerSettings>): IssuerSettings;
  /** A good access token for `resource` unless told otherwise. */
  mint(resource: string, options?: MintOptions): Promise<string>;
  /** The public key as the secret of an HMAC: the oldest confusion of JOSE. */
  mintWithPublicKeyAsSecret(resource: string): Promise<string>;
  /** Any header over good claims, with any bytes as signature. */
  mintUnsigned(
    resource: string,
    header: Readonly<Record<string, unknown>>,
    signature: Uint8Array,
  ): string;
  currentKey(): SigningKey;
  /** Signs with a new key and publishes it, with the old one or without. */
  rotate(options?: { readonly keepOld?: boolean; readonly alg?: string }): Promise<SigningKey>;
  /** Publishes exactly these keys. */
  publish(keys: readonly JWK[]): void;
  /** What its introspection endpoint answers about each token; by default that it is not active. */
  answerAbout(answers: IntrospectionAnswers): void;
  misbehave(how: Misbehaviour, where?: 'metadata' | 'keys' | 'introspection'): void;
  /** Ends the connections on which it kept silent: nobody need wait for the timeout. */
  hangUp(): void;
  close(): Promise<void>;
};

const HUGE_BYTES = 50 * 1024 * 1024;

/** A key pair for signing, with a key id of its own. */
export async function makeSigningKey(alg = 'ES256', kid?: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const name = kid ?? `key-${crypto.randomUUID()}`;
  const publicJwk = { ...(await exportJWK(publicKey)), kid: name, alg, use: 'sig' };
  return { kid: name, alg, privateKey, publicKey, publicJwk };
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function withoutUndefined(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

function streamHuge(response: ServerResponse): void {
  const piece = Buffer.alloc(256 * 1024, 0x20);
  let left = HUGE_BYTES;
  const pump = () => {
    while (left > 0 && !response.destroyed) {
      left -= piece.length;
      if (!response.write(piece)) return;
    }
    response.end('{}');
  };
  response.on('drain', pump);
  pump();
}

/** True when the misbehaviour has answered (or means not to: then `kept` has the response). */
function misbehaveOn(
  how: Misbehaviour,
  response: ServerResponse,
  kept: Set<ServerResponse>,
): boolean {
  switch (how) {
    case 'down':
      response.socket?.destroy();
      return true;
    case 'error':
      response.writeHead(500).end('{}');
      return true;
    case 'silent':
      kept.add(response);
      response.once('close', () => kept.delete(response));
      return true;
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>Sign in');
      return true;
    case 'huge':
      streamHuge(response);
      return true;
    case 'redirect':
      response.writeHead(302, { location: 'http://169.254.169.254/keys' }).end();
      return true;
    case 'none':
    case 'wrong-issuer':
    case 'foreign-keys':
      return false;
  }
}

/** Starts an issuer on a free port. `path` is the path of its identifier; `metadataAt` where it is found. */
export async function startTestIssuer(
  options: {
    readonly path?: string;
    readonly metadataAt?: string;
    readonly alg?: string;
    readonly key?: SigningKey;
  } = {},
): Promise<TestIssuer> {
  const hits = new Map<string, number>();
  let key = options.key ?? (await makeSigningKey(options.alg));
  let published: readonly JWK[] = [key.publicJwk];
  let misbehaviour: Misbehaviour = 'none';
  let misbehavingPart: 'metadata' | 'keys' | 'introspection' = 'keys';
  const kept = new Set<ServerResponse>();
  let answers: IntrospectionAnswers = () => ({ active: false });

  async function introspect(request: IncomingMessage): Promise<unknown> {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const form = new URLSearchParams(text);
    return answers(form.get('token') ?? '', { form, authorization: request.headers.authorization });
  }

  const PARTS: Readonly<Record<string, 'keys' | 'introspection'>> = {
    '/keys': 'keys',
    '/introspect': 'introspection',
  };

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? '';
    hits.set(path, (hits.get(path) ?? 0) + 1);
    const part = path === metadataAt ? 'metadata' : PARTS[path];
    if (part === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    if (part === misbehavingPart && misbehaveOn(misbehaviour, response, kept)) return;
    response.setHeader('content-type', 'application/json');
    if (part === 'introspection') {
      introspect(request).then(
        (reply) => response.end(JSON.stringify(reply)),
        () => response.destroy(),
      );
      return;
    }
    response.end(JSON.stringify(part === 'keys' ? { keys: published } : metadata()));
  }

  function metadata(): object {
    return {
      issuer: misbehaviour === 'wrong-issuer' ? `${issuer}/` : issuer,
      jwks_uri: misbehaviour === 'foreign-keys' ? `http://localhost:${port}/keys` : `${base}/keys`,
      introspection_endpoint: `${base}/introspect`,
    };
  }

  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  canary.watchIssuer(port);
  const base = `http://127.0.0.1:${port}`;
  const path = options.path ?? '';
  const issuer = base + path;
  const metadataAt = options.metadataAt ?? `/.well-known/oauth-authorization-server${path}`;

  function claimsFor(resource: string): Record<string, unknown> {
    const now = Math.floor(Date.now() / 1000);
    return {
      iss: issuer,
      sub: 'alice',
      aud: resource,
      client_id: 'test-client',
      scope: 'notes:read notes:write',
      groups: ['eng'],
      iat: now,
      exp: now + 600,
      jti: crypto.randomUUID(),
    };
  }

  /** Whatever it is worth, nobody else may see it. */
  function given(token: string): string {
    canary.recordToken(token);
    return token;
  }

  return {
    issuer,
    hits,
    settings: (overrides = {}) => ({
      name: 'corp',
      issuer,
      network: 'loopback',
      algorithms: ['ES256', 'RS256'],
      tokenType: 'at+jwt',
      maxLifetimeMs: 3_600_000,
      keysMaxAgeMs: 3_600_000,
      introspection: undefined,
      impliedScopes: {},
      claims: { client: ['client_id', 'azp'], scope: ['scope', 'scp'], groups: ['groups'] },
      ...overrides,
    }),
    async mint(resource, { claims = {}, header = {}, key: signer = key } = {}) {
      const head = { alg: signer.alg, kid: signer.kid, typ: 'at+jwt', ...header };
      return given(
        await new SignJWT(withoutUndefined({ ...claimsFor(resource), ...claims }))
          .setProtectedHeader(withoutUndefined(head) as JWTHeaderParameters)
          .sign(signer.privateKey),
      );
    },
    async mintWithPublicKeyAsSecret(resource) {
      const input = `${encode({ alg: 'HS256', kid: key.kid, typ: 'at+jwt' })}.${encode(claimsFor(resource))}`;
      const secret = await exportSPKI(key.publicKey);
      return given(`${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`);
    },
    mintUnsigned: (resource, header, signature) =>
      `${encode(header)}.${encode(claimsFor(resource))}.${Buffer.from(signature).toString('base64url')}`,
    currentKey: () => key,
    async rotate({ keepOld = true, alg } = {}) {
      key = await makeSigningKey(alg ?? key.alg);
      published = keepOld ? [...published, key.publicJwk] : [key.publicJwk];
      return key;
    },
    publish(keys) {
      published = keys;
    },
    answerAbout(given) {
      answers = given;
    },
    misbehave(how, where = how === 'wrong-issuer' || how === 'foreign-keys' ? 'metadata' : 'keys') {
      misbehaviour = how;
      misbehavingPart = where;
    },
    hangUp() {
      for (const response of kept) response.destroy();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
