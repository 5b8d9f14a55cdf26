// Fetches URLs that are configured or learned at run time: JSON documents of issuers, and forms posted to
// them. Connects only to addresses that the rule allows, requests identity encoding, caps bytes and time,
// never follows a redirect, and sends no credential except what a caller puts into a form or its headers.
// Interpreting the response is left to the caller.
// docs/reference/network.md; RFC 9110 §8.4, §15.4. Which addresses a network admits: policy/addresses.ts.

import { createHash } from 'node:crypto';
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import type { Network, UpstreamTls } from '../config/settings.js';
import { type AddressClass, bareHost, isAddressAllowed } from '../policy/addresses.js';
import type { Json } from '../protocol/jsonrpc.js';
import { systemErrorCode } from '../text/wording.js';

/** Error `code` of a connection refused because of its address. */
const REFUSED_ADDRESS = 'SALLYPORT_REFUSED_ADDRESS';
/** Error `code` of a connection that arrived at a listener of this gateway. */
const OWN_LISTENER = 'SALLYPORT_OWN_LISTENER';
/** Error `code` of a connection whose server presents a key that is not pinned. */
const UNPINNED_KEY = 'SALLYPORT_UNPINNED_KEY';

/** What the error codes of this file mean; codes of the system are known by themselves. */
const CONNECTION_ERRORS: ReadonlyMap<string, string> = new Map([
  [REFUSED_ADDRESS, 'the host has an address that its network setting does not allow'],
  [OWN_LISTENER, 'the address is that of a listener of this gateway'],
  [UNPINNED_KEY, 'the key of the server is not pinned'],
]);

/** The error of a connection in words, given its code; a code of the system as it is. */
export function describeConnectionError(code: string): string {
  return CONNECTION_ERRORS.get(code) ?? code;
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Resolves a name to all its addresses, as `dns.lookup` does with `all: true`. */
export type LookupAll = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** How the configuration says that an origin is reached. */
type Reach = { readonly network: Network; readonly plaintext?: 'accepted' | undefined };

/**
 * The addresses that a URL of a configured origin may be reached at; `undefined` if it may not be reached by its scheme.
 * Plain http goes to loopback or, where it is accepted, to private addresses and to no public one.
 */
export function addressesFor(
  { protocol }: Pick<URL, 'protocol'>,
  { network, plaintext }: Reach,
): AddressClass | undefined {
  if (protocol === 'https:') return network;
  if (protocol !== 'http:') return undefined;
  if (network === 'loopback') return network;
  return network === 'private' && plaintext === 'accepted' ? 'private-only' : undefined;
}

/** Options of a guarded connection. INVARIANT: no option can widen the network. */
type ConnectSettings = {
  readonly lookup?: LookupAll;
  /** Server verification (CA, pins, server name) and the client certificate. */
  readonly tls?: Partial<UpstreamTls>;
  /** Called with the error code of each connection that could not be made. */
  readonly onFailure?: (code: string) => void;
  /** True for a connection that arrived at a listener of this gateway, which is refused. */
  readonly isOwnListener?: ((socket: Socket) => boolean) | undefined;
  /** Called with each connection that was made, before anything is sent. */
  readonly onConnected?: ((socket: Socket) => void) | undefined;
};

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/** The error of a connection that is refused here. */
function connectionError(code: string): Error {
  return Object.assign(new Error(describeConnectionError(code)), { code });
}

/** True for the error of a connection refused because of its address. */
export function isRefusedAddress(error: unknown): boolean {
  return systemErrorCode(error) === REFUSED_ADDRESS;
}

/** One forbidden address refuses the whole name, because the connector chooses which address to dial. */
function guardLookup(allowed: AddressClass, lookup: LookupAll) {
  return (hostname: string, options: LookupOptions, callback: LookupCallback): void => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const first = addresses[0];
      const isAllowed = addresses.every(({ address }) => isAddressAllowed(address, allowed));
      if (first === undefined || !isAllowed) return callback(connectionError(REFUSED_ADDRESS), []);
      if (options.all === true) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
}

/** True if nothing is pinned or the server's key is pinned. A key that cannot be determined is not. */
function hasPinnedKey(socket: Socket, pins: readonly string[]): boolean {
  if (pins.length === 0) return true;
  if (!(socket instanceof TLSSocket)) return false;
  const spki = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' });
  return spki !== undefined && pins.includes(createHash('sha256').update(spki).digest('hex'));
}

/** Undefined if the peer has an allowed address, is not the gateway and, where keys are pinned, has a pinned key. */
function peerErrorOf(
  socket: Socket,
  allowed: AddressClass,
  { tls, isOwnListener }: ConnectSettings,
): Error | undefined {
  const { remoteAddress } = socket;
  if (remoteAddress === undefined || !isAddressAllowed(remoteAddress, allowed)) return connectionError(REFUSED_ADDRESS);
  if (isOwnListener?.(socket) === true) return connectionError(OWN_LISTENER);
  return hasPinnedKey(socket, tls?.pins ?? []) ? undefined : connectionError(UNPINNED_KEY);
}

/**
 * The `connect` option for an undici Pool, Client or Agent, restricted to the addresses of a class.
 *
 * The address is checked three times: IP literals before connecting, because undici does not call `lookup`
 * for them; every address that DNS returns; and the address actually connected to, because a name may resolve
 * differently the second time.
 *
 * A refused connection fails with an error for which {@link isRefusedAddress} holds.
 */
export function connectOptionsFor(allowed: AddressClass, settings: ConnectSettings = {}): buildConnector.connector {
  const { tls = {}, onFailure } = settings;
  const { serverName, pins = [] } = tls;
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    lookup: guardLookup(allowed, settings.lookup ?? systemLookup),
    minVersion: 'TLSv1.2',
    // A resumed TLS session has no certificate to compare with the pins.
    ...(pins.length === 0 ? {} : { maxCachedSessions: 0 }),
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...tls.client,
  });
  return (options, callback) => {
    function fail(error: Error): void {
      onFailure?.(systemErrorCode(error) ?? 'no code');
      callback(error, null);
    }
    const host = bareHost(options.hostname);
    if (isIP(host) !== 0 && !isAddressAllowed(host, allowed)) return fail(connectionError(REFUSED_ADDRESS));
    const named = serverName === undefined ? options : { ...options, servername: serverName };
    connect(named, (...[error, socket]) => {
      if (error !== null) return fail(error);
      const peerError = peerErrorOf(socket, allowed, settings);
      if (peerError !== undefined) {
        socket.destroy();
        return fail(peerError);
      }
      settings.onConnected?.(socket);
      callback(null, socket);
    });
  };
}

/** The schemes of URLs whose protocol is not HTTP, by the ones that say the same of the connection. */
const SCHEMES: ReadonlyMap<string, string> = new Map([
  ['tls:', 'https:'],
  ['tcp:', 'http:'],
]);

/**
 * Opens guarded connections to one URL, for who speaks no HTTP. The function rejects where one is not allowed or cannot be
 * made.
 */
export function createDialer(url: URL, reach: Reach, settings: ConnectSettings): () => Promise<Socket> {
  const protocol = SCHEMES.get(url.protocol) ?? url.protocol;
  const allowed = addressesFor({ protocol }, reach);
  const connect = allowed && connectOptionsFor(allowed, settings);
  const { hostname, host, port } = url;
  const options = { hostname: bareHost(hostname), host, protocol, port };
  return () =>
    new Promise((resolve, reject) => {
      if (connect === undefined) return reject(connectionError(REFUSED_ADDRESS));
      connect(options, (error, socket) => (error === null ? resolve(socket) : reject(error)));
    });
}

/** The `connect` option for a server on this Unix socket: a configured path, so that nothing is resolved. */
export function connectOptionsForSocket(path: string, onFailure: (code: string) => void): buildConnector.connector {
  const connect = buildConnector({ socketPath: path, timeout: CONNECT_TIMEOUT_MS });
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error === null) return callback(null, socket);
      onFailure(systemErrorCode(error) ?? 'no code');
      callback(error, null);
    });
}

/** Where a URL may lead and how much may be read from it. */
export type FetchRule = {
  /** The addresses that the hosts of `origins` may resolve to. */
  readonly network: Network;
  /** With the network `private`, URLs of `origins` may be plain http; public addresses are then refused for them. */
  readonly plaintext?: 'accepted' | undefined;
  /**
   * Origins named in the configuration; a URL of any other origin must be public https. Absent if the URL
   * itself is configured.
   */
  readonly origins?: readonly string[];
  readonly maxBytes: number;
  /** From the call to the last byte. */
  readonly timeoutMs: number;
};

/** Why a fetch failed. */
type FetchError = 'refused-address' | 'redirect' | 'status' | 'too-large' | 'timeout' | 'invalid' | 'unreachable';

type FetchOutcome =
  | {
      readonly ok: true;
      readonly value: Json;
      readonly headers: { readonly [name: string]: string | string[] | undefined };
    }
  | {
      readonly ok: false;
      readonly why: FetchError;
      readonly detail: string;
      /** Of a response whose body could not be read. */
      readonly status?: number;
    };

export type FetchJson = (url: URL, rule: FetchRule) => Promise<FetchOutcome>;

/** A body, by itself a form (`application/x-www-form-urlencoded`), and its additional headers. */
type FormRequest = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** A response of status 200 or 4xx/5xx: OAuth error responses have bodies too (RFC 6749 §5.2). */
type FormOutcome =
  | {
      readonly ok: true;
      readonly status: number;
      readonly contentType: string;
      readonly bytes: Uint8Array;
    }
  | FailedFetch;

export type PostForm = (url: URL, form: FormRequest, rule: FetchRule) => Promise<FormOutcome>;

/** The status of a response whose body was not read; redirects are failures. */
type MessageOutcome = { readonly ok: true; readonly status: number } | FailedFetch;

export type PostMessage = (url: URL, message: FormRequest, rule: FetchRule) => Promise<MessageOutcome>;

export type GuardedFetch = {
  /** Fetches one JSON document. Expected failures are values; it does not throw. */
  readonly fetchJson: FetchJson;
  /** Posts one form, once. Expected failures are values; it does not throw. */
  readonly postForm: PostForm;
  /** Posts a body of any type, once, and reads no more of the response than its head. It does not throw. */
  readonly postMessage: PostMessage;
  /** Closes all connections. A later call fails with `unreachable`. */
  close(): Promise<void>;
};

const MAX_TARGET_LENGTH = 200;
/**
 * Connections per origin: as many as the introspection requests that may wait for one issuer
 * (auth/introspection.ts). With fewer, hanging requests would block others that still have quota.
 */
const MAX_CONNECTIONS = 64;
const REQUEST_HEADERS = { accept: 'application/json', 'accept-encoding': 'identity' };

type FailedFetch = Extract<FetchOutcome, { readonly ok: false }>;

function failedFetch(why: FetchError, detail: string): FailedFetch {
  return { ok: false, why, detail };
}

const LEARNED: Reach = { network: 'public' };

/** How a URL is reached: as configured if it is of a configured origin, otherwise by public https. */
function reachOf(url: URL, rule: FetchRule): Reach {
  return rule.origins === undefined || rule.origins.includes(url.origin) ? rule : LEARNED;
}

/**
 * Parsing the URL percent-encodes what could break a log line; the query is left out because it may hold
 * secrets.
 */
function describeTarget(location: unknown, base: URL): string {
  if (typeof location !== 'string' || !URL.canParse(location, base.href)) return 'nowhere';
  const target = new URL(location, base.href);
  return `${target.protocol}//${target.host}${target.pathname}`.slice(0, MAX_TARGET_LENGTH);
}

function findHeadError(response: Dispatcher.ResponseData, url: URL, takesErrors: boolean): FailedFetch | undefined {
  const { statusCode, headers } = response;
  if (statusCode >= 300 && statusCode < 400) {
    return failedFetch('redirect', `redirected to ${describeTarget(headers['location'], url)}`);
  }
  const isResponse = statusCode === 200 || (takesErrors && statusCode >= 400);
  if (!isResponse) return failedFetch('status', `answered with status ${statusCode}`);
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return undefined;
  return {
    ...failedFetch('invalid', 'sent a response with a content encoding that was not requested'),
    status: statusCode,
  };
}

/**
 * Undefined if more than `maxBytes` arrived. No content coding is decoded, so the cap applies to bytes
 * received.
 */
async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array | undefined> {
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

/** Sends one request; resolves with the head of its response, whose body has to be read or destroyed. */
async function requestHead(
  agent: Agent,
  url: URL,
  form: FormRequest | undefined,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const response = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: form === undefined ? 'GET' : 'POST',
    headers: { ...form?.headers, ...REQUEST_HEADERS },
    ...(form === undefined ? {} : { body: form.body }),
    signal,
  });
  // An unread body must be destroyed, and nothing else handles the error that follows.
  response.body.on('error', () => {});
  return response;
}

/** Sends one request and reads its complete body within the caps. */
async function requestOnce(
  agent: Agent,
  url: URL,
  form: FormRequest | undefined,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<Received | FailedFetch> {
  const response = await requestHead(agent, url, form, signal);
  const refused = findHeadError(response, url, form !== undefined);
  if (refused !== undefined) {
    response.body.destroy();
    return refused;
  }
  const bytes = await readBody(response.body, maxBytes);
  return bytes === undefined
    ? { ...failedFetch('too-large', `answered with more than ${maxBytes} bytes`), status: response.statusCode }
    : { response, bytes };
}

/** Sends one message and reads nothing of what comes back but the status. */
async function sendOnce(agent: Agent, url: URL, message: FormRequest, signal: AbortSignal): Promise<MessageOutcome> {
  const { statusCode: status, headers, body } = await requestHead(agent, url, message, signal);
  body.destroy();
  if (status < 300 || status >= 400) return { ok: true, status };
  return failedFetch('redirect', `redirected to ${describeTarget(headers['location'], url)}`);
}

function readDocument(received: Received | FailedFetch): FetchOutcome {
  if ('ok' in received) return received;
  const parsed = parseBody(received.bytes);
  if (parsed === undefined) return failedFetch('invalid', 'sent a response that is not JSON');
  return { ok: true, value: parsed.value, headers: received.response.headers };
}

function readResponse(received: Received | FailedFetch): FormOutcome {
  if ('ok' in received) return received;
  const { statusCode: status, headers } = received.response;
  const contentType = String(headers['content-type'] ?? '');
  return { ok: true, status, contentType, bytes: received.bytes };
}

/** What an address had to be, in words. */
const DESCRIPTIONS: { readonly [addresses in AddressClass]: string } = {
  public: 'a public address',
  private: 'a private or public address',
  loopback: 'a loopback address',
  'private-only': 'a private address, as plain http must',
};

function describeFailure(error: unknown, hasTimedOut: boolean, allowed: AddressClass): FailedFetch {
  if (hasTimedOut) return failedFetch('timeout', 'did not answer in time');
  if (isRefusedAddress(error)) {
    return failedFetch('refused-address', `does not resolve to ${DESCRIPTIONS[allowed]}`);
  }
  if (systemErrorCode(error) === OWN_LISTENER)
    return failedFetch('refused-address', 'leads to a listener of this gateway');
  const code = systemErrorCode(error) ?? 'no code';
  return failedFetch('unreachable', `could not be reached (${code})`);
}

/** In how many parts the time of a request is counted. */
const DEADLINE_PARTS = 20;

/**
 * Aborts after `timeoutMs` in which this process ran. A single timer would also count a time in which it did not, at its
 * start or on a busy machine: it fires before the response that arrived meanwhile is read, and the server is blamed.
 */
function createDeadline(timeoutMs: number): { readonly signal: AbortSignal; clear(): void } {
  const controller = new AbortController();
  let left = DEADLINE_PARTS;
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) return;
    clearInterval(timer);
    controller.abort();
  }, timeoutMs / DEADLINE_PARTS);
  return { signal: controller.signal, clear: () => clearInterval(timer) };
}

/**
 * Creates the guarded fetch. Each class of addresses has its own agent, so a connection that was checked for one
 * is never reused for another.
 */
export function createGuardedFetch(settings: ConnectSettings = {}): GuardedFetch {
  const agentFor = (allowed: AddressClass) =>
    new Agent({ connect: connectOptionsFor(allowed, settings), connections: MAX_CONNECTIONS });
  const agents: { readonly [addresses in AddressClass]: Agent } = {
    public: agentFor('public'),
    private: agentFor('private'),
    loopback: agentFor('loopback'),
    'private-only': agentFor('private-only'),
  };

  async function within<Outcome>(
    url: URL,
    rule: FetchRule,
    request: (agent: Agent, signal: AbortSignal) => Promise<Outcome>,
  ): Promise<Outcome | FailedFetch> {
    if (url.username !== '' || url.password !== '') return failedFetch('invalid', 'has a URL that carries credentials');
    const allowed = addressesFor(url, reachOf(url, rule));
    if (allowed === undefined) return failedFetch('refused-address', 'has a URL that is not https');
    const { signal, clear } = createDeadline(rule.timeoutMs);
    try {
      return await request(agents[allowed], signal);
    } catch (error) {
      return describeFailure(error, signal.aborted, allowed);
    } finally {
      clear();
    }
  }

  const run = (url: URL, rule: FetchRule, form?: FormRequest): Promise<Received | FailedFetch> =>
    within(url, rule, (agent, signal) => requestOnce(agent, url, form, { maxBytes: rule.maxBytes, signal }));

  return {
    fetchJson: async (url, rule) => readDocument(await run(url, rule)),
    postForm: async (url, form, rule) => readResponse(await run(url, rule, form)),
    postMessage: (url, message, rule) => within(url, rule, (agent, signal) => sendOnce(agent, url, message, signal)),
    async close() {
      await Promise.all(Object.values(agents).map((agent) => agent.destroy()));
    },
  };
}
