// Clients of every revision, asked in one way, and ways through a gateway: which revision the client speaks, and what
// stands behind the gateway.

import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { isObject } from '../../src/protocol/jsonrpc.js';
import { type AttackRig, type RigOptions, startRig } from './gateway.js';
import { onlyIn, type UpstreamEra } from './hostile-acts.js';
import { openChannelCaller } from './http-sse-clients.js';
import {
  type Access,
  type HeaderLines,
  openSession,
  post,
  type Reply,
  requestStateless,
  resultOf,
  sessionHeaders,
} from './wire-client.js';

/** Sessions of the newest revision that has them are `sessions`; `channels` is HTTP+SSE of 2024-11-05. */
export type Era = 'channels' | UpstreamEra;
export type ClientEra = Era | '2025-03-26' | '2025-06-18';

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
  request(method: string, params?: JsonObject): Promise<Reply>;
  leave(): void;
};

/** Opens what the era needs: a session, a channel, or nothing. */
export async function connectIn(era: ClientEra, access: Access): Promise<EraCaller> {
  switch (era) {
    case 'stateless': {
      const request = (method: string, params?: JsonObject) =>
        requestStateless(access, method, params);
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
  return (method, params = {}) => {
    id += 1;
    return post(access, JSON.stringify({ jsonrpc: '2.0', id, method, params }), headers);
  };
}

/** A gateway in front of an upstream of one era. */
export function startRigOf(upstream: Era, options: RigOptions = {}): Promise<AttackRig> {
  return startRig({
    ...options,
    behindChannels: upstream === 'channels',
    prepare(server) {
      server.obey(onlyIn(upstream === 'channels' ? 'sessions' : upstream));
      options.prepare?.(server);
    },
  });
}
