// The context of one request, which the stages share: what it came with, what it is decided under, on whose behalf its
// messages are sent, and what of it is still open. Nothing here decides.

import type { ContentKind } from '../config/settings.js';
import { kindOfTool, profileForKind } from '../inspection/content-kind.js';
import { type Profile, strictestProfile } from '../inspection/findings.js';
import { type Allow, type Refusal, refuseProtocolError } from '../policy/decision.js';
import type { Catalog } from '../policy/definitions.js';
import type { SensitiveFields } from '../policy/information-flow.js';
import type { AuthorizedRequest, ReplayOutcome, ResponseObligations, RunningRequest } from '../policy/obligations.js';
import { type Caller, closeToken, type Principal } from '../policy/principal.js';
import type { RequestRecord, Staged } from '../policy/record.js';
import type { AdmittedMessage, OpenedTask, ProtocolError } from '../protocol/admitted-request.js';
import { idLiteralOf } from '../protocol/json/json.js';
import { isNumberId } from '../protocol/json/request-ids.js';
import type { JsonObject, Target } from '../protocol/jsonrpc.js';
import { invalidMessage } from '../protocol/responses.js';
import type { SubscriptionFilter } from '../protocol/subscriptions.js';
import { traceparentOf } from '../protocol/trace-context.js';
import type { DisconnectSignal, Incoming, Outgoing, UpstreamResponse } from '../protocol/transport.js';
import type { ClientTraits } from '../protocol/versions/revisions.js';
import type { AnyPort, Ports, Snapshot, StreamReservation } from './ports.js';

/** What checking a response needs of the admitted request. */
export type PlannedMessage = Pick<
  AdmittedMessage,
  | 'protocol'
  | 'version'
  | 'session'
  | 'rule'
  | 'target'
  | 'args'
  | 'message'
  | 'serverRequestId'
  | 'allowedServerRequests'
  | 'elicitation'
  | 'apps'
  | 'mayBecomeTask'
  | 'task'
>;

/** The progress of a request in progress, registered in its session until `end`. */
export type FollowedProgress = RunningRequest & {
  end(): void;
  /** Keeps it registered: the response is a task, whose progress has the same token (MCP 2025-11-25, tasks). */
  keep(): void;
};

/** The wait for the response to a request of a session. */
export type ResponseWait = {
  /** Aborted by a cancellation, and by the signal that ends the request otherwise. */
  readonly signal: DisconnectSignal;
  isCancelled: boolean;
  end(): void;
};

/** A message that was decided on, as its features have changed it so far. */
type PreparedMessage = {
  readonly principal: Principal;
  readonly allow: Allow;
  readonly admitted: AdmittedMessage;
};

/**
 * What a message uses besides being forwarded and answered. Each member replaces or adds to what happens to a
 * plain message at that point of the pipeline.
 */
export type Feature = {
  /** Why the message may not use the feature, although its rule allows it. */
  readonly checkUse?: (
    call: RequestContext<AnyPort>,
    admitted: AdmittedMessage,
    catalog: Catalog,
  ) => ProtocolError | undefined;
  /** Opens what the client carries sealed, and seals what the upstream is to carry. */
  readonly prepare?: (
    call: RequestContext<AnyPort>,
    message: PreparedMessage,
  ) => Staged<AdmittedMessage> | Promise<Staged<AdmittedMessage>>;
  /** The content without the values that the gateway sealed. */
  readonly withoutSealed?: (content: JsonObject, admitted: AdmittedMessage) => JsonObject;
  /** Called before the message is forwarded; returns the signal that cancels it, if there is another one. */
  readonly begin?: (call: RequestContext<AnyPort>, authorized: AuthorizedRequest) => DisconnectSignal | undefined;
  /** Relays the response. */
  readonly relay?: (
    call: RequestContext<AnyPort>,
    authorized: AuthorizedRequest,
    response: UpstreamResponse,
  ) => Refusal | undefined | Promise<Refusal | undefined>;
};

/** The items that a message names besides its target, as they were decided under one snapshot. */
export type NamedItems = {
  readonly allowed: SubscriptionFilter;
  /** The tasks among them, by the ids that the client knows. */
  readonly tasks: ReadonlyMap<string, OpenedTask>;
  /** What allows each resource and each task. Each counts as a request. */
  readonly allows: readonly Allow[];
};

/**
 * `Used`: the ports that a function uses, itself or through what it calls. `snapshot` may be replaced; `admitted` is set
 * by admission, or by the stream that is resumed.
 */
export type RequestContext<Used extends AnyPort = never> = {
  readonly incoming: Incoming;
  /** Where the response is written: with legacy SSE the client's stream, once the message has been forwarded. */
  outgoing: Outgoing;
  readonly ports: Pick<Ports, Used>;
  readonly record: RequestRecord;
  /** The number of changes when the request began. A lease is passed those that come after its registration. */
  readonly changesAtStart: number;
  snapshot: Snapshot;
  admitted: PlannedMessage | undefined;
  /** Chooses the features of a message, by the snapshot under which it is decided. */
  readonly featuresOf: (admitted: AdmittedMessage, snapshot: Snapshot) => readonly Feature[];
  /** What the message uses; empty for a plain message. */
  features: readonly Feature[];
  /** When the original request was made, in epoch milliseconds, if another HTTP request made it. */
  requestedAt?: number | undefined;
  /** On whose behalf this request's messages are sent, once one is. */
  caller?: Caller;
  /** Identifies the caller once it is authenticated (policy/principal.ts). */
  callerKey: string | undefined;
  /** The message waited for another thread or for its turn, so the caller's rights may have changed meanwhile. */
  hasWaited?: boolean;
  /** For a reply to a server request: whether it is the first. */
  replyClaim?: ReplayOutcome | Promise<ReplayOutcome>;
  /** Gives the id of the request back, once its response is there. */
  releaseId?: (() => void) | undefined;
  /** Lets go of the stream of HTTP+SSE on which the response comes. */
  leaveStream?: (() => void) | undefined;
  /** The wait for the response, if a cancellation may end it. */
  wait?: ResponseWait | undefined;
  /** The request's progress, if the client asked for progress notifications. */
  progress?: FollowedProgress | undefined;
  /** The stream that the request opens, or is about to open. */
  stream?: StreamReservation | undefined;
  /** Of a subscription: what was decided about the items that it names. */
  named?: NamedItems | undefined;
};

/** A request whose caller is verified. */
export type VerifiedCall<Used extends AnyPort = never> = {
  readonly call: RequestContext<Used>;
  readonly principal: Principal;
};

/** The newest snapshot of the request's upstream, or the one it has where a reload removed the upstream. */
export function newestSnapshot({ ports, incoming, snapshot }: RequestContext<'upstreams'>): Snapshot {
  return ports.upstreams.snapshot(incoming.upstream) ?? snapshot;
}

/** Lets whatever follows be decided under the newest snapshot: for what waited, or arrives on a long stream. */
export function refreshSnapshot(call: RequestContext<'upstreams'>): Snapshot {
  call.snapshot = newestSnapshot(call);
  return call.snapshot;
}

/** The token as the client sent it: for the argument guard, and as a closed token for token exchange. */
export function presentedToken(incoming: Incoming): string | undefined {
  const header = incoming.headers['authorization'];
  const space = header?.indexOf(' ') ?? -1;
  return header === undefined || space === -1 ? undefined : header.slice(space + 1).trim();
}

/** The caller on whose behalf this request's messages are sent: for one principal always the same object. */
export function callerOf(call: Pick<RequestContext, 'incoming' | 'caller' | 'record'>, principal: Principal): Caller {
  if (call.caller?.principal === principal) return call.caller;
  const { incoming, caller, record } = call;
  const presented = presentedToken(incoming);
  const token = presented === undefined ? undefined : closeToken(presented);
  call.caller = {
    principal,
    decisionId: incoming.id,
    token,
    traceparent: record.trace === undefined ? undefined : traceparentOf(record.trace),
    assertionCount: caller?.assertionCount ?? 0,
  };
  return call.caller;
}

/** What a claim of an id is kept in. */
type IdHolder = {
  readonly incoming: Pick<Incoming, 'upstream'>;
  readonly ports: { readonly sessions: Pick<Ports['sessions'], 'claimNumber'> };
  releaseId?: (() => void) | undefined;
};

/** Claims the id of a request for the time until its response; refuses one that is in flight in another spelling. */
export function claimId(
  holder: IdHolder,
  caller: string,
  { message, session, text }: AdmittedMessage,
): Refusal | undefined {
  if (message.kind !== 'request' || !isNumberId(message.id)) return undefined;
  const owner = `${holder.incoming.upstream} ${session?.hash ?? caller}`;
  const literal = idLiteralOf(text, message.id);
  holder.releaseId = holder.ports.sessions.claimNumber(owner, message.id, literal);
  return holder.releaseId === undefined
    ? refuseProtocolError(invalidMessage({ id: message.id }, ID_IN_FLIGHT))
    : undefined;
}

const ID_IN_FLIGHT = 'Another request whose id is the same number is in progress. Give each request an id of its own.';

/** The name of a target in rules, pins and records. */
export function nameOf(target: Target): string | undefined {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
      return target.name;
    case 'resource':
      return target.uri;
    case 'template':
      return target.uriTemplate;
    case 'server-request':
      return target.name;
    case 'task':
      return target.tool;
    case 'none':
      return undefined;
  }
}

/** The sensitive fields of the tool that a message is about. */
export function sensitiveFieldsOf({ snapshot, incoming }: RequestContext, target: Target): SensitiveFields | undefined {
  const { sensitive } = snapshot.policies;
  if (sensitive === undefined || (target.kind !== 'tool' && target.kind !== 'task')) return undefined;
  const tool = nameOf(target);
  return tool === undefined ? undefined : sensitive.of(incoming.upstream, tool);
}

/**
 * The kind of content that an exchange about this target carries. Where the target is no tool, it is the kind of the
 * upstream.
 */
export function contentKindOf({ snapshot }: RequestContext, target: Target, client: ClientTraits): ContentKind {
  const { content } = snapshot;
  const tool = target.kind === 'tool' || target.kind === 'task' ? nameOf(target) : undefined;
  if (tool === undefined || content.tools.size === 0) return content.kind;
  return kindOfTool(content, tool, () => snapshot.catalogFor(client).statusOf('tool', tool));
}

/**
 * The strictest of the upstream's inspection profile and those that matching rules name. The kind of the content changes
 * only what the first of them does. Without a kind, as for lists and what a server asks of its client, it is `auto`.
 */
export function profileOf(
  call: RequestContext,
  responseObligations: ResponseObligations | undefined,
  kind: ContentKind = 'auto',
): Profile {
  let profile = profileForKind(call.snapshot.profile, kind);
  for (const name of responseObligations?.profiles ?? []) {
    const named = call.snapshot.profiles.get(name);
    if (named === undefined) throw new Error('a rule names an inspection profile that is not configured');
    profile = strictestProfile(profile, named);
  }
  return profile;
}
