// The admin listener (docs/reference/listeners.md#the-console): the pages of the console, for sessions, and the API,
// for bearer tokens. Data are served only with a credential, and neither kind takes that of the other. Checked in this
// order: Host (DNS rebinding), Origin, path, credential, role. Every access is reported, including refused ones. Serves
// no cross-origin request. A page is shown to whoever has a session with a role; a form must come from a page of the
// same session.

import type { IncomingMessage } from 'node:http';
import { readViewQuery } from '../approvals/view.js';
import type { AuditRecord } from '../audit/chain.js';
import type { PlainResponse } from '../http/app.js';
import { type BrowserRequest, headerValues, isFormToken, isOwnOrigin, readForm } from '../http/browser.js';
import { html, seeOther } from '../http/html.js';
import { createHttpListener, type HttpListener, type ListenerAddress } from '../http/internal-server.js';
import { LOOPBACK_HOSTS } from '../http/request-checks.js';
import { urlHost } from '../text/escaping.js';
import { type ApiPorts, handleApiRequest, MAX_ORDER_BYTES, readApiRequest, respondToRevocation } from './api.js';
import { type AccessOutcome, type AdminCaller, plainRefusal, type TokenHolder } from './api-response.js';
import {
  APPROVALS_PATH,
  approvalPage,
  approvalPartPage,
  HISTORY_PATH,
  historyPage,
  waitingPage,
} from './approval-pages.js';
import { historyList, obstacleOf, type WaitingList, waitingList } from './approvals.js';
import { mayAnswer, respondToApproval } from './approvals-api.js';
import { APPROVAL, type Frame, page } from './page-frame.js';
import {
  blockOrderOf,
  blocksPage,
  controlsPage,
  decisionPage,
  decisionsPage,
  type ExplainDecision,
  type KnownNames,
  resultPage,
  type UpstreamRow,
  upstreamsPage,
} from './pages.js';
import { alertOf, driftDetailPage, driftPage, GUIDE_PATH, guidePage, type ReviewPort } from './review-pages.js';
import { type AdminSession, loginAgainPath, type Sessions, type Visitor } from './sessions.js';

export type AdminAccess = Omit<AccessOutcome, 'response'> & {
  /** A fixed phrase, never the path as sent. */
  readonly action: string;
  readonly status: number;
  readonly ip: string;
};

type ConsolePorts = ApiPorts & {
  readonly sessions: Sessions;
  /** What is known of whoever logged in; `undefined` for the break-glass token. */
  readonly holderOf: (session: AdminSession) => TokenHolder | undefined;
  readonly upstreams: () => readonly UpstreamRow[];
  readonly review: ReviewPort;
  /** The last decisions as the audit log records them, newest first. */
  readonly decisions: () => readonly AuditRecord[];
  readonly explain: ExplainDecision;
  /** The text of the guide to reviewing drift; `undefined` where it is not installed. */
  readonly guide: () => string | undefined;
  readonly knownNames: () => KnownNames;
};

export type AdminPorts = ConsolePorts & {
  /** Host names allowed in `Host` besides loopback names and the listener's own. */
  readonly hosts?: readonly string[];
  readonly onAccess: (access: AdminAccess) => void;
};

const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

const NOT_FOUND = plainRefusal(404, 'not found');
const MISDIRECTED = plainRefusal(421, 'this host is not served here');
const CROSS_ORIGIN = plainRefusal(403, 'other origins may not ask here');

function servedHosts({ host }: ListenerAddress, more: readonly string[]): ReadonlySet<string> {
  const names = [...LOOPBACK_HOSTS, ...more, ...(ANY_ADDRESS.has(host) ? [] : [urlHost(host)])];
  return new Set(names.map((name) => name.toLowerCase()));
}

/** The host name of the `Host` header without its port; `undefined` unless there is exactly one header. */
function hostName(request: IncomingMessage): string | undefined {
  const values = headerValues(request, 'host');
  const [host] = values;
  if (values.length !== 1 || host === undefined) return undefined;
  return /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?$/.exec(host.toLowerCase())?.[1];
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
): Promise<AccessOutcome> {
  if (request.method === 'POST' && !isFromOwnPage(request)) return { response: NOT_FROM_HERE, subject: undefined };
  const ip = request.socket.remoteAddress ?? '';
  return respondToConsole(asked, request, { cookies: headerValues(request, 'cookie'), ip }, ports);
}

async function respondTo(
  request: IncomingMessage,
  ports: AdminPorts,
  hosts: ReadonlySet<string>,
): Promise<AccessOutcome & { readonly action: string }> {
  const api = readApiRequest(request);
  const shown = api === undefined ? readConsoleRequest(request.method, request.url) : undefined;
  const action = api?.action ?? shown?.action ?? 'unknown';
  const refuse = (response: PlainResponse) => ({ response, subject: undefined, action });
  if (!hosts.has(hostName(request) ?? '')) return refuse(MISDIRECTED);
  if (!isOwnOrigin(request)) return refuse(CROSS_ORIGIN);
  if (api !== undefined) return { ...(await handleApiRequest(api, request, ports)), action };
  if (shown !== undefined) return { ...(await handleConsoleRequest(shown, request, ports)), action };
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

type PageName =
  | 'first'
  | 'approvals'
  | 'approval-history'
  | 'controls'
  | 'drift'
  | 'decisions'
  | 'upstreams'
  | 'blocks'
  | 'guide';

/** A request for the console. `path` is one of the gateway's own, never as sent. */
type ConsoleRequest =
  | { readonly action: 'show-page'; readonly page: PageName; readonly query: URLSearchParams }
  | { readonly action: 'show-definition' | 'show-decision'; readonly id: string }
  | { readonly action: 'show-approval'; readonly id: string; readonly query: URLSearchParams }
  | { readonly action: 'begin-login'; readonly issuer: string; readonly query: URLSearchParams }
  | { readonly action: 'log-in'; readonly query: URLSearchParams | undefined }
  | { readonly action: 'log-out' | 'block' | 'lift-block' }
  | { readonly action: 'grant-approval' | 'deny-approval'; readonly id: string };

const PAGE_PATHS: ReadonlyMap<string, PageName> = new Map([
  ['/', 'first'],
  [APPROVALS_PATH, 'approvals'],
  [HISTORY_PATH, 'approval-history'],
  ['/controls', 'controls'],
  ['/drift', 'drift'],
  ['/decisions', 'decisions'],
  ['/upstreams', 'upstreams'],
  ['/blocks', 'blocks'],
  [GUIDE_PATH, 'guide'],
]);
const DEFINITION = /^\/drift\/([0-9a-f]{32})$/;
const DECISION = /^\/decisions\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const ANSWER = /^(\/approvals\/.+)\/(grant|deny)$/;
const LOGIN = /^\/login\/with\/([a-z0-9][a-z0-9_-]{0,62})$/;

/** Routes a method and a target; `undefined` if it is no page. */
function readConsoleRequest(method: string | undefined, url: string | undefined): ConsoleRequest | undefined {
  const [path = '', search = ''] = (url ?? '').split(/\?(.*)/s, 2);
  if (method === 'POST' && search === '') return FORMS.get(path) ?? readAnswer(path);
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  const query = new URLSearchParams(search);
  const shown = PAGE_PATHS.get(path);
  if (shown !== undefined) return { action: 'show-page', page: shown, query };
  const definition = DEFINITION.exec(path)?.[1];
  if (definition !== undefined) return { action: 'show-definition', id: definition };
  const decision = DECISION.exec(path)?.[1];
  if (decision !== undefined) return { action: 'show-decision', id: decision };
  const approval = APPROVAL.exec(path)?.[1];
  if (approval !== undefined) return { action: 'show-approval', id: approval, query };
  return method === 'HEAD' ? undefined : readLogin(path, query);
}

/** The way to an issuer and back. */
function readLogin(path: string, query: URLSearchParams): ConsoleRequest | undefined {
  const issuer = LOGIN.exec(path)?.[1];
  if (issuer !== undefined) return { action: 'begin-login', issuer, query };
  return path === '/login/callback' ? { action: 'log-in', query } : undefined;
}

/** The forms on the page of an approval. */
function readAnswer(path: string): ConsoleRequest | undefined {
  const [, page = '', verb] = ANSWER.exec(path) ?? [];
  const id = APPROVAL.exec(page)?.[1];
  return id === undefined ? undefined : { action: verb === 'grant' ? 'grant-approval' : 'deny-approval', id };
}

const FORMS: ReadonlyMap<string, ConsoleRequest> = new Map([
  ['/login', { action: 'log-in', query: undefined }],
  ['/logout', { action: 'log-out' }],
  ['/block', { action: 'block' }],
  ['/lift', { action: 'lift-block' }],
]);

/** Answers a routed request whose Host and Origin were checked. */
async function respondToConsole(
  asked: ConsoleRequest,
  request: IncomingMessage,
  browser: BrowserRequest,
  ports: ConsolePorts,
): Promise<AccessOutcome> {
  const { sessions } = ports;
  switch (asked.action) {
    case 'begin-login':
      return withSubject(await sessions.begin(browser, asked.issuer, asked.query));
    case 'log-in': {
      if (asked.query !== undefined) return withSubject(await sessions.finish(browser, asked.query));
      const form = await readForm(request, MAX_ORDER_BYTES);
      if (form === undefined) return { response: NO_FORM, subject: undefined };
      return withSubject(sessions.breakGlass(browser, form));
    }
  }
  const visitor = sessions.visitor(browser);
  if (visitor === undefined) {
    return { response: sessions.loginPage(browser, wantedPath(asked)), subject: undefined };
  }
  const reply = await respondToVisitor(asked, request, visitor, ports);
  const { setCookie } = visitor;
  const isRenewed = setCookie !== undefined && asked.action !== 'log-out';
  const response = isRenewed ? withCookie(reply.response, setCookie) : reply.response;
  const { issuer, subject } = visitor.session;
  return { ...reply, response, issuer, subject };
}

function withSubject(reply: Omit<AccessOutcome, 'subject'> & { readonly subject?: string | undefined }) {
  return { subject: undefined, ...reply };
}

function withCookie(response: PlainResponse, cookie: string): PlainResponse {
  return { ...response, headers: { ...response.headers, 'set-cookie': [cookie] } };
}

/** Where a login leads whoever asked for this without a session. */
function wantedPath(asked: VisitorRequest): string {
  switch (asked.action) {
    case 'show-page':
      return [...PAGE_PATHS].find(([, page]) => page === asked.page)?.[0] ?? '/';
    case 'show-approval':
    case 'grant-approval':
    case 'deny-approval':
      return `${APPROVALS_PATH}/${asked.id}`;
    default:
      return '/drift';
  }
}

type VisitorRequest = Exclude<ConsoleRequest, { readonly action: 'begin-login' | 'log-in' }>;
type Reply = Omit<AccessOutcome, 'subject' | 'issuer'>;

/** Viewers see no more of definitions than the audit log has. */
async function rowsFor({ roles }: Frame, { review }: ConsolePorts): ReturnType<ReviewPort['rows']> {
  return roles.some((role) => role !== 'viewer') ? review.rows() : new Map();
}

async function respondToVisitor(
  asked: VisitorRequest,
  request: IncomingMessage,
  visitor: Visitor,
  ports: ConsolePorts,
): Promise<Reply> {
  const frame: Frame = {
    subject: visitor.session.subject,
    roles: visitor.roles,
    formToken: visitor.formToken,
    alert: alertOf(ports.review.items()),
  };
  switch (asked.action) {
    case 'show-page':
      return { response: await showPage(asked, frame, ports), detail: { page: asked.page } };
    case 'show-definition': {
      const detail = await ports.review.detail(asked.id);
      if (detail === undefined) return { response: notKept(frame, '/drift', NO_DEFINITION) };
      const { upstream, kind, name } = detail.item;
      return { response: driftDetailPage(detail, frame), detail: { upstream, kind, name } };
    }
    case 'show-approval':
      return showApproval(asked, visitor, frame, ports);
    case 'show-decision': {
      const shown = decisionPage(ports.decisions(), asked.id, ports.explain, frame);
      const response = shown ?? notKept(frame, '/decisions', NO_DECISION);
      return { response, detail: { decision: asked.id } };
    }
  }
  const form = await readForm(request, MAX_ORDER_BYTES);
  if (form === undefined) return { response: NO_FORM };
  if (!isFormToken(form, visitor.formToken)) return { response: formRefused(frame) };
  switch (asked.action) {
    case 'log-out':
      return ports.sessions.logOut(visitor);
    case 'grant-approval':
    case 'deny-approval':
      return answer(asked, visitor, frame, ports);
    case 'block':
      return block(form, visitor, frame, ports);
    case 'lift-block':
      return lift(form, visitor, frame, ports);
  }
}

async function showPage(
  { page: name, query }: Extract<ConsoleRequest, { readonly action: 'show-page' }>,
  frame: Frame,
  ports: ConsolePorts,
): Promise<PlainResponse> {
  switch (name) {
    case 'first': {
      const list = await waitingAt(ports);
      return list === undefined || list.forReviewers === 0
        ? controlsPage(ports.controls(), frame)
        : waitingPage(list, frame);
    }
    case 'approvals':
      return waitingPage(await waitingAt(ports), frame);
    case 'approval-history': {
      const all = await ports.approvals.list();
      const nowMs = ports.now();
      return historyPage(all === 'unavailable' ? undefined : historyList(all, nowMs), nowMs, frame);
    }
    case 'controls':
      return controlsPage(ports.controls(), frame);
    case 'drift':
      return driftPage(ports.review.items(), frame, ports.review.unlisted(), await rowsFor(frame, ports));
    case 'decisions':
      return decisionsPage(ports.decisions(), query, frame);
    case 'upstreams':
      return upstreamsPage(ports.upstreams(), frame);
    case 'blocks':
      return blocksPage(ports.revocations.list(), ports.knownNames(), frame);
    case 'guide':
      return guidePage(ports.guide(), frame);
  }
}

/** What waits now; `undefined` while the store cannot be read. */
async function waitingAt({ approvals, now }: ConsolePorts): Promise<WaitingList | undefined> {
  const all = await approvals.list();
  return all === 'unavailable' ? undefined : waitingList(all, now());
}

function callerOf({ session, roles }: Visitor, { holderOf }: ConsolePorts): AdminCaller {
  const { issuer, subject } = session;
  return { issuer, subject, roles, holder: holderOf(session) };
}

async function showApproval(
  { id, query }: Extract<ConsoleRequest, { readonly action: 'show-approval' }>,
  visitor: Visitor,
  frame: Frame,
  ports: ConsolePorts,
): Promise<Reply> {
  const isAnswerer = mayAnswer(visitor.roles);
  const asked = readViewQuery(query);
  const view = { ...asked, isRevealed: isAnswerer && asked.isRevealed };
  const detail = { approval: id, ...(view.isRevealed ? { sensitive: 'shown' } : {}) };
  const found = await ports.approvals.find(id);
  if (typeof found === 'string') {
    const [status, text] = found === 'unknown' ? [404, NO_APPROVAL] : [503, NO_STORE];
    return { response: resultPage('Not shown', text, { status, frame, back: APPROVALS_PATH }), detail };
  }
  if (view.part !== undefined) {
    const part = approvalPartPage(found, view, frame);
    return { response: part ?? notKept(frame, `${APPROVALS_PATH}/${id}`, NO_PART), detail };
  }
  const nowMs = ports.now();
  const caller = callerOf(visitor, ports);
  const obstacle = obstacleOf(caller, found, nowMs);
  const { issuer } = visitor.session;
  const again = issuer === undefined ? undefined : loginAgainPath(issuer, `${APPROVALS_PATH}/${id}`);
  const response = approvalPage(found, { nowMs, isAnswerer, query: view, obstacle, again, frame });
  return { response, detail };
}

/** INVARIANT: a form is carried out as a request to the API is, role and person included. */
async function answer(
  { action, id }: Extract<ConsoleRequest, { readonly action: 'grant-approval' | 'deny-approval' }>,
  visitor: Visitor,
  frame: Frame,
  ports: ConsolePorts,
): Promise<Reply> {
  const body = { type: 'application/json', read: async () => '{}' };
  const { response, detail } = await respondToApproval({ action, id }, callerOf(visitor, ports), body, ports);
  const { status } = response;
  const back = `${APPROVALS_PATH}/${id}`;
  if (status === OK) return { response: seeOther(back), detail };
  return { response: resultPage('Not answered', errorOf(response), { status, frame, back }), detail };
}

const NO_PART = 'The request has no such part.';
const NO_APPROVAL = 'No such request is kept.';
const NO_STORE = 'The shared store is unreachable. Try again later.';
const OK = 200;
const CREATED = 201;
const ACCEPTED = 202;
const NO_CONTENT = 204;

/** INVARIANT: what a form states is checked and carried out as a request to the API is, role included. */
async function block(
  form: ReadonlyMap<string, string>,
  { session: { issuer, subject }, roles }: Visitor,
  frame: Frame,
  { revocations }: ConsolePorts,
): Promise<Reply> {
  const body = { type: 'application/json', read: async () => blockOrderOf(form) };
  const done = await respondToRevocation({ action: 'revoke' }, { issuer, subject, roles }, body, revocations);
  const { status } = done.response;
  const back = '/blocks';
  if (status === CREATED) return { response: seeOther(back), detail: done.detail };
  const text =
    status === ACCEPTED
      ? 'The block is in force at this replica. The shared store is unreachable, so the others follow as soon as it can be reached.'
      : errorOf(done.response);
  const title = status === ACCEPTED ? 'Blocked here' : 'Not blocked';
  return { response: resultPage(title, text, { status, frame, back }), detail: done.detail };
}

async function lift(
  form: ReadonlyMap<string, string>,
  { session: { issuer, subject }, roles }: Visitor,
  frame: Frame,
  { revocations }: ConsolePorts,
): Promise<Reply> {
  const asked = { action: 'lift-revocation', id: form.get('id') ?? '' } as const;
  const none = { type: undefined, read: async () => undefined };
  const done = await respondToRevocation(asked, { issuer, subject, roles }, none, revocations);
  const { status } = done.response;
  const back = '/blocks';
  if (status === NO_CONTENT) return { response: seeOther(back), detail: done.detail };
  const response = resultPage('Not lifted', errorOf(done.response), { status, frame, back });
  return { response, detail: done.detail };
}

/** The sentence of a refusal of the API, which quotes nothing that was sent. */
function errorOf({ body }: PlainResponse): string {
  const { error } = JSON.parse(body) as { readonly error?: unknown };
  return String(error);
}

const NO_DEFINITION = 'This definition needs no review any more, or it has changed since the page was loaded.';
const NO_DECISION = 'This decision is not among the last ones of this replica. The audit log has it.';

function notKept(frame: Frame, back: string, text: string): PlainResponse {
  return resultPage('Not found', text, { status: 404, frame, back });
}

const NO_FORM = page(
  'Not accepted',
  html`<p class="panel error" role="alert">The form could not be read.</p>
<p><a class="button" href="/">Back</a></p>`,
  { status: 400 },
);

function formRefused(frame: Frame): PlainResponse {
  const text = 'The form belongs to another session or has expired. Nothing was changed.';
  return resultPage('Not accepted', text, { status: 403, frame, back: '/' });
}
