// The admin listener (docs/contract.md §2): a page with the state of the controls, and the revocation API.
// Data are served only with a credential: a token of a configured issuer with a role, or the break-glass
// token. Checked in this order: Host (DNS rebinding), Origin, path, credential, role. Every access is
// reported, including refused ones. Sets no cookies and serves no cross-origin request.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  createHttpListener,
  type HttpListener,
  type ListenerAddress,
  type PlainResponse,
  readBody,
} from '../http/internal-server.js';
import type { ControlRow } from '../telemetry/controls.js';
import {
  type AccessDetail,
  type AdminCaller,
  MAX_ORDER_BYTES,
  type RevocationRequest,
  type RevocationService,
  readRevocationRequest,
  respondToRevocation,
} from './revocations.js';

// The page is one document without external parts. Its script and style are allowed only by their hashes, and
// all data are inserted as text. The token stays in the page's memory (CSP Level 3, Trusted Types).
const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.4rem }
form { display: flex; gap: .5rem; flex-wrap: wrap }
input { flex: 1; min-width: 12rem; padding: .4rem; font: inherit }
button { padding: .4rem 1rem; font: inherit }
table { border-collapse: collapse; width: 100%; margin-top: 1rem }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ccc; overflow-wrap: anywhere }
.degraded { color: #8a5a00; font-weight: bold }
.off { color: #a00; font-weight: bold }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } .degraded { color: #e0b050 } .off { color: #f77 } }
`;

const SCRIPT = `
'use strict';
const form = document.querySelector('form');
const token = document.querySelector('input');
const note = document.querySelector('output');
const rows = document.querySelector('tbody');
function show(controls) {
  rows.replaceChildren(...controls.map((row) => {
    const line = document.createElement('tr');
    for (const name of ['control', 'state', 'reason', 'since']) {
      const cell = document.createElement('td');
      cell.textContent = String(row[name]);
      if (name === 'state') cell.className = String(row.state);
      line.append(cell);
    }
    return line;
  }));
}
async function load() {
  const answer = await fetch('/api/controls', { headers: { authorization: 'Bearer ' + token.value.trim() }, credentials: 'omit' });
  const why = { 403: 'This token has no role here.', 503: 'The token cannot be verified at the moment. Try again later.' };
  if (!answer.ok) throw new Error(why[answer.status] ?? 'The token was not accepted.');
  show((await answer.json()).controls);
  note.textContent = '';
}
form.addEventListener('submit', (event) => {
  event.preventDefault();
  load().catch((error) => { rows.replaceChildren(); note.textContent = error.message; });
});
`;

function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The page's Content-Security-Policy: only its own script and style, and its own API. */
const ADMIN_PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hashSource(SCRIPT)}`,
  `style-src ${hashSource(STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const ADMIN_PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sallyport</title><style>${STYLE}</style></head>
<body>
<h1>Sallyport: controls</h1>
<form><label for="token">Token</label><input id="token" type="password" autocomplete="off" required><button>Show</button></form>
<p><output role="status"></output></p>
<table><thead><tr><th scope="col">Control</th><th scope="col">State</th><th scope="col">Reason</th><th scope="col">Since</th></tr></thead><tbody></tbody></table>
<script>${SCRIPT}</script>
</body>
</html>
`;

export type AdminAccess = {
  /** The verified subject; `undefined` if there is none. */
  readonly subject: string | undefined;
  /** A fixed phrase, never the path as sent. */
  readonly action: string;
  readonly status: number;
  readonly ip: string;
  readonly detail?: AccessDetail | undefined;
};

export type AdminPorts = {
  readonly breakGlassToken: string | undefined;
  /** Host names allowed in `Host` besides loopback names and the listener's own. */
  readonly hosts?: readonly string[];
  /** Verifies an admin issuer's token. `undefined`: rejected; `unavailable`: it cannot be verified now. */
  readonly authenticateAdmin: (
    headers: Readonly<Record<string, string | undefined>>,
  ) => Promise<Verified>;
  readonly controls: () => readonly ControlRow[];
  readonly revocations: RevocationService;
  readonly onAccess: (access: AdminAccess) => void;
};

/** The result of authentication. */
type Verified = AdminCaller | 'unavailable' | undefined;

/** The subject of the break-glass token. */
const BREAK_GLASS_SUBJECT = 'break-glass';

const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };
const JSON_TEXT = { 'content-type': 'application/json; charset=utf-8' };
const API_POLICY = { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" };
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': ADMIN_PAGE_POLICY,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

function plain(status: number, body: string, headers: Record<string, string> = {}): PlainResponse {
  return { status, headers: { ...TEXT, ...API_POLICY, ...headers }, body: `${body}\n` };
}

const NOT_FOUND = plain(404, 'not found');
const MISDIRECTED = plain(421, 'this host is not served here');
const CROSS_ORIGIN = plain(403, 'other origins may not ask here');
const UNAUTHENTICATED = plain(401, 'a token is required', { 'www-authenticate': 'Bearer' });
const UNAVAILABLE = plain(503, 'the token cannot be verified now', { 'retry-after': '5' });
const FORBIDDEN = plain(403, 'the token has no role here');

/** Compares digests, so that timing reveals neither content nor length. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

function servedHosts({ host }: ListenerAddress, more: readonly string[]): ReadonlySet<string> {
  const own = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  const names = [...LOOPBACK_NAMES, ...more, ...(ANY_ADDRESS.has(host) ? [] : [own])];
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

function isOwnOrigin(request: IncomingMessage): boolean {
  const { origin, host } = request.headers;
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
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

type AdminRequest =
  | { readonly action: 'show-page' }
  | { readonly action: 'show-controls' }
  | RevocationRequest;

/** Routes a request; `undefined` if it is not served. */
function readRequest({ method, url }: IncomingMessage): AdminRequest | undefined {
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && url === '/') return { action: 'show-page' };
  if (isRead && url === '/api/controls') return { action: 'show-controls' };
  return readRevocationRequest(method, url);
}

/** Handles a routed request. INVARIANT: only the page is served without authentication. */
async function handleAdminRequest(
  asked: AdminRequest,
  request: IncomingMessage,
  ports: AdminPorts,
): Promise<Outcome> {
  if (asked.action === 'show-page')
    return {
      response: { status: 200, headers: PAGE_HEADERS, body: ADMIN_PAGE },
      subject: undefined,
    };
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

async function respondTo(
  request: IncomingMessage,
  ports: AdminPorts,
  hosts: ReadonlySet<string>,
): Promise<Outcome & { readonly action: string }> {
  const asked = readRequest(request);
  const action = asked?.action ?? 'unknown';
  const refuse = (response: PlainResponse) => ({ response, subject: undefined, action });
  if (!hosts.has(hostName(request) ?? '')) return refuse(MISDIRECTED);
  if (!isOwnOrigin(request)) return refuse(CROSS_ORIGIN);
  if (asked === undefined) return refuse(NOT_FOUND);
  return { ...(await handleAdminRequest(asked, request, ports)), action };
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
