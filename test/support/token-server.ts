// A token endpoint that issues what it is told to, and records what it was asked. Without orders it issues
// an honest token for whatever resource is asked for. Loopback only; for a real authorization server see
// exchange-provider.ts.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { canary } from './canary.js';

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
