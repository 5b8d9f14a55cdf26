// The misdeeds that a hostile upstream can be ordered to do, each a function that gives an act.
// Grouped as reference cases are: HTTP framing, redirects, sizes, JSON-RPC answers, event streams.

import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Act, Chunk, Ending, HostileRequest, Order } from './hostile-upstream.js';
import type { Json, JsonObject } from './json.js';

const JSON_TYPE = 'application/json';
const SSE_TYPE = 'text/event-stream';

/** An order that acts on one method only (and one name, where given). */
export function onMethod(method: string, act: (request: HostileRequest) => Act, name?: string): Order {
  return (request) =>
    request.method === method && (name === undefined || request.name === name) ? act(request) : undefined;
}

// Messages

/** A result for the request, complete in both eras. */
export function resultFor(request: HostileRequest, result: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: request.id ?? 0, result: { resultType: 'complete', ...result } };
}

export function textResult(text: string): JsonObject {
  return { content: [{ type: 'text', text }] };
}

export function jsonBody(body: Json, status = 200): Act {
  return {
    kind: 'http',
    status,
    headers: { 'content-type': JSON_TYPE },
    body: JSON.stringify(body),
  };
}

/** A body of the given type with exactly these bytes. */
export function body(bytes: Chunk, contentType = JSON_TYPE, status = 200): Act {
  return { kind: 'http', status, headers: { 'content-type': contentType }, body: bytes };
}

export function wrongId(request: HostileRequest): Act {
  return jsonBody({ ...resultFor(request, textResult('for somebody else')), id: 'not-yours' });
}

export function resultAndError(request: HostileRequest): Act {
  const error = { code: -32603, message: 'both' };
  return jsonBody({ ...resultFor(request, textResult('both')), error });
}

export function neitherResultNorError(request: HostileRequest): Act {
  return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0 });
}

/** A cacheable result that claims to be for everybody, for ever. */
export function greedyCache(request: HostileRequest, result: JsonObject): Act {
  return jsonBody(resultFor(request, { ...result, cacheScope: 'public', ttlMs: 1e15 }));
}

// HTTP framing

export function redirectTo(location: string, status = 302): Act {
  return { kind: 'http', status, headers: { location } };
}

function rawHttp(head: readonly string[], rest: Chunk, ending: Ending = 'hold'): Act {
  const lines = ['HTTP/1.1 200 OK', `content-type: ${JSON_TYPE}`, ...head, '', ''];
  return { kind: 'raw', chunks: [lines.join('\r\n'), rest], ending };
}

function bytesOf(value: Json): Buffer {
  return Buffer.from(JSON.stringify(value));
}

export function twoContentLengths(message: Json): Act {
  const bytes = bytesOf(message);
  const first = `content-length: ${bytes.byteLength}`;
  return rawHttp([first, `content-length: ${bytes.byteLength + 5}`], bytes);
}

export function lengthAndChunked(message: Json): Act {
  const bytes = bytesOf(message);
  const chunked = `${bytes.byteLength.toString(16)}\r\n${bytes.toString()}\r\n0\r\n\r\n`;
  return rawHttp([`content-length: ${bytes.byteLength}`, 'transfer-encoding: chunked'], chunked);
}

/** Announces more bytes than it sends, then closes. */
export function shortBody(message: Json): Act {
  const bytes = bytesOf(message);
  return rawHttp([`content-length: ${bytes.byteLength + 10}`], bytes, 'destroy');
}

/** A whole answer, and a second one behind it on the same connection that nobody asked for. */
export function secondResponseBehind(message: Json, second: Json): Act {
  const bytes = bytesOf(message);
  const more = bytesOf(second);
  const next = `HTTP/1.1 200 OK\r\ncontent-type: ${JSON_TYPE}\r\ncontent-length: ${more.byteLength}\r\n\r\n`;
  const rest = Buffer.concat([bytes, Buffer.from(next), more]);
  return rawHttp([`content-length: ${bytes.byteLength}`], rest);
}

export function switchingProtocols(): Act {
  const head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n';
  return { kind: 'raw', chunks: [head], ending: 'hold' };
}

export function informationalFlood(count: number, message: Json): Act {
  const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(count);
  const bytes = bytesOf(message);
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${JSON_TYPE}\r\ncontent-length: ${bytes.byteLength}\r\n\r\n`;
  return { kind: 'raw', chunks: [hints, head, bytes], ending: 'hold' };
}

export function manyHeaders(count: number, message: Json): Act {
  const bytes = bytesOf(message);
  const extra = Array.from({ length: count }, (_, i) => `x-header-${i}: value`);
  return rawHttp([...extra, `content-length: ${bytes.byteLength}`], bytes);
}

// Sizes

/** A small compressed body that is `bytes` long when inflated. */
export function gzipBomb(bytes: number): Act {
  const zeros = gzipSync(Buffer.alloc(bytes, 0x20));
  const headers = { 'content-type': JSON_TYPE, 'content-encoding': 'gzip' };
  return { kind: 'http', status: 200, headers, body: zeros };
}

/** Many encodings around one body, as a bomb or to exhaust a decoder. */
export function chainedEncodings(count: number, message: Json): Act {
  let bytes: Buffer = bytesOf(message);
  for (let i = 0; i < count; i += 1) bytes = gzipSync(bytes);
  const headers = {
    'content-type': JSON_TYPE,
    'content-encoding': Array.from({ length: count }, () => 'gzip').join(', '),
  };
  return { kind: 'http', status: 200, headers, body: bytes };
}

export function brotliBody(message: Json): Act {
  const headers = { 'content-type': JSON_TYPE, 'content-encoding': 'br' };
  return { kind: 'http', status: 200, headers, body: brotliCompressSync(bytesOf(message)) };
}

/** A JSON body in small pieces with a pause between them; `hold` never finishes it. */
export function slowBody(message: Json, paceMs: number, ending: Ending = 'end'): Act {
  const text = JSON.stringify(message);
  const chunks = text.match(/.{1,8}/gsu) ?? [];
  return { kind: 'chunks', contentType: JSON_TYPE, chunks, ending, paceMs };
}

// Event streams

export function sseEvent(message: Json, id?: string): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  return `event: message\n${idLine}data: ${JSON.stringify(message)}\n\n`;
}

/** These messages as one event each, in one write each. */
export function stream(messages: readonly Json[], ending: Ending = 'end'): Act {
  return {
    kind: 'chunks',
    contentType: SSE_TYPE,
    chunks: messages.map((message) => sseEvent(message)),
    ending,
  };
}

/** The bytes of an event stream cut at these offsets: each piece is one write. */
export function splitStream(text: string, offsets: readonly number[], ending: Ending = 'end'): Act {
  const bytes = Buffer.from(text);
  const edges = [0, ...[...offsets].sort((a, b) => a - b), bytes.byteLength];
  const chunks = edges
    .slice(1)
    .map((edge, i) => bytes.subarray(edges[i] ?? 0, edge))
    .filter((piece) => piece.byteLength > 0);
  return { kind: 'chunks', contentType: SSE_TYPE, chunks, ending };
}

/** A request of the server to the client, in the middle of a stream that ends well. */
export function serverRequestInStream(request: HostileRequest, method: string, params: JsonObject = {}): Act {
  const ask = { jsonrpc: '2.0', id: 'from-the-server', method, params };
  return stream([ask, resultFor(request, textResult('after the question'))]);
}

function progressTokenOf(request: HostileRequest): Json {
  const params = request.message?.['params'] as JsonObject | undefined;
  const meta = params?.['_meta'] as JsonObject | undefined;
  return meta?.['progressToken'] ?? 0;
}

/** Progress events with these texts, then a result: for what is split over events. */
export function progressThenResult(
  request: HostileRequest,
  texts: readonly string[],
  result: JsonObject = textResult('done'),
): Act {
  const progressToken = progressTokenOf(request);
  const notifications = texts.map((message, i) => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken, progress: i + 1, message },
  }));
  return stream([...notifications, resultFor(request, result)]);
}

/** A stream that tells progress and is then cut off without its answer. */
export function closedMidStream(request: HostileRequest): Act {
  const params = { progressToken: progressTokenOf(request), progress: 1 };
  return stream([{ jsonrpc: '2.0', method: 'notifications/progress', params }], 'destroy');
}

// Orders that hold a hostile upstream to one era: it answers the other as its specification says.

export type UpstreamEra = 'sessions' | 'stateless';

const STATELESS = '2026-07-28';

/** An upstream of sessions: what claims to be stateless is no request that it knows. */
export const sessionsOnly: Order = (request) =>
  request.headers['mcp-protocol-version'] === STATELESS
    ? jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, error: { code: -32000, message: 'Bad Request' } }, 400)
    : undefined;

/** An upstream without sessions. */
export const statelessOnly: Order = (request) =>
  request.headers['mcp-protocol-version'] === STATELESS
    ? undefined
    : jsonBody(
        {
          jsonrpc: '2.0',
          id: request.id ?? 0,
          error: {
            code: -32022,
            message: 'Unsupported protocol version',
            data: { supported: [STATELESS], requested: '2025-11-25' },
          },
        },
        400,
      );

/** The order of an era. */
export function onlyIn(era: UpstreamEra): Order {
  return era === 'sessions' ? sessionsOnly : statelessOnly;
}

/** Orders of a test before the one that holds the upstream to its era: the first that gives an act counts. */
export function inTurn(era: Order, ...orders: readonly Order[]): Order {
  return (request) => {
    for (const order of [...orders, era]) {
      const act = order(request);
      if (act !== undefined) return act;
    }
    return undefined;
  };
}
