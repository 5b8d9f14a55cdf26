// What runs for one upstream: its connections, the gateway's own listing, and what was last seen there.
// It lives across reloads as long as its settings stay the same.

import type { Settings, UpstreamSettings } from '../config/settings.js';
import {
  createOwnCredentialStore,
  type OwnCredentialStore,
  type OwnCredentials,
} from '../inspection/detectors/upstream-credentials.js';
import { digestOnce } from '../pins/digest.js';
import {
  dropListing,
  noteListing,
  notePage,
  type Observed,
  observeListing,
  type Page,
} from '../pins/last-seen.js';
import type { Json } from '../protocol/jsonrpc.js';
import type { Listing } from '../protocol/listings.js';
import type { GatewayState } from '../state/memory.js';
import type { ReplicaBus } from '../state/replica-bus.js';
import type { Log } from '../telemetry/log.js';
import type { Metrics } from '../telemetry/metrics.js';
import {
  type BridgedSessions,
  createBridgedSessions,
} from '../upstream/adapters/legacy-sse/client-sessions.js';
import {
  createSessionClients,
  type SessionClients,
} from '../upstream/adapters/session-over-stateless/adapter.js';
import {
  limitSessionBus,
  type SessionBus,
  type SessionMessage,
} from '../upstream/adapters/session-over-stateless/session-state.js';
import {
  createStatelessClients,
  type StatelessClients,
} from '../upstream/adapters/stateless-over-session/adapter.js';
import type { StatelessSettings } from '../upstream/adapters/stateless-over-session/input-required.js';
import type { SessionUpstream, UpstreamClient } from '../upstream/client.js';
import type { Presenter } from '../upstream/credentials/presenter.js';
import { createDiscoveryLister } from '../upstream/discovery/discovery.js';
import { createListingAllowance, type ListingError } from '../upstream/discovery/request.js';
import { type MessageReader, runInTurn } from '../upstream/message-reader.js';
import { type ConnectionPorts, connectUpstream, messageReaderOf } from './upstream-connection.js';

// What replicas tell each other, and where it is heard: words about sessions that the gateway holds for
// upstreams without any, by the upstream, and sessions that ended elsewhere.

type UpstreamSessionMessage = SessionMessage & { readonly upstream: string };

/** The words that are said of the sessions of one upstream. */
type SessionBusOf = (upstream: string) => SessionBus;

/** Says them. An owner has one share, however many upstreams it has sessions with, and whatever is reloaded. */
export function createSessionBuses(bus: ReplicaBus): SessionBusOf {
  const { self, send, publish } = limitSessionBus({
    self: bus.self,
    send: (replica, message) => bus.send(replica, message as unknown as Json),
    publish: (message) => bus.publish(message as unknown as Json),
  });
  return (upstream) => {
    const about = (message: SessionMessage): UpstreamSessionMessage => ({ upstream, ...message });
    return {
      self,
      send: (replica, message) => send(replica, about(message)),
      publish: (message) => publish(about(message)),
    };
  };
}

/** Hears the other replicas from now on. */
export function receiveFromReplicas(
  { replicaBus, ended }: Pick<GatewayState, 'replicaBus' | 'ended'>,
  runtimes: Runtimes,
): void {
  replicaBus.onMessage((received) => {
    // Only gateways with this key say anything, and nothing but this.
    const { upstream, ...message } = received as unknown as UpstreamSessionMessage;
    runtimes.get(upstream)?.translation.sessions.receive(message);
  });
  ended.onElsewhere(() => {
    for (const { translation } of runtimes.all()) translation.sessions.forgetWhere(ended.has);
  });
}

// One upstream, for clients of an era that it does not speak: all directions together, with what they keep.
// Takes only what was cleared, and gives answers in the client's own form, unjudged.
// Source: MCP 2026-07-28, versioning; docs/reference/protocol.md §2.3 and §2.4.

type Translation = {
  /** Clients of sessions before an upstream without. */
  readonly sessions: SessionClients;
  /** Stateless clients before an upstream of sessions. */
  readonly stateless: StatelessClients;
  /** Clients of HTTP+SSE before an upstream of sessions, or of none. */
  readonly bridged: BridgedSessions;
  close(): void;
};

/** Opens nothing before the first message. */
function createTranslation(settings: StatelessSettings): Translation {
  const stateless = createStatelessClients(settings);
  return {
    sessions: createSessionClients(settings),
    stateless,
    bridged: createBridgedSessions(settings),
    close: () => stateless.close(),
  };
}

export type UpstreamRuntime = {
  readonly settings: UpstreamSettings;
  readonly client: UpstreamClient;
  /** How the credentials stand. */
  readonly presenter: Pick<Presenter, 'states'>;
  /** The same upstream in sessions: over channels where it speaks HTTP+SSE. */
  readonly sessions: SessionUpstream;
  /** The same upstream, for clients of an era that it does not speak. */
  readonly translation: Translation;
  /** The newest observation, or `undefined` before the first listing. */
  observed(): Observed | undefined;
  /** Whether every page was verified within `pinning.maxAge`. */
  isFresh(): boolean;
  /** Whether the newest listing came through. */
  isUp(): boolean;
  /** Lists again where that is due; resolves whether or not it helped. */
  freshen(): Promise<void>;
  notePage(page: Omit<Page, 'atMs'>): void;
  noteListChanged(): Promise<void>;
  close(): Promise<void>;
};

type RuntimePorts = ConnectionPorts & {
  readonly gatewayVersion: string;
  readonly sessionBusOf: SessionBusOf;
  /** What is offered differs from what was seen before. */
  readonly onObserved: (runtime: UpstreamRuntime) => void;
  readonly onListed: (runtime: UpstreamRuntime) => void;
  readonly onFailure: (runtime: UpstreamRuntime, why: ListingError) => void;
};

/** Takes the digests that an observation will ask for. */
async function digestInSlices(listing: Listing, messageReader: MessageReader): Promise<void> {
  const { tools, prompts, templates, resources } = listing;
  const lists = [
    ['tool', tools],
    ['prompt', prompts],
    ['template', templates],
    ['resource', resources],
  ] as const;
  for (const [kind, items] of lists)
    await runInTurn(messageReader, items, ({ definition, isExact }) => {
      digestOnce(kind, definition, isExact);
    });
}

/** Opens an upstream: from now on it is listed by itself. Nothing is connected before the first listing. */
function startUpstream(settings: UpstreamSettings, ports: RuntimePorts): UpstreamRuntime {
  const { now } = ports;
  const { limits, pinning } = settings;
  const connection = connectUpstream(settings, ports);
  const { client, sessions, presenter, openRequest, sessionVersions } = connection;
  const messageReader = messageReaderOf(settings, ports);
  const translation = createTranslation({
    client: sessions,
    gatewayVersion: ports.gatewayVersion,
    maxResponseBytes: limits.maxResponseBytes,
    requestTimeoutMs: limits.requestTimeoutMs,
    messageReader,
    sessionBus: ports.sessionBusOf(settings.name),
    now,
  });
  let observed: Observed | undefined;

  function see(next: Observed | undefined): void {
    const isSame = next?.contentDigest === observed?.contentDigest;
    observed = next;
    if (!isSame) ports.onObserved(runtime);
  }

  const lister = createDiscoveryLister(
    {
      maxAgeMs: pinning.maxAgeMs,
      requestTimeoutMs: limits.requestTimeoutMs,
      gatewayVersion: ports.gatewayVersion,
      sessionVersions,
      apps: settings.apps,
    },
    {
      now,
      openRequest,
      messageReader,
      allowance: createListingAllowance(limits.maxListingBytesPerMinute, now),
      prepare: (listing) => digestInSlices(listing, messageReader),
      onListings(listings) {
        see(listings.map(observeListing).reduce(noteListing, observed));
        if (lister.isUp()) ports.onListed(runtime);
      },
      onProfileGone: (clientProfile) => see(dropListing(observed, clientProfile)),
      onFailure: (_era, why) => ports.onFailure(runtime, why),
    },
  );
  const runtime: UpstreamRuntime = {
    settings,
    client,
    presenter,
    sessions,
    translation,
    observed: () => observed,
    isUp: () => lister.isUp(),
    isFresh: () => lister.isFresh(pinning.maxAgeMs),
    async freshen() {
      await lister.ensureFresh(pinning.maxAgeMs);
    },
    notePage(page) {
      if (observed !== undefined) see(notePage(observed, { ...page, atMs: now() }));
    },
    noteListChanged: () => lister.noteListChanged(),
    async close() {
      await lister.close();
      translation.close();
      await sessions.close();
      await client.close();
    },
  };
  lister.start();
  return runtime;
}

// The running upstreams: started and ended as versions come and go. One whose settings a new version
// leaves alone keeps its connections and what it has seen.

export type Runtimes = {
  get(upstream: string): UpstreamRuntime | undefined;
  /** The credentials that the upstream got from us and may send back, those of earlier settings too. */
  ownCredentials(upstream: string): OwnCredentials | undefined;
  all(): Iterable<UpstreamRuntime>;
  /** Makes the running upstreams those of the settings. */
  replace(settings: Settings): void;
  close(): Promise<void>;
};

type RuntimesPorts = Omit<ConnectionPorts, 'issuer' | 'onCredential' | 'onTrouble'> & {
  readonly gatewayVersion: string;
  readonly sessionBusOf: SessionBusOf;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly onObserved: (runtime: UpstreamRuntime) => void;
};

/** An empty set of upstreams. */
export function createRuntimes(ports: RuntimesPorts): Runtimes {
  const { metrics, log } = ports;
  let running = new Map<string, UpstreamRuntime>();
  // By name: what an upstream got outlives the connections over which it got it.
  const stores = new Map<string, OwnCredentialStore>();

  function start(settings: UpstreamSettings, issuer: string): UpstreamRuntime {
    const reportTrouble = createTroubleReport(settings.name, ports);
    const store = stores.get(settings.name) ?? createOwnCredentialStore(ports.now);
    stores.set(settings.name, store);
    return startUpstream(settings, {
      ...ports,
      issuer,
      onCredential: store.note,
      onTrouble: reportTrouble,
      onListed: () => metrics.setUpstreamUp(settings.name, true),
      onFailure(_runtime, why) {
        metrics.setUpstreamUp(settings.name, false);
        log.write('warn', 'upstream could not be listed', { upstream: settings.name, detail: why });
      },
    });
  }

  return {
    get: (upstream) => running.get(upstream),
    ownCredentials: (upstream) => stores.get(upstream)?.current(),
    all: () => running.values(),
    replace({ upstreams, publicBase }) {
      const next = new Map<string, UpstreamRuntime>();
      for (const settings of upstreams.values()) {
        const known = running.get(settings.name);
        next.set(
          settings.name,
          known !== undefined && isSame(known.settings, settings)
            ? known
            : start(settings, publicBase),
        );
      }
      const gone = [...running.values()].filter(
        (runtime) => next.get(runtime.settings.name) !== runtime,
      );
      running = next;
      // Exchanges that run on the old connections end there; nothing new begins on them.
      for (const runtime of gone) void runtime.close();
    },
    async close() {
      await Promise.all([...running.values()].map((runtime) => runtime.close()));
    },
  };
}

const TROUBLE = {
  credentials: 'upstream credentials could not be had',
  connection: 'upstream connection failed',
} as const;
/** The same trouble of one upstream is logged once in this time: calls that fail for it come by themselves. */
const TROUBLE_EVERY_MS = 10_000;
const MAX_TROUBLES = 64;

function createTroubleReport(
  upstream: string,
  { log, now }: Pick<RuntimesPorts, 'log' | 'now'>,
): ConnectionPorts['onTrouble'] {
  const reportedAtMs = new Map<string, number>();
  return (what, detail) => {
    const last = reportedAtMs.get(detail) ?? Number.NEGATIVE_INFINITY;
    if (now() - last < TROUBLE_EVERY_MS) return;
    if (reportedAtMs.size >= MAX_TROUBLES) reportedAtMs.clear();
    reportedAtMs.set(detail, now());
    log.write('error', TROUBLE[what], { upstream, detail });
  };
}

function isSame(one: UpstreamSettings, other: UpstreamSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
