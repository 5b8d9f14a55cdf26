// The pipeline's ports: the I/O of a gateway and one version of its tables, in small types by the matter that each is
// about. gateway/ builds each where that matter is kept; tests build them from literals. Nothing here decides.

import type { ContentSettings, InspectionProfile } from '../config/settings.js';
import type { InspectionPort } from '../inspection/jobs.js';
import type { PageCache } from '../inspection/result-filters.js';
import type { Page } from '../pins/last-seen.js';
import type { ApprovalPort } from '../policy/approval.js';
import type { MendingSettings } from '../policy/argument-mending.js';
import type { Refusal } from '../policy/decision.js';
import type { Catalog, PinKind } from '../policy/definitions.js';
import type { FlowStore } from '../policy/information-flow.js';
import type {
  GatewayReply,
  LimitOutcome,
  LimitStore,
  OutboundRequest,
  OutboundStream,
  ReplayOutcome,
  RunningRequest,
  SessionRequest,
} from '../policy/obligations.js';
import type { Presentation } from '../policy/presentation.js';
import type { Caller, Principal, ProofError } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import type { RefusedToken, RequestRecord } from '../policy/record.js';
import type { PolicySet } from '../policy/rules.js';
import type {
  CallerListScope,
  CallerScope,
  ListScope,
  RequestScope,
  Sealed,
  SealedRequests,
  SessionScope,
} from '../policy/sealed-types.js';
import type {
  EventFacts,
  OpenedTask,
  SentRequestFacts,
  ServerRequestFacts,
  SessionFacts,
  TaskFacts,
} from '../protocol/admitted-request.js';
import type { LoopScheduler, ReadJson } from '../protocol/json/incremental.js';
import type { JsonObject, RequestId } from '../protocol/jsonrpc.js';
import type { ListedPage } from '../protocol/methods.js';
import type { RememberedInputRequests } from '../protocol/server-requests.js';
import type {
  AggregateRef,
  ClientEnd,
  DisconnectSignal,
  ForwardOutcome,
  Incoming,
  LegacySseOutcome,
  Outgoing,
  RoutedOutcome,
} from '../protocol/transport.js';
import type { SupportedVersions } from '../protocol/versions/negotiation.js';
import type { ClientTraits } from '../protocol/versions/revisions.js';

/** How requests are traced, under one version of the configuration. */
export type TraceTerms = {
  /** Share of the traces that begin here and are exported, from 0 to 1. */
  readonly sampling: number;
  /** Names of the issuers whose callers' traces are continued. */
  readonly trusted: ReadonlySet<string>;
  /** Names of those among them whose callers may mark a trace to be exported. */
  readonly mayMark: ReadonlySet<string>;
  /** Takes one such request from their bound; false if it is used up. */
  readonly takeMarked: () => boolean;
};

/** One version of what is in force for an upstream. A request is decided under one snapshot throughout. */
export type Snapshot = {
  /** Unique among all snapshots ever made. */
  readonly id: number;
  readonly upstream: string;
  readonly policies: PolicySet;
  /** Hashes of the files that this snapshot was made from, for the record. */
  readonly versions: { readonly config: string; readonly policy: string; readonly pins: string };
  readonly profile: InspectionProfile;
  readonly profiles: ReadonlyMap<string, InspectionProfile>;
  readonly content: ContentSettings;
  /** Whether lists that may bring what a flow looks for count as received, instead of being cut. */
  readonly listsCount: boolean;
  /** How requests are traced; absent if they are not. */
  readonly tracing?: TraceTerms | undefined;
  /** What may be mended in the arguments of tools; absent if nothing is. */
  readonly mending?: MendingSettings | undefined;
  /** The tools that clients are shown otherwise than the server offers them; absent if there are none. */
  readonly presentation?: Presentation | undefined;
  /** The id of the block of the whole upstream, or of everything. */
  readonly block?: string | undefined;
  readonly limits: {
    readonly maxResponseBytes: number;
    readonly maxStreamBytesPerMinute: number;
    readonly maxValues: number;
    readonly listTtlMs: number;
    readonly requestTimeoutMs: number;
    readonly handshakeTimeoutMs: number;
    readonly streamIdleMs: number;
    readonly exchangeMaxMs: number;
    readonly keepAliveMs: number;
  };
  /** The supported protocol versions that the upstream speaks, by era; `undefined` before the first listing. */
  readonly supportedVersions: SupportedVersions | undefined;
  /** The definitions under this version's lock file and the newest listing, as offered to this client. */
  catalogFor(client: ClientTraits): Catalog;
  /** Whether a host may declare the Apps extension for this caller: only if the upstream is also listed with it. */
  mayShowApps(principal: Principal): boolean;
  /** Where legacy SSE clients post their messages. `isDirect`: the upstream speaks legacy SSE itself. */
  readonly legacySse: { readonly messageUrl: string; readonly isDirect: boolean };
  /**
   * True while every page was verified within `pinning.maxAge`, or if pinning is off. Never true if the definitions are
   * verified before each call.
   */
  readonly isFresh: boolean;
  /** True while what was listed first is being trusted: a list that did not wait would leave out what a call may use. */
  readonly isTrusting: boolean;
  /** False while the list of this kind cannot be read, so that no use of its items may rest on what is known. */
  isKindVerified(kind: PinKind): boolean;
  /** Whether the pages of clients are scanned before they are shown, because no pins decide about what they show. */
  readonly reviewsPages: boolean;
  /** Builds the WWW-Authenticate value for a refusal; `scheme` is the scheme that the request used. */
  challenge(
    reason: Reason,
    scopes: readonly string[] | undefined,
    login: { readonly scheme: string | undefined; readonly proof: ProofError | undefined },
  ): string;
};

/** A backend: an upstream and the prefix of its names in the aggregate. */
export type Backend = { readonly upstream: string; readonly prefix: string };

/** The name under which the aggregate presents itself to clients. */
export type ServerName = { readonly name: string; readonly version: string };

/** An aggregate: its backends, and the snapshot under which each is used there. */
export type Aggregate = {
  readonly name: string;
  /** In the order in which lists show them. */
  readonly backends: readonly Backend[];
  readonly versions: Snapshot['versions'];
  readonly tracing?: TraceTerms | undefined;
  /** The server name that it returns to clients. */
  readonly server: ServerName;
  challenge: Snapshot['challenge'];
  /** The backend's own snapshot, except for names that resemble another backend's. */
  snapshot(upstream: string): Snapshot | undefined;
};

/** The upstreams that kept an aggregate waiting for its whole time and have not answered one within it since. */
export type HangingBackends = {
  has(upstream: string): boolean;
  note(upstream: string, isHanging: boolean): void;
};

/** A resource that a caller of an aggregate requests. */
type ResourceLookup = {
  readonly aggregate: string;
  readonly principal: Principal;
  readonly uri: string;
};

/** An open stream of a client, as the stream registry needs it. */
export type OpenStream = {
  /** Sends a list-changed notification, given by its method, in the format of this stream. */
  announce(method: string): void;
  end(): void;
  /** Ends it as soon as nobody waits for a response on it; absent where responses come elsewhere. */
  readonly endWhenIdle?: (() => void) | undefined;
};

/** A stream that counts towards its caller's quota, from before it is opened until `release`. */
export type StreamReservation = {
  open(stream: OpenStream): void;
  release(): void;
};

/** What was allowed to a caller and is still held, as the registry of leases needs it. */
export type OpenLease = {
  readonly upstream: string;
  /** The aggregate through which it was allowed, if any: what ends there ends here. */
  readonly aggregate?: AggregateRef | undefined;
  readonly principal: Principal;
  /** The sealed id of its session. */
  readonly session: string | undefined;
  onChange(change: Change): void;
  /** Ends the lease if its session has ended. */
  checkSession(): void;
  end(refusal: Refusal): void;
};

/** Why a change ends a lease, as far as that is known without asking an issuer; `undefined` if it does not. */
export type Change = (lease: OpenLease) => Refusal | undefined;

/** The ids of tasks, which clients carry sealed. */
export type TaskPort = {
  /**
   * Seals a task into the id that this caller is given, valid for the server's `ttlMs` up to a bound;
   * `undefined` if what it must carry is too long.
   */
  seal(task: TaskFacts, ttlMs: number | null | undefined, scope: CallerScope): string | undefined;
  /** Opens such an id; `undefined` if it was not issued to this caller, or has expired. */
  open(sealed: string, scope: CallerScope): TaskFacts | undefined;
  /** This caller's task with the given server-side id, if this replica has seen it recently. */
  recall(id: string, scope: CallerScope): OpenedTask | undefined;
  /** The input requests that a task has already made and repeats at every poll, by a hash of their content. */
  inputRequestsOf(id: string, scope: CallerScope): RememberedInputRequests;
};

/** The items of one page of a list, as the upstream sent them. */
export type ObservedPage = Omit<Page, 'atMs'>;

/** The streams of legacy SSE: one for each session, on which every response arrives. */
export type LegacySsePort = {
  /** The ids under which the server sees requests; a request whose id would be too long is not sent. */
  readonly requests: SealedRequests<SentRequestFacts, string | undefined>;
  /** Registers the client's end of a legacy SSE stream; the returned function unregisters it. */
  registerClientEnd(session: SessionFacts, end: ClientEnd): () => void;
  /** The client's end of a legacy SSE stream; `undefined` if this replica does not hold it. */
  findClientEnd(session: SessionFacts): ClientEnd | undefined;
};

/** A failed authentication; `proof` is set if the challenge must mention a proof of possession. */
export type AuthnError = {
  readonly reason: Reason;
  readonly proof?: ProofError;
  /** For the audit log alone. */
  readonly refusedToken?: RefusedToken;
  /** One clause for the log that says what was wrong. */
  readonly detail?: string;
  /** The caller was verified, but is blocked; `id` is that of the block. */
  readonly blocked?: { readonly principal: Principal; readonly id: string };
};

/** Who calls. */
export type IdentityPort = {
  /** Verifies the caller. Writes the headers that the client's next proof depends on to `outgoing`. */
  authenticate(
    incoming: Incoming,
    outgoing: Pick<Outgoing, 'addHeader'>,
  ): Principal | AuthnError | Promise<Principal | AuthnError>;
};

/** What is held longer than a request, and what may end it. */
type LeasePort = {
  /** Registers a lease for every change to come, until the returned function is called. */
  register(lease: OpenLease): () => void;
  /** How many versions and changes of the revocations there have been. */
  countChanges(): number;
};

/** Sessions, and the ids that clients carry sealed within them. */
export type SessionPort = {
  /** Counts an `initialize` of this caller at the upstream, unless it has had its rate of them. */
  countInitialize(upstream: string, caller: string): LimitOutcome;
  /** Opens a sealed session id for this caller; `undefined` for every other id, whatever is wrong with it. */
  open(sealed: string, upstream: string, principal: Principal): SessionFacts | undefined;
  seal(facts: SessionFacts, upstream: string, principal: Principal): string;
  /** Marks a session of this caller as ended; its id is unknown from then on. `caller` is the key of its owner. */
  end(sealed: string, caller: string): void;
  /**
   * Claims the id of a request, which is a number, until the returned function is called; undefined while a request of
   * the same owner has this number as its id in another spelling.
   */
  claimNumber(owner: string, id: RequestId, literal: string): (() => void) | undefined;
  /** The ids under which clients see server requests. */
  readonly serverRequests: SealedRequests<ServerRequestFacts>;
  /**
   * Claims the one reply to a server request, by its sealed id: true only for the first reply on any replica,
   * `unavailable` if the store cannot be reached. `caller` is the key of who replies.
   */
  claimReply(sealed: string, session: SessionFacts, caller: string): ReplayOutcome | Promise<ReplayOutcome>;
  /** The ids of events; a stream cannot be resumed after one whose id would be too long. */
  readonly events: Sealed<EventFacts, SessionScope, string | undefined>;
};

/** What is known of each upstream, and everything that is sent to it. */
export type UpstreamPort = {
  snapshot(upstream: string): Snapshot | undefined;
  /**
   * Lists the upstream's definitions again if they were not verified within `pinning.maxAge`, or if they are verified
   * before each call. Resolves with whether a call may rest on them.
   */
  refreshListing(upstream: string): Promise<boolean>;
  /** Notes what a page of a list showed. It takes effect for all callers at once. */
  notePage(upstream: string, page: ObservedPage): void;
  /**
   * A page shows these approved forms. If the newest listing does not, and no page showed one that nobody approved, lists
   * again, once for each of them within `pinning.maxAge`. Resolves after that listing, or soon where it takes long; `undefined` if none is
   * due. Never rejects.
   */
  confirmForms(
    upstream: string,
    kind: PinKind,
    forms: readonly { readonly name: string; readonly digest: string }[],
  ): Promise<void> | undefined;
  /** Scans the definitions of a page before any of them is shown. Never rejects. */
  scanPage(upstream: string, kind: PinKind, definitions: readonly JsonObject[]): Promise<void>;
  /** Handles a list-changed notification of the upstream; resolves when the definitions were verified again. */
  noteListChanged(upstream: string): Promise<void>;
  /** A request found the upstream unavailable, so that its definitions have to be listed anew. */
  noteUnavailable(upstream: string, isTimeout?: boolean): void;
  forward(upstream: string, request: OutboundRequest): Promise<RoutedOutcome>;
  openStream(upstream: string, stream: OutboundStream): Promise<ForwardOutcome>;
  /** Opens a legacy SSE stream and waits until the server has named its message endpoint. */
  openLegacyStream(upstream: string, caller: Caller, signal: DisconnectSignal): Promise<LegacySseOutcome>;
  endSession(upstream: string, session: SessionFacts, caller: Caller): Promise<ForwardOutcome>;
  /** False if the upstream does not answer a ping in the session either, so that it has lost it. Bounded in time. */
  pingSession(upstream: string, session: SessionFacts, caller: Caller): Promise<boolean>;
  /** Sends the gateway's own reply to a server request within a caller's session. */
  replyToServer(upstream: string, serverRequest: SessionRequest, reply: GatewayReply): void;
  /** Notifies the server of a session that the response to this request is no longer awaited. */
  cancelAtServer(upstream: string, request: SessionRequest): void;
};

/** Where records, metrics and errors are written. */
export type AuditPort = {
  /** A decision id for whatever is decided besides the request itself. */
  newDecisionId(): string;
  /** Keyed hash for records: equal values can be recognized and none is revealed. */
  keyedHash(purpose: 'session' | 'arguments' | 'result', text: Uint8Array | string): string;
  /** False if the record cannot be made durable; then nothing may be forwarded. */
  recordDecision(record: RequestRecord): Promise<boolean>;
  /** Writes the outcome (and the decision, if none was written). INVARIANT: called exactly once per request. */
  closeRecord(record: RequestRecord, hasClientLeft?: boolean): void;
  /** Reports the span of a sampled request that has no record of its own, because its parts have theirs. */
  endSpan(record: RequestRecord): void;
  /** Reports a bug or an I/O fault to the process log. */
  report(error: unknown, decisionId: string, trace?: RequestRecord['trace']): void;
};

/** The open streams of clients. */
type StreamPort = {
  /** Counts a stream before it is opened; `undefined` if its caller, or all together, have as many as allowed. */
  reserve(upstream: string, principal: Principal): StreamReservation | undefined;
  /**
   * Registers a response that is waited for or streamed, so that it can be cancelled; the returned function unregisters it.
   * `note` is called at once, and `end` if the response has not arrived a while later.
   */
  registerResponse(
    session: string,
    id: RequestId,
    response: { readonly note?: () => void; readonly end: () => void },
  ): () => void;
  /** Ends the response to a request that the client has cancelled, if it is still registered. */
  cancelResponse(session: string, id: RequestId): void;
};

/** How content is read and inspected without holding up the event loop. */
type ContentPort = InspectionPort & {
  /** Parses what an upstream sent, and large request bodies of callers. */
  readonly readJson: ReadJson;
  /** Divides the event loop's time between the streams of all upstreams. */
  readonly loopScheduler: LoopScheduler;
  readonly pages: PageCache;
  /** Digest of an upstream's definition, as used in lock files. */
  digest(kind: PinKind | 'instructions', definition: JsonObject, isExact: boolean): string;
};

/** Requests in progress that are followed, by the hash of their session and their progress token, if they have one. */
type ProgressPort = {
  /** Registers a request; the returned function unregisters it. */
  register(session: string, token: RequestId | undefined, count: RunningRequest): () => void;
  /** All that are registered of a session. */
  inProgress(session: string): readonly RunningRequest[];
  /** The response is a task: its progress stays registered, within a bound. */
  keep(session: string, token: RequestId): void;
  /** The progress of the request with this token; `undefined` if none is in progress here. */
  find(session: string, token: RequestId): RunningRequest | undefined;
};

/** The aggregates, and what is remembered of their backends. */
export type AggregatePort = {
  get(name: string): Aggregate | undefined;
  /** The positions at which each backend's list continues. */
  readonly cursors: Sealed<ReadonlyMap<string, string>, CallerListScope>;
  /** Notes that a backend lost its session. False if that happens too often; then the backend is left out. */
  reportLostBackend(aggregate: string, upstream: string, principal: Principal): boolean;
  /** Notes which resources a backend listed to a caller, so that a URI can be mapped to its backend. */
  noteResources(aggregate: string, principal: Principal, page: ListedPage): void;
  /** Those of the given backends that listed a resource, provided this replica saw the complete list of each. */
  recallResource(lookup: ResourceLookup, backends: readonly string[]): readonly string[];
  /** The pages that callers of aggregates were shown last, by the key of the caller. */
  readonly lastPages: {
    keep(caller: string, key: string, text: string): void;
    /** A page of this upstream, unless it is older than its `pinning.maxAge`. */
    recall(caller: string, key: string, upstream: string): string | undefined;
  };
  readonly hangingBackends: HangingBackends;
  /** Registers a request that a backend is working on; the returned function unregisters it. */
  registerBackendRequest(session: string, id: RequestId, upstream: string): () => void;
  /** The backends working on it, as far as this replica knows. */
  findRunningBackends(session: string, id: RequestId): readonly string[];
  /** Calls `run`, once for each session, when this replica knows of no request of the session: maybe at once. */
  whenIdle(session: string, run: () => void): void;
};

/** All ports; from `progress` on, those of single features. */
export type Ports = {
  readonly identity: IdentityPort;
  readonly leases: LeasePort;
  readonly sessions: SessionPort;
  readonly upstreams: UpstreamPort;
  readonly inspection: ContentPort;
  readonly limits: LimitStore;
  readonly flows: FlowStore;
  readonly approvals: ApprovalPort;
  readonly audit: AuditPort;
  readonly streams: StreamPort;
  readonly progress: ProgressPort;
  /** The request state of an upstream (MCP 2026-07-28). */
  readonly requestState: Sealed<string, RequestScope, string | undefined>;
  readonly tasks: TaskPort;
  /** The cursors of lists of an upstream, sealed so that neither side can put text into them. */
  readonly cursors: Sealed<string, ListScope>;
  readonly legacySse: LegacySsePort;
  readonly aggregates: AggregatePort;
};

/** The name of a port. */
export type AnyPort = keyof Ports;

/** Runs one request through the pipeline (proxy/pipeline.ts). */
export type HandleRequest = (incoming: Incoming, outgoing: Outgoing, ports: Ports) => Promise<void>;
