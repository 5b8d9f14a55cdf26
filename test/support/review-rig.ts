// A gateway whose policy puts a tool to a reviewer, with its console, its API and a receiver of messages.

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ConsoleRig, startConsole } from './console-rig.js';
import { isObject, type JsonObject } from './json.js';
import { bearer, callStateless, type Reply } from './wire-client.js';

export const ADMIN_AUDIENCE = 'https://console.example.com';
/** The tool that is put to a reviewer. */
export const ASKED = 'write_record';

/** Asks a reviewer for one tool; `approval` has further members, in flow style. */
export function reviewPolicy(approval = ''): string {
  return `version: 1
policy: records
rules:
  - id: ask
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["${ASKED}"]}
    approval: {by: reviewer${approval}}
    reason: Writing is for good.
`;
}

export type Message = { readonly headers: IncomingHttpHeaders; readonly body: string };

export type Receiver = {
  readonly url: string;
  readonly messages: readonly Message[];
  /** How each message is answered; with 200 by default. */
  respond: (response: ServerResponse, count: number) => void;
  close(): Promise<void>;
};

export async function startReceiver(): Promise<Receiver> {
  const messages: Message[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      messages.push({ headers: request.headers, body });
      receiver.respond(response, messages.length);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/services/path-that-is-secret`,
    messages,
    respond: (response) => response.writeHead(200).end(),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return receiver;
}

/** What the API said. */
export type ApiReply = { readonly status: number; readonly value: JsonObject; readonly headers: Headers };

export type ReviewRig = ConsoleRig & {
  readonly receiver: Receiver;
  /** The key that messages are signed with. */
  readonly secret: Buffer;
  /** A token for the API, of the issuer of the callers. */
  adminToken(claims: Readonly<Record<string, unknown>>): Promise<string>;
  ask(method: 'GET' | 'POST', path: string, token: string | undefined): Promise<ApiReply>;
  /** Sends the call that is asked about, as whoever the claims name. */
  call(args: JsonObject, claims?: Readonly<Record<string, unknown>>): Promise<Reply>;
  /** The ids of what waits, as the API lists them. */
  waiting(): Promise<readonly string[]>;
};

/** The reviewer in the console is `ann` of the provider; tokens are of the issuer `test`, whose groups have the same roles. */
export async function startReview(
  options: Parameters<typeof startConsole>[0] & {
    /** Further members of `approval`, in flow style. */
    readonly approval?: string;
    /** Further receivers, in flow style. */
    readonly webhooks?: readonly string[];
  } = {},
): Promise<ReviewRig> {
  const receiver = await startReceiver();
  const secret = randomBytes(32);
  const { approval = '', webhooks = [], admins = [], more = '', env = {}, ...rest } = options;
  const console = await startConsole({
    ...rest,
    admins: [
      `test: {audience: "${ADMIN_AUDIENCE}", roles: {viewer: [sec], reviewer: [leads], admin: [platform]}}`,
      ...admins,
    ],
    env: { ...env, HOOK_URL: receiver.url, HOOK_KEY: `whsec_${secret.toString('base64')}` },
    more: `approvals:
  webhooks: {${['team: {url: {env: HOOK_URL}, secret: {env: HOOK_KEY}, network: loopback}', ...webhooks].join(', ')}}
${more}`,
  });
  const { rig, breakGlass } = console;
  await rig.gateway.writePolicy('records', reviewPolicy(approval));
  const error = (await rig.gateway.reload()).find(({ severity }) => severity === 'error');
  if (error !== undefined) throw new Error(error.message);

  async function ask(method: 'GET' | 'POST', path: string, token: string | undefined): Promise<ApiReply> {
    const headers = { ...bearer(token), ...(method === 'POST' ? { 'content-type': 'application/json' } : {}) };
    const response = await fetch(console.url + path, { method, headers, ...(method === 'POST' ? { body: '{}' } : {}) });
    const text = await response.text();
    const value: unknown = text.startsWith('{') ? JSON.parse(text) : {};
    return { status: response.status, value: isObject(value) ? value : {}, headers: response.headers };
  }

  return {
    ...console,
    receiver,
    secret,
    adminToken: (claims) => rig.gateway.token('target', { aud: ADMIN_AUDIENCE, ...claims }),
    ask,
    async call(args, claims) {
      const access = claims === undefined ? rig.access : rig.as(await rig.gateway.token('target', claims));
      return callStateless(access, ASKED, args);
    },
    async waiting() {
      const { value } = await ask('GET', '/api/approvals', breakGlass);
      const callers = value['callers'] as readonly { readonly approvals: readonly { readonly id: string }[] }[];
      return callers.flatMap(({ approvals }) => approvals.map(({ id }) => id));
    },
    async close() {
      await console.close();
      await receiver.close();
    },
  };
}

/** A moment ago, as `auth_time` says it. */
export function secondsAgo(seconds: number): number {
  return Math.floor(Date.now() / 1000) - seconds;
}
