// Says why a server cannot be used: sends the request that opens a session once more, as a client would, and puts what
// came back into one sentence with what to do about it. For `dev`; the gateway's own listing reports classes of
// errors only. MCP 2025-11-25, transports.

import { mediaType } from '../protocol/headers.js';
import { isObject } from '../protocol/jsonrpc.js';
import { LATEST_SESSION_VERSION } from '../protocol/versions/revisions.js';
import { cleanForeign, maskSecrets } from '../text/escaping.js';

export type ProbedServer = {
  readonly url: URL;
  /** It speaks HTTP+SSE, where a session is opened by a GET. */
  readonly isLegacySse: boolean;
  readonly header?: { readonly name: string; readonly value: string } | undefined;
};

/** A response by its form alone: nothing of its values is shown, which may be secrets. */
type ProbedBody =
  | { readonly kind: 'mcp' }
  /** A JSON-RPC error, by its code. */
  | { readonly kind: 'refusal'; readonly code: number }
  /** Other JSON: the first names of an object, or what it is instead. */
  | { readonly kind: 'other'; readonly names: readonly string[]; readonly type: string };

/** What came back: a response, or the code of the error. */
type ProbeOutcome =
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly contentType: string;
      readonly location: string | undefined;
      /** What a JSON response of status 200 is; absent if it was not read. */
      readonly body?: ProbedBody;
    }
  | { readonly kind: 'error'; readonly code: string };

const TIMEOUT_MS = 10_000;
const MAX_BODY_BYTES = 64 * 1024;
const MAX_NAMES = 5;
const MAX_NAME_CHARACTERS = 40;
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: LATEST_SESSION_VERSION,
    capabilities: {},
    clientInfo: { name: 'sallyport', version: '0' },
  },
};

/** Sends the request; follows no redirect. Does not reject. */
export async function probeServer({
  url,
  isLegacySse,
  header,
}: ProbedServer): Promise<ProbeOutcome> {
  const headers = {
    accept: isLegacySse ? 'text/event-stream' : 'application/json, text/event-stream',
    ...(header === undefined ? {} : { [header.name]: header.value }),
  };
  const post = {
    method: 'POST',
    body: JSON.stringify(INITIALIZE),
    headers: { ...headers, 'content-type': 'application/json' },
  };
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), TIMEOUT_MS);
  try {
    const response = await fetch(url, {
      ...(isLegacySse ? { headers } : post),
      redirect: 'manual',
      signal: ending.signal,
    });
    const { status, headers: received } = response;
    const location = received.get('location') ?? undefined;
    const contentType = mediaType(received.get('content-type') ?? '');
    const outcome = { kind: 'response', status, contentType, location } as const;
    if (isLegacySse || status !== 200 || contentType !== 'application/json') return outcome;
    return { ...outcome, body: describeBody(await readStart(response)) };
  } catch (error) {
    return { kind: 'error', code: ending.signal.aborted ? 'timeout' : errorCodeOf(error) };
  } finally {
    clearTimeout(timer);
    // The rest of the body, an endless stream perhaps, is not read.
    ending.abort();
  }
}

/** The body, if it is short; of a longer one, its start. */
async function readStart({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8', 0, MAX_BODY_BYTES);
}

function describeBody(text: string): ProbedBody {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'other', names: [], type: 'text that is not JSON' };
  }
  if (Array.isArray(value)) return { kind: 'other', names: [], type: 'a JSON list' };
  if (!isObject(value)) return { kind: 'other', names: [], type: 'a JSON value' };
  const { jsonrpc, result, error } = value;
  if (jsonrpc === '2.0' && isObject(result) && Object.hasOwn(result, 'protocolVersion'))
    return { kind: 'mcp' };
  if (jsonrpc === '2.0' && isObject(error) && Object.hasOwn(error, 'code'))
    return { kind: 'refusal', code: Number(error['code']) };
  return { kind: 'other', names: Object.keys(value).slice(0, MAX_NAMES), type: 'a JSON object' };
}

function errorCodeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return 'no code';
  if (cause.name === 'HTTPParserError') return String(('code' in cause && cause.code) || 'HPE');
  // Some errors have words alone, such as "bad port".
  return 'code' in cause ? String(cause.code) : cleanForeign(cause.message);
}

const CERTIFICATE = /CERT|SELF_SIGNED|VERIFY|UNABLE_TO_GET_ISSUER/;
const NOT_TLS = /^(?:ERR_SSL_|EPROTO)/;

/** One sentence; `undefined` if nothing is wrong with what came back. */
export function describeProbe(
  { url, isLegacySse, header }: ProbedServer,
  outcome: ProbeOutcome,
): string | undefined {
  const shown = cleanForeign(`${url.origin}${url.pathname}`, undefined, 300);
  if (outcome.kind === 'error') return `${shown} ${describeError(url, outcome.code)}`;
  const { status, contentType, location } = outcome;
  const answered = `${shown} answered ${status}`;
  if (status === 401 || status === 403) {
    const advice =
      header === undefined
        ? "it wants credentials; try --header 'Authorization: Bearer TOKEN'"
        : `it does not accept the header ${header.name} that was given`;
    return `${answered}: ${advice}`;
  }
  if (status >= 300 && status < 400) return `${answered}: ${describeRedirect(location, url)}`;
  if (status >= 400) return `${answered}${describeStatus(status, url, isLegacySse)}`;
  const typed = `${answered} with ${contentType || 'no content type'}`;
  return outcome.body === undefined
    ? describeType(typed, contentType, outcome, isLegacySse)
    : describeJson(typed, outcome.body, url);
}

/** Says what a JSON response to `initialize` is, if it does not open a session. */
function describeJson(answered: string, body: ProbedBody, { pathname }: URL): string | undefined {
  if (body.kind === 'mcp') return undefined;
  if (body.kind === 'refusal')
    return `${answered} to the request initialize: the JSON-RPC error ${body.code}`;
  const names = body.names.map(
    (name) => `"${cleanForeign(name, maskSecrets, MAX_NAME_CHARACTERS)}"`,
  );
  const what = names.length === 0 ? body.type : `${body.type} with ${names.join(', ')}`;
  const hint = pathname === '/mcp' ? 'what is the path of its MCP endpoint?' : 'is the path /mcp?';
  return `${answered} to the request initialize: ${what}, which is not an answer of MCP; ${hint}`;
}

function describeStatus(status: number, { pathname }: URL, isLegacySse: boolean): string {
  if (status === 404)
    return pathname === '/mcp' ? '; what is the path of its MCP endpoint?' : '; is the path /mcp?';
  if (status === 405 && !isLegacySse)
    return ' to POST; an HTTP+SSE server needs --transport http-sse';
  return ' to the request that opens a session';
}

function describeType(
  answered: string,
  contentType: string,
  { status }: Extract<ProbeOutcome, { readonly kind: 'response' }>,
  isLegacySse: boolean,
): string | undefined {
  if (contentType === 'text/html') return `${answered}, a web page; is the path /mcp?`;
  const expected = isLegacySse ? ['text/event-stream'] : ['application/json', 'text/event-stream'];
  if (status < 300 && expected.includes(contentType)) return undefined;
  return `${answered}, which is not MCP; is the path /mcp?`;
}

function describeError(url: URL, code: string): string {
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused the connection; is the server running, and is this its port?';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `cannot be reached: the name ${cleanForeign(url.hostname)} does not resolve`;
    case 'timeout':
      return `did not answer within ${TIMEOUT_MS / 1000} seconds`;
  }
  if (CERTIFICATE.test(code))
    return `has a certificate that is not trusted (${code}); for an authority of your own set NODE_EXTRA_CA_CERTS, or in the gateway file tls.ca`;
  if (NOT_TLS.test(code)) return `does not speak TLS (${code}); is the URL http://?`;
  if (url.protocol === 'http:' && /^(?:HPE|UND_ERR_SOCKET|ECONNRESET)/.test(code))
    return `does not speak HTTP (${code}); is the URL https://?`;
  return `cannot be reached (${code})`;
}

function describeRedirect(location: string | undefined, url: URL): string {
  if (location === undefined || !URL.canParse(location, url.href))
    return 'a redirect, which is not followed';
  const target = new URL(location, url);
  const shown = cleanForeign(`${target.origin}${target.pathname}`, undefined, 300);
  return `it redirects to ${shown}, and redirects are not followed; give that URL`;
}
