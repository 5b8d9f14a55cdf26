// What browsers are told about other origins: the configured ones may call and read the answers, refusals
// too, and anyone may read the public documents. Never with credentials of the browser's own. Whether an
// origin may call at all is decided in request.ts; nothing here lets a request in.
// WHATWG Fetch §3.2 and §3.3; RFC 9110 §12.5.5.

/** Headers that a client may send; each also as it is mirrored by name (MCP 2026-07-28, custom headers). */
const REQUEST_HEADERS: readonly string[] = [
  ...['authorization', 'dpop', 'content-type', 'accept', 'last-event-id'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'],
];
const PARAM_HEADER = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,64}$/;
const MAX_REQUESTED = 64;

/** What a page may read of an answer, besides what it may read of every one. */
const EXPOSED =
  'Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Sallyport-Decision, Retry-After, MCP-Protocol-Version';

/** How long a browser may rely on a preflight. What it then sends is judged all the same. */
const MAX_AGE_SECONDS = 600;

export type CorsHeaders = Readonly<Record<string, string>>;

/** Of every answer to an origin that may call. */
export function corsHeaders(origin: string): CorsHeaders {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    vary: 'Origin',
  };
}

/** True for the question that a browser asks before it sends what a page wants (Fetch §3.2.2). */
export function isPreflight(
  method: string | undefined,
  headers: { readonly [name: string]: unknown },
): boolean {
  return (
    method === 'OPTIONS' &&
    headers['origin'] !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/** What may be asked for, in answer to a preflight. `requested` is what it names; other names are left out. */
export function preflightHeaders(
  methods: readonly string[],
  requested: string | undefined,
): CorsHeaders {
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
