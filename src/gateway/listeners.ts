// The listeners: data, ops and, where configured, admin, with their TLS options and the routes of the data listener.
// Either all are open or none: the first that cannot be opened ends the start with an error that names its address.
// Until the rest of the gateway has started, the data listener refuses every call and the ops listener reports not
// ready. TLS follows RFC 8446, RFC 9325 §3 and §4 and RFC 7301 (only HTTP/1.1 is spoken).

import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { metadataDocument, metadataPaths } from '../auth/protected-resource.js';
import type {
  AdminSettings,
  AggregateSettings,
  ListenerSettings,
  Settings,
  TlsSettings,
  UpstreamSettings,
} from '../config/settings.js';
import { createDataServer, type DataServerPorts } from '../http/data-server.js';
import {
  createOpsServer,
  type HttpListener,
  type ListenerAddress,
  type ReadinessReport,
} from '../http/internal-server.js';
import { createAddressOf } from '../http/request.js';
import { type ConcurrencyLimit, type EdgeRoute, type EdgeTables, servedHosts } from '../http/request-checks.js';
import { arrivesAt } from '../policy/addresses.js';
import { NO_LEGACY_SSE_HERE } from '../protocol/versions/legacy-sse.js';
import type { KeyRing, PublicKey } from '../state/derived-keys.js';
import { urlHost } from '../text/escaping.js';
import { systemErrorCode } from '../text/wording.js';
import type { Observability } from './observability.js';

/** A handshake that takes longer is ended. */
const HANDSHAKE_WITHIN_MS = 10_000;

/** Only ciphers with forward secrecy and authenticated encryption (RFC 9325 §4.2). */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/**
 * TLS options of a listener for node:tls. With a client CA a certificate is asked for; one that the CA did not sign, or
 * a missing one, ends the handshake only where `clients` is `required`. What a certificate proves is decided where it
 * is used.
 */
function secureOptions(tls: TlsSettings | undefined, clients: 'asked' | 'required'): TlsOptions | undefined {
  if (tls === undefined) return undefined;
  const { cert, key, clientCa } = tls;
  return {
    cert,
    key,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: true,
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_WITHIN_MS,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: clients === 'required' }),
  };
}

type ListenerName = 'data' | 'ops' | 'admin';
export type Listening = {
  readonly listener: ListenerName;
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
};

/** True for a connection that arrived at one of these listeners. */
export function isConnectedTo(
  listening: readonly Listening[],
  { remoteAddress, remotePort, localAddress }: Socket,
): boolean {
  if (remoteAddress === undefined || remotePort === undefined) return false;
  // A connection to an address of this machine starts from that same address.
  const isOwn = remoteAddress === localAddress;
  return listening.some((listener) => arrivesAt(listener, { address: remoteAddress, port: remotePort, isOwn }));
}

type ListenerPorts = {
  readonly data: DataServerPorts;
  readonly observability: Observability;
  readonly readiness: () => ReadinessReport;
  /** Creates the admin listener. */
  readonly createConsole: (admin: AdminSettings, address: ListenerAddress) => HttpListener;
};

export type Listeners = {
  /**
   * Opens all listeners; calls `onDataPort` as soon as the data port is known, before the first request. Rejects with
   * ListenerError where one cannot be opened; `closeData` and `closeRest` then close the others.
   */
  open(onDataPort: (port: number) => void): Promise<readonly Listening[]>;
  /** The data listener goes on to serve, but tells each connection to close with its next response. */
  announceClose(): void;
  /**
   * Closes the data listener first. After `drainMs` milliseconds, or `cutData`, `cut` has to end what still runs; the
   * other listeners serve until `closeRest`.
   */
  closeData(drainMs: number, cut?: () => void): Promise<void>;
  cutData(): void;
  closeRest(): Promise<void>;
  /** Starts to use the certificates of the next settings. */
  updateTls(next: Settings): void;
};

/** Nothing is open before `open`. */
export function createListeners(settings: Settings, ports: ListenerPorts): Listeners {
  const { metrics } = ports.observability;
  const { listeners, admin } = settings;
  let current = settings;
  const data = createDataServer(ports.data, secureOptions(listeners.data.tls, 'asked'));
  const ops = createOpsServer(withTls(listeners.ops, 'asked'), {
    renderMetrics: metrics.render,
    readiness: ports.readiness,
  });
  const adminServer = admin === undefined ? undefined : ports.createConsole(admin, withTls(admin.listener, 'required'));
  return {
    async open(onDataPort) {
      const { host, port } = listeners.data;
      const dataPort = await openOne('data', listeners.data, () => data.listen(host, port));
      onDataPort(dataPort.port);
      const open: Listening[] = [dataPort];
      open.push(await openOne('ops', listeners.ops, async () => (await ops.start()).port));
      if (adminServer !== undefined && admin !== undefined) {
        const startConsole = async () => (await adminServer.start()).port;
        open.push(await openOne('admin', admin.listener, startConsole));
      }
      return open;
    },
    updateTls(next) {
      const before = current;
      current = next;
      const { data: nextData, ops: nextOps } = next.listeners;
      if (hasOtherTls(before.listeners.data, nextData)) {
        const secure = secureOptions(nextData.tls, 'asked');
        if (secure !== undefined) data.updateTls(secure);
      }
      if (hasOtherTls(before.listeners.ops, nextOps)) ops.updateTls(withTls(nextOps, 'asked').secure);
      const [last, shown] = [before.admin?.listener, next.admin?.listener];
      if (last !== undefined && shown !== undefined && hasOtherTls(last, shown)) {
        adminServer?.updateTls(withTls(shown, 'required').secure);
      }
    },
    announceClose: data.announceClose,
    closeData: data.close,
    cutData: data.cutNow,
    async closeRest() {
      await adminServer?.close();
      await ops.close();
    },
  };
}

export class ListenerError extends Error {
  override readonly name = 'ListenerError';
}

const OPEN_ERROR_TEXTS: ReadonlyMap<unknown, string> = new Map([
  ['EADDRINUSE', 'the port is already in use'],
  ['EACCES', 'this user may not open the port'],
  ['EADDRNOTAVAIL', 'this machine has no such address'],
]);

async function openOne(
  listener: ListenerName,
  { host, port, tls }: ListenerSettings,
  start: () => Promise<number>,
): Promise<Listening> {
  try {
    return { listener, host, port: await start(), isSecure: tls !== undefined };
  } catch (error) {
    const code = systemErrorCode(error);
    const why = OPEN_ERROR_TEXTS.get(code) ?? 'it cannot be opened';
    throw new ListenerError(
      `the ${listener} listener cannot listen on ${urlHost(host)}:${port}: ${why} (${String(code ?? error)})`,
    );
  }
}

function hasOtherTls(one: ListenerSettings, other: ListenerSettings): boolean {
  return JSON.stringify(one.tls) !== JSON.stringify(other.tls);
}

function withTls(listener: ListenerSettings, clients: 'asked' | 'required'): ListenerAddress {
  return { host: listener.host, port: listener.port, secure: secureOptions(listener.tls, clients) };
}

/** The public path of the keys that verify what this gateway signs (docs/reference/listeners.md#paths). */
const KEY_SET_PATH = '/.well-known/sallyport/jwks.json';

/**
 * Builds the tables of the edge for one version, from settings alone: paths, documents, hosts and origins. `listenPort`
 * is the port that is open, where the settings may say 0; `keys` are the public halves of the signing keys, and `localNames` further
 * names of this machine.
 */
export function buildTables(
  settings: Settings,
  listenPort: number,
  keys: readonly PublicKey[],
  localNames: readonly string[] = [],
): EdgeTables {
  const takesCertificates = settings.listeners.data.tls?.clientCa !== undefined;
  const routes = new Map<string, EdgeRoute>();
  const documents = new Map([[KEY_SET_PATH, keySetDocument(keys)]]);
  for (const upstream of settings.upstreams.values()) {
    const route = routeOf(upstream);
    setRoute(routes, upstream.path, route);
    routes.set(`${upstream.path}/sse`, { ...route, legacySsePath: 'events' });
    routes.set(`${upstream.path}/message`, { ...route, legacySsePath: 'message' });
  }
  const aggregates = [...settings.aggregates.values()];
  for (const aggregate of aggregates) setRoute(routes, aggregate.path, routeOfAggregate(aggregate, settings));
  const absent = new Map(
    aggregates.flatMap(({ path }) => [`${path}/sse`, `${path}/message`]).map((path) => [path, NO_LEGACY_SSE_HERE]),
  );
  const resources = [...settings.upstreams.values(), ...aggregates];
  for (const resource of resources) {
    // Without authentication there is no authorization server to name.
    if (resource.authentication === 'none') continue;
    const document = metadataDocument(resource, settings.issuers, takesCertificates);
    for (const path of metadataPaths(settings.publicUrl, resource.path)) {
      documents.set(path, document);
      documents.set(`${path}/`, document);
    }
  }
  const unauthenticated = new Set(
    resources.filter(({ authentication }) => authentication === 'none').map(({ name }) => name),
  );
  return {
    routes,
    absent,
    hasPages: [...settings.issuers.values()].some(({ login }) => login !== undefined),
    documents,
    hosts: servedHosts(settings.publicUrl, listenPort, localNames),
    origins: new Set([settings.publicUrl.origin, ...settings.listeners.data.allowedOrigins]),
    refusesForwarded: (upstream) => unauthenticated.has(upstream),
    addressOf: createAddressOf(settings.listeners.data.trustedProxies),
  };
}

/** Sets the route of a path, which clients also write with a slash behind it. No configured path ends with one. */
function setRoute(routes: Map<string, EdgeRoute>, path: string, route: EdgeRoute): void {
  routes.set(path, route);
  routes.set(`${path}/`, { ...route, hasTrailingSlash: true });
}

/**
 * The public keys by which others verify what this gateway signs: for checkpoints and for assertions, each under its own
 * id. Every key of the ring is published, so that keys are rotated by putting the new one first.
 */
export function publishedKeys(ring: KeyRing): readonly PublicKey[] {
  return [...ring.publicKeys(), ...ring.assertionKeys()];
}

/** RFC 7517 §5 with the keys of RFC 8037 §2. */
function keySetDocument(keys: readonly PublicKey[]): string {
  return JSON.stringify({
    keys: keys.map(({ keyId, publicKey }) => ({
      kty: 'OKP',
      crv: 'Ed25519',
      kid: keyId,
      use: 'sig',
      alg: 'EdDSA',
      x: publicKey,
    })),
  });
}

function routeOf(upstream: UpstreamSettings): EdgeRoute {
  const { maxRequestBytes } = upstream.limits;
  return { upstream: upstream.name, maxRequestBytes, ...concurrencyOf(upstream) };
}

function concurrencyOf({ limits }: UpstreamSettings): ConcurrencyLimit {
  const { concurrency, concurrencyPerCaller } = limits;
  return { concurrency, concurrencyPerCaller };
}

/** The body limit is the smallest of the backends, so that none gets a larger body than its own limit allows. */
function routeOfAggregate({ name, backends }: AggregateSettings, { upstreams }: Settings): EdgeRoute {
  const limits = backends.flatMap(({ upstream }) => upstreams.get(upstream) ?? []);
  return {
    upstream: name,
    backends: new Map(limits.map((backend) => [backend.name, concurrencyOf(backend)])),
    maxRequestBytes: Math.min(...limits.map((backend) => backend.limits.maxRequestBytes)),
    concurrency: 0,
    concurrencyPerCaller: 0,
  };
}
