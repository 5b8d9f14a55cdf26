// What proxy/pipeline.ts and relay/ are given: the I/O of a gateway and one version of its tables, as typed
// arguments. gateway/gateway.ts builds them; tests build them from literals. Nothing here decides.

import type { InspectionProfile } from '../config/settings.js';
import type { InspectionPort } from '../inspection/jobs.js';
import type { PageCache } from '../inspection/lists.js';
import type { Page } from '../pins/last-seen.js';
import type { AuthorizedRequest } from '../policy/authorized-request.js';
import type { Catalogue, PinKind } from '../policy/definitions.js';
import type { LimitStore, ReplayOutcome } from '../policy/limits.js';
import type { Caller, Principal, ProofError } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import type { RequestRecord } from '../policy/record.js';
import type { PolicySet } from '../policy/rules.js';
import type {
  EventFacts,
  OpenedTask,
  SentFacts,
  ServerRequestFacts,
  SessionFacts,
  TaskFacts,
} from '../protocol/admitted-request.js';
import type { LoopScheduler, ReadJson } from '../protocol/json/incremental.js';
import type { Era, JsonObject, RequestId } from '../protocol/jsonrpc.js';
import type { Carried } from '../protocol/negotiation.js';
import type {
  ClientEnd,
  ForwardOutcome,
  Incoming,
  LeaveSignal,
  LegacySseOutcome,
  Outgoing,
  RoutedOutcome,
} from '../protocol/transport.js';
import type { Backend, ServerName } from './aggregate/merge.js';

/** One version of what stands for one upstream. An exchange is decided under one view, whole. */
export type Snapshot = {
  /** Different for every view that was ever made. */
  readonly id: number;
  readonly upstream: string;
  readonly policies: PolicySet;
  /** Hashes of the files that this view was made from, for the record. */
  readonly versions: { readonly config: string; readonly policy: string; readonly pins: string };
  readonly profile: InspectionProfile;
  readonly profiles: ReadonlyMap<string, InspectionProfile>;
  readonly limits: {
    readonly maxResponseBytes: number;
    readonly maxStreamBytesPerMinute: number;
    readonly maxValues: number;
    readonly listTtlMs: number;
    readonly requestTimeoutMs: number;
    readonly streamIdleMs: number;
    readonly exchangeMaxMs: number;
    readonly keepAliveMs: number;
  };
  /** The versions that the upstream carries and we police, by era; `undefined` before the first listing. */
  readonly carried: Carried | undefined;
  /** The definitions under this version's lock file and the newest listing, as this client is offered them. */
  catalogueFor(client: { readonly era: Era; readonly apps: boolean }): Catalogue;
  /** Whether a host may declare the Apps extension for this caller: only where the upstream is listed so too. */
  mayShowApps(principal: Principal): boolean;
  /** Where clients of HTTP+SSE post to. `isDirect`: the upstream speaks HTTP+SSE itself. */
  readonly legacySse: { readonly messageUrl: string; readonly isDirect: boolean };
  /** True while every page was verified within `pinning.maxAge`, or pinning is off. */
  readonly isFresh: boolean;
  /** Builds the WWW-Authenticate value for a refusal here; `scheme` is the one that the request used. */
  challenge(
    reason: Reason,
    scopes: readonly string[] | undefined,
    login: { readonly scheme: string | undefined; readonly proof: ProofError | undefined },
  ): string;
};

/** Several upstreams under one path: whose members they are, and how each of them stands there. */
export type Aggregate = {
  readonly name: string;
  /** In the order in which lists show them. */
  readonly backends: readonly Backend[];
  readonly versions: Snapshot['versions'];
  /** What it says of itself as a server. */
  readonly server: ServerName;
  challenge: Snapshot['challenge'];
  /** A member as it stands here: its own view, but for names that look like another member's. */
  snapshot(upstream: string): Snapshot | undefined;
};

/** A list of an endpoint that is read page by page: whose it is, and which. */
export type ListScope = {
  readonly aggregate: string;
  readonly principal: Principal;
  readonly method: string;
};

/** What a member of an endpoint listed of its resources; without `nextCursor` its list ends there. */
export type ListedPage = {
  readonly upstream: string;
  readonly uris: readonly string[];
  readonly cursor: string | undefined;
  readonly nextCursor: string | undefined;
};

/** A resource that a caller of an endpoint asks for. */
export type ResourceLookup = {
  readonly aggregate: string;
  readonly principal: Principal;
  readonly uri: string;
};

/** What the state of a dialogue is bound to besides its caller (2026). */
export type StateSubject = {
  readonly upstream: string;
  readonly method: string;
  readonly target: string;
  /** Canonical text of the params without what changes from leg to leg. */
  readonly params: string;
};

/** An open stream of a client, as the registry of streams needs to know it. */
export type OpenStream = {
  readonly upstream: string;
  /** The endpoint of several upstreams that it goes through. */
  readonly aggregate?: string | undefined;
  readonly principal: Principal;
  /** The sealed id of its session. */
  readonly session: string | undefined;
  /** Tells that a list changed, by the method of its notice, in the stream's own form. */
  announce(method: string): void;
  end(): void;
};

/** Where a value was sealed, and where alone it opens: a session of one caller at one upstream. */
export type SessionScope = {
  readonly upstream: string;
  readonly principal: Principal;
  readonly session: SessionFacts;
};

/** A stream of a session that is to be opened. */
export type StreamRequest = {
  readonly session: SessionFacts;
  readonly by: Caller;
  readonly signal: LeaveSignal;
  /** The upstream's own, where a stream is resumed after it. */
  readonly lastEventId: string | undefined;
};

/** A request in a session, of the server's or to it, and on whose behalf something is said of it. */
export type ServerRequestRef = {
  readonly session: SessionFacts;
  readonly id: RequestId;
  readonly by: Caller;
};

/** Whose a task is, and at which upstream. */
export type TaskScope = { readonly upstream: string; readonly principal: Principal };

/** What a task is known to have asked. */
export type RememberedInputRequests = {
  has(requestHash: string): boolean;
  add(question: string): void;
};

/** The ids of tasks, which clients carry sealed. */
export type TaskPorts = {
  /**
   * Seals a task into the id under which this caller knows it, for the `ttlMs` that its server names, with
   * a bound; `undefined` where what it must carry is too long.
   */
  seal(task: TaskFacts, ttlMs: number | null | undefined, scope: TaskScope): string | undefined;
  /** Opens such an id; `undefined` for one that was not given to this caller, or has expired. */
  open(sealed: string, scope: TaskScope): TaskFacts | undefined;
  /** The task of this caller that the server knows by this id, where this replica has seen it of late. */
  recall(id: string, scope: TaskScope): OpenedTask | undefined;
  /** The questions of a task that were put before, which it asks again at every look: by a hash of what they say. */
  inputRequestsOf(id: string, scope: TaskScope): RememberedInputRequests;
};

/** What the gateway tells a server that asked: that it lives, or why nobody will answer. */
export type GatewayReply = 'pong' | { readonly code: number; readonly message: string };

/** The items of a page of a list, as the upstream wrote them. */
export type SeenPage = Omit<Page, 'atMs'>;

/** The channels of HTTP+SSE: one stream a session, on which every answer comes. */
export type LegacySsePorts = {
  /** Opens a channel of the upstream and waits until it says where it wants messages. */
  open(upstream: string, by: Caller, signal: LeaveSignal): Promise<LegacySseOutcome>;
  /** Seals a request into the id under which the server knows it; `undefined` where it is too long. */
  sealRequest(sent: SentFacts, scope: SessionScope): string | undefined;
  /** Opens such an id; `undefined` for one that was not sent in this session of this caller. */
  openRequest(sealed: string, scope: SessionScope): SentFacts | undefined;
  /** The sealed id of a request that was sent a moment ago, where this replica knows it. */
  recallRequest(id: RequestId, session: SessionFacts): string | undefined;
  /** Enters the client's end of a channel; the returned function takes it out again. */
  enter(session: SessionFacts, end: ClientEnd): () => void;
  /** The client's end of a channel; `undefined` where this replica does not hold it. */
  find(session: SessionFacts): ClientEnd | undefined;
};

/** A login that was refused; `proof` where its challenge must speak of a proof of possession. */
export type LoginError = { readonly reason: Reason; readonly proof?: ProofError };

export type Ports = {
  readonly legacySse: LegacySsePorts;
  readonly tasks: TaskPorts;
  snapshot(upstream: string): Snapshot | undefined;
  /** An endpoint of several upstreams. */
  aggregate(name: string): Aggregate | undefined;
  /** Seals where each member's list goes on. */
  sealCursor(cursors: ReadonlyMap<string, string>, scope: ListScope): string;
  /** Opens such a cursor; `undefined` for every other. */
  openCursor(sealed: string, scope: ListScope): ReadonlyMap<string, string> | undefined;
  /** Notes that a member lost its part of a session; false where that is too often: then it is left out. */
  reportLostBackend(aggregate: string, upstream: string, principal: Principal): boolean;
  /** Notes what a member listed to a caller of an endpoint, so that it is known whose a resource is. */
  noteResources(aggregate: string, principal: Principal, page: ListedPage): void;
  /** Of these members, those that listed a resource, where this replica saw all that each of them lists. */
  recallResource(lookup: ResourceLookup, backends: readonly string[]): readonly string[];
  /** Who calls. `outgoing` is told what the next proof must carry. */
  authenticate(
    incoming: Incoming,
    outgoing: Pick<Outgoing, 'also'>,
  ): Principal | LoginError | Promise<Principal | LoginError>;
  /** Opens a sealed session id for this caller; `undefined` for every other id, whatever its fault. */
  openSession(sealed: string, upstream: string, principal: Principal): SessionFacts | undefined;
  sealSession(facts: SessionFacts, upstream: string, principal: Principal): string;
  /** Seals a question of a server into the id under which a client sees it. */
  sealServerRequest(request: ServerRequestFacts, scope: SessionScope): string;
  /** Opens such an id; `undefined` for one that was not given out in this session of this caller. */
  openServerRequest(sealed: string, scope: SessionScope): ServerRequestFacts | undefined;
  /**
   * Notes that a question is about to be answered, by its sealed id: true for the first answer alone, on
   * whichever replica it comes; \`unavailable\` where nobody can tell.
   */
  claimReply(sealed: string, session: SessionFacts): ReplayOutcome | Promise<ReplayOutcome>;
  /** The sealed id of a question that was passed on a moment ago, where this replica knows it. */
  recallServerRequest(id: RequestId, session: SessionFacts): string | undefined;
  /** Seals an event's id; `undefined` where it cannot be resumed after. */
  sealEvent(event: EventFacts, scope: SessionScope): string | undefined;
  openEvent(sealed: string, scope: SessionScope): EventFacts | undefined;
  /** A decision id: for what is decided besides the exchange itself. */
  newDecisionId(): string;
  /** Marks a session as ended, so that it is unknown from now on. */
  endSession(sealed: string, upstream: string): void;
  /** Seals the state that an upstream wants back (2026); `undefined` where it is too long to be carried. */
  sealState(state: string, subject: StateSubject, principal: Principal): string | undefined;
  /** The state that was sealed for this caller and this request; `undefined` for every other. */
  openState(sealed: string, subject: StateSubject, principal: Principal): string | undefined;
  /** Lists the upstream's definitions again if they were not verified within `pinning.maxAge`. */
  freshen(upstream: string): Promise<void>;
  readonly limits: LimitStore;
  /** Keyed hash for records: equal values are recognized, none is revealed. */
  keyedHash(purpose: 'session' | 'arguments' | 'result', text: Uint8Array | string): string;
  /** Digest of a definition of an upstream, as lock files have it. */
  digest(kind: PinKind | 'instructions', definition: JsonObject, isExact: boolean): string;
  /** False when the record cannot be made durable and nothing may pass. */
  recordDecision(record: RequestRecord): Promise<boolean>;
  /** Writes the outcome (and the decision, where none was written). Called once, always. */
  closeRecord(record: RequestRecord): void;
  forward(
    upstream: string,
    authorized: AuthorizedRequest,
    by: Caller,
    signal: LeaveSignal | undefined,
  ): Promise<RoutedOutcome>;
  openStream(upstream: string, stream: StreamRequest): Promise<ForwardOutcome>;
  forwardSessionEnd(upstream: string, session: SessionFacts, by: Caller): Promise<ForwardOutcome>;
  /** Answers a request of the server's own within a caller's session, in the gateway's words. */
  replyToServer(upstream: string, inputRequestsOf: ServerRequestRef, response: GatewayReply): void;
  /** What a page of a list showed; it counts for everyone at once. */
  notePage(upstream: string, page: SeenPage): void;
  /** The upstream says that a list changed; resolves when the definitions were verified again. */
  noteListChanged(upstream: string): Promise<void>;
  /** False when this caller, or everyone together, holds as many streams as allowed. */
  hasStreamQuota(upstream: string, principal: Principal): boolean;
  /** Enters a request in a session of an endpoint that a member works on; the returned function takes it out. */
  registerBackendRequest(session: string, id: RequestId, upstream: string): () => void;
  /** The members that work on it, as far as this replica knows. */
  findRunningBackends(session: string, id: RequestId): readonly string[];
  /** Registers an open stream; the returned function takes it out again. */
  registerStream(stream: OpenStream): () => void;
  /** Enters a streamed answer of a session, for its cancellation; the returned function takes it out. */
  registerResponse(session: string, id: RequestId, end: () => void): () => void;
  /** The client has cancelled a request of its session: a stream that goes on all the same is ended. */
  cancelResponse(session: string, id: RequestId): void;
  /** Enters a request of a session that asked for its progress; the returned function takes it out. */
  registerProgress(session: string, token: RequestId, count: { last: number }): () => void;
  /** Its answer is a task: it is known on, within a bound. */
  keepProgress(session: string, token: RequestId): void;
  /** How far the request of this session and token is; `undefined` where none of them is under way here. */
  findProgress(session: string, token: RequestId): { last: number } | undefined;
  /** Tells the server of a session that nobody waits for the answer to this request any more. */
  giveUp(upstream: string, given: ServerRequestRef): void;
  /** Tells of every version from now on, until the returned function is called; and how many there were. */
  onVersion(listener: () => void): () => void;
  countVersions(): number;
  readonly pages: PageCache;
  readonly inspection: InspectionPort;
  /** Reads what an upstream sent; the caller's own bodies too, where they are large. */
  readonly readJson: ReadJson;
  /** With whom streams share the event loop. */
  readonly loopScheduler: LoopScheduler;
  /** A bug or an I/O fault: for the process log. */
  report(error: unknown, decisionId: string): void;
};
