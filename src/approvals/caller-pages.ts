// The page on which the caller answers: in front of it a login at the caller's own issuer that is a moment old, then the
// request and a form. Nothing is told of a request, not even whether there is one, before its own caller has logged in; a
// GET changes nothing; a yes is a form of this page, of this session and of this request. A session is for one person and a
// few minutes, opens no other path, and no token opens the page. OpenID Connect Core §3.1.2.1; RFC 6265bis;
// docs/reference/approvals.md#the-page-and-the-login.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { VerifiedLogin } from '../auth/login.js';
import type { PlainResponse } from '../http/app.js';
import {
  type BrowserRequest,
  createAttempts,
  createCookies,
  headerValues,
  isFormToken,
  isOwnOrigin,
  readForm,
} from '../http/browser.js';
import { createBrowserLogin, type LoginClient, type PendingLogin } from '../http/browser-login.js';
import { continueAt, formTokenField, type Html, html, htmlDocument, seeOther } from '../http/html.js';
import { MAX_FORM_BYTES } from '../http/request-checks.js';
import {
  type AnswerOutcome,
  type ApprovalDesk,
  type ApprovalPerson,
  isSamePerson,
  openParties,
  type ShownApproval,
  stateOf,
} from '../policy/approval.js';
import { approvalLink, readApprovalPath } from './link.js';
import { approvalView, partView, readViewQuery } from './view.js';

/** How old the login may be while its session lasts. */
export const MAX_LOGIN_AGE_SECONDS = 300;
const MAX_LOGIN_AGE_MS = MAX_LOGIN_AGE_SECONDS * 1000;

/** What a session cookie says. */
export type ApprovalSession = ApprovalPerson & {
  readonly id: string;
  readonly issuerName: string;
  /** When the ID token was issued, and when the person logged in, in milliseconds since the epoch. */
  readonly issuedAtMs: number;
  readonly authTimeMs: number;
};

/** What a browser carries to the issuer and back. */
type KeptApproval = { readonly approval: string };
export type PendingApproval = PendingLogin & KeptApproval;

export type CallerPagePorts = {
  /** The public URL of the gateway, without a slash behind it. */
  readonly publicBase: string;
  readonly desk: Pick<ApprovalDesk, 'find' | 'answer'>;
  /** The login at an issuer, by its name; it asks for `MAX_LOGIN_AGE_SECONDS`. */
  readonly client: (issuer: string) => LoginClient<VerifiedLogin> | undefined;
  readonly sealSession: (session: ApprovalSession, expiresAtMs: number) => string;
  readonly openSession: (sealed: string) => ApprovalSession | undefined;
  readonly sealLogin: (login: PendingApproval, expiresAtMs: number) => string;
  readonly openLogin: (sealed: string) => PendingApproval | undefined;
  /** A keyed digest of a session and the approval that the form is for. */
  readonly formToken: (session: string, approval: string) => string;
  readonly useState: (state: string, expiresAtMs: number) => Promise<boolean | 'unavailable'>;
  /** Whether the person or an actor was blocked or revoked since the login, or the login is not configured any more. */
  readonly isShut: (session: ApprovalSession) => boolean;
  /** Somebody could not log in, because of how the issuer or the gateway is configured. */
  readonly onLoginImpossible: (issuer: string, detail: string) => void;
  /** Somebody came back from an issuer and was not logged in; `detail` is a fixed text. */
  readonly onLoginRefused: (issuer: string, detail: string) => void;
  readonly now: () => number;
};

/** Answers one request for the page. Its path, Host, method and framing were checked. Never rejects. */
export type AnswerPage = (request: IncomingMessage, path: string, query: string) => Promise<PlainResponse>;

const SESSION_COOKIE = 'sallyport-approver';
const LOGIN_COOKIE = 'sallyport-approver-login-';
/** Logins that one browser may have begun, such as in several tabs; a further one takes the place of the oldest. */
const MAX_PENDING = 4;
/** Characters of the state in the name of its cookie. */
const STATE_CHARACTERS = 12;

export function createCallerPages(ports: CallerPagePorts): AnswerPage {
  const { desk, publicBase, now } = ports;
  const isSecure = publicBase.startsWith('https:');
  const cookies = createCookies(isSecure);
  const ownOrigin = new URL(publicBase).origin;
  const mayTry = createAttempts(now);
  const login = createBrowserLogin<KeptApproval, VerifiedLogin>({
    ...{ cookies, now, useState: ports.useState, client: ports.client },
    seal: ports.sealLogin,
    open: ports.openLogin,
    // One for each, so that tabs do not disturb each other.
    cookieName: (state) => LOGIN_COOKIE + (/^[A-Za-z0-9_-]+/.exec(state)?.[0] ?? '').slice(0, STATE_CHARACTERS),
  });

  function sessionOf(browser: BrowserRequest): ApprovalSession | undefined {
    const sealed = cookies.read(browser, SESSION_COOKIE);
    const session = sealed === undefined ? undefined : ports.openSession(sealed);
    if (session === undefined || session.authTimeMs + MAX_LOGIN_AGE_MS <= now() || ports.isShut(session))
      return undefined;
    return session;
  }

  async function respond(request: IncomingMessage, path: string, search: string): Promise<PlainResponse> {
    const browser = { cookies: headerValues(request, 'cookie'), ip: request.socket.remoteAddress ?? '' };
    const query = new URLSearchParams(search);
    const asked = readApprovalPath(path);
    const isForm = request.method === 'POST';
    if (asked === undefined) return NO_SUCH_PART;
    if (asked === 'callback') return isForm ? NO_FORM : comeBack(browser, query);
    return isForm ? take(request, browser, asked.id) : show(browser, asked.id, query);
  }

  async function take(request: IncomingMessage, browser: BrowserRequest, id: string): Promise<PlainResponse> {
    if (!isFromOwnPage(request)) return NOT_FROM_HERE;
    const form = await readForm(request, MAX_FORM_BYTES);
    if (form === undefined) return NO_FORM;
    return form.get('do') === 'login' ? begin(browser, id) : answer(browser, id, form);
  }

  /** Every browser of today says where a form comes from. */
  function isFromOwnPage(request: IncomingMessage): boolean {
    const { origin } = request.headers;
    return origin !== undefined && (origin === ownOrigin || isOwnOrigin(request));
  }

  async function show(browser: BrowserRequest, id: string, query: URLSearchParams): Promise<PlainResponse> {
    const session = sessionOf(browser);
    if (session === undefined) return loginPage(id);
    const approval = await ownApproval(id, session);
    if (typeof approval === 'string') return approval === 'unavailable' ? UNAVAILABLE : notYours(id);
    const view = readViewQuery(query);
    if (view.part !== undefined) {
      const part = partView(approval, view);
      return part === undefined ? NO_SUCH_PART : htmlDocument('Part of a request', part);
    }
    const main = html`${approvalView(approval, view, now())}
${answerForms(approval, session)}`;
    return htmlDocument('Do you approve this request?', main);
  }

  /** The approval, if it is this person's to answer; whose it is otherwise is not told. */
  async function ownApproval(id: string, session: ApprovalSession): Promise<ShownApproval | 'unavailable' | 'unknown'> {
    const found = await desk.find(id);
    if (typeof found === 'string') return found;
    const { caller } = found.subject;
    return caller.issuer === session.issuer && isSamePerson(caller, session) ? found : 'unknown';
  }

  function answerForms(approval: ShownApproval, session: ApprovalSession): Html {
    const { id } = approval;
    const state = stateOf(approval, now());
    if (state !== 'waiting')
      return html`<p class="panel">This request does not wait any more: ${STATE_TEXTS[state]}.</p>`;
    if (!openParties(approval).includes('caller'))
      return html`<p class="panel">It is not for you to approve: a reviewer answers.</p>`;
    const field = formTokenField(ports.formToken(session.id, id));
    const until = Math.max(0, Math.ceil((session.authTimeMs + MAX_LOGIN_AGE_MS - now()) / 60_000));
    const other =
      approval.demand.reviewer === undefined ? undefined : html`<p>A reviewer has to approve it as well.</p>`;
    return html`<h2>Your answer</h2>
${other}
<p>If you did not ask your agent for this, refuse it. Your login counts for ${until === 1 ? 'one more minute' : `${until} more minutes`}.</p>
<form class="answers" method="post" action="${id}">${field}<button name="do" value="grant">Approve</button> <button name="do" value="deny" class="danger">Refuse</button></form>`;
  }

  async function begin(browser: BrowserRequest, id: string): Promise<PlainResponse> {
    const found = await desk.find(id);
    if (found === 'unavailable') return UNAVAILABLE;
    // Nobody can be sent to an issuer here, because whose it was is not known either.
    if (found === 'unknown') return GONE;
    const { caller } = found.subject;
    if (!mayTry(JSON.stringify([caller.issuer, caller.subject]))) return TOO_MANY;
    const begun = await login.begin(caller.issuerName, { approval: id });
    if (typeof begun === 'string') return noLogin(begun, caller.issuerName);
    const pending = cookies.namesOf(browser, LOGIN_COOKIE);
    const over = pending.slice(0, Math.max(0, pending.length + 1 - MAX_PENDING)).map(cookies.clear);
    return continueAt(begun.url, 'Log in at your issuer', { 'set-cookie': [...over, begun.cookie] });
  }

  function noLogin(why: 'unknown' | 'unavailable' | 'pairwise', issuer: string): PlainResponse {
    if (why === 'unavailable') return UNAVAILABLE;
    ports.onLoginImpossible(issuer, IMPOSSIBLE_LOGINS[why]);
    return why === 'unknown' ? NO_LOGIN : PAIRWISE;
  }

  async function comeBack(browser: BrowserRequest, query: URLSearchParams): Promise<PlainResponse> {
    const ended = await login.finish(browser, query);
    if (ended === undefined) return failed(400, 'Login failed', NO_LOGIN_PENDING);
    const { outcome, issuer, kept, clear } = ended;
    const link = approvalLink(publicBase, kept.approval);
    if (outcome.kind !== 'verified') {
      if (outcome.kind === 'no-auth-time') ports.onLoginImpossible(issuer, NO_AUTH_TIME_DETAIL);
      else ports.onLoginRefused(issuer, REFUSED_LOGINS[outcome.kind === 'refused' ? outcome.cause : outcome.kind]);
      const [status, text] = FAILURES[outcome.kind];
      return failed(status, 'Login failed', text, { cookies: [clear], link });
    }
    return takeLogin(issuer, outcome, link, clear);
  }

  function takeLogin(issuer: string, outcome: VerifiedLogin, link: string, clear: string): PlainResponse {
    // What somebody says who acts for the person is not what the person says.
    if (outcome.actors.length > 0) {
      ports.onLoginRefused(issuer, ACTED_FOR_DETAIL);
      return failed(403, 'Login failed', ACTED_FOR, { cookies: [clear], link });
    }
    const { authTimeMs = 0, subject, match, issuedAtMs } = outcome;
    // INVARIANT: a session has a new id, so that nobody can choose or know it before the login.
    const session = {
      ...{ id: randomUUID(), issuerName: issuer, issuer: outcome.issuer, subject, match },
      ...{ issuedAtMs, authTimeMs },
    };
    const sealed = ports.sealSession(session, authTimeMs + MAX_LOGIN_AGE_MS);
    return seeOther(link, { ...PRIVATE, 'set-cookie': [cookies.set(SESSION_COOKIE, sealed, MAX_LOGIN_AGE_MS), clear] });
  }

  async function answer(
    browser: BrowserRequest,
    id: string,
    form: ReadonlyMap<string, string>,
  ): Promise<PlainResponse> {
    const session = sessionOf(browser);
    if (session === undefined) return loginPage(id, LOGIN_OVER);
    if (!isFormToken(form, ports.formToken(session.id, id))) return FORM_OF_OTHERS;
    const approval = await ownApproval(id, session);
    if (typeof approval === 'string') return approval === 'unavailable' ? UNAVAILABLE : notYours(id);
    const verdict = VERDICTS.get(form.get('do') ?? '');
    if (verdict === undefined) return NO_FORM;
    const { issuer, subject, match } = session;
    const person = { issuer, subject, match };
    const done = await desk.answer(id, verdict, { party: 'caller', proof: 'login', person, groups: [] });
    return answered(done, verdict, now());
  }

  return async (request, path, query) => {
    const response = await respond(request, path, query);
    return { ...response, headers: { ...response.headers, ...PRIVATE } };
  };
}

const VERDICTS: ReadonlyMap<string, 'granted' | 'denied'> = new Map([
  ['grant', 'granted'],
  ['deny', 'denied'],
]);

/** Of every response: nothing of it is kept or told to other sites. */
const PRIVATE = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;

const STATE_TEXTS = {
  granted: 'it was approved',
  denied: 'it was refused',
  used: 'it was approved and sent',
  expired: 'its time is over',
  void: 'the rules or what is pinned have changed',
} as const;

/** In front of every approval, and of every id that is none. */
function loginPage(id: string, error?: string): PlainResponse {
  const note = error === undefined ? undefined : html`<p class="panel error" role="alert">${error}</p>`;
  const main = html`${note}
<p>Your agent may have asked for something that needs your approval. Log in to see what it is. Whatever you decide, you decide it on the next page.</p>
<p>You log in where you log in for your agent, even if you are logged in there already: it counts only if that was a moment ago.</p>
<form method="post" action="${id}"><button name="do" value="login">Log in to answer</button></form>`;
  return htmlDocument('Log in to answer', main, { status: error === undefined ? 200 : 403 });
}

type Failure = { readonly cookies?: readonly string[]; readonly link?: string };

function failed(status: number, title: string, text: string, { cookies = [], link }: Failure = {}): PlainResponse {
  const again = link === undefined ? undefined : html`<p><a class="button" href="${link}">Try again</a></p>`;
  const main = html`<p class="panel error" role="alert">${text}</p>
${again}`;
  return htmlDocument(title, main, { status, headers: cookies.length === 0 ? {} : { 'set-cookie': [...cookies] } });
}

/** The same for a request of somebody else, and for one that there is not. */
function notYours(id: string): PlainResponse {
  const main = html`<p class="panel error" role="alert">There is no such request, or it is not yours to answer.</p>
<form method="post" action="${id}"><button name="do" value="login">Log in as somebody else</button></form>`;
  return htmlDocument('Not found', main, { status: 404 });
}

const GONE = failed(
  404,
  'Not found',
  'There is no such request, or not any more. If your agent still waits, have it send the request again: it is given a new link.',
);
const NO_SUCH_PART = failed(404, 'Not found', 'The request has no such part.');
const UNAVAILABLE = failed(
  503,
  'Try again later',
  'The issuer or the shared store cannot be reached now. Nothing was changed.',
);
const TOO_MANY = failed(429, 'Too many attempts', 'There were too many attempts to log in. Try again in a minute.');
const NO_LOGIN = failed(
  503,
  'No login',
  'Nobody can log in here at the issuer of this request. Tell whoever operates this gateway.',
);
const PAIRWISE = failed(
  503,
  'No login',
  'The issuer would not tell who you are, so your answer could not count. Tell whoever operates this gateway.',
);
const NOT_FROM_HERE = failed(
  403,
  'Not accepted',
  'The form was not sent by a page of this gateway. Nothing was changed.',
);
const NO_FORM = failed(400, 'Not accepted', 'The form could not be read. Nothing was changed.');
const FORM_OF_OTHERS = failed(
  403,
  'Not accepted',
  'The form belongs to another login or to another request. Nothing was changed.',
);
const LOGIN_OVER = 'Nothing was changed, because your login is more than five minutes old. Log in again to answer.';
const NO_LOGIN_PENDING = 'This login has expired, was already used, or began in another browser.';

const IMPOSSIBLE_LOGINS = {
  unknown: 'the issuer of a caller has no login, so that nobody can answer: configure issuers.<name>.login',
  pairwise:
    'the issuer gives each client another subject for the same person, so that nobody can answer: configure issuers.<name>.login.match',
} as const;
/** For the log. The issuer's own words, and what the browser brought, are not repeated there. */
const REFUSED_LOGINS = {
  used: 'the way back from the issuer was taken a second time',
  response: 'the issuer refused, or what the browser brought back is not its response to this login',
  exchange:
    'the issuer refused to give tokens for the code: see clientId, clientSecret and authentication of its login',
  'id-token': 'what the issuer gave for the code has no valid ID token of this login',
  unavailable: 'the issuer or the shared store cannot be reached',
  old: 'the person logged in at the issuer more than five minutes before, although max_age asked for a new login',
} as const;
const NO_AUTH_TIME_DETAIL =
  'the ID token does not say when the person logged in (auth_time), so that nobody can answer: have the issuer add it';

const ACTED_FOR_DETAIL = 'the ID token says that somebody acts for the person (act), who has to answer in person';
const ACTED_FOR =
  'The issuer says that somebody else acts for you. Only you can answer here: log out there, and log in yourself.';

const FAILURES = {
  used: [400, NO_LOGIN_PENDING],
  refused: [403, 'The issuer did not log you in, or its response could not be verified.'],
  unavailable: [503, 'The issuer or the shared store cannot be reached now. Try again later.'],
  'no-auth-time': [
    403,
    'The issuer does not say when you logged in, so that your answer could not count. Tell whoever operates this gateway.',
  ],
  old: [
    403,
    'You logged in at the issuer more than five minutes ago, and it did not ask again. An answer counts only after a login a moment before: log out there and try again.',
  ],
} as const;

function answered(done: AnswerOutcome, verdict: 'granted' | 'denied', nowMs: number): PlainResponse {
  switch (done.kind) {
    case 'taken':
      return verdict === 'denied' ? REFUSED : approved(done.approval);
    case 'over': {
      const state = done.approval && stateOf(done.approval, nowMs);
      const text = state === undefined || state === 'waiting' ? 'it is not known any more' : STATE_TEXTS[state];
      return failed(409, 'Not changed', `This request does not wait any more: ${text}. Your answer changed nothing.`);
    }
    case 'refused':
      return failed(403, 'Not changed', 'This request is not for you to answer. Nothing was changed.');
    default:
      return UNAVAILABLE;
  }
}

function approved(approval: Parameters<typeof openParties>[0]): PlainResponse {
  const next = openParties(approval).includes('reviewer')
    ? 'A reviewer has to approve it as well. Your agent gets through once both have.'
    : 'Tell your agent to try again: the same request goes through once.';
  return htmlDocument(
    'Approved',
    html`<p class="panel done" role="status">You approved this request. ${next}</p>
<p>You can close this page.</p>`,
  );
}

const REFUSED = htmlDocument(
  'Refused',
  html`<p class="panel done" role="status">You refused this request. It is not sent, and your agent is told so.</p>
<p>You can close this page.</p>`,
);
