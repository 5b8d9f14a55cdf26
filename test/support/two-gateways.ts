// Two gateways with the same files, one key and one issuer, as replicas are; and a caller who reaches either.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeKeyText } from '../../src/config/keys.js';
import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { startTestIssuer, type TestIssuer } from './issuer.js';
import { type Listening, listenOn } from './listening.js';
import { type GatewayUnderTest, type RunningGateway, startTestGateway } from './start-gateway.js';
import { type Access, bearer, initialize, post, sessionHeaders } from './wire-client.js';

export type TwoGateways = {
  readonly one: RunningGateway;
  readonly other: RunningGateway;
  /** The issuer that both trust. */
  readonly issuer: TestIssuer;
  /** The same caller at either. */
  access(gateway: RunningGateway, upstream: string, subject: string): Promise<Access>;
  close(): Promise<void>;
};

/** Starts both; `more` is what their gateway files say besides the keys. */
export async function startTwoGateways(options: GatewayUnderTest): Promise<TwoGateways> {
  return startBoth(options, ['key'], ['key']);
}

/** Starts both in the middle of a rotation: both have both keys, and each another in front. */
export async function startRotatingGateways(options: GatewayUnderTest): Promise<TwoGateways> {
  return startBoth(options, ['key', 'next'], ['next', 'key']);
}

async function startBoth(
  options: GatewayUnderTest,
  ofOne: readonly string[],
  ofOther: readonly string[],
): Promise<TwoGateways> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-two-'));
  for (const name of new Set([...ofOne, ...ofOther]))
    await writeFile(join(folder, name), writeKeyText(randomBytes(32)), { mode: 0o600 });
  const issuer = await startTestIssuer();
  const start = (names: readonly string[]): Promise<RunningGateway> => {
    const keys = names.map((name) => `{file: ${JSON.stringify(join(folder, name))}}`);
    const more = `keys: [${keys.join(', ')}]\n${options.more ?? ''}`;
    return startTestGateway({ ...options, issuerUrl: issuer.issuer, more });
  };
  const one = await start(ofOne);
  const other = await start(ofOther);
  return {
    one,
    other,
    issuer,
    async access(gateway, upstream, subject) {
      const url = gateway.url(upstream);
      return { url, token: await issuer.mint(url, { claims: { sub: subject } }) };
    },
    async close() {
      await one.close();
      await other.close();
      await issuer.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Opens a session, and gives its id. */
export async function openAt(access: Access, capabilities: JsonObject = {}): Promise<string> {
  const reply = await initialize(access, capabilities);
  const id = reply.headers.get('mcp-session-id');
  if (reply.status !== 200 || id === null) throw new Error(`no session: ${reply.text}`);
  const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
  await post(access, JSON.stringify(note), sessionHeaders(id));
  return id;
}

/** The stream of a session. */
export async function streamOf({ url, token }: Access, session: string): Promise<Listening> {
  const accept = 'text/event-stream';
  return listenOn(
    await fetch(url, { headers: { ...bearer(token), ...sessionHeaders(session), accept } }),
  );
}

/** A request of a session whose answer is read as it comes. */
export async function askInStream(
  { url, token }: Access,
  session: string,
  message: JsonObject,
): Promise<Listening> {
  return listenOn(
    await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...bearer(token),
        ...sessionHeaders(session),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    }),
  );
}

/** The messages of a stream so far, in order. */
export function messagesOf(stream: Pick<Listening, 'text'>): readonly JsonObject[] {
  const data = stream
    .text()
    .split('\n')
    .filter((line) => line.startsWith('data:') && line.length > 'data: '.length);
  return data.map((line) => JSON.parse(line.slice('data:'.length)) as JsonObject);
}
