// Clients of every revision, asked in one way, and ways through a gateway: which revision the client speaks, and what
// stands behind the gateway.

import type { Era } from './gateway.js';
import { openChannelCaller } from './http-sse-clients.js';
import type { JsonObject } from './json.js';
import { isObject } from './json.js';
import {
  type Access,
  type HeaderLines,
  openSession,
  post,
  type Reply,
  requestStateless,
  resultOf,
  type Sending,
  sessionHeaders,
} from './wire-client.js';

/** In an `array` of one message each, which 2025-03-26 has, a client sends its requests. */
export type ClientEra = Era | 'array' | '2025-03-26' | '2025-06-18';

export const ERAS: readonly Era[] = ['channels', 'sessions', 'stateless'];

/** Every era of a client before every era of an upstream, and the older revisions of sessions. */
export const ERA_PAIRS: readonly (readonly [ClientEra, Era])[] = [
  ...ERAS.flatMap((client) => ERAS.map((upstream) => [client, upstream] as const)),
  ['2025-06-18', 'sessions'],
  ['2025-03-26', 'sessions'],
];

export type EraCaller = {
  /** The handshake: the result of `initialize`, or of `server/discover`. */
  readonly opened: JsonObject;
  request(method: string, params?: JsonObject, how?: Sending): Promise<Reply>;
  leave(): void;
};

/** Opens what the era needs: a session, a channel, or nothing. */
export async function connectIn(era: ClientEra, access: Access): Promise<EraCaller> {
  switch (era) {
    case 'stateless': {
      const request: EraCaller['request'] = (method, params, how) => requestStateless(access, method, params, how);
      return { opened: resultOf(await request('server/discover')), request, leave };
    }
    case 'sessions': {
      const { id, reply } = await openSession(access);
      return { opened: resultOf(reply), request: requestsIn(access, sessionHeaders(id)), leave };
    }
    case 'channels': {
      const { channel, opened, request } = await openChannelCaller(access);
      const result = isObject(opened['result']) ? opened['result'] : {};
      return { opened: result, request, leave: channel.leave };
    }
    case 'array':
      return inArrays(await openOlderSession('2025-03-26', access));
    default:
      return openOlderSession(era, access);
  }
}

function leave(): void {}

async function openOlderSession(protocolVersion: string, access: Access): Promise<EraCaller> {
  const clientInfo = { name: 'older', version: '1' };
  const params = { protocolVersion, capabilities: {}, clientInfo };
  const message = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
  const reply = await post(access, JSON.stringify(message));
  const opened = resultOf(reply);
  if (opened['protocolVersion'] !== protocolVersion)
    throw new Error(`no session of ${protocolVersion}: ${reply.status} ${reply.text}`);
  const id = reply.headers.get('mcp-session-id') ?? '';
  const version = { 'mcp-protocol-version': protocolVersion };
  return { opened, request: requestsIn(access, { ...sessionHeaders(id), ...version }), leave };
}

/** Requests with ids of their own: several may be in flight. */
function requestsIn(access: Access, headers: HeaderLines): EraCaller['request'] {
  let id = 0;
  return (method, params = {}, { headers: more, write = JSON.stringify } = {}) => {
    id += 1;
    return post(access, write({ jsonrpc: '2.0', id, method, params }), { ...headers, ...more });
  };
}

/** A caller whose requests are each the one message of an array. */
function inArrays({ opened, request, leave }: EraCaller): EraCaller {
  return {
    opened,
    leave,
    async request(method, params, { headers, write = JSON.stringify } = {}) {
      const reply = await request(method, params, {
        ...(headers && { headers }),
        write: (message) => `[${write(message)}]`,
      });
      if (!reply.text.startsWith('[')) return reply;
      const [message]: readonly JsonObject[] = JSON.parse(reply.text);
      return message === undefined ? reply : { ...reply, message, text: reply.text.slice(1, -1) };
    },
  };
}
