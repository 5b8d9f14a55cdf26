// Gateways with more around them: several upstreams, one endpoint over them, replicas, an upstream that takes exchanged
// tokens, and administrators who revoke.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { writeKeyText } from '../../src/config/key-material.js';
import {
  type AttackRig,
  type GatewayUnderTest,
  type RunningGateway,
  settleListings,
  startRig,
  startTestGateway,
  UPSTREAM,
} from './gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from './hostile-acts.js';
import { type HostileRequest, type HostileUpstream, type Order, startHostileUpstream } from './hostile-upstream.js';
import type { JsonObject } from './json.js';
import { startLegacySseFront } from './legacy-sse-front.js';
import { makeSecretFiles } from './secrets.js';
import { startTestIssuer, startTokenServer, type TestIssuer, type TokenServer } from './tokens.js';
import {
  type Access,
  bearer,
  initialize,
  type Listening,
  listenOn,
  type OpenSession,
  openSession,
  post,
  type Reply,
  requestStateless,
  resultOf,
  sessionHeaders,
  statelessParts,
} from './wire-client.js';

// A running gateway in front of two hostile upstreams, and one caller who may call both: what belongs to the
// one must be unknown at the other.

export type TwoUpstreams = {
  readonly one: Access;
  readonly two: Access;
  /** What the second upstream was asked. */
  seenByTwo(): ReturnType<HostileUpstream['seen']>;
  close(): Promise<void>;
};

/** Starts all three. `prepare` is called for each upstream before its pins are fetched. */
export async function startTwoUpstreams(prepare?: (upstream: HostileUpstream) => void): Promise<TwoUpstreams> {
  const [first, second] = [await startHostileUpstream(), await startHostileUpstream()];
  prepare?.(first);
  prepare?.(second);
  const gateway = await startTestGateway({
    upstreams: [
      { name: 'one', url: first.url },
      { name: 'two', url: second.url },
    ],
  });
  const accessTo = async (name: string): Promise<Access> => ({
    url: gateway.url(name),
    token: await gateway.token(name),
  });
  return {
    one: await accessTo('one'),
    two: await accessTo('two'),
    seenByTwo: () => second.seen(),
    async close() {
      await gateway.close();
      await first.close();
      await second.close();
    },
  };
}

// A running gateway with an endpoint over hostile upstreams, and clients of both eras at it: what every test
// of an endpoint starts from.

export const ENDPOINT = 'all';

export type MergedRig = {
  readonly gateway: RunningGateway;
  readonly left: HostileUpstream;
  readonly right: HostileUpstream;
  /** A good caller of the endpoint. */
  readonly access: Access;
  forget(): void;
  close(): Promise<void>;
};

export type MergedOptions = Partial<Omit<GatewayUnderTest, 'upstreams'>> & {
  /** Flow-style members of the endpoint; two members with short prefixes where absent. */
  readonly endpoint?: string;
  /** Members of both upstreams. */
  readonly upstream?: readonly string[];
  readonly prepare?: (left: HostileUpstream, right: HostileUpstream) => void;
  /** The upstreams are reached through faces of HTTP+SSE. */
  readonly behindChannels?: boolean;
};

/** Starts all of them and waits until the definitions were verified. */
export async function startMergedRig(options: MergedOptions = {}): Promise<MergedRig> {
  const { endpoint, upstream = ['pinning: {maxAge: 10m}'], prepare, more = '', ...others } = options;
  const { behindChannels = false, ...rest } = others;
  const [left, right] = [await startHostileUpstream(), await startHostileUpstream()];
  prepare?.(left, right);
  const members = endpoint ?? 'issuers: [test], upstreams: {left: {prefix: l_}, right: {}}';
  const fronts = behindChannels
    ? await Promise.all([startLegacySseFront(left.url), startLegacySseFront(right.url)])
    : [];
  const settings = behindChannels ? [...upstream, 'transport: http-sse'] : upstream;
  const closeUpstreams = (): Promise<unknown> => Promise.all([left, right, ...fronts].map((one) => one.close()));
  const gateway = await startTestGateway({
    ...rest,
    upstreams: [
      { name: 'left', url: fronts[0]?.url ?? left.url, more: settings },
      { name: 'right', url: fronts[1]?.url ?? right.url, more: settings },
    ],
    more: `endpoints:\n  ${ENDPOINT}: {${members}}\n${more}`,
  }).catch(async (error: unknown) => {
    await closeUpstreams();
    throw error;
  });
  await settleListings(gateway, [left, right]);
  const access = { url: gateway.url(ENDPOINT), token: await gateway.token(ENDPOINT) };
  const forget = (): void => {
    left.forget();
    right.forget();
  };
  forget();
  return {
    ...{ gateway, left, right, access, forget },
    async close() {
      await gateway.close();
      await closeUpstreams();
    },
  };
}

export type MergedCaller = {
  readonly session: OpenSession | undefined;
  request(method: string, params?: JsonObject): Promise<Reply>;
  call(name: string, args?: JsonObject): Promise<Reply>;
};

/** A client of one era. */
export async function connectTo(era: 'sessions' | 'stateless', access: Access): Promise<MergedCaller> {
  const session = era === 'sessions' ? await openSession(access) : undefined;
  const request = (method: string, params: JsonObject = {}): Promise<Reply> =>
    session === undefined ? requestStateless(access, method, params) : session.request(method, params);
  return {
    session,
    request,
    call: (name, args = {}) => request('tools/call', { name, arguments: args }),
  };
}

/** The text of the first content of a tool's result. */
export function firstTextOf(reply: Reply): unknown {
  const content = resultOf(reply)['content'];
  const first = Array.isArray(content) ? (content as readonly JsonObject[])[0] : undefined;
  return first?.['text'];
}

// Two gateways with the same files, one key and one issuer, as replicas are; and a caller who reaches either.

export type TwoGateways = {
  readonly one: RunningGateway;
  readonly other: RunningGateway;
  /** The issuer that both trust. */
  readonly issuer: TestIssuer;
  /** The same caller at either. */
  access(gateway: RunningGateway, upstream: string, subject: string): Promise<Access>;
  close(): Promise<void>;
};

/**
 * Starts both; `more` is what their gateway files say besides the keys. In the middle of a rotation both have both keys,
 * and each another in front.
 */
export async function startTwoGateways(options: GatewayUnderTest, isRotating = false): Promise<TwoGateways> {
  const [ofOne, ofOther] = isRotating
    ? [
        ['key', 'next'],
        ['next', 'key'],
      ]
    : [['key'], ['key']];
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-two-'));
  for (const name of ofOther) await writeFile(join(folder, name), writeKeyText(randomBytes(32)), { mode: 0o600 });
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
  return listenOn(await fetch(url, { headers: { ...bearer(token), ...sessionHeaders(session), accept } }));
}

/** A request of a session whose answer is read as it comes. */
export async function askInStream({ url, token }: Access, session: string, message: JsonObject): Promise<Listening> {
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

// A running gateway whose upstream gets exchanged tokens, with a token endpoint that a test commands.

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
  const seen = JSON.stringify(rig.upstream.seen().map(({ url, rawHeaders, body }) => ({ url, rawHeaders, body })));
  const written = [JSON.stringify(await rig.gateway.audit()), rig.gateway.log()];
  written.push(await rig.gateway.metrics());
  for (const trace of tokens.flatMap(tracesOf)) {
    if (where.upstream) expect(seen).not.toContain(trace);
    for (const text of written) expect(text).not.toContain(trace);
  }
}

// What tests of revocation share: administrators of a running gateway, their API, and one stream of each
// kind that a caller can hold open.

const AUDIENCE = 'https://mcp.example.com/admin';

/** The `admin:` block: who looks, who reviews, who does everything. */
export const ADMINS = `admin:
  issuers: {test: {audience: "${AUDIENCE}", roles: {viewer: [sec], reviewer: [leads], admin: [platform]}}}
`;

export type AdminGroup = 'sec' | 'leads' | 'platform' | 'eng';

export type AdminReply = {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers are read by their members in tests
  readonly body: any;
};

export type Admins = {
  token(group: AdminGroup, subject?: string): Promise<string>;
  ask(
    method: string,
    path: string,
    more?: { token?: string; body?: unknown; headers?: Readonly<Record<string, string>> },
  ): Promise<AdminReply>;
  /** Revokes as a reviewer. */
  revoke(order: object): Promise<AdminReply>;
};

export function adminsOf(gateway: RunningGateway): Admins {
  const admin = gateway.gateway.listening.find(({ listener }) => listener === 'admin');
  const token: Admins['token'] = (group, subject = 'root') =>
    gateway.issuer.mint(AUDIENCE, { claims: { sub: subject, groups: [group] } });
  const ask: Admins['ask'] = async (method, path, { token: given, body, headers = {} } = {}) => {
    const response = await fetch(`http://127.0.0.1:${admin?.port}${path}`, {
      method,
      headers: {
        ...bearer(given),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined };
  };
  return {
    token,
    ask,
    revoke: async (order) =>
      ask('POST', '/api/revocations', {
        token: await token('leads'),
        body: { note: 'a laptop was lost', ...order },
      }),
  };
}

/** The `jti` of a token. */
export function idOf(token: string): string {
  const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  return (JSON.parse(claims) as { jti: string }).jti;
}

const STEP_MS = 50;
const STEPS = 1_000;

/** Calls that tell of their progress for a long time, and subscriptions that stay open. */
export const LONG_ANSWERS: Order = (request) =>
  onMethod('tools/call', () => ({
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: [
      ...Array.from({ length: STEPS }, (_, progress) =>
        sseEvent({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: 1, progress, message: 'working' },
        }),
      ),
      sseEvent(resultFor(request, textResult('done'))),
    ],
    ending: 'end',
    paceMs: STEP_MS,
  }))(request);

const POST = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;

async function postStream({ url, token }: Access, method: string, params: JsonObject): Promise<Listening> {
  const { headers, body } = statelessParts(method, params);
  return listenOn(
    await fetch(url, {
      method: 'POST',
      headers: { ...POST, ...bearer(token), ...headers },
      body: JSON.stringify(body),
    }),
  );
}

const callOf = (name: string) => ({
  name,
  arguments: { id: 'one' },
  _meta: { progressToken: 1 },
});

/** A call whose answer is on its way, and a subscription: no session. */
export async function openStatelessStreams(access: Access, tool = 'read_record'): Promise<readonly Listening[]> {
  return [
    await postStream(access, 'tools/call', callOf(tool)),
    await postStream(access, 'subscriptions/listen', { notifications: { toolsListChanged: true } }),
  ];
}

/** The stream of a session and a call in it, with the id of the session. */
export async function openSessionStreams(
  access: Access,
  tool = 'read_record',
): Promise<{ readonly id: string; readonly streams: readonly Listening[] }> {
  const { id } = await openSession(access);
  const headers = { ...bearer(access.token), ...sessionHeaders(id) };
  const body = { jsonrpc: '2.0', id: 8, method: 'tools/call', params: callOf(tool) };
  const streams = [
    await listenOn(await fetch(access.url, { headers: { ...headers, accept: 'text/event-stream' } })),
    await listenOn(
      await fetch(access.url, {
        method: 'POST',
        headers: { ...POST, ...headers },
        body: JSON.stringify(body),
      }),
    ),
  ];
  return { id, streams };
}

/** Where tokens of a caller are minted for. */
export function tokenOf(gateway: RunningGateway, subject: string): Promise<string> {
  return gateway.token(UPSTREAM, { sub: subject });
}
