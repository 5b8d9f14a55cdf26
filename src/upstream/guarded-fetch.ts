// The one fetch for URLs that are learned at configuration or run time: JSON documents of issuers, and
// forms that are posted to them. It connects only where the rule allows, asks for identity encoding, caps
// bytes and time, never follows a redirect and sends no credential but what a caller puts into a form or
// its headers. What an answer means is the caller's business.
// Contract §3 (addresses); RFC 9110 §8.4, §15.4.

import { Agent, type Dispatcher } from 'undici';
import type { Network } from '../config/settings.js';
import type { Json } from '../mcp/message.js';
import { type ConnectSettings, connectOptionsFor, isRefusedAddress } from './connect.js';

/** Where a URL may lead and how much may come back. */
export type FetchRule = {
  /** Where the origins below may resolve. */
  readonly network: Network;
  /**
   * Origins that the configuration names. A URL of any other origin must be public https.
   * Absent: the URL itself stands in the configuration.
   */
  readonly origins?: readonly string[];
  readonly maxBytes: number;
  /** From the call to the last byte. */
  readonly timeoutMs: number;
};

/** Why nothing was fetched. */
export type FetchError =
  | 'refused-address'
  | 'redirect'
  | 'status'
  | 'too-large'
  | 'timeout'
  | 'invalid'
  | 'unreachable';

export type FetchOutcome =
  | {
      readonly ok: true;
      readonly value: Json;
      readonly headers: { readonly [name: string]: string | string[] | undefined };
    }
  | { readonly ok: false; readonly why: FetchError; readonly detail: string };

export type FetchJson = (url: URL, rule: FetchRule) => Promise<FetchOutcome>;

/** A form (`application/x-www-form-urlencoded`) with the headers that go along. */
export type FormRequest = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** An answer of any status but a redirect: errors of OAuth endpoints have bodies too (RFC 6749 §5.2). */
export type FormOutcome =
  | {
      readonly ok: true;
      readonly status: number;
      readonly contentType: string;
      readonly bytes: Uint8Array;
    }
  | Refused;

export type PostForm = (url: URL, form: FormRequest, rule: FetchRule) => Promise<FormOutcome>;

export type GuardedFetch = {
  /** Fetches one JSON document. Expected failures are values; it does not throw. */
  readonly fetchJson: FetchJson;
  /** Posts one form, once. Expected failures are values; it does not throw. */
  readonly postForm: PostForm;
  /** Ends idle connections. A later call fails with `unreachable`. */
  close(): Promise<void>;
};

const MAX_TARGET_LENGTH = 200;
/**
 * To one origin. As many as may wait for an issuer's answers (authn/introspection.ts): with fewer, those
 * that hang would hold up those for whom room was kept.
 */
const MAX_CONNECTIONS = 64;
const REQUEST_HEADERS = { accept: 'application/json', 'accept-encoding': 'identity' };

type Refused = Extract<FetchOutcome, { readonly ok: false }>;

function refuse(why: FetchError, detail: string): Refused {
  return { ok: false, why, detail };
}

/** The network that applies: the configured one for configured origins, else public. */
function networkFor(url: URL, rule: FetchRule): Network {
  return rule.origins === undefined || rule.origins.includes(url.origin) ? rule.network : 'public';
}

function findUrlError(url: URL, network: Network): Refused | undefined {
  if (url.username !== '' || url.password !== '') {
    return refuse('invalid', 'the URL carries credentials');
  }
  const isPlainAllowed = network === 'loopback' && url.protocol === 'http:';
  if (url.protocol === 'https:' || isPlainAllowed) return undefined;
  return refuse('refused-address', 'the URL must be https');
}

/** Parsing the target percent-encodes what could break a log line; a query may hold secrets. */
function describeTarget(location: unknown, base: URL): string {
  if (typeof location !== 'string' || !URL.canParse(location, base.href)) return 'nowhere';
  const target = new URL(location, base.href);
  return `${target.protocol}//${target.host}${target.pathname}`.slice(0, MAX_TARGET_LENGTH);
}

function findHeadError(
  response: Dispatcher.ResponseData,
  url: URL,
  takesErrors: boolean,
): Refused | undefined {
  const { statusCode, headers } = response;
  if (statusCode >= 300 && statusCode < 400) {
    return refuse('redirect', `redirected to ${describeTarget(headers['location'], url)}`);
  }
  const isResponse = statusCode === 200 || (takesErrors && statusCode >= 400);
  if (!isResponse) return refuse('status', `answered with status ${statusCode}`);
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return undefined;
  return refuse('invalid', 'answered with a content encoding that was not asked for');
}

/** Undefined when more than `maxBytes` came. No content coding is decoded, so bytes are bytes. */
async function readBody(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of body) {
    total += chunk.byteLength;
    if (total > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, total);
}

function parseBody(bytes: Uint8Array): { readonly value: Json } | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const value: Json = JSON.parse(text);
    return { value };
  } catch {
    return undefined;
  }
}

type Received = { readonly response: Dispatcher.ResponseData; readonly bytes: Uint8Array };

/** One request and its whole body, under the caps. */
async function requestOnce(
  agent: Agent,
  url: URL,
  form: FormRequest | undefined,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<Received | Refused> {
  const response = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: form === undefined ? 'GET' : 'POST',
    headers: { ...form?.headers, ...REQUEST_HEADERS },
    ...(form === undefined ? {} : { body: form.body }),
    signal,
  });
  // A body that is not read must be destroyed, and its late error has no reader.
  response.body.on('error', () => {});
  const refused = findHeadError(response, url, form !== undefined);
  if (refused !== undefined) {
    response.body.destroy();
    return refused;
  }
  const bytes = await readBody(response.body, maxBytes);
  return bytes === undefined
    ? refuse('too-large', `answered with more than ${maxBytes} bytes`)
    : { response, bytes };
}

function readDocument(received: Received | Refused): FetchOutcome {
  if ('ok' in received) return received;
  const parsed = parseBody(received.bytes);
  if (parsed === undefined) return refuse('invalid', 'answered with something that is not JSON');
  return { ok: true, value: parsed.value, headers: received.response.headers };
}

function readResponse(received: Received | Refused): FormOutcome {
  if ('ok' in received) return received;
  const { statusCode: status, headers } = received.response;
  const contentType = String(headers['content-type'] ?? '');
  return { ok: true, status, contentType, bytes: received.bytes };
}

function describeFailure(error: unknown, hasTimedOut: boolean, network: Network): Refused {
  if (hasTimedOut) return refuse('timeout', 'did not answer in time');
  if (isRefusedAddress(error)) {
    return refuse('refused-address', `resolves outside the allowed network (${network})`);
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
  return refuse('unreachable', `could not be reached (${code})`);
}

/**
 * Makes the guarded fetch. Sockets are kept per network, so a connection that was checked for one
 * network is never used for another.
 */
export function createGuardedFetch(settings: ConnectSettings = {}): GuardedFetch {
  const agentFor = (network: Network) =>
    new Agent({ connect: connectOptionsFor(network, settings), connections: MAX_CONNECTIONS });
  const agents: { readonly [network in Network]: Agent } = {
    public: agentFor('public'),
    private: agentFor('private'),
    loopback: agentFor('loopback'),
  };

  async function run(url: URL, rule: FetchRule, form?: FormRequest): Promise<Received | Refused> {
    const network = networkFor(url, rule);
    const refused = findUrlError(url, network);
    if (refused !== undefined) return refused;
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), rule.timeoutMs);
    const caps = { maxBytes: rule.maxBytes, signal: deadline.signal };
    try {
      return await requestOnce(agents[network], url, form, caps);
    } catch (error) {
      return describeFailure(error, deadline.signal.aborted, network);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    fetchJson: async (url, rule) => readDocument(await run(url, rule)),
    postForm: async (url, form, rule) => readResponse(await run(url, rule, form)),
    async close() {
      await Promise.all(Object.values(agents).map((agent) => agent.destroy()));
    },
  };
}
