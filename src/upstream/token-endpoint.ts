// Asks an authorization server for a token: its endpoint is configured or read from its metadata, the
// gateway proves itself there, and what comes back is judged before anyone sees it. Every request goes
// through the guarded fetch: addresses checked, no redirect followed, bytes and time capped. Retries nothing.
// RFC 6749 §5, RFC 7523 §2.2, RFC 8414 §3, RFC 8707 §2.

import {
  type AuthorizationServer,
  allowInsecureRequests,
  type ClientAuth,
  customFetch,
  discoveryRequest,
  genericTokenEndpointRequest,
  processDiscoveryResponse,
  processGenericTokenEndpointResponse,
  ResponseBodyError,
} from 'oauth4webapi';
import type { TokenRequestSettings } from '../config/settings.js';
import { clientAuthOf } from './client-authentication.js';
import type { FetchRule, GuardedFetch } from './guarded-fetch.js';
import { checkIssued } from './issued-token.js';
import type { Obtained, TokenError } from './token-cache.js';

export type TokenEndpointPorts = {
  readonly guarded: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** For one request to the server, its answer included. */
  readonly timeoutMs: number;
};

/** What is asked for besides what the settings say. */
export type TokenGrant = {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** The caller's token, where it is given in exchange. */
  readonly subjectToken: string | undefined;
};

export type TokenEndpoint = {
  /** Never rejects. */
  ask(grant: TokenGrant): Promise<Obtained | TokenError>;
};

const MAX_RESPONSE_BYTES = 64 * 1024;
/** Metadata are read again after this time. */
const METADATA_AGE_MS = 60 * 60 * 1000;
/** What a server says of the grant that it was shown (RFC 6749 §5.2), not of the gateway. */
const GRANT_ERRORS: ReadonlySet<string> = new Set(['invalid_grant', 'access_denied']);
const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  ...GRANT_ERRORS,
  'invalid_request',
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
]);

/** The token endpoint of one server, for one use. */
export function createTokenEndpoint(
  settings: TokenRequestSettings,
  ports: TokenEndpointPorts,
): TokenEndpoint {
  const client = { client_id: settings.clientId };
  const options = {
    [customFetch]: fetchThrough(settings, ports),
    // The guarded fetch decides: plain http leads to loopback alone.
    [allowInsecureRequests]: settings.network === 'loopback',
  };
  let known: { readonly server: AuthorizationServer; readonly atMs: number } | undefined;
  let authentication: Promise<ClientAuth> | undefined;

  async function findServer(): Promise<AuthorizationServer> {
    const { kind, url } = settings.server;
    if (kind === 'token-endpoint') return { issuer: url, token_endpoint: url };
    if (known !== undefined && ports.now() - known.atMs < METADATA_AGE_MS) return known.server;
    const server = await readMetadata(new URL(url), options);
    known = { server, atMs: ports.now() };
    return server;
  }

  async function request({ type, parameters, subjectToken }: TokenGrant): Promise<Obtained> {
    const server = await findServer();
    authentication ??= clientAuthOf(settings.authentication);
    const response = await genericTokenEndpointRequest(
      server,
      client,
      await authentication,
      type,
      { ...askedFor(settings), ...parameters },
      options,
    );
    const tokenResponse = await processGenericTokenEndpointResponse(server, client, response);
    const asked = { request: settings, subjectToken, nowMs: ports.now() };
    const checked = checkIssued({ ...tokenResponse }, asked);
    if (checked.kind === 'bad') throw refusal(checked.why);
    return { kind: 'obtained', value: checked.token, untilMs: checked.untilMs };
  }

  return {
    async ask(grant) {
      try {
        return await request(grant);
      } catch (error) {
        return tokenErrorOf(error);
      }
    },
  };
}

/** RFC 6749 §3.3; RFC 8707 §2; RFC 8693 §2.1 (`audience`). */
function askedFor({ scopes, resource, audience }: TokenRequestSettings): Record<string, string> {
  return {
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
    ...(resource === undefined ? {} : { resource }),
    ...(audience === undefined ? {} : { audience }),
  };
}

type Options = {
  readonly [customFetch]: Fetch;
  readonly [allowInsecureRequests]: boolean;
};

/** Authorization server metadata first, then OpenID Connect (RFC 8414 §5). */
async function readMetadata(issuer: URL, options: Options): Promise<AuthorizationServer> {
  try {
    const response = await discoveryRequest(issuer, { ...options, algorithm: 'oauth2' });
    return await processDiscoveryResponse(issuer, response);
  } catch {
    const response = await discoveryRequest(issuer, { ...options, algorithm: 'oidc' });
    return processDiscoveryResponse(issuer, response);
  }
}

type Fetch = (
  url: string,
  options: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: unknown;
  },
) => Promise<Response>;

function fetchThrough(
  { server, network }: TokenRequestSettings,
  { guarded, timeoutMs }: TokenEndpointPorts,
): Fetch {
  const origins = [new URL(server.url).origin];
  const rule: FetchRule = { network, origins, maxBytes: MAX_RESPONSE_BYTES, timeoutMs };
  return async (url, { method, headers, body }) => {
    if (method === 'GET') {
      const document = await guarded.fetchJson(new URL(url), rule);
      if (!document.ok) throw refusal(`the metadata ${document.detail}`);
      return Response.json(document.value);
    }
    const response = await guarded.postForm(new URL(url), { headers, body: String(body) }, rule);
    if (!response.ok) throw refusal(`the token endpoint ${response.detail}`);
    const { status, contentType, bytes } = response;
    return new Response(Buffer.from(bytes), { status, headers: { 'content-type': contentType } });
  };
}

const refusals = new WeakMap<Error, string>();

/** An error whose words are ours, and so may be logged. */
function refusal(detail: string): Error {
  const error = new Error(detail);
  refusals.set(error, detail);
  return error;
}

/** In fixed words: what a server writes into its errors is not for our log. */
function tokenErrorOf(error: unknown): TokenError {
  if (error instanceof ResponseBodyError) {
    const code = KNOWN_ERRORS.has(error.error) ? error.error : 'an error of its own';
    const detail = `the token endpoint refused with ${code}`;
    return { kind: 'fault', detail, isOfCaller: GRANT_ERRORS.has(error.error) };
  }
  const own = error instanceof Error ? refusals.get(error) : undefined;
  const detail = own ?? 'the authorization server answered with something invalid';
  return { kind: 'fault', detail, isOfCaller: false };
}
