// Opens sockets for undici and refuses those whose address lies outside the allowed network:
// literals before connecting, every answer of DNS, and the address that was really connected to.
// It holds no URL and follows nothing. undici does not call `lookup` for IP literals, and a name may
// resolve differently the second time: each of the three checks covers what the others miss.

import { createHash } from 'node:crypto';
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { buildConnector } from 'undici';
import type { Network, UpstreamTls } from '../config/settings.js';
import { isAddressAllowed } from './address.js';

/** `code` of the error of a connection that was refused for its address. */
export const REFUSED_ADDRESS = 'SALLYPORT_REFUSED_ADDRESS';
/** `code` of the error of a connection whose server has none of the pinned keys. */
export const UNPINNED_KEY = 'SALLYPORT_UNPINNED_KEY';

const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;

/** Resolves a name to all its addresses, as `dns.lookup` does with `all: true`. */
export type LookupAll = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** What may be set on a guarded connection; nothing here can widen the network. */
export type ConnectSettings = {
  readonly lookup?: LookupAll;
  readonly timeoutMs?: number;
  /** How the other side proves itself, and we to it. */
  readonly tls?: Partial<UpstreamTls>;
  /** Told of each connection that could not be made, by the code of its error. */
  readonly onFailure?: (code: string) => void;
};

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

function refusal(network: Network): Error {
  const error = new Error(`the address lies outside the allowed network (${network})`);
  return Object.assign(error, { code: REFUSED_ADDRESS });
}

/** True for the error of a connection that was refused for its address. */
export function isRefusedAddress(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === REFUSED_ADDRESS;
}

/** One bad answer among good ones is a refusal: which of them is dialled is not ours to choose. */
function guardLookup(network: Network, lookup: LookupAll) {
  return (hostname: string, options: LookupOptions, callback: LookupCallback): void => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const first = addresses[0];
      const isAllowed = addresses.every(({ address }) => isAddressAllowed(address, network));
      if (first === undefined || !isAllowed) return callback(refusal(network), []);
      if (options.all === true) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
}

/** True where nothing is pinned, or the server's key is. What cannot be told is not. */
function hasPinnedKey(socket: Socket, pins: readonly string[]): boolean {
  if (pins.length === 0) return true;
  if (!(socket instanceof TLSSocket)) return false;
  const spki = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' });
  return spki !== undefined && pins.includes(createHash('sha256').update(spki).digest('hex'));
}

/** `undefined` where the peer is whom we want: the right network, and the right key. */
function peerErrorOf(socket: Socket, network: Network, pins: readonly string[]): Error | undefined {
  if (!isPeerAllowed(socket, network)) return refusal(network);
  if (hasPinnedKey(socket, pins)) return undefined;
  const error = new Error("the server's key is none of those that are pinned");
  return Object.assign(error, { code: UNPINNED_KEY });
}

function isPeerAllowed(socket: Socket, network: Network): boolean {
  return socket.remoteAddress !== undefined && isAddressAllowed(socket.remoteAddress, network);
}

/** IPv6 literals stand in brackets in URLs. */
function bareHost(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/**
 * The `connect` option for an undici Pool, Client or Agent: connects into `network` alone.
 * A refused connection fails with an error for which {@link isRefusedAddress} holds.
 * `settings.timeoutMs` bounds the connection (10 s unless told).
 */
export function connectOptionsFor(
  network: Network,
  settings: ConnectSettings = {},
): buildConnector.connector {
  const { tls = {}, onFailure } = settings;
  const { serverName, pins = [] } = tls;
  const connect = buildConnector({
    timeout: settings.timeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
    lookup: guardLookup(network, settings.lookup ?? systemLookup),
    minVersion: 'TLSv1.2',
    // A resumed session shows no certificate to compare.
    ...(pins.length === 0 ? {} : { maxCachedSessions: 0 }),
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...tls.client,
  });
  return (options, callback) => {
    function fail(error: Error): void {
      onFailure?.('code' in error ? String(error.code) : 'no code');
      callback(error, null);
    }
    const host = bareHost(options.hostname);
    if (isIP(host) !== 0 && !isAddressAllowed(host, network)) return fail(refusal(network));
    const named = serverName === undefined ? options : { ...options, servername: serverName };
    connect(named, (...[error, socket]) => {
      if (error !== null) return fail(error);
      const peerError = peerErrorOf(socket, network, pins);
      if (peerError === undefined) return callback(null, socket);
      socket.destroy();
      fail(peerError);
    });
  };
}
