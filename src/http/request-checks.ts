// Checks one HTTP request before any token is looked at (docs/reference/responses.md, first row): path, Host, Origin,
// CORS preflight, framing and content type, against tables that a reload replaces. Reads no body and no credential.
// Paths are compared exactly as they stand on the request line: any other spelling is an unknown path
// (docs/reference/attacks.md case 6). Pages of configured origins may call and read all responses, refusals included;
// anyone may read the public documents. Browser credentials are never allowed. Source: WHATWG Fetch §3.2 and §3.3; RFC
// 9110 §12.5.5.

import type { IncomingMessage } from 'node:http';
import type { Reason } from '../policy/reasons.js';
import { mediaType } from '../protocol/headers.js';

/** How many requests may run at once, in total and of one caller; the next one is `overloaded`. */
export type ConcurrencyLimit = {
  readonly concurrency: number;
  readonly concurrencyPerCaller: number;
};

/** The route of one upstream or aggregate. */
export type EdgeRoute = ConcurrencyLimit & {
  readonly upstream: string;
  /** For an aggregate, the concurrency limit of each backend, by upstream; its own are then 0. */
  readonly backends?: ReadonlyMap<string, ConcurrencyLimit>;
  /** A legacy SSE path below the upstream's own; each has a single method. */
  readonly legacySsePath?: 'events' | 'message';
  /** The route of the path with a slash behind it. */
  readonly hasTrailingSlash?: boolean;
  readonly maxRequestBytes: number;
};

/** One version of the routing tables, replaced as a whole by a reload. */
export type EdgeTables = {
  /** Routes by exact path. */
  readonly routes: ReadonlyMap<string, EdgeRoute>;
  /** Paths that do not exist although clients may try them, with a sentence that says what to use instead. */
  readonly absent?: ReadonlyMap<string, string>;
  /** Whether there are pages on which callers answer (src/approvals/). */
  readonly hasPages?: boolean;
  /** Public documents by exact path (RFC 9728 metadata). */
  readonly documents: ReadonlyMap<string, string>;
  /** Accepted Host values, in lower case. */
  readonly hosts: ReadonlySet<string>;
  /** Accepted Origin values. A request without Origin does not come from a page. */
  readonly origins: ReadonlySet<string>;
  /** True if the upstream has no authentication: forwarding headers then show that the caller is not local. */
  readonly refusesForwarded: (upstream: string) => boolean;
  /**
   * Maps a peer and the `X-Forwarded-For` that it sent to the address to record; no decision depends on it.
   */
  readonly addressOf: (peer: string, forwardedFor: string | undefined) => string;
};

export const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** True if the URL's host is the local machine, by name or address. */
function isLoopbackUrl(url: URL): boolean {
  return LOOPBACK_HOSTS.includes(url.hostname) || url.hostname.startsWith('127.');
}

function defaultPort({ protocol }: URL): number {
  return protocol === 'https:' ? 443 : 80;
}

/**
 * The accepted Host values: that of the public URL, with its port or without a default one, and, if that is a loopback URL, the loopback names with the
 * listening port, since a local client may use any of them (DNS rebinding cannot use them), and `localNames`.
 */
export function servedHosts(
  publicUrl: URL,
  listenPort: number,
  localNames: readonly string[] = [],
): ReadonlySet<string> {
  const hosts = new Set([publicUrl.host.toLowerCase()]);
  // The default port of a scheme may be written or left out (RFC 9110 §4.2.3).
  if (publicUrl.port === '') hosts.add(`${publicUrl.host.toLowerCase()}:${defaultPort(publicUrl)}`);
  if (!isLoopbackUrl(publicUrl)) return hosts;
  for (const host of [...LOOPBACK_HOSTS, ...localNames]) {
    hosts.add(`${host}:${listenPort}`);
    hosts.add(publicUrl.port === '' ? host : `${host}:${publicUrl.port}`);
  }
  return hosts;
}

/** Headers in which proxies name the original client, besides all that begin with `x-forwarded`. */
const FORWARDING_HEADERS: ReadonlySet<string> = new Set([
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'x-original-host',
  'x-original-url',
  'x-envoy-external-address',
  'x-azure-clientip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
]);
const FORWARDING_PREFIX = 'x-forwarded';

/** True if a proxy added a forwarding header. */
export function hasForwardingHeader(headers: { readonly [name: string]: unknown }): boolean {
  for (const name in headers) {
    if (FORWARDING_HEADERS.has(name) || name.startsWith(FORWARDING_PREFIX)) return true;
  }
  return false;
}

/** Headers that a client may send, besides parameter headers (MCP 2026-07-28, custom headers). */
const REQUEST_HEADERS: readonly string[] = [
  ...['authorization', 'dpop', 'content-type', 'accept', 'last-event-id'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'],
];
const PARAM_HEADER = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,64}$/;
const MAX_REQUESTED = 64;

/** Response headers that a page may read besides the CORS-safelisted ones. */
const EXPOSED = 'Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Sallyport-Decision, Retry-After, MCP-Protocol-Version';

/** How long a browser may cache a preflight. The requests themselves are still checked. */
const MAX_AGE_SECONDS = 600;

type CorsHeaders = Readonly<Record<string, string>>;

/** CORS headers of every response to an allowed origin. */
export function corsHeaders(origin: string): CorsHeaders {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'Origin',
  };
}

/** True for a CORS preflight (Fetch §3.2.2). */
function isPreflight(method: string | undefined, headers: { readonly [name: string]: unknown }): boolean {
  return (
    method === 'OPTIONS' && headers['origin'] !== undefined && headers['access-control-request-method'] !== undefined
  );
}

/** The response headers for a preflight. `requested` is the list of headers it names; unknown names are left out. */
export function preflightHeaders(methods: readonly string[], requested: string | undefined): CorsHeaders {
  const named = (requested ?? '')
    .split(',', MAX_REQUESTED)
    .map((name) => name.trim().toLowerCase())
    .filter((name) => PARAM_HEADER.test(name));
  return {
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': [...REQUEST_HEADERS, ...named].join(', '),
    'access-control-max-age': String(MAX_AGE_SECONDS),
  };
}

/** A request refused before authentication. `upstream` is absent if the path is unknown. */
export type EdgeRefusal = {
  readonly status: number;
  /** Absent for a path or method that does not exist here. */
  readonly reason: Reason | undefined;
  readonly upstream: string | undefined;
  readonly headers?: { readonly [name: string]: string };
  /** A sentence that says what to use instead. */
  readonly instead?: string;
};

/** The refusal of a path that does not exist. */
export const UNKNOWN_PATH: EdgeRefusal = { status: 404, reason: undefined, upstream: undefined };

/** The refusal for an error of node:http; `undefined` if the error says nothing about a request. */
export function refusalOfClientError(code: string | undefined): EdgeRefusal | undefined {
  const upstream = undefined;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { status: 408, reason: 'request-timeout', upstream };
  if (code === 'HPE_HEADER_OVERFLOW') return { status: 431, reason: 'headers-too-large', upstream };
  // The parser's own errors: those of TLS and of the socket come here, too.
  if (code?.startsWith('HPE_')) return { status: 400, reason: 'malformed-request', upstream };
  return undefined;
}

type EdgeCheck =
  | {
      readonly kind: 'route';
      readonly route: EdgeRoute;
      readonly query: string;
      readonly repeated: ReadonlySet<string>;
    }
  | { readonly kind: 'document'; readonly body: string }
  /** A page for browsers. */
  | { readonly kind: 'page'; readonly path: string; readonly query: string }
  /** A CORS preflight. */
  | { readonly kind: 'preflight'; readonly headers: CorsHeaders }
  | { readonly kind: 'refused'; readonly refusal: EdgeRefusal };

const METHODS: readonly string[] = ['POST', 'GET', 'DELETE'];
const DOCUMENT_METHODS: readonly string[] = ['GET', 'HEAD'];
const PAGE_METHODS: readonly string[] = ['GET', 'HEAD', 'POST'];
/** The path of the pages on which callers answer, before the id. */
export const APPROVAL_PREFIX = '/.well-known/sallyport/approve/';
const PAGE_PATH = /^\/\.well-known\/sallyport\/approve\/(?:[0-9a-f]{32}|callback)$/;
/** Forms of the pages have few fields and short ones. */
export const MAX_FORM_BYTES = 4 * 1024;
/** Each path of legacy SSE has one method (MCP 2024-11-05, transports). */
const LEGACY_SSE_METHODS = { events: ['GET'], message: ['POST'] };
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

function notFound(instead: string | undefined): EdgeCheck {
  return {
    kind: 'refused',
    refusal: instead === undefined ? UNKNOWN_PATH : { ...UNKNOWN_PATH, instead },
  };
}

/** The checks before authentication, in the order of docs/reference/responses.md: path, Host, Origin, size, type. Pure. */
export function checkRequest(request: IncomingMessage, tables: EdgeTables): EdgeCheck {
  const { path, query } = splitTarget(request.url ?? '');
  const document = tables.documents.get(path);
  const route = tables.routes.get(path);
  if (route === undefined && document === undefined) {
    const isPage = tables.hasPages === true && PAGE_PATH.test(path);
    return isPage ? checkPage(request, tables, path, query) : notFound(tables.absent?.get(path));
  }
  const repeated = repeatedHeaders(request);
  const hostRefusal = checkHost(request, tables, repeated, route?.upstream);
  if (hostRefusal !== undefined) return hostRefusal;
  // Public documents may be read from any origin.
  if (route === undefined) return checkDocument(request, document ?? '');
  const originRefusal = checkOrigin(request, tables, repeated, route.upstream);
  if (originRefusal !== undefined) return originRefusal;
  if (isPreflight(request.method, request.headers)) {
    const requestedHeaders = request.headers['access-control-request-headers'];
    return { kind: 'preflight', headers: preflightHeaders(methodsOf(route), requestedHeaders) };
  }
  return checkFraming(request, route) ?? { kind: 'route', route, query, repeated };
}

function splitTarget(url: string): { readonly path: string; readonly query: string } {
  const mark = url.indexOf('?');
  return mark === -1 ? { path: url, query: '' } : { path: url.slice(0, mark), query: url.slice(mark + 1) };
}

/** Checks Host (DNS rebinding; docs/reference/attacks.md case 5). */
function checkHost(
  { headers }: IncomingMessage,
  tables: EdgeTables,
  repeated: ReadonlySet<string>,
  upstream: string | undefined,
): EdgeCheck | undefined {
  const host = (headers.host ?? '').toLowerCase();
  if (!repeated.has('host') && tables.hosts.has(host)) return undefined;
  // RFC 9112 §3.2 asks for 400 where there is no Host.
  return refused(headers.host === undefined ? 400 : 421, 'host-forbidden', upstream);
}

/**
 * Checks Origin (docs/reference/attacks.md case 7). Where no authentication is configured, also refuses a
 * request that a proxy has forwarded, because its caller is not local.
 */
function checkOrigin(
  { headers }: IncomingMessage,
  tables: EdgeTables,
  repeated: ReadonlySet<string>,
  upstream: string,
): EdgeCheck | undefined {
  const { origin } = headers;
  if (repeated.has('origin') || (origin !== undefined && !tables.origins.has(origin))) {
    return refused(403, 'origin-forbidden', upstream);
  }
  return tables.refusesForwarded(upstream) && hasForwardingHeader(headers)
    ? refused(421, 'host-forbidden', upstream)
    : undefined;
}

function checkDocument(request: IncomingMessage, body: string): EdgeCheck {
  if (isPreflight(request.method, request.headers)) {
    const permissions = preflightHeaders(DOCUMENT_METHODS, request.headers['access-control-request-headers']);
    return { kind: 'preflight', headers: { ...permissions, 'access-control-allow-origin': '*' } };
  }
  if (DOCUMENT_METHODS.includes(request.method ?? '')) return { kind: 'document', body };
  return refused(405, undefined, undefined, { allow: DOCUMENT_METHODS.join(', ') });
}

/** A page is no resource of MCP: it takes forms, from its own origin alone, which it checks itself. */
function checkPage(request: IncomingMessage, tables: EdgeTables, path: string, query: string): EdgeCheck {
  const { headers, method = '' } = request;
  const hostRefusal = checkHost(request, tables, repeatedHeaders(request), undefined);
  if (hostRefusal !== undefined) return hostRefusal;
  if (!PAGE_METHODS.includes(method)) return refused(405, undefined, undefined, { allow: PAGE_METHODS.join(', ') });
  const transfer = headers['transfer-encoding'];
  const length = Number(headers['content-length'] ?? 0);
  if (transfer !== undefined && !isPlainlyChunked(transfer, request.httpVersion)) {
    return refused(400, 'invalid-message', undefined);
  }
  const isTooLarge = method === 'POST' ? length > MAX_FORM_BYTES : transfer !== undefined || length > 0;
  return isTooLarge ? refused(413, 'body-too-large', undefined) : { kind: 'page', path, query };
}

function methodsOf({ legacySsePath }: EdgeRoute): readonly string[] {
  return legacySsePath === undefined ? METHODS : LEGACY_SSE_METHODS[legacySsePath];
}

/**
 * Checks method, length, encoding and type. Node has already refused malformed lengths, and Content-Length
 * together with Transfer-Encoding (docs/reference/attacks.md cases 1 to 3).
 */
function checkFraming(request: IncomingMessage, route: EdgeRoute): EdgeCheck | undefined {
  const { headers, method } = request;
  const { upstream } = route;
  const transfer = headers['transfer-encoding'];
  const length = Number(headers['content-length'] ?? 0);
  const methods = methodsOf(route);
  if (method === undefined || !methods.includes(method)) {
    return refused(405, undefined, upstream, { allow: methods.join(', ') });
  }
  // Any body of another method is larger than allowed.
  if (method !== 'POST') {
    return transfer !== undefined || length > 0 ? refused(413, 'body-too-large', upstream) : undefined;
  }
  if (transfer !== undefined && !isPlainlyChunked(transfer, request.httpVersion)) {
    return refused(400, 'invalid-message', upstream);
  }
  if (length > route.maxRequestBytes) return refused(413, 'body-too-large', upstream);
  return isPlainJson(headers) ? undefined : refused(415, 'unsupported-media-type', upstream);
}

/**
 * Node treats "gzip, chunked" as chunked, and HTTP/1.0 has no chunked coding (RFC 9112 §6.1;
 * docs/reference/attacks.md case 3).
 */
function isPlainlyChunked(transfer: string, httpVersion: string): boolean {
  return transfer.toLowerCase() === 'chunked' && httpVersion === '1.1';
}

function isPlainJson(headers: IncomingMessage['headers']): boolean {
  const encoding = headers['content-encoding'];
  const isPlain = encoding === undefined || encoding.toLowerCase() === 'identity';
  // Its parameters mean nothing: JSON is UTF-8, whatever a charset says (RFC 8259 §8.1 and §11). What is not UTF-8 is
  // malformed, and what is forwarded has a type of the gateway's own (docs/reference/attacks.md case 28).
  return isPlain && mediaType(headers['content-type']) === 'application/json';
}

/** Lower-case names of headers that occur on several lines. Node would silently keep the first line of some. */
function repeatedHeaders({ headers, rawHeaders }: IncomingMessage): ReadonlySet<string> {
  // With as many lines as names, no name occurs twice.
  if (Object.keys(headers).length * 2 === rawHeaders.length) return NO_NAMES;
  const repeated = new Set<string>();
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (seen.has(name)) repeated.add(name);
    seen.add(name);
  }
  return repeated;
}
