// The HTTP motions of the demo upstream: reading a bounded body, answering JSON, opening and feeding an
// event stream. Decides nothing. Source: MCP 2025-11-25 transports; WHATWG HTML, server-sent events.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Json, JsonObject } from '../mcp/message.js';

const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Headers with lower-case names, several values of one name joined. */
export function flatHeaders(request: IncomingMessage): {
  readonly [name: string]: string | undefined;
} {
  const flat: Record<string, string | undefined> = Object.create(null) as Record<string, undefined>;
  for (const [name, value] of Object.entries(request.headers)) {
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

/** The body as text, or `undefined` when it is larger than the cap. */
export async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const piece = chunk as Buffer;
    bytes += piece.byteLength;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(piece);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A whole JSON answer. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: Json,
  headers: { readonly [name: string]: string } = {},
): void {
  response.writeHead(status, { ...headers, 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** One event of an open stream, with an id where the era resumes streams. */
export function writeEvent(response: ServerResponse, message: JsonObject, eventId?: string): void {
  const idLine = eventId === undefined ? '' : `id: ${eventId}\n`;
  response.write(`event: message\n${idLine}data: ${JSON.stringify(message)}\n\n`);
}

/** The head of an event stream, sent at once. */
export function openStream(response: ServerResponse): void {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
}
