// Asks one issuer by token introspection whether a token that it issued is active. Requests are bounded in number and
// rate, and after an outage none is sent for a moment; the returned claims are checked elsewhere. Signed responses (RFC
// 9701) are not read. RFC 7662 §2 and §4; RFC 6749 §2.3.1.

import { hash } from 'node:crypto';
import * as oauth from 'oauth4webapi';
import type { IntrospectionSettings, IssuerSettings } from '../config/settings.js';
import type { Measured } from '../policy/events.js';
import { isObject, type JsonObject } from '../protocol/jsonrpc.js';
import { BoundedMap, createRate } from '../state/bounds.js';
import { discover, type FetchJson, learnedUrlRule } from './issuer.js';

type IntrospectionBudget = {
  /** Takes one request; false where none is left for a known or an unknown token. */
  tryTake(isKnown: boolean): boolean;
};

/**
 * A token bucket of `perSecond` introspection requests that refills evenly, without timers. Unknown tokens may use half
 * of it at most, so that a flood of them leaves requests for known ones. `now` is in milliseconds.
 */
export function createIntrospectionBudget(perSecond: number, now: () => number): IntrospectionBudget {
  const reserve = perSecond / 2;
  const rate = createRate({ burst: perSecond, perSecond }, now);
  return {
    tryTake(isKnown) {
      if (rate.left() < (isKnown ? 1 : reserve + 1)) return false;
      rate.spend(1);
      return true;
    },
  };
}

const MAX_RESPONSE_BYTES = 64 * 1024;
const RESPONSE_TIMEOUT_MS = 5_000;
/** Requests in progress at once, and those of them for unknown tokens. */
const MAX_WAITING = 64;
const MAX_UNKNOWN_WAITING = MAX_WAITING / 2;
/** Known tokens remembered, by their digests. */
const MAX_KNOWN = 10_000;
/** After an outage no request is sent for this time. */
const OUTAGE_PAUSE_MS = 1_000;
/** Statuses that mean that the endpoint no longer exists at this URL. */
const GONE_STATUSES: ReadonlySet<number> = new Set([404, 405, 410]);
/** The endpoint is discovered again after this time, and after each outage. */
const DISCOVERY_AGE_MS = 60 * 60_000;

/** `unavailable`: the issuer cannot be reached now, or the rate is used up. */
type Introspection =
  | { readonly kind: 'active'; readonly claims: JsonObject }
  | { readonly kind: 'inactive' }
  | { readonly kind: 'unavailable' };

export type IntrospectorStatus = {
  /** `degraded`: the endpoint is not known, or the last request failed. */
  readonly state: 'armed' | 'degraded';
  /** Why; holds no text of the issuer except the target of a redirect. */
  readonly failure: string | undefined;
  /** By its newest metadata, where they were read, the issuer gives each client another subject for the same person. */
  readonly isPairwise: boolean;
};

export type Introspector = {
  /** Introspects one token. Known tokens may use the half of the rate that unknown ones cannot. */
  introspect(token: string): Promise<Introspection>;
  /** Marks a token as known because its caller was accepted; this outlives reloads. */
  noteGood(token: string): void;
  /** To be called at start and periodically: discovers the endpoint where it is not known. */
  keepFresh(): void;
  /** Constant: a response holds for its cache time, whatever happens to keys. */
  generation(): number;
  status(): IntrospectorStatus;
};

/** The part of the guarded fetch that introspection uses. */
export type PostForm = (
  url: URL,
  form: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
  rule: ReturnType<typeof learnedUrlRule> & {
    readonly maxBytes: number;
    readonly timeoutMs: number;
  },
) => Promise<
  | {
      readonly ok: true;
      readonly status: number;
      readonly contentType: string;
      readonly bytes: Uint8Array;
    }
  | { readonly ok: false; readonly detail: string }
>;

type Ports = {
  readonly fetchJson: FetchJson;
  readonly postForm: PostForm;
  readonly now: () => number;
  /** How long a request took. `error`: `unavailable` if the endpoint is, `invalid` if its response is. */
  readonly onIntrospected: (issuer: string, measured: Measured) => void;
};

const INVALID_RESPONSE = 'the introspection endpoint sent a response that is not valid';

/**
 * A failure with a fixed message. An outage concerns the issuer as a whole; any other failure may be caused by one
 * token and must not block others.
 */
class IntrospectionError extends Error {
  readonly isOutage: boolean;

  constructor(why: string, isOutage: boolean) {
    super(why);
    this.isOutage = isOutage;
  }
}

type IntrospectionContext = {
  readonly issuer: IssuerSettings;
  readonly introspection: IntrospectionSettings;
  readonly ports: Ports;
};

/** Creates the introspector of one issuer. It connects to nothing until it is used, and needs no closing. */
export function createIntrospector(
  issuer: IssuerSettings,
  introspection: IntrospectionSettings,
  ports: Ports,
): Introspector {
  const context: IntrospectionContext = { issuer, introspection, ports };
  const budget = createIntrospectionBudget(introspection.maxPerSecond, ports.now);
  const known = new BoundedMap<string, true>(MAX_KNOWN);
  let endpoint: { readonly url: URL; readonly foundAt: number } | undefined;
  let failure: string | undefined;
  let isPairwise = false;
  let outageAt = Number.NEGATIVE_INFINITY;
  let waiting = 0;
  let discovering: Promise<URL> | undefined;

  function fail(error: unknown): IntrospectionError {
    const introspectionError =
      error instanceof IntrospectionError ? error : new IntrospectionError(INVALID_RESPONSE, false);
    failure = introspectionError.message;
    if (introspectionError.isOutage) {
      outageAt = ports.now();
      endpoint = undefined;
    }
    return introspectionError;
  }

  async function findEndpoint(): Promise<URL> {
    if (introspection.endpoint !== undefined) return introspection.endpoint;
    if (endpoint !== undefined && ports.now() - endpoint.foundAt < DISCOVERY_AGE_MS) {
      return endpoint.url;
    }
    discovering ??= discoverEndpoint().finally(() => {
      discovering = undefined;
    });
    return discovering;
  }

  async function discoverEndpoint(): Promise<URL> {
    const found = await discover(issuer, 'introspection_endpoint', ports.fetchJson);
    if (!found.ok) throw new IntrospectionError(found.detail, true);
    endpoint = { url: found.url, foundAt: ports.now() };
    isPairwise = found.isPairwise;
    return found.url;
  }

  function isPaused(): boolean {
    return ports.now() - outageAt < OUTAGE_PAUSE_MS;
  }

  async function sendIntrospection(token: string): Promise<Introspection> {
    const startedMs = performance.now();
    const report = (error: string): void =>
      ports.onIntrospected(issuer.name, { durationMs: performance.now() - startedMs, error });
    try {
      const response = await askEndpoint(await findEndpoint(), token, context);
      failure = undefined;
      report('');
      return response['active'] === true ? { kind: 'active', claims: response } : { kind: 'inactive' };
    } catch (error) {
      report(fail(error).isOutage ? 'unavailable' : 'invalid');
      return { kind: 'unavailable' };
    }
  }

  return {
    noteGood(token) {
      known.set(nameOf(token), true);
    },
    async introspect(token) {
      const isKnown = known.use(nameOf(token)) === true;
      const isFull = waiting >= (isKnown ? MAX_WAITING : MAX_UNKNOWN_WAITING);
      if (isPaused() || isFull || !budget.tryTake(isKnown)) return { kind: 'unavailable' };
      waiting += 1;
      try {
        return await sendIntrospection(token);
      } finally {
        waiting -= 1;
      }
    },
    keepFresh() {
      const isFound = introspection.endpoint !== undefined || endpoint !== undefined;
      if (isFound || discovering !== undefined || isPaused()) return;
      findEndpoint().then(() => {
        failure = undefined;
      }, fail);
    },
    generation: () => 0,
    status() {
      const isFound = introspection.endpoint !== undefined || endpoint !== undefined;
      if (failure !== undefined) return { state: 'degraded', failure, isPairwise };
      return isFound
        ? { state: 'armed', failure: undefined, isPairwise }
        : { state: 'degraded', failure: 'the introspection endpoint has not been discovered yet', isPairwise };
    },
  };
}

function nameOf(token: string): string {
  return hash('sha256', token, 'base64');
}

/** How the gateway proves to the issuer which client it is (RFC 6749 §2.3.1). */
export function clientAuthenticationOf({
  authentication,
  clientSecret,
}: Pick<IntrospectionSettings, 'authentication' | 'clientSecret'>): oauth.ClientAuth {
  return authentication === 'client_secret_post'
    ? oauth.ClientSecretPost(clientSecret)
    : oauth.ClientSecretBasic(clientSecret);
}

/** Sends one introspection request. Throws where no trustworthy response was received. */
async function askEndpoint(
  url: URL,
  token: string,
  { issuer, introspection, ports }: IntrospectionContext,
): Promise<JsonObject> {
  const server = { issuer: issuer.issuer, introspection_endpoint: url.href };
  const client = { client_id: introspection.clientId };
  const authentication = clientAuthenticationOf(introspection);
  const response = await oauth.introspectionRequest(server, client, authentication, token, {
    // The guarded fetch decides whether plain http is allowed: on loopback, or where it was accepted.
    [oauth.allowInsecureRequests]: true,
    [oauth.customFetch]: (_href, { headers, body }) => post(url, headers, String(body), issuer, ports),
    additionalParameters: { token_type_hint: 'access_token' },
  });
  const outcome = await oauth.processIntrospectionResponse(server, client, response);
  if (!isObject(outcome)) throw new IntrospectionError(INVALID_RESPONSE, false);
  return outcome;
}

async function post(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  issuer: IssuerSettings,
  ports: Ports,
): Promise<Response> {
  const outcome = await ports.postForm(
    url,
    { headers, body },
    // A configured endpoint may resolve to the addresses that its issuer may, like a discovered one of its origin.
    {
      ...learnedUrlRule(issuer),
      origins: originsOf(issuer),
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs: RESPONSE_TIMEOUT_MS,
    },
  );
  if (!outcome.ok) throw new IntrospectionError(`the introspection endpoint ${outcome.detail}`, true);
  const { status } = outcome;
  if (status !== 200) {
    const why = `the introspection endpoint answered with status ${status}`;
    throw new IntrospectionError(why, GONE_STATUSES.has(status));
  }
  // Anything else, such as a signed response, would be read without a check of its own.
  if (!/^application\/json *(;|$)/i.test(outcome.contentType)) {
    throw new IntrospectionError('the introspection endpoint sent a response that is not JSON', false);
  }
  // Copied, because the body of a Response must own its bytes.
  const headersOut = { 'content-type': 'application/json' };
  return new Response(new Uint8Array(outcome.bytes), { status: 200, headers: headersOut });
}

function originsOf(issuer: IssuerSettings): readonly string[] {
  const { origins } = learnedUrlRule(issuer);
  const named = issuer.introspection?.endpoint;
  return named === undefined ? origins : [...origins, named.origin];
}
