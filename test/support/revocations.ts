// What tests of revocation share: administrators of a running gateway, their API, and one stream of each
// kind that a caller can hold open.

import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { UPSTREAM } from './attack-rig.js';
import { onMethod, resultFor, sseEvent, textResult } from './hostile-acts.js';
import type { Order } from './hostile-upstream.js';
import { type Listening, listenOn } from './listening.js';
import type { RunningGateway } from './start-gateway.js';
import { type Access, bearer, openSession, sessionHeaders, statelessParts } from './wire-client.js';

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
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
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

async function postStream(
  { url, token }: Access,
  method: string,
  params: JsonObject,
): Promise<Listening> {
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
export async function openStatelessStreams(
  access: Access,
  tool = 'read_record',
): Promise<readonly Listening[]> {
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
    await listenOn(
      await fetch(access.url, { headers: { ...headers, accept: 'text/event-stream' } }),
    ),
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
