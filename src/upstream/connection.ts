// How one upstream is reached, which credentials are sent to it and how it is listed, by the transport that it speaks.
// Also what all upstreams of a process share. Nothing connects before it is used.

import type { Socket } from 'node:net';
import type { UpstreamSettings } from '../config/settings.js';
import type { LoopScheduler, ReadJson } from '../protocol/json/incremental.js';
import { MAX_JSON_DEPTH } from '../protocol/json/json.js';
import type { Listing } from '../protocol/methods.js';
import { readServerJson } from '../protocol/odd-items.js';
import { LEGACY_SSE_VERSION } from '../protocol/versions/revisions.js';
import type { KeyRing } from '../state/derived-keys.js';
import { createLoopScheduler } from '../work/turns.js';
import { createLegacySseUpstreamClient } from './adapters/legacy-sse/legacy-sse-adapter.js';
import { createUpstreamClient, type SessionUpstream, type UpstreamClient } from './client.js';
import {
  type AssertionSigner,
  createAssertion,
  createCredentialSource,
  createPresenter,
  type Presenter,
  type RegisterCredential,
} from './credentials/credentials.js';
import type { ReportTokenRequest } from './credentials/token-endpoint.js';
import type { ListingFailure } from './discovery/discovery.js';
import { createSendRequest, type ExchangeError, type SendRequest } from './exchange.js';
import { createLegacySseRequest } from './legacy-sse-requests.js';
import type { MessageReader } from './response-messages.js';
import { createResponseBufferQuota, type ResponseBufferQuota } from './response-reader.js';
import {
  addressesFor,
  connectOptionsFor,
  connectOptionsForSocket,
  describeConnectionError,
  type GuardedFetch,
} from './safe-fetch.js';

const LISTING_ERRORS: { readonly [error in ExchangeError]: string } = {
  unavailable: 'it cannot be reached, or answered that it is not available',
  timeout: 'it did not answer in time',
  credentials: 'it refused the credential, or none could be obtained for it',
  protocol: 'what it answered is not valid MCP',
  'too-large': 'its lists are longer than the limits allow',
};

/** Why a listing failed, in words for people: what it means, and in brackets what was wrong. */
export function describeListingFailure(
  { why, detail, isSpoken = false }: ListingFailure,
  connectionError: string | undefined,
): string {
  const cause = detail ?? connectionError;
  // Whoever speaks MCP there has the right path.
  const isLost = why === 'protocol' && !isSpoken;
  const where = isLost ? '; is the path of its URL right, such as /mcp?' : '';
  return `${LISTING_ERRORS[why]}${cause === undefined ? '' : ` (${cause})`}${where}`;
}

/** What of a listing could not be read, one clause each. */
export function listingNotes({ unavailable = [], leftOut = [] }: Listing): readonly string[] {
  const kinds = unavailable.map(({ kind, detail }) =>
    kind === 'resources'
      ? `the resources of apps are unavailable: ${detail}`
      : `the list of ${kind} is unavailable: ${detail}`,
  );
  return [...kinds, ...leftOut.map((clause) => `left out: ${clause}`)];
}

// What the upstreams of one process share, so that none can use all of it: the event loop, the worker thread that reads
// and inspects beside it, and the memory for buffered responses.
export type UpstreamResources = Pick<ConnectionPorts, 'readJson' | 'loopScheduler' | 'bufferQuota'>;

/** For the command line, which waits for one upstream only and needs no worker thread. */
export function createSingleUpstreamResources(): UpstreamResources {
  return {
    readJson(source, { maxValues }) {
      return readServerJson(source, { maxDepth: MAX_JSON_DEPTH, maxValues });
    },
    loopScheduler: createLoopScheduler(),
    bufferQuota: createResponseBufferQuota(),
  };
}

type UpstreamConnection = {
  readonly client: UpstreamClient;
  readonly presenter: Presenter;
  readonly sessions: SessionUpstream;
  /** Creates the port of a lister. Two listers need two: over HTTP+SSE each has its own stream. */
  readonly openRequest: () => SendRequest;
  /** Session-era versions spoken on this transport; `undefined` for those of streamable HTTP. */
  readonly sessionVersions: readonly string[] | undefined;
};

export type ConnectionPorts = {
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly isOwnListener: (socket: Socket) => boolean;
  /** Called with each connection that was made to the upstream. */
  readonly onConnected?: ((socket: Socket) => void) | undefined;
  readonly now: () => number;
  /** How large messages are read, and the scheduler that shares the event loop. */
  readonly readJson: ReadJson;
  readonly loopScheduler: LoopScheduler;
  /** Bounds the memory for buffered responses of all upstreams. */
  readonly bufferQuota: ResponseBufferQuota;
  /** Signs assertions, under the issuer `publicUrl`. */
  readonly signer: AssertionSigner;
  readonly issuer: string;
  /** Called with each credential before it is sent to the upstream. */
  readonly onCredential: RegisterCredential;
  readonly onTokenRequest: ReportTokenRequest;
  /** Called with a fixed text that says why a credential could not be obtained or a connection failed. */
  readonly onConnectionError: (what: 'credentials' | 'connection', detail: string) => void;
};

/** Signs assertions with the first key. */
export function assertionSigner(ring: KeyRing): AssertionSigner {
  return {
    keyId: ring.assertionKeys()[0]?.keyId ?? '',
    sign: (bytes) => ring.signAssertion(bytes).signature,
  };
}

export function messageReaderOf(
  { name: upstream, limits: { maxValues } }: UpstreamSettings,
  { readJson, loopScheduler }: Pick<ConnectionPorts, 'readJson' | 'loopScheduler'>,
): MessageReader {
  return {
    read: (source) => readJson(source, { upstream, maxValues, isServerList: true }),
    upstream,
    loopScheduler,
  };
}

/** Creates the connections of an upstream. The caller closes the client. */
export function connectUpstream(settings: UpstreamSettings, ports: ConnectionPorts): UpstreamConnection {
  const { url, limits, transport } = settings;
  const connect = connectorOf(settings, ports);
  const presenter = presenterOf(settings, ports);
  const client = createUpstreamClient({
    url,
    presenter,
    limits,
    connect,
    openReservation: () => ports.bufferQuota.openReservation(settings.name),
  });
  switch (transport) {
    case 'streamable-http':
      return {
        client,
        presenter,
        sessions: client,
        openRequest: () => createSendRequest(client, 'gateway'),
        sessionVersions: undefined,
      };
    case 'http-sse':
      return {
        client,
        presenter,
        sessions: createLegacySseUpstreamClient({
          client,
          ...limits,
          messageReader: messageReaderOf(settings, ports),
          now: ports.now,
        }),
        openRequest: () => createLegacySseRequest(client),
        sessionVersions: [LEGACY_SSE_VERSION],
      };
  }
}

function connectorOf(
  settings: UpstreamSettings,
  { onConnectionError, isOwnListener, onConnected }: ConnectionPorts,
): ReturnType<typeof connectOptionsFor> {
  const onFailure = (code: string): void => onConnectionError('connection', describeConnectionError(code));
  const { url, socket, tls } = settings;
  if (socket !== undefined) return connectOptionsForSocket(socket, onFailure);
  const allowed = addressesFor(url, settings);
  if (allowed === undefined) throw new Error('the URL of an upstream was not checked before use');
  return connectOptionsFor(allowed, { tls, onFailure, isOwnListener, onConnected });
}

function presenterOf(
  { credentials, identity, limits, pinning }: UpstreamSettings,
  { guardedFetch, now, signer, issuer, onCredential, onTokenRequest, onConnectionError }: ConnectionPorts,
): Presenter {
  const sources = {
    guardedFetch,
    now,
    requestTimeoutMs: limits.handshakeTimeoutMs,
    onCredential,
    onTokenRequest,
    onError: (detail: string) => onConnectionError('credentials', detail),
  };
  const callers = createCredentialSource(credentials, sources);
  const isShared = JSON.stringify(credentials) === JSON.stringify(pinning.credentials);
  return createPresenter({
    callerSource: callers,
    gatewaySource: isShared ? callers : createCredentialSource(pinning.credentials, sources),
    signAssertion:
      identity === undefined ? undefined : createAssertion({ identity, issuer, signer, now, onCredential }),
  });
}
