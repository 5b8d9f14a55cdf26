// How one upstream is reached, which credentials it is shown and how it is listed, by the transport that it speaks;
// also what all upstreams of a process share. Nothing connects before it is used.

import type { Socket } from 'node:net';
import type { UpstreamSettings } from '../config/settings.js';
import type { LoopScheduler, ReadJson } from '../protocol/json/incremental.js';
import { MAX_JSON_DEPTH, readJson, readJsonText } from '../protocol/json/json.js';
import { LEGACY_SSE_VERSION } from '../protocol/versions/revisions.js';
import type { Log } from '../telemetry/log.js';
import { createLegacySseUpstreamClient } from '../upstream/adapters/legacy-sse/adapter.js';
import {
  createUpstreamClient,
  type SessionUpstream,
  type UpstreamClient,
} from '../upstream/client.js';
import {
  type AssertionSigner,
  createAssertion,
  createCredentialSource,
  createPresenter,
  type Presenter,
  type RegisterCredential,
} from '../upstream/credentials/credentials.js';
import {
  createLegacySseRequest,
  createListingRequest,
  type ListingError,
  type ListingRequest,
} from '../upstream/discovery/request.js';
import type { MessageReader } from '../upstream/response-messages.js';
import {
  createResponseBufferQuota,
  type ResponseBufferQuota,
} from '../upstream/response-reader.js';
import {
  addressesFor,
  connectOptionsFor,
  connectOptionsForSocket,
  describeConnectionError,
  type GuardedFetch,
} from '../upstream/safe-fetch.js';
import { type Inspection, type OwnCredentialsOf, startInspection } from './worker/inspection.js';
import { createLoopScheduler } from './worker/json-reader.js';

/** Why a listing failed, in words for people. */
export const LISTING_ERRORS: { readonly [error in ListingError]: string } = {
  unavailable: 'it cannot be reached, or answered that it is not available',
  timeout: 'it did not answer in time',
  credentials: 'it asks for other credentials, or none could be obtained for it',
  protocol: 'what it answered is not valid MCP',
  'too-large': 'its lists are longer than the limits allow',
};

// What the upstreams of one process share, so that none can use all of it: the event loop, the worker thread that reads
// and inspects beside it, and the memory for buffered responses.
type UpstreamResources = Pick<ConnectionPorts, 'readJson' | 'loopScheduler' | 'bufferQuota'>;

export type SharedResources = UpstreamResources & { readonly inspection: Inspection };

/** The caller closes the inspection. `ownCredentialsOf`: the gateway's credentials that an upstream received and may echo. */
export function createSharedResources(
  log: Log,
  ownCredentialsOf: OwnCredentialsOf,
): SharedResources {
  const loopScheduler = createLoopScheduler();
  const inspection = startInspection(log, loopScheduler, ownCredentialsOf);
  return {
    loopScheduler,
    inspection,
    readJson: inspection.readJson,
    bufferQuota: createResponseBufferQuota(),
  };
}

/** For the command line, which waits for one upstream only and needs no worker thread. */
export function createSingleUpstreamResources(): UpstreamResources {
  return {
    readJson(source, { maxValues }) {
      const caps = { maxDepth: MAX_JSON_DEPTH, maxValues };
      return typeof source === 'string' ? readJsonText(source, caps) : readJson(source, caps);
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
  readonly openRequest: () => ListingRequest;
  /** Session-era versions spoken on this transport; `undefined` for those of streamable HTTP. */
  readonly sessionVersions: readonly string[] | undefined;
};

export type ConnectionPorts = {
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly isOwnListener: (socket: Socket) => boolean;
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
  /** Called with a fixed text that says why a credential could not be obtained or a connection failed. */
  readonly onConnectionError: (what: 'credentials' | 'connection', detail: string) => void;
};

export function messageReaderOf(
  { name: upstream, limits: { maxValues } }: UpstreamSettings,
  { readJson, loopScheduler }: Pick<ConnectionPorts, 'readJson' | 'loopScheduler'>,
): MessageReader {
  return {
    read: (source) => readJson(source, { upstream, maxValues }),
    upstream,
    loopScheduler,
  };
}

/** Creates the connections of an upstream. The caller closes the client. */
export function connectUpstream(
  settings: UpstreamSettings,
  ports: ConnectionPorts,
): UpstreamConnection {
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
        openRequest: () => createListingRequest(client, 'gateway'),
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
  { onConnectionError, isOwnListener }: ConnectionPorts,
): ReturnType<typeof connectOptionsFor> {
  const onFailure = (code: string): void =>
    onConnectionError('connection', describeConnectionError(code));
  const { url, socket, tls } = settings;
  if (socket !== undefined) return connectOptionsForSocket(socket, onFailure);
  const allowed = addressesFor(url, settings);
  if (allowed === undefined) throw new Error('the URL of an upstream was not checked before use');
  return connectOptionsFor(allowed, { tls, onFailure, isOwnListener });
}

function presenterOf(
  { credentials, identity, limits, pinning }: UpstreamSettings,
  { guardedFetch, now, signer, issuer, onCredential, onConnectionError }: ConnectionPorts,
): Presenter {
  const sources = {
    guardedFetch,
    now,
    requestTimeoutMs: limits.requestTimeoutMs,
    onCredential,
    onError: (detail: string) => onConnectionError('credentials', detail),
  };
  const callers = createCredentialSource(credentials, sources);
  const isShared = JSON.stringify(credentials) === JSON.stringify(pinning.credentials);
  return createPresenter({
    callerSource: callers,
    gatewaySource: isShared ? callers : createCredentialSource(pinning.credentials, sources),
    signAssertion:
      identity === undefined
        ? undefined
        : createAssertion({ identity, issuer, signer, now, onCredential }),
  });
}
