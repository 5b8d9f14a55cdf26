// A client of HTTP+SSE that is asked like one of the other eras: a request, and the reply to it, wherever it came.

import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import {
  initializeMessage,
  openRawChannel,
  postMessage,
  type RawChannel,
} from './channel-client.js';
import { type Access, bearer, type Reply, readReply } from './wire-client.js';

export type ChannelCaller = {
  readonly channel: RawChannel;
  /** The answer to `initialize`. */
  readonly opened: JsonObject;
  request(method: string, params?: JsonObject): Promise<Reply>;
  notify(method: string, params?: JsonObject): Promise<Response>;
};

/** Opens a channel and a session on it. */
export async function openChannelCaller(
  { url, token }: Access,
  capabilities: JsonObject = {},
): Promise<ChannelCaller> {
  const channel = await openRawChannel(`${url}/sse`, bearer(token));
  const post = (message: JsonObject): Promise<Response> =>
    postMessage(channel.address, token, message);
  const hello = initializeMessage(0);
  const params = { ...(hello['params'] as JsonObject), capabilities };
  await post({ ...hello, params });
  const opened = await channel.answer(0);
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  let id = 0;
  return {
    channel,
    opened,
    notify: (method, params = {}) => post({ jsonrpc: '2.0', method, params }),
    async request(method, params = {}) {
      id += 1;
      const own = id;
      const response = await post({ jsonrpc: '2.0', id: own, method, params });
      if (response.status !== 202) return readReply(response);
      const message = await channel.answer(own);
      const text = JSON.stringify(message);
      return { status: 200, headers: response.headers, text, message, messages: [message] };
    },
  };
}
