// A running gateway whose upstream gets exchanged tokens, with a token endpoint that a test commands.

import { expect } from 'vitest';
import { type AttackRig, startRig } from './attack-rig.js';
import type { HostileRequest, HostileUpstream } from './hostile-upstream.js';
import { makeSecretFiles } from './secret-files.js';
import { startTokenServer, type TokenServer } from './token-server.js';

export type ExchangeRig = AttackRig & {
  readonly server: TokenServer;
  /** The secret that the gateway shows in its own name. */
  readonly ownValue: string;
  /** What each request to the upstream carried as credential. */
  shown(): readonly (string | undefined)[];
};

/** `more` are further members of the credentials, in flow style; `upstream` of the upstream. */
export async function startExchangeRig(
  options: {
    readonly more?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly upstream?: readonly string[];
    readonly pinning?: string;
    readonly prepare?: (upstream: HostileUpstream) => void;
  } = {},
): Promise<ExchangeRig> {
  const server = await startTokenServer();
  const files = await makeSecretFiles();
  const ownValue = `Own ${crypto.randomUUID()}`;
  const secret = await files.write('client', crypto.randomUUID());
  const own = await files.write('own', ownValue);
  const rig = await startRig({
    ...(options.prepare === undefined ? {} : { prepare: options.prepare }),
    ...(options.env === undefined ? {} : { env: options.env }),
    upstream: [
      `credentials: {type: token-exchange, tokenEndpoint: ${JSON.stringify(server.url)}, network: loopback, clientId: gateway, clientSecret: {file: ${secret}}${options.more ?? ''}}`,
      `pinning: {maxAge: ${options.pinning ?? '10m'}, credentials: {type: static, header: X-Own, value: {file: ${own}}}}`,
      ...(options.upstream ?? []),
    ],
  });
  const credentialOf = ({ headers }: HostileRequest): string | undefined =>
    headers['authorization'] ?? headers['x-own'];
  return {
    ...rig,
    server,
    ownValue,
    shown: () => rig.upstream.seen().map(credentialOf),
    async close() {
      await rig.close();
      await server.close();
      await files.close();
    },
  };
}

/** The claims of a JWT, unverified. */
export function claimsOf(token: string): Readonly<Record<string, unknown>> {
  const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  return JSON.parse(claims) as Readonly<Record<string, unknown>>;
}

/** Parts of a token of which each would be enough to find it again. */
export function tracesOf(token: string): readonly string[] {
  const [head = '', claims = '', signature = ''] = token.split('.');
  return [signature, `${head}.${claims}`.slice(0, 80), claims.slice(20, 60)];
}

/** Nothing of these tokens stands in what the upstream got or in what the gateway wrote. */
export async function expectNoTraceOf(
  rig: AttackRig,
  tokens: readonly string[],
  where: { readonly upstream: boolean } = { upstream: true },
): Promise<void> {
  const seen = JSON.stringify(
    rig.upstream.seen().map(({ url, rawHeaders, body }) => ({ url, rawHeaders, body })),
  );
  const written = [JSON.stringify(await rig.gateway.audit()), rig.gateway.log()];
  written.push(await rig.gateway.metrics());
  for (const trace of tokens.flatMap(tracesOf)) {
    if (where.upstream) expect(seen).not.toContain(trace);
    for (const text of written) expect(text).not.toContain(trace);
  }
}
