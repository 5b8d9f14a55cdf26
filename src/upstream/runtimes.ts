// The runtime of each upstream: its connections, the gateway's own listing of it, the translation between eras and what
// was last observed there. A runtime lives across reloads as long as its settings stay the same. Messages between
// replicas about sessions of translated upstreams are routed here.
// Source: MCP 2026-07-28, versioning; docs/reference/protocol.md#a-session-in-front-of-a-stateless-upstream;
// docs/reference/protocol.md#a-stateless-client-in-front-of-a-session-upstream.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Settings, UpstreamSettings } from '../config/settings.js';
import {
  createDefinitionScan,
  type DefinitionScan,
  type ScanDefinitions,
} from '../inspection/definitions/listing-scan.js';
import {
  createOwnCredentialStore,
  type OwnCredentialStore,
  type SentCredentials,
} from '../inspection/detectors/upstream-credentials.js';
import { withholding } from '../pins/catalog.js';
import { digestInTurns } from '../pins/digest.js';
import { createFirstUse, type FirstUse, type FirstUseKeeper, type LockWork, NO_FIRST_USE } from '../pins/first-use.js';
import {
  dropListing,
  isListingBehind,
  itemsByKind,
  noteListing,
  notePage,
  type Observed,
  observeListing,
  type Page,
} from '../pins/last-seen.js';
import { approvedVersions, type Lock, PIN_KINDS } from '../pins/lock.js';
import type { PinKind } from '../policy/definitions.js';
import type { Emit } from '../policy/events.js';
import type { Json } from '../protocol/jsonrpc.js';
import type { Listing } from '../protocol/methods.js';
import { BoundedMap } from '../state/bounds.js';
import type { GatewayState } from '../state/memory.js';
import type { ReplicaBus } from '../state/replica-bus.js';
import type { StatelessSettings } from './adapters/input-required.js';
import { createLegacySseClientSessions } from './adapters/legacy-sse/client-sessions.js';
import { createSessionRecovery } from './adapters/lost-sessions.js';
import { createUpstreamAdapters, type TranslatedClients, type UpstreamAdapters } from './adapters/selection.js';
import { createSessionClients } from './adapters/session-over-stateless/session-over-stateless-adapter.js';
import {
  limitSessionBus,
  type SessionBus,
  type SessionMessage,
} from './adapters/session-over-stateless/session-state.js';
import { createStatelessClients } from './adapters/stateless-over-session/stateless-over-session-adapter.js';
import { type Breaker, createBreaker } from './breaker.js';
import type { UpstreamClient } from './client.js';
import {
  type ConnectionPorts,
  connectUpstream,
  describeListingFailure,
  listingNotes,
  messageReaderOf,
} from './connection.js';
import type { Presenter } from './credentials/credentials.js';
import { createListingAllowance } from './discovery/caps.js';
import { createDiscoveryLister, type ListingFailure, MIN_INTERVAL_MS } from './discovery/discovery.js';

type UpstreamSessionMessage = SessionMessage & { readonly upstream: string };

/** The part of the replica bus that carries messages about sessions of one upstream. */
type SessionBusOf = (upstream: string) => SessionBus;

/** Creates the session buses. The quota of an owner covers its sessions at all upstreams and outlives reloads. */
export function createSessionBuses(bus: ReplicaBus): SessionBusOf {
  const { self, send, publish } = limitSessionBus({
    self: bus.self,
    send: (replica, message) => bus.send(replica, message as unknown as Json),
    publish: (message) => bus.publish(message as unknown as Json),
  });
  return (upstream) => {
    const withUpstream = (message: SessionMessage): UpstreamSessionMessage => ({
      upstream,
      ...message,
    });
    return {
      self,
      send: (replica, message) => send(replica, withUpstream(message)),
      publish: (message) => publish(withUpstream(message)),
    };
  };
}

/** Subscribes to messages of the other replicas, and to sessions that ended at them. */
export function receiveFromReplicas(
  { replicaBus, ended }: Pick<GatewayState, 'replicaBus' | 'ended'>,
  runtimes: Runtimes,
): void {
  replicaBus.onMessage((received) => {
    // The bus is encrypted under the gateway key, and gateways send nothing but these messages.
    const { upstream, ...message } = received as unknown as UpstreamSessionMessage;
    runtimes.get(upstream)?.translation.sessions.receive(message);
  });
  ended.onElsewhere(() => {
    for (const { translation } of runtimes.all()) translation.sessions.forgetWhere(ended.has);
  });
}

/** Opens no connection before the first message. */
function createTranslation(settings: StatelessSettings): TranslatedClients {
  return {
    sessions: createSessionClients(settings),
    stateless: createStatelessClients(settings),
    bridged: createLegacySseClientSessions(settings),
  };
}

export type UpstreamRuntime = {
  readonly settings: UpstreamSettings;
  readonly client: UpstreamClient;
  /** The states of the upstream's credentials. */
  readonly presenter: Pick<Presenter, 'states'>;
  /** How its messages are sent, by the message or its session. */
  readonly adapters: UpstreamAdapters;
  /** For clients of an era that it does not speak. */
  readonly translation: TranslatedClients;
  /** What the scan found in what nobody approved. */
  readonly scan: DefinitionScan;
  /** What is trusted because it was offered first. */
  readonly firstUse: FirstUse;
  /** The lock file in force, with what is trusted besides. */
  lock(): Lock | undefined;
  /** The newest observation, or `undefined` before the first listing. */
  observed(): Observed | undefined;
  /** Whether every page was verified within `pinning.maxAge`. */
  isFresh(): boolean;
  /** False while the list of this kind cannot be read: what is known of its items was not verified. */
  isKindVerified(kind: PinKind): boolean;
  /** What of the last listings could not be read, one clause each. */
  listingNotes(): readonly string[];
  /** Whether the newest listing succeeded. */
  isUp(): boolean;
  /**
   * Lists again where that is due, and always with `verify: before-call`. Resolves with whether the definitions are
   * verified as configured.
   */
  refreshListing(): Promise<boolean>;
  notePage(page: Omit<Page, 'atMs'>): void;
  /** Lists again where one of these approved forms was not looked for yet; `undefined` if none is due. */
  confirmForms(
    kind: PinKind,
    forms: readonly { readonly name: string; readonly digest: string }[],
  ): Promise<void> | undefined;
  noteListChanged(): Promise<void>;
  /** A request found the upstream unavailable: what answers after this may not be what was listed. */
  noteUnavailable(): void;
  /** Whether requests of callers are refused because the upstream hangs. */
  readonly breaker: Pick<Breaker, 'status' | 'noteTimeout'>;
  close(): Promise<void>;
};

/** What all runtimes share. */
type SharedPorts = {
  readonly scanDefinitions: ScanDefinitions;
  /** The lock file in force. */
  readonly lockOf: (upstream: string) => Lock | undefined;
  readonly firstUseKeeper: FirstUseKeeper;
  /** Called with what is trusted for the first time. */
  readonly onFirstUse: (trusted: Lock) => void;
  readonly lockWork: LockWork;
  readonly gatewayVersion: string;
  readonly sessionBusOf: SessionBusOf;
  /**
   * Called when what the upstream offers differs from what was observed before. Resolves once the report that it causes
   * is complete; nothing if it is complete already. Never throws or rejects.
   */
  readonly onObserved: (runtime: UpstreamRuntime) => Promise<void> | undefined;
};

type RuntimePorts = ConnectionPorts &
  SharedPorts & {
    readonly onListed: (runtime: UpstreamRuntime) => void;
    readonly onFailure: (runtime: UpstreamRuntime, failure: ListingFailure) => void;
    /** What of a listing could not be read, where that is new. */
    readonly onNotes: (notes: readonly string[]) => void;
    /** A session of an aggregate's client was opened anew, because the upstream had lost it. */
    readonly onReopened: () => void;
    /** It hangs, or no longer does. */
    readonly onHanging: (isHanging: boolean) => void;
  };

/** After a report the next waits for this many times as long as that one took, so that reports take 10 % of the loop. */
const REPORT_PAUSE_FACTOR = 9;
/** At most, because most of the time that a report takes it may have waited for its turns. */
const MAX_REPORT_PAUSE_MS = 10_000;

type PacedReport = {
  /** Sends the report now. */
  send(): void;
  /**
   * Sends it now or, if that is too soon after the one before, later: one report for all that was observed until then.
   */
  sendPaced(): void;
  /** Sends now what would be sent later. */
  flush(): void;
  /** Resolves once no report is being made. */
  settled(): Promise<void>;
  /** Sends now what would be sent later, and nothing from then on. */
  close(): void;
};

/**
 * Paces a report of all that an upstream offers by what it costs. Callers request pages at any rate, each page may show
 * something new, and the report of ten thousand definitions takes longer than a hundred calls.
 */
export function createPacedReport(report: () => Promise<void> | undefined): PacedReport {
  let dueAtMs = Number.NEGATIVE_INFINITY;
  let isPending = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isClosed = false;

  function pauseAfter(startedMs: number): void {
    const endedMs = performance.now();
    const pauseMs = Math.min(REPORT_PAUSE_FACTOR * (endedMs - startedMs), MAX_REPORT_PAUSE_MS);
    dueAtMs = Math.max(dueAtMs, endedMs + pauseMs);
  }

  function send(): void {
    if (isClosed) return;
    clearTimeout(timer);
    timer = undefined;
    isPending = false;
    const startedMs = performance.now();
    const started = report();
    pauseAfter(startedMs);
    running = started ?? running;
    void started?.then(() => {
      pauseAfter(startedMs);
      if (running === started) running = undefined;
      sendWhenDue();
    });
  }

  function sendWhenDue(): void {
    if (!isPending || running !== undefined || timer !== undefined) return;
    const waitMs = dueAtMs - performance.now();
    if (waitMs <= 0) send();
    else timer = setTimeout(send, waitMs).unref();
  }

  function flush(): void {
    if (isPending) send();
  }

  return {
    send,
    sendPaced() {
      isPending = true;
      sendWhenDue();
    },
    flush,
    async settled() {
      while (running !== undefined) await running;
    },
    close() {
      flush();
      isClosed = true;
    },
  };
}

type PartialListing = { readonly kinds: readonly PinKind[]; readonly notes: readonly string[] };

const KIND_OF_LIST = {
  tools: 'tool',
  prompts: 'prompt',
  templates: 'template',
  resources: 'resource',
} as const;

/** Forms that were looked for lately; a server that shows more of them is listed when it is due. */
const MAX_CONFIRMED = 1_000;
/** How long a caller's list waits for the gateway's own. */
const MAX_CONFIRMATION_MS = 5_000;

/**
 * Lists for the sake of approved forms that callers were shown, once for each within `maxAge` and at most once in a
 * second: a server that shows callers another form than the gateway could otherwise have it list at every page.
 */
function createConfirmation(
  { maxAgeMs }: Pick<UpstreamSettings['pinning'], 'maxAgeMs'>,
  now: () => number,
  list: () => Promise<unknown>,
): (digests: readonly string[]) => Promise<void> | undefined {
  const lookedForAtMs = new BoundedMap<string, number>(MAX_CONFIRMED);
  let running: Promise<void> | undefined;
  let startedAtMs = Number.NEGATIVE_INFINITY;
  return (digests) => {
    const nowMs = now();
    const isDue = (digest: string): boolean =>
      nowMs - (lookedForAtMs.get(digest) ?? Number.NEGATIVE_INFINITY) >= maxAgeMs;
    const due = digests.filter(isDue);
    if (due.length === 0 || (running === undefined && nowMs - startedAtMs < MIN_INTERVAL_MS)) return running;
    for (const digest of due) lookedForAtMs.set(digest, nowMs);
    startedAtMs = nowMs;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, MAX_CONFIRMATION_MS).unref();
    });
    const listed = list().then(
      () => undefined,
      () => undefined,
    );
    const own = Promise.race([listed, late]).finally(() => {
      clearTimeout(timer);
      if (running === own) running = undefined;
    });
    running = own;
    return own;
  };
}

/** A server that is alive answers a ping sooner than most calls. */
const MAX_PING_MS = 5_000;
/** How long an upstream may take to hear that the gateway's own session ends. */
const MAX_GOODBYE_MS = 1_000;
const TIMER_TOLERANCE_MS = 5;

/**
 * Resolves with false only if nothing answers in time; an error, and no connection, is an answer. Undefined if no ping was
 * sent, because there was no credential for it: of the upstream that says nothing.
 */
export async function pingUpstream(
  client: Pick<UpstreamClient, 'request'>,
  timeoutMs: number,
): Promise<boolean | undefined> {
  const startedMs = performance.now();
  const outcome = await client.request({
    ...{ caller: 'gateway', method: 'POST', timeoutMs, isPing: true, body: PING },
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
  });
  if (outcome.kind === 'error' && outcome.isUnsent === true) return undefined;
  // What is given up after the timeout has no reason of its own.
  if (outcome.kind === 'error') return performance.now() - startedMs < timeoutMs - TIMER_TOLERANCE_MS;
  outcome.release();
  return true;
}

const PING = '{"jsonrpc":"2.0","id":0,"method":"ping"}';

/** Starts an upstream: from now on it is listed periodically. Connects to nothing before the first listing. */
function startUpstream(settings: UpstreamSettings, ports: RuntimePorts): UpstreamRuntime {
  const { now } = ports;
  const { limits, pinning } = settings;
  const connection = connectUpstream(settings, ports);
  const { client, sessions: sessionTransport, presenter, openRequest, sessionVersions } = connection;
  const messageReader = messageReaderOf(settings, ports);
  const translation = createTranslation({
    client: sessionTransport,
    gatewayVersion: ports.gatewayVersion,
    maxResponseBytes: limits.maxResponseBytes,
    requestTimeoutMs: limits.requestTimeoutMs,
    handshakeTimeoutMs: limits.handshakeTimeoutMs,
    messageReader,
    sessionBus: ports.sessionBusOf(settings.name),
    now,
  });
  const scan = createDefinitionScan(pinning, {
    scanDefinitions: ports.scanDefinitions,
    turns: messageReader,
    lock: lockInForce,
  });
  const firstUse =
    pinning.mode === 'trust-on-first-use'
      ? createFirstUse(settings.name, {
          keeper: ports.firstUseKeeper,
          work: ports.lockWork,
          now,
          scan,
          onTrusted(trusted, isNew) {
            if (isNew) ports.onFirstUse(trusted);
            // Without an observation there is nothing yet that this changes.
            if (observed !== undefined) observedReport.send();
          },
        })
      : NO_FIRST_USE;
  let observed: Observed | undefined;
  /** By client profile: what could not be read of its last listing. */
  const partial = new Map<string, PartialListing>();
  let notes: readonly string[] = [];
  let reportedRevision = 0;

  function lockInForce(): Lock | undefined {
    return firstUse.lockWith(ports.lockOf(settings.name));
  }

  /** Notes which kinds are unavailable and what was left out, and says so once. */
  function noteParts(listings: readonly Listing[]): void {
    for (const listing of listings) {
      const kinds = (listing.unavailable ?? []).map(({ kind }) => KIND_OF_LIST[kind]);
      const key = `${listing.era} ${listing.apps}`;
      partial.set(key, { kinds, notes: listingNotes(listing) });
    }
    const next = [...new Set([...partial.values()].flatMap((one) => one.notes))];
    const fresh = next.filter((note) => !notes.includes(note));
    notes = next;
    if (fresh.length > 0) ports.onNotes(fresh);
  }

  const observedReport = createPacedReport(() => ports.onObserved(runtime));

  function setObserved(next: Observed | undefined, isPage = false): void {
    const isSame = next?.contentDigest === observed?.contentDigest;
    const isReviewed = reportedRevision === scan.revision();
    observed = next;
    reportedRevision = scan.revision();
    if (isSame && isReviewed) return;
    if (isPage) observedReport.sendPaced();
    else observedReport.send();
  }

  const lister = createDiscoveryLister(
    {
      maxAgeMs: pinning.maxAgeMs,
      requestTimeoutMs: limits.handshakeTimeoutMs,
      gatewayVersion: ports.gatewayVersion,
      sessionVersions,
      apps: settings.apps,
    },
    {
      now,
      openRequest,
      messageReader,
      allowance: createListingAllowance(limits.maxListingBytesPerMinute, now),
      async prepare(listing) {
        const items = itemsByKind(listing);
        for (const kind of PIN_KINDS) await digestInTurns(messageReader, kind, items[kind]);
        await firstUse.load();
        await scan.reviewListing(listing);
        // Few reports can wait for each other, and what one listing shows and the next does not is reported all the same.
        await observedReport.settled();
        // Taking in thousands of definitions is not divided, so it begins with a turn of its own.
        await messageReader.loopScheduler.waitForTurn(settings.name);
      },
      onListings(listings) {
        const startedMs = performance.now();
        noteParts(listings);
        // A listing may remove what pages showed, and while it is being trusted nothing is known to differ.
        observedReport.flush();
        const next = listings.map(observeListing).reduce(noteListing, observed);
        // Before anything is reported, so that what is trusted is not reported as new.
        if (next !== undefined) firstUse.observe(next);
        setObserved(next);
        if (lister.isUp()) {
          breaker.noteListed();
          ports.onListed(runtime);
        }
        messageReader.loopScheduler.recordTime(startedMs);
      },
      onProfileGone(clientProfile) {
        partial.delete(`${clientProfile.era} ${clientProfile.apps}`);
        observedReport.flush();
        setObserved(dropListing(observed, clientProfile));
      },
      onFailure(_era, failure) {
        if (failure.why === 'timeout') breaker.noteTimeout();
        ports.onFailure(runtime, failure);
      },
    },
  );
  const breaker = createBreaker({
    ping: () => pingUpstream(client, Math.min(limits.handshakeTimeoutMs, MAX_PING_MS)),
    countResponses: client.countResponses,
    onChange: ports.onHanging,
  });
  const confirm = createConfirmation(pinning, now, () => lister.verifyNow());
  const runtime: UpstreamRuntime = {
    settings,
    client,
    presenter,
    adapters: createUpstreamAdapters({
      client,
      sessions: sessionTransport,
      translation,
      isLegacySse: settings.transport === 'http-sse',
      recovery: createSessionRecovery({
        client: sessionTransport,
        gatewayVersion: ports.gatewayVersion,
        requestTimeoutMs: limits.requestTimeoutMs,
        handshakeTimeoutMs: limits.handshakeTimeoutMs,
        now,
        onReopened: ports.onReopened,
      }),
    }),
    translation,
    scan,
    firstUse,
    lock: lockInForce,
    observed: () => observed,
    isUp: () => lister.isUp(),
    isKindVerified: (kind) => [...partial.values()].every(({ kinds }) => !kinds.includes(kind)),
    listingNotes: () => notes,
    isFresh: () => lister.isFresh(pinning.maxAgeMs) && firstUse.isSettled(),
    async refreshListing() {
      // Whoever waited for a listing of an upstream that hangs would wait for its whole timeout.
      if (breaker.status.isOpen) return false;
      const verified =
        pinning.verify === 'before-call' ? await lister.verifyNow() : await lister.ensureFresh(pinning.maxAgeMs);
      await firstUse.settled();
      return verified === 'fresh' && firstUse.isSettled();
    },
    notePage(page) {
      if (observed === undefined) return;
      const { withholds } = withholding({
        isWithheld: scan.isWithheld,
        mode: pinning.mode === 'off' ? 'off' : 'strict',
        lock: lockInForce(),
      });
      setObserved(notePage(observed, { ...page, atMs: now() }, withholds), true);
    },
    confirmForms(kind, forms) {
      const lock = lockInForce();
      const due = forms.filter(({ name, digest }) => {
        const approved = approvedVersions(lock?.pins[kind].get(name)).map(({ sha256 }) => sha256);
        return isListingBehind(observed, { kind, name, digest }, approved);
      });
      return due.length === 0 ? undefined : confirm(due.map(({ digest }) => digest));
    },
    noteListChanged: () => lister.noteListChanged(),
    noteUnavailable() {
      // While listings fail, the timer tries again.
      if (lister.isUp()) lister.noteListChanged().catch(() => undefined);
    },
    breaker,
    async close() {
      breaker.close();
      observedReport.close();
      await Promise.race([lister.close(), sleep(MAX_GOODBYE_MS, undefined, { ref: false })]);
      await translation.stateless.close();
      await sessionTransport.close();
      await client.close();
      await observedReport.settled();
    },
  };
  lister.start();
  return runtime;
}

export type Runtimes = {
  get(upstream: string): UpstreamRuntime | undefined;
  /** The credentials that were sent to the upstream and may be echoed by it, including those of earlier settings. */
  ownCredentials(upstream: string): SentCredentials | undefined;
  all(): Iterable<UpstreamRuntime>;
  /** Makes the running upstreams those of the settings; unchanged ones keep their connections and observations. */
  replace(settings: Settings): void;
  /** Breaks off what callers have in progress at any upstream. */
  abortCalls(): void;
  close(): Promise<void>;
};

type RuntimesPorts = Omit<ConnectionPorts, 'issuer' | 'onCredential' | 'onTokenRequest' | 'onConnectionError'> &
  SharedPorts & {
    readonly emit: Emit;
    /** Called after the first listing that succeeds, and after the first that does so again. */
    readonly onReachable: (runtime: UpstreamRuntime) => void;
  };

export function createRuntimes(ports: RuntimesPorts): Runtimes {
  const { emit } = ports;
  let running = new Map<string, UpstreamRuntime>();
  // Kept by name, because credentials that an upstream received outlive the connections they were sent over.
  const stores = new Map<string, OwnCredentialStore>();

  function start(settings: UpstreamSettings, issuer: string): UpstreamRuntime {
    const reportError = createErrorReporter(settings.name, ports);
    const store = stores.get(settings.name) ?? createOwnCredentialStore(ports.now);
    stores.set(settings.name, store);
    let isReachable = false;
    return startUpstream(settings, {
      ...ports,
      issuer,
      onCredential: store.note,
      onConnectionError: reportError,
      onTokenRequest: (grant, measured) => emit('tokenRequested', { upstream: settings.name, grant, ...measured }),
      onListed(runtime) {
        emit('listed', { upstream: settings.name });
        if (!isReachable) ports.onReachable(runtime);
        isReachable = true;
      },
      onReopened: () => emit('sessionReopened', { upstream: settings.name }),
      onHanging: (isHanging) => emit('hanging', { upstream: settings.name, isHanging }),
      onNotes(notes) {
        for (const detail of notes) emit('partlyListed', { upstream: settings.name, detail });
      },
      onFailure(_runtime, failure) {
        isReachable = false;
        const { name: upstream, resource: url } = settings;
        emit('unlisted', { upstream, url, detail: describeListingFailure(failure, undefined) });
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
          known !== undefined && isSame(known.settings, settings) ? known : start(settings, publicBase),
        );
      }
      const gone = [...running.values()].filter((runtime) => next.get(runtime.settings.name) !== runtime);
      running = next;
      // Requests in progress on the old connections end there; no new request starts on them.
      for (const runtime of gone) void runtime.close();
    },
    abortCalls() {
      for (const { client } of running.values()) client.abortCalls();
    },
    async close() {
      await Promise.all([...running.values()].map((runtime) => runtime.close()));
    },
  };
}

/** The same error of one upstream is reported once within this time, because every failing call would repeat it. */
const ERROR_INTERVAL_MS = 10_000;
const MAX_REMEMBERED_ERRORS = 64;

function createErrorReporter(
  upstream: string,
  { emit, now }: Pick<RuntimesPorts, 'emit' | 'now'>,
): ConnectionPorts['onConnectionError'] {
  const reportedAtMs = new BoundedMap<string, number>(MAX_REMEMBERED_ERRORS);
  return (what, detail) => {
    const last = reportedAtMs.get(detail) ?? Number.NEGATIVE_INFINITY;
    if (now() - last < ERROR_INTERVAL_MS) return;
    reportedAtMs.set(detail, now());
    emit('connectionFailed', { upstream, what, detail });
  };
}

function isSame(one: UpstreamSettings, other: UpstreamSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
