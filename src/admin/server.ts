// The admin listener (docs/contract.md §2): the pages of the console, for sessions, and the API, for bearer tokens.
// Data are served only with a credential, and neither kind takes that of the other. Checked in this order: Host (DNS
// rebinding), Origin, path, credential, role. Every access is reported, including refused ones. Serves no cross-origin
// request.

import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import {
  createHttpListener,
  type HttpListener,
  type ListenerAddress,
  type PlainResponse,
  readBody,
} from '../http/internal-server.js';
import { urlHost } from '../text/escaping.js';
import {
  type ConsolePorts,
  type ConsoleRequest,
  readConsoleRequest,
  respondToConsole,
} from './console.js';
import { html, page } from './html.js';
import {
  type AccessDetail,
  type AdminCaller,
  MAX_ORDER_BYTES,
  type RevocationRequest,
  readRevocationRequest,
  respondToRevocation,
} from './revocations.js';
import { BREAK_GLASS_SUBJECT, isSame } from './sessions.js';

export type AdminAccess = {
  /** The verified subject; `undefined` if there is none. */
  readonly subject: string | undefined;
  /** A fixed phrase, never the path as sent. */
  readonly action: string;
  readonly status: number;
  readonly ip: string;
  readonly detail?: AccessDetail | undefined;
};

export type AdminPorts = ConsolePorts & {
  readonly breakGlassToken: string | undefined;
  /** Host names allowed in `Host` besides loopback names and the listener's own. */
  readonly hosts?: readonly string[];
  /** Verifies an admin issuer's token. `undefined`: rejected; `unavailable`: it cannot be verified now. */
  readonly authenticateAdmin: (
    headers: Readonly<Record<string, string | undefined>>,
  ) => Promise<Verified>;
  readonly onAccess: (access: AdminAccess) => void;
};

/** The result of authentication. */
type Verified = AdminCaller | 'unavailable' | undefined;

const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };
const JSON_TEXT = { 'content-type': 'application/json; charset=utf-8' };
const API_POLICY = { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" };

function plain(status: number, body: string, headers: Record<string, string> = {}): PlainResponse {
  return { status, headers: { ...TEXT, ...API_POLICY, ...headers }, body: `${body}\n` };
}

const NOT_FOUND = plain(404, 'not found');
const MISDIRECTED = plain(421, 'this host is not served here');
const CROSS_ORIGIN = plain(403, 'other origins may not ask here');
const UNAUTHENTICATED = plain(401, 'a token is required', { 'www-authenticate': 'Bearer' });
const UNAVAILABLE = plain(503, 'the token cannot be verified now', { 'retry-after': '5' });
const FORBIDDEN = plain(403, 'the token has no role here');

function servedHosts({ host }: ListenerAddress, more: readonly string[]): ReadonlySet<string> {
  const names = [...LOOPBACK_NAMES, ...more, ...(ANY_ADDRESS.has(host) ? [] : [urlHost(host)])];
  return new Set(names.map((name) => name.toLowerCase()));
}

/** The host name of the `Host` header without its port; `undefined` unless there is exactly one header. */
function hostName(request: IncomingMessage): string | undefined {
  const values = headerValues(request, 'host');
  const [host] = values;
  if (values.length !== 1 || host === undefined) return undefined;
  return /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?$/.exec(host.toLowerCase())?.[1];
}

function headerValues({ rawHeaders }: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '');
  }
  return values;
}

/** Without TLS of its own, the listener may stand behind a proxy that has it. */
function isOwnOrigin(request: IncomingMessage): boolean {
  const { origin, host } = request.headers;
  if (origin === undefined || origin === `https://${host}`) return true;
  return origin === `http://${host}` && !(request.socket instanceof TLSSocket);
}

async function authenticate(request: IncomingMessage, ports: AdminPorts): Promise<Verified> {
  const values = headerValues(request, 'authorization');
  const [authorization] = values;
  if (values.length !== 1 || authorization === undefined) return undefined;
  const token = /^bearer ([\x21-\x7e]+)$/i.exec(authorization)?.[1];
  if (token === undefined) return undefined;
  const secret = ports.breakGlassToken;
  if (secret !== undefined && secret !== '' && isSame(token, secret)) {
    return { subject: BREAK_GLASS_SUBJECT, roles: ['viewer', 'reviewer', 'admin'] };
  }
  return ports.authenticateAdmin({ authorization });
}

type Outcome = Pick<AdminAccess, 'subject' | 'detail'> & { readonly response: PlainResponse };

type ApiRequest = { readonly action: 'show-controls' } | RevocationRequest;

/** Routes a request to the API; `undefined` if it is none. */
function readApiRequest({ method, url }: IncomingMessage): ApiRequest | undefined {
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && url === '/api/controls') return { action: 'show-controls' };
  return readRevocationRequest(method, url);
}

/** Handles a routed request to the API. INVARIANT: nothing is served without authentication. */
async function handleApiRequest(
  asked: ApiRequest,
  request: IncomingMessage,
  ports: AdminPorts,
): Promise<Outcome> {
  let caller: Verified;
  try {
    caller = await authenticate(request, ports);
  } catch {
    caller = 'unavailable';
  }
  if (caller === 'unavailable') return { response: UNAVAILABLE, subject: undefined };
  if (caller === undefined) return { response: UNAUTHENTICATED, subject: undefined };
  const { subject, roles } = caller;
  if (roles.length === 0) return { response: FORBIDDEN, subject };
  if (asked.action === 'show-controls') {
    const body = `${JSON.stringify({ controls: ports.controls() })}\n`;
    return { response: { status: 200, headers: { ...JSON_TEXT, ...API_POLICY }, body }, subject };
  }
  const sent = {
    type: request.headers['content-type'],
    read: () => readBody(request, MAX_ORDER_BYTES),
  };
  return { ...(await respondToRevocation(asked, caller, sent, ports.revocations)), subject };
}

const NOT_FROM_HERE = page(
  'Not accepted',
  html`<p class="panel error" role="alert">The form was not sent by a page of this console.</p>`,
  { status: 403 },
);

/** A form says where it comes from: every browser of today sends its origin, or that the page is of the same one. */
function isFromOwnPage({ headers }: IncomingMessage): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] === 'same-origin';
}

async function handleConsoleRequest(
  asked: ConsoleRequest,
  request: IncomingMessage,
  ports: AdminPorts,
): Promise<Outcome> {
  if (request.method === 'POST' && !isFromOwnPage(request))
    return { response: NOT_FROM_HERE, subject: undefined };
  const ip = request.socket.remoteAddress ?? '';
  return respondToConsole(asked, request, { cookies: headerValues(request, 'cookie'), ip }, ports);
}

async function respondTo(
  request: IncomingMessage,
  ports: AdminPorts,
  hosts: ReadonlySet<string>,
): Promise<Outcome & { readonly action: string }> {
  const api = readApiRequest(request);
  const shown = api === undefined ? readConsoleRequest(request.method, request.url) : undefined;
  const action = api?.action ?? shown?.action ?? 'unknown';
  const refuse = (response: PlainResponse) => ({ response, subject: undefined, action });
  if (!hosts.has(hostName(request) ?? '')) return refuse(MISDIRECTED);
  if (!isOwnOrigin(request)) return refuse(CROSS_ORIGIN);
  if (api !== undefined) return { ...(await handleApiRequest(api, request, ports)), action };
  if (shown !== undefined)
    return { ...(await handleConsoleRequest(shown, request, ports)), action };
  return refuse(NOT_FOUND);
}

/** Creates the admin listener; it is closed until `start`. */
export function createAdminServer(listener: ListenerAddress, ports: AdminPorts): HttpListener {
  const hosts = servedHosts(listener, ports.hosts ?? []);
  return createHttpListener(listener, async (request) => {
    const ip = request.socket.remoteAddress ?? '';
    const { response, ...access } = await respondTo(request, ports, hosts);
    ports.onAccess({ ...access, status: response.status, ip });
    return response;
  });
}
