// Reads one HTTP request: the checks that come before any token work (contract §6, first row), then
// the bytes of the body under a cap. Looks at no JSON and at no credential.

import type { IncomingMessage } from 'node:http';
import type { Reason } from '../policy/reasons.js';
import { type EdgeRoute, type EdgeTables, hasForwardingHeader } from './routes.js';

/** A request refused at the edge. `upstream` is absent where the path is unknown. */
export type EdgeRefusal = {
  readonly status: number;
  /** Absent for a path or method that does not exist here. */
  readonly reason: Reason | undefined;
  readonly upstream: string | undefined;
  readonly headers?: { readonly [name: string]: string };
};

export type EdgeCheck =
  | {
      readonly kind: 'route';
      readonly route: EdgeRoute;
      readonly query: string;
      readonly repeated: ReadonlySet<string>;
    }
  | { readonly kind: 'document'; readonly body: string }
  | { readonly kind: 'refused'; readonly refusal: EdgeRefusal };

const METHODS: ReadonlySet<string> = new Set(['POST', 'GET', 'DELETE']);
const NO_NAMES: ReadonlySet<string> = new Set();

function refused(
  status: number,
  reason: Reason | undefined,
  upstream: string | undefined,
  headers?: { readonly [name: string]: string },
): EdgeCheck {
  return {
    kind: 'refused',
    refusal: { status, reason, upstream, ...(headers === undefined ? {} : { headers }) },
  };
}

/** The checks of the edge, in the order of contract §6: path, Host, Origin, size, type. Pure. */
export function checkRequest(request: IncomingMessage, tables: EdgeTables): EdgeCheck {
  const url = request.url ?? '';
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const document = tables.documents.get(path);
  const route = tables.routes.get(path);
  if (route === undefined && document === undefined) return refused(404, undefined, undefined);
  const upstream = route?.upstream;
  const repeated = repeatedHeaders(request.rawHeaders);
  if (repeated.has('host') || !tables.hosts.has((request.headers.host ?? '').toLowerCase())) {
    return refused(421, 'host-forbidden', upstream);
  }
  const origin = request.headers.origin;
  if (repeated.has('origin') || (origin !== undefined && !tables.origins.has(origin))) {
    return refused(403, 'origin-forbidden', upstream);
  }
  if (route === undefined) return checkDocument(request, document ?? '');
  if (tables.refusesForwarded(route.upstream) && hasForwardingHeader(request.headers)) {
    return refused(421, 'host-forbidden', upstream);
  }
  return (
    checkFraming(request, route) ?? {
      kind: 'route',
      route,
      query: mark === -1 ? '' : url.slice(mark + 1),
      repeated,
    }
  );
}

function checkDocument(request: IncomingMessage, body: string): EdgeCheck {
  if (request.method === 'GET' || request.method === 'HEAD') return { kind: 'document', body };
  return refused(405, undefined, undefined, { allow: 'GET' });
}

/** Method, length, encoding and type. Node has refused CL with TE and malformed lengths before (attacks 1 to 3). */
function checkFraming(request: IncomingMessage, route: EdgeRoute): EdgeCheck | undefined {
  const { headers, method } = request;
  if (method === undefined || !METHODS.has(method))
    return refused(405, undefined, route.upstream, { allow: 'POST, GET, DELETE' });
  const hasBody =
    headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  if (method !== 'POST')
    return hasBody ? refused(413, 'body-too-large', route.upstream) : undefined;
  if (headers['transfer-encoding'] !== undefined && request.httpVersion !== '1.1') {
    return refused(400, 'unsupported-media-type', route.upstream);
  }
  if (Number(headers['content-length'] ?? 0) > route.maxRequestBytes)
    return refused(413, 'body-too-large', route.upstream);
  const encoding = headers['content-encoding'];
  const isPlain = encoding === undefined || encoding.toLowerCase() === 'identity';
  return isPlain && isJsonType(headers['content-type'])
    ? undefined
    : refused(415, 'unsupported-media-type', route.upstream);
}

/** `application/json`, alone or with `charset=utf-8` (attacks 11, 20 and 28). */
export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  if (contentType === 'application/json') return true;
  const [type, ...parameters] = contentType
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  return (
    type === 'application/json' &&
    parameters.every(
      (part) => part === '' || part === 'charset=utf-8' || part === 'charset="utf-8"',
    )
  );
}

/** Names that stand on more than one header line, lower-case. The framework would keep the first in silence. */
function repeatedHeaders(rawHeaders: readonly string[]): ReadonlySet<string> {
  let repeated: Set<string> | undefined;
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (seen.has(name)) {
      repeated ??= new Set();
      repeated.add(name);
    }
    seen.add(name);
  }
  return repeated ?? NO_NAMES;
}

/** The bytes of a body, `too-large` past the cap, or `aborted` when the client went away. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Uint8Array | 'too-large' | 'aborted'> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    request.on('data', (chunk: Uint8Array) => {
      size += chunk.byteLength;
      if (size > maxBytes) {
        request.pause();
        return resolve('too-large');
      }
      chunks.push(chunk);
    });
    request.on('end', () => {
      const [first] = chunks;
      resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, size));
    });
    request.on('error', () => resolve('aborted'));
    request.on('close', () => resolve('aborted'));
  });
}
