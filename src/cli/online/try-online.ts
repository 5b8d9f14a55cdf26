// What `sallyport validate --online` tries, with the code by which the gateway itself does it: issuers, upstreams with
// their pins, token exchange, the store, receivers, certificates and clocks. All at once, each bounded by the timeouts that
// hold for it. Reads, and changes nothing: no definition is recorded, no token is issued but the one that a listing needs,
// and no line is delivered. No secret is shown. docs/reference/commands.md#validate.

import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createIntrospector } from '../../auth/introspection.js';
import { createKeySource, discoverMetadata } from '../../auth/issuer.js';
import { isLoopbackHost } from '../../config/checks/addresses.js';
import type {
  IssuerSettings,
  ListenerSettings,
  Network,
  Settings,
  UpstreamSettings,
  UpstreamTls,
} from '../../config/settings.js';
import { pendingOf } from '../../pins/approval.js';
import type { Observed } from '../../pins/last-seen.js';
import { bareHost } from '../../policy/addresses.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { openRedisLink } from '../../state/redis.js';
import { clauseName } from '../../text/clause.js';
import { countOf, errorCode } from '../../text/wording.js';
import { tryTokenExchange } from '../../upstream/credentials/credentials.js';
import {
  createDialer,
  createGuardedFetch,
  describeConnectionError,
  type FetchJson,
} from '../../upstream/safe-fetch.js';
import { observeOnce } from '../command-ports.js';
import { compareTarget } from '../pin/diff.js';
import { type PinPorts, readLockFile } from '../pin/lock-files.js';
import type { CliIo } from '../program.js';
import { checkCertificate, checkClock, checkPins, remedyFor, type StatedTime, type Try } from './tries.js';

type OnlinePorts = { readonly pins: PinPorts; readonly version: string; readonly now: () => number };

/** Tries everything that the settings name. Never rejects. */
export async function tryOnline(settings: Settings, io: CliIo, ports: OnlinePorts): Promise<readonly Try[]> {
  const { now } = ports;
  const tried = await Promise.all([
    ...[...settings.issuers.values()].map((issuer) => tryIssuer(issuer, settings, now)),
    ...[...settings.upstreams.values()].map((upstream) => tryUpstream(upstream, settings, io, ports)),
    tryStore(settings, now),
    ...receiversOf(settings).map(tryReceiver),
    tryListeners(settings, now()),
  ]);
  return tried.flat();
}

function okay(what: string, cause: string): Try {
  return { what, state: 'ok', cause };
}

function failedAt(what: string, cause: string, at: string): Try {
  return { what, state: 'failed', cause, remedy: remedyFor(cause, at) };
}

/** What connections and responses show beside their content. */
function createObserver(now: () => number) {
  let expiresAtMs = Number.POSITIVE_INFINITY;
  let stated: StatedTime | undefined;
  return {
    onConnected(socket: Socket): void {
      for (const expiry of expiriesOf(socket)) expiresAtMs = Math.min(expiresAtMs, expiry);
    },
    onHeaders(headers: { readonly [name: string]: string | string[] | undefined }, askedMs: number): void {
      const statedMs = Date.parse(String(headers['date']));
      if (!Number.isNaN(statedMs)) stated = { statedMs, resolutionMs: 1000, askedMs, answeredMs: now() };
    },
    /** A certificate where there was one, and the clock. */
    results(what: string): readonly Try[] {
      const certificates = Number.isFinite(expiresAtMs) ? [checkCertificate(what, { expiresAtMs }, now())] : [];
      return [...certificates, checkClock(what, stated)];
    },
  };
}

/** Longer chains do not occur, and a hostile one must end. */
const MAX_CHAIN = 8;

/** When the certificates of a peer expire, its own first, in milliseconds since the epoch. */
function expiriesOf(socket: Socket): readonly number[] {
  const expiries: number[] = [];
  let certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  while (certificate !== undefined && expiries.length < MAX_CHAIN) {
    expiries.push(Date.parse(certificate.validTo));
    certificate = certificate.issuerCertificate;
  }
  return expiries;
}

async function tryIssuer(issuer: IssuerSettings, settings: Settings, now: () => number): Promise<readonly Try[]> {
  const what = `issuer ${issuer.name}`;
  const observer = createObserver(now);
  const guarded = createGuardedFetch(observer);
  let metadata: { readonly [member: string]: unknown } | undefined;
  const fetchJson: FetchJson = async (url, rule) => {
    const askedMs = now();
    const outcome = await guarded.fetchJson(url, rule);
    if (!outcome.ok) return outcome;
    observer.onHeaders(outcome.headers, askedMs);
    if (isObject(outcome.value) && outcome.value['issuer'] !== undefined) metadata = outcome.value;
    return outcome;
  };
  const ports = { fetchJson, postForm: guarded.postForm, now, onIntrospected: () => undefined };
  const failure = await (issuer.introspection === undefined
    ? fetchKeys(issuer, { ...ports, refusesDevelopment: !isLoopbackHost(settings.publicUrl.hostname) })
    : introspectNothing(issuer, issuer.introspection, ports));
  const login = issuer.login === undefined ? [] : [await tryLogin(issuer, fetchJson)];
  await guarded.close();
  const own =
    failure === undefined
      ? okay(what, issuer.introspection === undefined ? 'metadata and keys' : 'takes introspection requests')
      : failedAt(what, causeOf(failure, issuer, metadata?.['issuer']), `issuers.${issuer.name}`);
  return [own, checkAudiences(issuer.name, metadata, settings), ...login, ...observer.results(what)];
}

type IssuerPorts = Parameters<typeof createIntrospector>[2];

async function fetchKeys(
  issuer: IssuerSettings,
  ports: Parameters<typeof createKeySource>[1],
): Promise<string | undefined> {
  const keys = createKeySource(issuer, ports);
  return (await keys.refresh()) ? undefined : keys.status().failure;
}

/** No token of anybody. The answer shows whether the issuer accepts this client. */
const NO_TOKEN = 'sallyport-validate';

async function introspectNothing(
  issuer: IssuerSettings,
  introspection: NonNullable<IssuerSettings['introspection']>,
  ports: IssuerPorts,
): Promise<string | undefined> {
  const introspector = createIntrospector(issuer, introspection, ports);
  introspector.noteGood(NO_TOKEN);
  const { kind } = await introspector.introspect(NO_TOKEN);
  if (kind === 'active') return 'says of a text that is no token that it is an active one';
  return kind === 'inactive' ? undefined : (introspector.status().failure ?? 'did not answer');
}

/** That the metadata name another issuer explains every other failure, such as that the next place has no metadata. */
function causeOf(failure: string, { issuer }: IssuerSettings, named: unknown): string {
  return typeof named === 'string' && named !== issuer
    ? `the metadata names another issuer: ${clauseName(named)}`
    : failure;
}

async function tryLogin(issuer: IssuerSettings, fetchJson: FetchJson): Promise<Try> {
  const what = `login at issuer ${issuer.name}`;
  const found = await discoverMetadata(issuer, ['authorization_endpoint', 'token_endpoint'], fetchJson);
  if (!found.ok) return failedAt(what, found.detail, `issuers.${issuer.name}`);
  return okay(what, 'the metadata names where people log in; a login itself was not tried');
}

/** Issuers seldom say for which resources they issue tokens (RFC 9728 §4). */
function checkAudiences(
  name: string,
  metadata: { readonly [member: string]: unknown } | undefined,
  { upstreams, aggregates }: Settings,
): Try {
  const what = `audiences of issuer ${name}`;
  const listed = metadata?.['protected_resources'];
  if (metadata === undefined) return { what, state: 'not tried', cause: 'no metadata was read' };
  if (!Array.isArray(listed)) {
    const remedy = 'try one token; a refusal names in the audit log the audience that it has';
    return { what, state: 'not tried', cause: 'the metadata does not say for what tokens are issued', remedy };
  }
  const accepting = [...upstreams.values(), ...aggregates.values()].filter(({ issuers }) => issuers.includes(name));
  const expected = accepting.map(({ resource, audiences }) => audiences[name] ?? [resource]);
  const missing = expected.filter((all) => !all.some((one) => listed.includes(one))).flat();
  if (missing.length === 0) return okay(what, 'the metadata names every resource of this gateway');
  return {
    ...{ what, state: 'warning', cause: `the metadata does not name ${missing.join(', ')}` },
    remedy: 'register these resources at the issuer, spelt the same to the last character, or correct "audiences"',
  };
}

async function tryUpstream(
  upstream: UpstreamSettings,
  settings: Settings,
  io: CliIo,
  { pins, version, now }: OnlinePorts,
): Promise<readonly Try[]> {
  const { name } = upstream;
  const what = `upstream ${name}`;
  const observer = createObserver(now);
  const [listed, exchanged] = await Promise.all([
    observeOnce(upstream, settings, version, observer),
    tryExchange(upstream, now),
  ]);
  const rest = [...observer.results(what), ...exchanged, ...checkClientCertificate(what, upstream.tls, now())];
  const at = `upstreams.${name}`;
  if (listed.kind === 'unreachable') {
    const pinsTry: Try = { what: `pins of ${name}`, state: 'not tried', cause: 'the upstream could not be listed' };
    return [failedAt(what, listed.why, at), pinsTry, ...rest];
  }
  const { observed, notes } = listed;
  const [note] = notes;
  const offers = describeOffer(observed);
  const own: Try =
    note === undefined
      ? okay(what, offers)
      : {
          what,
          state: 'warning',
          cause: `${offers}; ${note}${notes.length > 1 ? ` (and ${notes.length - 1} more)` : ''}`,
        };
  return [own, comparePins(upstream, observed, settings, io, pins), ...rest];
}

function describeOffer({ listings }: Observed): string {
  const versions = [...new Set(listings.flatMap(({ protocolVersions }) => protocolVersions))].sort();
  const count = (kind: 'tool' | 'prompt' | 'template'): number =>
    new Set(listings.flatMap(({ seen }) => [...seen[kind].keys()])).size;
  const offers = (['tool', 'prompt', 'template'] as const).map((kind) => countOf(count(kind), kind));
  return `speaks ${versions.join(', ')}; ${offers.join(', ')}`;
}

function comparePins(
  upstream: UpstreamSettings,
  observed: Observed,
  gateway: Settings,
  io: CliIo,
  ports: PinPorts,
): Try {
  const { name, pinning } = upstream;
  const what = `pins of ${name}`;
  if (pinning.mode === 'off') return { what, state: 'not tried', cause: 'pinning.mode is off' };
  const locked = readLockFile(gateway.pinsDir, name, io, ports);
  const compared =
    locked === 'invalid' ? undefined : compareTarget({ settings: upstream, gateway, locked }, observed, io, ports);
  if (locked === 'invalid' || compared === undefined)
    return { what, state: 'failed', cause: 'the lock file, or the record of first use, cannot be read' };
  const { differences, firstUse } = compared;
  return checkPins(name, { differences, pending: pendingOf(locked.lock).length, firstUse: firstUse.length });
}

async function tryExchange(
  { name, credentials, limits }: UpstreamSettings,
  now: () => number,
): Promise<readonly Try[]> {
  if (credentials.type !== 'token-exchange') return [];
  const what = `token exchange for ${name}`;
  const guardedFetch = createGuardedFetch();
  const ports = { guardedFetch, now, requestTimeoutMs: limits.handshakeTimeoutMs };
  const failure = await tryTokenExchange(credentials, ports).finally(() => guardedFetch.close());
  if (failure !== undefined) return [failedAt(what, failure, `upstreams.${name}.credentials`)];
  return [okay(what, 'the token endpoint answers this client; a token was not exchanged')];
}

function checkClientCertificate(what: string, { client }: UpstreamTls, nowMs: number): readonly Try[] {
  if (client === undefined) return [];
  const expiresAtMs = Date.parse(new X509Certificate(client.cert).validTo);
  return [checkCertificate(`the gateway for ${what}`, { expiresAtMs }, nowMs)];
}

async function tryStore({ state }: Settings, now: () => number): Promise<readonly Try[]> {
  const what = 'store';
  if (state.type === 'memory') return [{ what, state: 'not tried', cause: 'state.type is memory' }];
  const link = openRedisLink(state);
  try {
    await link.opened();
    const askedMs = now();
    const statedMs = await link.probe();
    const stated = { statedMs, resolutionMs: 1, askedMs, answeredMs: now() };
    return [okay(what, 'answers, accepts the user, runs scripts and takes writes'), checkClock(what, stated)];
  } catch (error) {
    const remedy = 'correct state.url, the rights of its user (docs/reference/state.md), or the store itself';
    return [{ what, state: 'failed', cause: link.describe(error), remedy }, checkClock(what, undefined)];
  } finally {
    await link.close();
  }
}

type ReceiverToTry = {
  readonly what: string;
  /** The key of the configuration. */
  readonly at: string;
  readonly url: URL;
  readonly network: Network;
  readonly plaintext?: 'accepted' | undefined;
  readonly tls: Partial<UpstreamTls>;
};

function receiversOf({ audit, tracing, webhooks }: Settings): readonly ReceiverToTry[] {
  return [
    ...audit.deliveries.map((one) => ({ ...one, what: `audit receiver ${one.name}`, at: 'audit.sinks' })),
    ...webhooks.map(({ name, url, network, plaintext, ca }) => {
      return { what: `webhook ${name}`, at: `webhooks`, url, network, plaintext, tls: { ca } };
    }),
    ...(tracing === undefined ? [] : [tracing.otlp]).map(({ url, network, plaintext, ca }) => {
      return { what: 'trace receiver', at: 'tracing.otlp', url, network, plaintext, tls: { ca } };
    }),
  ];
}

/** Opens a connection and closes it. What a receiver does with a message only a message would show. */
async function tryReceiver({ what, at, url, tls, ...reach }: ReceiverToTry): Promise<readonly Try[]> {
  try {
    (await createDialer(url, reach, { tls })()).destroy();
    return [okay(what, 'takes connections; nothing was sent to it')];
  } catch (error) {
    return [failedAt(what, `could not be reached (${describeConnectionError(errorCode(error))})`, at)];
  }
}

function tryListeners({ listeners, admin, publicUrl }: Settings, nowMs: number): readonly Try[] {
  return [
    checkListener('listener data', listeners.data, publicUrl, nowMs),
    ...[listeners.ops].flatMap((ops) =>
      ops.tls === undefined ? [] : [checkListener('listener ops', ops, undefined, nowMs)],
    ),
    ...(admin === undefined ? [] : [checkListener('listener admin', admin.listener, admin.publicUrl, nowMs)]),
  ];
}

function checkListener(what: string, { tls }: ListenerSettings, publicUrl: URL | undefined, nowMs: number): Try {
  if (tls === undefined)
    return { what: `certificate of ${what}`, state: 'not tried', cause: 'no TLS is configured for it' };
  const host = publicUrl === undefined ? undefined : bareHost(publicUrl.hostname);
  const missingHost = host === undefined || isNamed(tls.cert, host) ? undefined : host;
  return checkCertificate(what, { expiresAtMs: tls.expiresAtMs, missingHost }, nowMs);
}

function isNamed(pem: string, host: string): boolean {
  const certificate = new X509Certificate(pem);
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}
