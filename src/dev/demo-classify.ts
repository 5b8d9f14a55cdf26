// Reads one POST for a scripted MCP server: which era it speaks and whether it keeps that era's rules.
// Pure: sessions are asked through a port, nothing is answered here.
// Source: MCP 2025-11-25, transports; MCP 2026-07-28, transports (headers and `_meta`), error map.

import { isObject, type JsonObject, type RequestId } from '../mcp/message.js';
import { SERVED_STATELESS_VERSIONS, type ServedEra } from './demo-protocol.js';

/** One HTTP request as it came: header names lower-case, repeated ones joined by the HTTP library. */
export type ReceivedPost = {
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: string;
};

export type Classified =
  | {
      readonly kind: 'request';
      readonly era: ServedEra;
      readonly id: RequestId;
      readonly method: string;
      readonly params: JsonObject;
    }
  | { readonly kind: 'notification'; readonly era: ServedEra; readonly method: string }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly code: number;
      readonly message: string;
      readonly id: RequestId | undefined;
      readonly supported?: readonly string[];
    };

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

const NAMED_METHODS: ReadonlyMap<string, 'name' | 'uri'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
]);

const ENCODED_VALUE = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;

function refuse(
  status: number,
  code: number,
  message: string,
  id?: RequestId,
): Classified & { kind: 'refused' } {
  return { kind: 'refused', status, code, message, id };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function readId(value: unknown): RequestId | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

function decodeName(header: string): string {
  const match = ENCODED_VALUE.exec(header);
  return match ? Buffer.from(match[1] ?? '', 'base64').toString('utf8') : header;
}

/** The first rule of the stateless era that the request breaks. */
function findStatelessError(
  received: ReceivedPost,
  method: string,
  params: JsonObject,
  meta: JsonObject,
  id: RequestId | undefined,
): (Classified & { kind: 'refused' }) | undefined {
  const version = meta[VERSION_KEY];
  if (typeof version !== 'string') return refuse(400, -32602, 'The version is missing', id);
  if (!SERVED_STATELESS_VERSIONS.some((served) => served === version)) {
    const error = refuse(400, -32022, 'Unsupported protocol version', id);
    return { ...error, supported: SERVED_STATELESS_VERSIONS };
  }
  if (!isObject(meta[CAPABILITIES_KEY])) {
    return refuse(400, -32602, 'The client capabilities are missing', id);
  }
  const expected = [
    ['mcp-protocol-version', version],
    ['mcp-method', method],
  ] as const;
  if (expected.some(([name, value]) => received.headers[name] !== value)) {
    return refuse(400, -32020, 'A header differs from the body', id);
  }
  const member = NAMED_METHODS.get(method);
  if (member === undefined) return undefined;
  const header = received.headers['mcp-name'];
  if (header !== undefined && decodeName(header) === params[member]) return undefined;
  return refuse(400, -32020, 'Mcp-Name differs from the body', id);
}

function finish(
  era: ServedEra,
  id: RequestId | undefined,
  method: string,
  params: JsonObject,
): Classified {
  if (id === undefined) return { kind: 'notification', era, method };
  return { kind: 'request', era, id, method, params };
}

/** The first rule of the session era that the request breaks. */
function findSessionError(
  received: ReceivedPost,
  method: string,
  id: RequestId | undefined,
  hasSession: (sessionId: string) => boolean,
): (Classified & { kind: 'refused' }) | undefined {
  const session = received.headers['mcp-session-id'];
  if (method === 'initialize') {
    return session === undefined
      ? undefined
      : refuse(400, -32600, 'initialize takes no session', id);
  }
  if (session === undefined) return refuse(400, -32600, 'A session is required', id);
  return hasSession(session) ? undefined : refuse(404, -32001, 'Session not found', id);
}

/** Which message this is, in which era, or the refusal that the era asks for. */
export function classifyPost(
  received: ReceivedPost,
  hasSession: (sessionId: string) => boolean,
): Classified {
  const value = parse(received.body);
  if (value === undefined) return refuse(400, -32700, 'Parse error');
  if (!isObject(value) || value['jsonrpc'] !== '2.0') return refuse(400, -32600, 'Invalid request');
  const method = value['method'];
  const id = readId(value['id']);
  if (typeof method !== 'string') return refuse(400, -32600, 'Responses are not expected', id);
  const params = isObject(value['params']) ? value['params'] : {};
  const meta = isObject(params['_meta']) ? params['_meta'] : {};
  const header = received.headers['mcp-protocol-version'];
  const isStateless =
    VERSION_KEY in meta || SERVED_STATELESS_VERSIONS.some((served) => served === header);
  const error = isStateless
    ? findStatelessError(received, method, params, meta, id)
    : findSessionError(received, method, id, hasSession);
  return error ?? finish(isStateless ? '2026' : '2025', id, method, params);
}
