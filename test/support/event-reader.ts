// Opens an event stream by a POST and reads its messages one by one, as they come.

import type { Json } from '../../src/protocol/jsonrpc.js';
import { isObject, type JsonObject } from '../../src/protocol/jsonrpc.js';
import { type Access, bearer, type HeaderLines, statelessParts } from './wire-client.js';

export type EventReader = {
  readonly status: number;
  readonly headers: Headers;
  /** The next message; `undefined` once the stream has ended. */
  next(): Promise<JsonObject | undefined>;
  /** Leaves, without waiting for the end. */
  leave(): void;
};

/** Sends a stateless request and reads its answer as a stream. */
export async function openEvents(
  access: Access,
  method: string,
  params: JsonObject = {},
  more: { readonly headers?: HeaderLines; readonly id?: Json } = {},
): Promise<EventReader> {
  const parts = statelessParts(method, params, more.id ?? 'listen-1');
  const gone = new AbortController();
  const response = await fetch(access.url, {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...bearer(access.token),
      ...parts.headers,
      ...more.headers,
    },
    body: JSON.stringify(parts.body),
    signal: gone.signal,
  });
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let buffered = '';

  async function next(): Promise<JsonObject | undefined> {
    for (;;) {
      const end = buffered.indexOf('\n\n');
      if (end >= 0) {
        const event = buffered.slice(0, end);
        buffered = buffered.slice(end + 2);
        const message = readEvent(event);
        if (message !== undefined) return message;
        continue;
      }
      const chunk = await reader?.read().catch(() => undefined);
      if (chunk === undefined || chunk.done) return undefined;
      buffered += decoder.decode(chunk.value, { stream: true });
    }
  }

  return { status: response.status, headers: response.headers, next, leave: () => gone.abort() };
}

function readEvent(event: string): JsonObject | undefined {
  const data = event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).trimStart())
    .join('\n');
  if (data === '') return undefined;
  const value: unknown = JSON.parse(data);
  return isObject(value) ? value : undefined;
}
