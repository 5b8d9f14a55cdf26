// The type of a message that is valid protocol, and of what the sealed ids say that such a message carries.
// Only protocol/admission.ts makes an `AdmittedMessage`.

import type { Json, JsonObject, Message, RequestId, ServerRequestName, Target } from './jsonrpc.js';
import type { TaskCapability } from './tasks.js';
import type { Era, ListedEra, ProtocolVersion } from './versions/revisions.js';

/** A private member cannot be written, and a spread leaves it out, so a value is made only where the casts are. */
declare class AdmittedBrand {
  private readonly brand: never;
}

/** An error of admission: one of the reasons of policy/reasons.ts, with the wire form that the era requires. */
export type ProtocolError = {
  readonly kind: 'error';
  readonly reason:
    | 'malformed-json'
    | 'duplicate-key'
    | 'invalid-message'
    | 'batch-forbidden'
    | 'header-mismatch'
    | 'unsupported-version'
    | 'unknown-session'
    | 'session-required'
    | 'method-unknown'
    | 'method-forbidden';
  readonly status: number;
  readonly code: number;
  /** Never quotes the message. */
  readonly message: string;
  readonly data?: Json;
  /** Present if the envelope could be read; the response repeats it. */
  readonly id?: RequestId;
};

/** A row of the one method table (protocol/methods.ts). A method without a row is refused. */
export type MethodRule = {
  readonly method: string;
  readonly eras: readonly Era[];
  /** The revisions that have the method, if not every revision of its eras does. */
  readonly versions?: readonly string[];
  readonly from: 'client' | 'server';
  readonly type: 'request' | 'notification';
  /** What a policy decides about: the kind of target, or `none` for messages that only maintain the protocol. */
  readonly targetKind: 'tool' | 'resource' | 'template' | 'prompt' | 'reference' | 'server-request' | 'task' | 'none';
  readonly request: 'name-only' | 'arguments';
  /**
   * How the response is checked. `envelope`: only the envelope is read (text is still sanitized). `filter`: a
   * list or a handshake. `inspect`: content. `subscription`: a long-lived stream of requested notifications.
   * `task`: the status of a task, with the outcome of its call.
   */
  readonly response: 'envelope' | 'filter' | 'inspect' | 'subscription' | 'task';
  /** A request that ends or answers something which is in progress. */
  readonly endsOrAnswers?: true;
};

/** How a session reaches its upstream. */
export type SessionTarget =
  /** A session of the upstream, under the id that the upstream issued, if any. */
  | { readonly kind: 'upstream'; readonly id: string | undefined }
  /** A session that only the gateway keeps, because its upstream is stateless. */
  | { readonly kind: 'gateway' }
  /** A legacy SSE session of the upstream, by the path of its message endpoint. */
  | { readonly kind: 'legacy-sse'; readonly messageEndpoint: string }
  /** A legacy SSE client before an upstream of another transport, whose session is opened by the handshake. */
  | { readonly kind: 'bridged' }
  /** The sealed sessions of an aggregate's backends, by upstream. */
  | { readonly kind: 'aggregate'; readonly sessions: ReadonlyMap<string, string> };

/** Whether requests of this session name a session that the upstream itself has opened and may have lost. */
export function namesUpstreamSession(session: Pick<SessionFacts, 'target'> | undefined): boolean {
  if (session === undefined) return false;
  const { target } = session;
  switch (target.kind) {
    case 'upstream':
      return target.id !== undefined;
    case 'gateway':
    case 'legacy-sse':
    case 'bridged':
    case 'aggregate':
      return true;
  }
}

/** A session of an upstream that issues no session ids. */
export const NO_SESSION_ID: SessionTarget = { kind: 'upstream', id: undefined };

/** The modes of elicitation (MCP 2025-11-25, elicitation). */
export type ElicitationMode = 'form' | 'url';

/** A session (2024 and 2025 eras): the content of its sealed id. */
export type SessionFacts = {
  readonly version: string;
  /** Keyed hash of the sealed id, for records; absent while the session is being opened. */
  readonly hash?: string;
  readonly target: SessionTarget;
  /** Server requests that the client declared and policy granted when the session was opened. Absent: none. */
  readonly allowedServerRequests?: readonly ServerRequestName[];
  /** The modes of elicitation that the client declared. Absent: none. */
  readonly elicitation?: readonly ElicitationMode[];
  /** Whether the Apps extension was declared in the session. Absent: it was not. */
  readonly apps?: boolean;
  /** The task capabilities that the server declared when the session was opened. Absent: none. */
  readonly tasks?: readonly TaskCapability[];
};

/** A server request that was forwarded: the content of the sealed id that the client's reply carries. */
export type ServerRequestFacts = {
  /** The id that the server gave the request. */
  readonly id: RequestId;
  readonly method: string;
  readonly name: ServerRequestName;
  /**
   * What the response is about with which the server request came; of a task its tool. Absent if it came without such a
   * response, as on a stream of the session.
   */
  readonly about?: Target;
};

/** What a response is checked by: the content of sealed event ids and request ids. */
export type RequestFacts = {
  readonly id: RequestId;
  readonly method: string;
  readonly target: Target;
  readonly maxResultBytes: number | undefined;
  readonly profiles: readonly string[];
  /** The token under which the request asked for progress notifications. */
  readonly progressToken?: RequestId | undefined;
  /** Whether the response may be a task. Ids are sealed with this name and outlive the gateway that made them. */
  readonly mayDefer?: boolean;
  /** The sealed id of the task, if the request is about one. */
  readonly task?: string | undefined;
  /** The arguments, as JSON, by which the request is decided again when its response comes. */
  readonly args?: string | undefined;
  /** Where they are too long to be carried: the version under which the request was decided with them. */
  readonly decidedUnder?: string | undefined;
};

/** A task, and what its result is checked by: the content of the sealed id under which the client knows it. */
export type TaskFacts = {
  /** The id that the server gave the task. */
  readonly id: string;
  /** Which form the task has: tasks of one era are unknown in the other. */
  readonly era: ListedEra;
  /** The tool whose call created the task. */
  readonly tool: string;
  /** What the rules of the call require of its response. */
  readonly maxResultBytes: number | undefined;
  readonly profiles: readonly string[];
};

/** A task whose sealed id was opened. */
export type OpenedTask = TaskFacts & { readonly sealed: string };

/** What a resumed stream is checked by: the content of the sealed id of one of its events. */
export type EventFacts = {
  /** The id that the upstream gave the event. */
  readonly upstreamId: string;
  /**
   * The request that the stream answers, with the obligations of its response; `undefined` on the session's
   * own stream.
   */
  readonly request: RequestFacts | undefined;
  /** Time of the request, in epoch milliseconds: resuming a stream does not extend the time that it may take. */
  readonly requestedAt?: number | undefined;
};

/** A request sent to a legacy SSE server: the content of the sealed id under which the server knows it. */
export type SentRequestFacts = RequestFacts & {
  /** For `initialize`: the server requests that are allowed once it succeeded. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** Milliseconds since the epoch. */
  readonly sentAt: number;
};

/** A call of a tool that is presented otherwise than the server offers it (policy/presentation.ts). */
export type PresentedCall = {
  /** The name by which the client called it; `target` has that of the server. */
  readonly name: string;
  /** Identifies the presentation by which the call was brought into the server's form. */
  readonly key: string | undefined;
  /** No client may know this name, or send this parameter. */
  readonly refused?: 'unknown' | { readonly parameter: string } | undefined;
};

/**
 * A client's message that is valid protocol for its era: a request or notification, or (in eras with
 * sessions) a reply to a server request, whose id was opened and whose `rule` and `target` are those of that
 * request.
 */
export type AdmittedMessage<M extends Message = Message> = AdmittedBrand & {
  readonly kind: 'admitted';
  /** The family of revisions, by whose rules the message was admitted and is answered. */
  readonly protocol: ProtocolVersion;
  readonly version: string;
  readonly message: M;
  /** For a reply: the sealed id under which the client knows the server request. */
  readonly serverRequestId: string | undefined;
  readonly rule: MethodRule;
  readonly target: Target;
  /** Arguments of tools/call and prompts/get; `{}` where absent; `undefined` for other methods. */
  readonly args: JsonObject | undefined;
  readonly session: SessionFacts | undefined;
  /** What a server may request of this client: what the client declared and policy granted. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** How the gateway itself may ask the person at the client: as the client declared it, whatever policy grants servers. */
  readonly elicitation: readonly ElicitationMode[];
  /** Whether the client shows apps: declared by this request, or when its session was opened. */
  readonly apps: boolean;
  /** Whether the response may be a task: declared by this request (2026), or requested by it (2025-11-25). */
  readonly mayBecomeTask: boolean;
  /** The task that the request is about, if its id was issued to this caller. */
  readonly task: OpenedTask | undefined;
  /** The body exactly as received; it is forwarded if there are no edits. */
  readonly bytes: Uint8Array;
  /** The body's text, decoded once; if there are edits, this text is forwarded with them applied. */
  readonly text: string;
  /** Replacements for what must not pass (capabilities, the gateway's own `_meta`), ascending, not overlapping. */
  readonly edits: readonly TextEdit[];
  /** The `Mcp-Name` header as received (trimmed), where the era and method have one. */
  readonly nameHeader: string | undefined;
  /** `Mcp-Param-*` headers, lower-case names, for comparison with the pinned schema and forwarding. */
  readonly paramHeaders: { readonly [name: string]: string };
  /** For the record: clientInfo as the client states it, and the names of the members that were removed. */
  readonly selfReported: { readonly name: string; readonly version: string } | undefined;
  readonly removed: readonly string[];
  /** The `traceparent` of `_meta` as the client wrote it, where that and its like were cut; the gateway sends its own. */
  readonly traceparent: Json | undefined;
  /** The names of the members of `params` that were cut, because the revision does not define them. */
  readonly undefinedParams: readonly string[];
  /** Pointers to the optional members that were null, and were cut: they count as absent. */
  readonly nulls: readonly string[];
  /** Of a call whose tool is presented otherwise than the server offers it. */
  readonly presented: PresentedCall | undefined;
};

/** Whether a message ends or answers something in progress: a notification, a response, and some requests. */
export function endsOrAnswers({ message, rule }: Pick<AdmittedMessage, 'message' | 'rule'>): boolean {
  return message.kind !== 'request' || rule.endsOrAnswers === true;
}

/** Replaces the characters from `start` to `end` (UTF-16 offsets) by `text`. */
export type TextEdit = { readonly start: number; readonly end: number; readonly text: string };
