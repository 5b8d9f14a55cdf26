// The embedded development issuer: an authorization server sufficient for MCP clients on this machine. It
// approves every login without asking, so it listens on loopback only, accepts only its own host name, and is
// never loaded by `serve`. Keys live as long as the process. RFC 8414, RFC 7591, RFC 6749, RFC 7636, RFC 8707,
// RFC 9068, RFC 9207.

import type { IncomingMessage } from 'node:http';
import { createResponder, openApp, type PlainResponse, readText } from '../http/app.js';
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
  type OAuthError,
  oauthError,
  type Parameters,
  type PublicClient,
  type RefreshService,
  readParameters,
  type SignToken,
} from './issuer-grants.js';

/**
 * The metadata document, served under both well-known paths. `takesDocuments`: clients may identify themselves
 * by the URL of a document. RFC 8414 §2, OpenID Connect Discovery 1.0 §3, RFC 9207 §3.
 */
function issuerMetadata(issuer: string, takesDocuments: boolean): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    jwks_uri: `${issuer}/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: takesDocuments,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}

const DEFAULT_LIFETIME_SECONDS = 3600;
const MAX_BODY_BYTES = 16 * 1024;
const LIMITS = { maxHeaderBytes: 16 * 1024, headersWithinMs: 10_000, requestWithinMs: 30_000, idleMs: 5_000 } as const;
const HOST = '127.0.0.1';

type IssuerOptions = {
  /** At least one; the first logs in unless `login_hint` names another. */
  readonly users: readonly [DevUser, ...DevUser[]];
  /** Fetches the documents of clients identified by URL; without it those clients are unknown. */
  readonly fetchDocument?: FetchDocument;
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
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
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
  readonly sign: SignToken;
};

function refusal(error: OAuthError, status = 400): IssuerResponse {
  return { status, body: error };
}

type TokenGrant = { readonly grant: Grant; readonly refreshToken: string };

function grantFor(parameters: Parameters, parts: IssuerContext): TokenGrant | OAuthError {
  const clientId = parameters.get('client_id') ?? '';
  switch (parameters.get('grant_type')) {
    case 'authorization_code': {
      const grant = parts.grants.redeem(parameters, clientId);
      return isGrant(grant) ? { grant, refreshToken: parts.refreshes.issue(grant) } : grant;
    }
    case 'refresh_token':
      return parts.refreshes.refresh(parameters, clientId);
    default:
      return oauthError('unsupported_grant_type', 'Use authorization_code or refresh_token.');
  }
}

async function handleToken(request: IncomingMessage, parts: IssuerContext): Promise<IssuerResponse> {
  const body = await readText(request, MAX_BODY_BYTES);
  const parameters = body === undefined ? undefined : readParameters(new URLSearchParams(body));
  if (parameters === undefined) {
    return refusal(oauthError('invalid_request', 'The request is too large or repeats a name.'));
  }
  const given = grantFor(parameters, parts);
  if ('error' in given) return refusal(given);
  const { grant, refreshToken } = given;
  return {
    status: 200,
    body: {
      access_token: await parts.sign(grant, DEFAULT_LIFETIME_SECONDS),
      token_type: 'Bearer',
      expires_in: DEFAULT_LIFETIME_SECONDS,
      scope: grant.scopes.join(' '),
      refresh_token: refreshToken,
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

async function handleAuthorization(url: URL, parts: IssuerContext): Promise<IssuerResponse> {
  const parameters = readParameters(url.searchParams);
  if (parameters === undefined) {
    return refusal(oauthError('invalid_request', 'A parameter is repeated.'));
  }
  const client = await parts.findClient(parameters.get('client_id') ?? '');
  const outcome = parts.grants.authorize(parameters, client);
  if (outcome.kind === 'refused') return refusal(outcome.error);
  return { status: 302, headers: { location: outcome.location } };
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
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...crossOriginHeaders(request.headers.origin),
      ...headers,
    },
    body: body === undefined ? '' : JSON.stringify(body),
  };
}

/** Starts the issuer on a free port of loopback. */
export async function startIssuer(options: IssuerOptions): Promise<DevIssuer> {
  const { users, fetchDocument } = options;
  const { jwks, signFor } = await createSigner();
  const app = createResponder(LIMITS, (request) => respond(request, parts));
  const issuer = `http://${HOST}:${await openApp(app, { host: HOST, port: 0 })}`;
  const clients = createClientRegistry();
  const sign = signFor(issuer);
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
    grants: createGrantService(issuer, users),
    sign,
  };
  return {
    issuer,
    async mint({ lifetimeSeconds = DEFAULT_LIFETIME_SECONDS, ...grant }) {
      const [user] = users;
      const { name, groups, scopes } = user;
      const defaults = { subject: name, client: 'sallyport-dev', groups, scopes };
      return await sign({ ...defaults, ...grant }, lifetimeSeconds);
    },
    close: () => app.close(),
  };
}
