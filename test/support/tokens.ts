// What tokens are made of: an issuer that misbehaves, proofs of possession, and a token endpoint.

import { createHmac, hash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  SignJWT,
} from 'jose';
import type { IssuerSettings } from '../../src/config/settings.js';
import { canary } from './canary.js';

// An issuer for tests that mints whatever a test asks for and misbehaves on request. Loopback only.
// For a real authorization server see authorization-servers.ts.

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
  mintUnsigned(resource: string, header: Readonly<Record<string, unknown>>, signature: Uint8Array): string;
  currentKey(): SigningKey;
  /** Signs with a new key and publishes it, with the old one or without. */
  rotate(options?: { readonly keepOld?: boolean; readonly alg?: string }): Promise<SigningKey>;
  /** Replaces members of its metadata. */
  describe(members: Readonly<Record<string, unknown>>): void;
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
function misbehaveOn(how: Misbehaviour, response: ServerResponse, kept: Set<ServerResponse>): boolean {
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
    /** What stands for 127.0.0.1 in its URLs. */
    readonly host?: string;
  } = {},
): Promise<TestIssuer> {
  const hits = new Map<string, number>();
  let described: Readonly<Record<string, unknown>> = {};
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
      ...described,
    };
  }

  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  canary.watchIssuer(port);
  const base = `http://${options.host ?? '127.0.0.1'}:${port}`;
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
      traceContext: 'replaced',
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
    describe(members) {
      described = members;
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

// The client side of DPoP for tests: a key, and proofs that are good unless a test says otherwise.
// Source: RFC 9449 §4.2.

export type ProofOptions = {
  /** Without it the proof names no token. */
  readonly token?: string;
  /** `undefined` removes a member that is there by default. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  /** Signs in place of the key that the header shows. */
  readonly signer?: CryptoKey;
};

export type ProofHolder = {
  /** Thumbprint of the key (RFC 7638): what a bound token names. */
  readonly thumbprint: string;
  readonly publicJwk: JWK;
  readonly privateJwk: JWK;
  readonly privateKey: CryptoKey;
  prove(method: string, uri: string, options?: ProofOptions): Promise<string>;
};

function present(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

/** A holder of a new key. */
export async function makeProofHolder(alg = 'ES256', size?: number): Promise<ProofHolder> {
  const { publicKey, privateKey } = await generateKeyPair(alg, {
    extractable: true,
    ...(size === undefined ? {} : { modulusLength: size }),
  });
  const publicJwk = await exportJWK(publicKey);
  return {
    thumbprint: await calculateJwkThumbprint(publicJwk),
    publicJwk,
    privateJwk: await exportJWK(privateKey),
    privateKey,
    prove(method, uri, { token, claims = {}, header = {}, signer = privateKey } = {}) {
      const ath = token === undefined ? undefined : hash('sha256', token, 'base64url');
      const iat = Math.floor(Date.now() / 1000);
      const body = { jti: randomUUID(), htm: method, htu: uri, iat, ath };
      return new SignJWT(present({ ...body, ...claims }))
        .setProtectedHeader(present({ typ: 'dpop+jwt', alg, jwk: publicJwk, ...header }) as { alg: string })
        .sign(signer, { crit: { exp: true } });
    },
  };
}

/** Good headers of one request with a bound token. */
export async function proofHeaders(
  holder: ProofHolder,
  { method = 'POST', url, token }: { readonly method?: string; readonly url: string; readonly token: string },
  options: ProofOptions = {},
): Promise<{ readonly authorization: string; readonly dpop: string }> {
  return {
    authorization: `DPoP ${token}`,
    dpop: await holder.prove(method, url, { token, ...options }),
  };
}

// A token endpoint that issues what it is told to, and records what it was asked. Without orders it issues
// an honest token for whatever resource is asked for. Loopback only; for a real authorization server see
// authorization-servers.ts.

export type TokenRequest = {
  readonly form: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
};

export type TokenReply =
  | { readonly kind: 'json'; readonly status?: number; readonly body: object }
  | {
      readonly kind: 'raw';
      readonly status: number;
      readonly type?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body: string | Buffer;
    }
  | { readonly kind: 'hold' }
  | { readonly kind: 'destroy' };

export type TokenServer = {
  readonly url: string;
  readonly origin: string;
  readonly seen: TokenRequest[];
  /** Tokens that were issued, in order. */
  readonly issued: string[];
  /** What it answers from now on; `undefined` leaves it honest. */
  obey(order: (request: TokenRequest) => TokenReply | undefined): void;
  repent(): void;
  close(): Promise<void>;
};

export const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token';
const LIFE_SECONDS = 600;

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** A JWT that nobody here verifies. */
export function mintJwt(claims: object): string {
  const signature = Buffer.from(randomUUID()).toString('base64url');
  return `${part({ typ: 'at+jwt', alg: 'ES256' })}.${part(claims)}.${signature}`;
}

/** The members of an honest answer; `more` replaces them, `undefined` takes them out. */
export function honestAnswer(
  { form }: TokenRequest,
  more: { readonly claims?: object; readonly answer?: object } = {},
): Extract<TokenReply, { readonly kind: 'json' }> {
  const now = Math.floor(Date.now() / 1000);
  const token = mintJwt({
    iss: 'https://as.example',
    sub: 'alice',
    aud: form.get('resource') ?? form.get('audience'),
    iat: now,
    exp: now + LIFE_SECONDS,
    jti: randomUUID(),
    ...more.claims,
  });
  const isExchange = form.get('grant_type') === EXCHANGE_GRANT;
  const body = {
    access_token: token,
    token_type: 'Bearer',
    expires_in: LIFE_SECONDS,
    ...(isExchange ? { issued_token_type: ACCESS_TOKEN_TYPE } : {}),
    ...more.answer,
  };
  return { kind: 'json', body };
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return new URLSearchParams(text);
}

export async function startTokenServer(): Promise<TokenServer> {
  const seen: TokenRequest[] = [];
  const issued: string[] = [];
  let order: (request: TokenRequest) => TokenReply | undefined = () => undefined;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = { form: await readForm(request), headers: request.headers };
    seen.push(asked);
    const reply = order(asked) ?? honestAnswer(asked);
    switch (reply.kind) {
      case 'json': {
        const { access_token: token } = reply.body as { readonly access_token?: string };
        if (token !== undefined) issued.push(token);
        response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(reply.body));
        return;
      }
      case 'raw': {
        const { status, type = 'application/json', headers = {}, body } = reply;
        response.writeHead(status, { 'content-type': type, ...headers }).end(body);
        return;
      }
      case 'destroy':
        response.socket?.destroy();
        return;
      case 'hold':
        return;
    }
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  // What is exchanged is shown to it (RFC 8693 §2.1).
  canary.watchIssuer(port);
  const origin = `http://127.0.0.1:${port}`;
  return {
    url: `${origin}/token`,
    origin,
    seen,
    issued,
    obey(next) {
      order = next;
    },
    repent() {
      order = () => undefined;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
