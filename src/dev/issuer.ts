// The development issuer: an authorization server sufficient for MCP clients on this machine, and for people who log in
// at the gateway with a browser. Where its people have no passwords (`dev`), it approves every login of a client without
// asking; where they have (`dev-issuer`), each login asks for one. It says in its metadata what it is, listens on loopback
// only, accepts only its own host name, and is never loaded by `serve`. RFC 8414, RFC 7591, RFC 6749, RFC 7636, RFC 8707, RFC 9068, RFC 9207; OpenID Connect Core §2 and §3.1.

import type { KeyObject } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createResponder, openApp, type PlainResponse, readText } from '../http/app.js';
import { isOwnOrigin, readForm } from '../http/browser.js';
import { continueAt, foreign, html, htmlDocument } from '../http/html.js';
import { DEVELOPMENT_MEMBER } from '../policy/principal.js';
import { parseObject } from '../protocol/jsonrpc.js';
import {
  createClientRegistry,
  createDocumentClients,
  createGrantService,
  createRefreshService,
  createSigner,
  type DevUser,
  type FetchDocument,
  type Grant,
  isDocumentUrl,
  isGrant,
  isLoopbackHost,
  LOGIN_CLIENT,
  type OAuthError,
  oauthError,
  type Parameters,
  type People,
  type PublicClient,
  type RefreshService,
  readParameters,
  type TokenSigners,
} from './issuer-grants.js';

/**
 * The metadata document, served under both well-known paths. `takesDocuments`: clients may identify themselves
 * by the URL of a document. RFC 8414 §2, OpenID Connect Discovery 1.0 §3, RFC 9207 §3.
 */
function issuerMetadata(issuer: string, takesDocuments: boolean): object {
  return {
    issuer,
    // What takes its tokens is for development too: a gateway that others can reach refuses them.
    [DEVELOPMENT_MEMBER]: true,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    jwks_uri: `${issuer}/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'password'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: takesDocuments,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    claims_supported: ['sub', 'groups', 'auth_time'],
  };
}

const DEFAULT_LIFETIME_SECONDS = 3600;
const MAX_BODY_BYTES = 16 * 1024;
const LIMITS = { maxHeaderBytes: 16 * 1024, headersWithinMs: 10_000, requestWithinMs: 30_000, idleMs: 5_000 } as const;
const HOST = '127.0.0.1';

type IssuerOptions = {
  /** Without passwords at least one; the first logs in unless `login_hint` names another. */
  readonly users: readonly [DevUser, ...DevUser[]] | People;
  /** A new one if absent, which ends with the process. */
  readonly key?: KeyObject;
  /** Fetches the documents of clients identified by URL; without it those clients are unknown. */
  readonly fetchDocument?: FetchDocument;
  /** A free one if absent. */
  readonly port?: number;
};

/** The contents of a minted token. Unset values are those of the first user. */
type MintOptions = {
  readonly resource: string;
  readonly subject?: string;
  readonly client?: string;
  readonly groups?: readonly string[];
  readonly scopes?: readonly string[];
  /** Defaults to an hour; negative for an expired token. */
  readonly lifetimeSeconds?: number;
};

export type DevIssuer = {
  /** The issuer identifier, as tokens carry it. */
  readonly issuer: string;
  mint(options: MintOptions): Promise<string>;
  close(): Promise<void>;
};

type IssuerResponse = {
  readonly status: number;
  /** JSON, or a page. */
  readonly body?: object | string;
  readonly headers?: NonNullable<PlainResponse['headers']>;
};
type Grants = ReturnType<typeof createGrantService>;
type Registry = ReturnType<typeof createClientRegistry>;
type IssuerContext = {
  readonly issuer: string;
  readonly jwks: object;
  readonly clients: Registry;
  readonly metadata: object;
  findClient(id: string): Promise<PublicClient | undefined>;
  readonly refreshes: RefreshService;
  readonly grants: Grants;
  readonly people: People;
} & TokenSigners;

function refusal(error: OAuthError, status = 400): IssuerResponse {
  return { status, body: error };
}

type TokenGrant = { readonly grant: Grant; readonly refreshToken?: string };

/** The client by its parameter or, of one that sends a secret, by its header (RFC 6749 §2.3.1); no secret is checked. */
function clientOf(request: IncomingMessage, parameters: Parameters): string {
  const [, basic = ''] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(request.headers.authorization ?? '') ?? [];
  const [id = ''] = Buffer.from(basic, 'base64').toString().split(':', 1);
  // Form-encoded in the header, so that the hyphen of the gateway's own id may be an escape.
  return parameters.get('client_id') ?? new URLSearchParams(`id=${id}`).get('id') ?? '';
}

async function grantFor(
  parameters: Parameters,
  clientId: string,
  parts: IssuerContext,
): Promise<TokenGrant | OAuthError> {
  switch (parameters.get('grant_type')) {
    case 'authorization_code': {
      const grant = parts.grants.redeem(parameters, clientId);
      if (!isGrant(grant)) return grant;
      return clientId === LOGIN_CLIENT ? { grant } : { grant, refreshToken: parts.refreshes.issue(grant) };
    }
    case 'refresh_token':
      return parts.refreshes.refresh(parameters, clientId, await parts.people.list());
    case 'password': {
      const verdict = await verify(parameters.get('username'), parameters.get('password'), parts);
      if (verdict.user === undefined) return oauthError('invalid_grant', LOGIN_ERRORS[verdict.why].text);
      const grant = parts.grants.logIn(parameters, verdict.user);
      return isGrant(grant) ? { grant } : grant;
    }
    default:
      return oauthError('unsupported_grant_type', 'Use authorization_code, refresh_token or password.');
  }
}

/** Why nobody was logged in, for a person. */
const LOGIN_ERRORS = {
  wrong: { status: 200, text: 'There is no such user with this password.' },
  paced: { status: 429, text: 'Too many logins have failed. Wait half a minute, and try again.' },
  unavailable: { status: 503, text: 'The users file cannot be used; the issuer has printed why.' },
} as const;

async function verify(name: string | undefined, password: string | undefined, { people }: IssuerContext) {
  if (people.verify !== undefined) return people.verify(name ?? '', password ?? '');
  const user = (await people.list()).find((one) => one.name === name);
  return user === undefined ? ({ why: 'wrong' } as const) : { user };
}

/** A page of another site may not try passwords here; browsers say where a form comes from. */
function isForeignLogin(request: IncomingMessage, parameters: Parameters): boolean {
  return parameters.get('grant_type') === 'password' && !isOwnOrigin(request);
}

async function handleToken(request: IncomingMessage, parts: IssuerContext): Promise<IssuerResponse> {
  const body = await readText(request, MAX_BODY_BYTES);
  const parameters = body === undefined ? undefined : readParameters(new URLSearchParams(body));
  if (parameters === undefined) {
    return refusal(oauthError('invalid_request', 'The request is too large or repeats a name.'));
  }
  if (isForeignLogin(request, parameters)) return refusal(oauthError('access_denied', NOT_OF_THIS_PAGE), 403);
  const given = await grantFor(parameters, clientOf(request, parameters), parts);
  if ('error' in given) return refusal(given);
  const { grant, refreshToken } = given;
  return {
    status: 200,
    body: {
      access_token: await parts.sign(grant, DEFAULT_LIFETIME_SECONDS),
      token_type: 'Bearer',
      expires_in: DEFAULT_LIFETIME_SECONDS,
      scope: grant.scopes.join(' '),
      ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
      ...(grant.client === LOGIN_CLIENT ? { id_token: await parts.signIdToken(grant, DEFAULT_LIFETIME_SECONDS) } : {}),
    },
  };
}

/** A registration is JSON (RFC 7591 §3.1), which a page of another site cannot send without a preflight. */
async function handleRegistration(request: IncomingMessage, parts: IssuerContext): Promise<IssuerResponse> {
  const [type = ''] = (request.headers['content-type'] ?? '').split(';', 1);
  if (type.trim().toLowerCase() !== 'application/json')
    return refusal(oauthError('invalid_client_metadata', 'Send application/json.'), 415);
  const body = await readText(request, MAX_BODY_BYTES);
  const registered = body === undefined ? undefined : parts.clients.register(parseObject(body));
  if (registered !== undefined) return { status: 201, body: registered };
  const description = 'Redirect URIs are http on loopback, or of a private scheme.';
  return refusal(oauthError('invalid_redirect_uri', description));
}

const NOT_OF_THIS_PAGE = 'The form is not of this page.';

async function handleAuthorization(
  url: URL,
  parts: IssuerContext,
  form?: ReadonlyMap<string, string>,
): Promise<IssuerResponse> {
  const parameters = readParameters(url.searchParams);
  if (parameters === undefined) {
    return refusal(oauthError('invalid_request', 'A parameter is repeated.'));
  }
  const client = await parts.findClient(parameters.get('client_id') ?? '');
  const outcome = parts.grants.authorize(parameters, client, { unasked: await whoIsUnasked(parameters, parts) });
  if (outcome.kind === 'refused') return refusal(outcome.error);
  if (outcome.kind === 'redirect') return { status: 302, headers: { location: outcome.location } };
  const asked = { url, parameters, redirectUri: outcome.redirectUri };
  if (form === undefined) return await loginPage(asked, parts);
  // What is wrong with the request is known before a password is tried.
  const { user, why } = await verify(form.get('user'), form.get('password'), parts);
  if (user === undefined) return await loginPage(asked, parts, why);
  const answer = parts.grants.authorize(parameters, client, { person: user });
  return answer.kind === 'redirect' ? continueAt(answer.location, 'You are logged in') : refusal(REQUEST_CHANGED);
}

const REQUEST_CHANGED = oauthError('invalid_request', 'The request is not valid any more.');

/** Who is let in without being asked: nobody where people have passwords. */
async function whoIsUnasked(parameters: Parameters, { people }: IssuerContext): Promise<DevUser | undefined> {
  if (people.verify !== undefined) return undefined;
  const users = await people.list();
  return users.find(({ name }) => name === parameters.get('login_hint')) ?? users[0];
}

/** The form of the login page. A page of another site cannot send it. */
async function handleLogin(request: IncomingMessage, url: URL, parts: IssuerContext): Promise<IssuerResponse> {
  if (!isOwnOrigin(request)) return refusal(oauthError('access_denied', NOT_OF_THIS_PAGE), 403);
  const form = await readForm(request, MAX_BODY_BYTES);
  return handleAuthorization(url, parts, form ?? new Map());
}

type Asked = { readonly url: URL; readonly parameters: Parameters; readonly redirectUri: string };

/** Says who asks, so that nobody types a password for a client that they have not started. */
async function loginPage(
  { url: { pathname, search }, parameters, redirectUri }: Asked,
  { people }: IssuerContext,
  why?: keyof typeof LOGIN_ERRORS,
): Promise<PlainResponse> {
  const resource = parameters.get('resource');
  const error = why === undefined ? undefined : LOGIN_ERRORS[why];
  const fields =
    people.verify === undefined
      ? (await people.list()).map(
          ({ name }) => html`<p><button name="user" value="${name}">Log in as ${name}</button></p>`,
        )
      : html`<div><label for="user">User</label><input id="user" name="user" autocomplete="username" autocapitalize="none" value="${parameters.get('login_hint')}" required></div>
<div><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required></div>
<button>Log in</button>`;
  const main = html`${error && html`<p class="panel error" role="alert">${error.text}</p>`}
<p>This issuer is for trying Sallyport on this machine.${people.verify === undefined ? ' It asks for no password.' : ''}</p>
<dl class="facts">
<dt>The login goes to</dt><dd><code>${foreign(redirectUri)}</code></dd>
${resource && html`<dt>The token is for</dt><dd><code>${foreign(resource)}</code></dd>`}
</dl>
<form class="stack" method="post" action="${pathname}${search}">${fields}</form>`;
  return htmlDocument('Who are you?', main, {
    status: error?.status ?? 200,
    ...(why === 'paced' ? { headers: { 'retry-after': '30' } } : {}),
  });
}

async function route(request: IncomingMessage, parts: IssuerContext): Promise<IssuerResponse> {
  const url = new URL(request.url ?? '/', parts.issuer);
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /.well-known/oauth-authorization-server':
    case 'GET /.well-known/openid-configuration':
      return { status: 200, body: parts.metadata };
    case 'GET /jwks.json':
      return { status: 200, body: parts.jwks };
    case 'GET /authorize':
      return await handleAuthorization(url, parts);
    case 'POST /authorize':
      return await handleLogin(request, url, parts);
    case 'POST /token':
      return await handleToken(request, parts);
    case 'POST /register':
      return await handleRegistration(request, parts);
    default:
      return { status: request.method === 'OPTIONS' ? 204 : 404 };
  }
}

/** CORS headers: only pages served from this machine may read responses. */
function crossOriginHeaders(origin: string | undefined): Readonly<Record<string, string>> {
  if (origin === undefined || !URL.canParse(origin)) return {};
  if (!isLoopbackHost(new URL(origin).hostname)) return {};
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
    'access-control-allow-methods': 'GET, POST',
    vary: 'origin',
  };
}

/** Refuses other host names that resolve to loopback (DNS rebinding). */
function isOwnHost(host: string | undefined, issuer: string): boolean {
  const { host: own, port } = new URL(issuer);
  return host === own || host === `localhost:${port}`;
}

async function respond(request: IncomingMessage, parts: IssuerContext): Promise<PlainResponse> {
  const isOwn = isOwnHost(request.headers.host, parts.issuer);
  const { status, body, headers }: IssuerResponse = isOwn ? await route(request, parts) : { status: 421 };
  return {
    status,
    headers: {
      'cache-control': 'no-store',
      ...(typeof body === 'object' ? { 'content-type': 'application/json' } : {}),
      ...crossOriginHeaders(request.headers.origin),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body ?? '').replace(/^""$/, ''),
  };
}

const NOBODY: DevUser = { name: 'nobody', groups: [], scopes: [] };

/** Starts the issuer on loopback. */
export async function startIssuer(options: IssuerOptions): Promise<DevIssuer> {
  const { users, key, fetchDocument, port = 0 } = options;
  const people: People = 'list' in users ? users : { list: async () => users };
  const { jwks, signFor } = await createSigner(key);
  const app = createResponder(LIMITS, (request) => respond(request, parts));
  const issuer = `http://${HOST}:${await openApp(app, { host: HOST, port })}`;
  const clients = createClientRegistry();
  const signers = signFor(issuer);
  const findByDocument = fetchDocument && createDocumentClients(fetchDocument);
  const parts: IssuerContext = {
    issuer,
    jwks,
    clients,
    metadata: issuerMetadata(issuer, findByDocument !== undefined),
    async findClient(id) {
      if (findByDocument !== undefined && isDocumentUrl(id)) return findByDocument(id);
      return clients.find(id);
    },
    refreshes: createRefreshService(),
    grants: createGrantService(issuer),
    people,
    ...signers,
  };
  return {
    issuer,
    async mint({ lifetimeSeconds = DEFAULT_LIFETIME_SECONDS, ...grant }) {
      const [user = NOBODY] = await people.list();
      const { name, groups, scopes } = user;
      const defaults = { subject: name, client: 'sallyport-dev', groups, scopes };
      return await signers.sign({ ...defaults, ...grant }, lifetimeSeconds);
    },
    close: () => app.close(),
  };
}
