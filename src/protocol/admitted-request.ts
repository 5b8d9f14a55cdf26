// A message that is valid protocol, and what makes it so. Only protocol/admission.ts makes one.

import type {
  Era,
  Json,
  JsonObject,
  Message,
  RequestId,
  ServerRequestName,
  Target,
} from './jsonrpc.js';
import type { TaskUse } from './tasks.js';

declare const admittedBrand: unique symbol;

/** Faults of admission: a subset of the reasons of policy/reasons.ts, with the wire form the era asks for. */
export type ProtocolError = {
  readonly kind: 'fault';
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
  /** Quotes nothing of the message. */
  readonly message: string;
  readonly data?: Json;
  /** Echoed when the envelope could be read. */
  readonly id?: RequestId;
  readonly era: Era | undefined;
};

/** A row of the one method table (protocol/methods.ts). A method without a row is refused. */
export type MethodRule = {
  readonly method: string;
  readonly eras: readonly Era[];
  /** The revisions that have it, where not all of its eras do. */
  readonly versions?: readonly string[];
  readonly from: 'client' | 'server';
  readonly type: 'request' | 'notification';
  /** What a policy decides about: the kind of target, or `none` for protocol upkeep. */
  readonly subject:
    | 'tool'
    | 'resource'
    | 'template'
    | 'prompt'
    | 'reference'
    | 'question'
    | 'task'
    | 'none';
  readonly request: 'name-only' | 'arguments';
  /**
   * `envelope`: only the envelope is read (still sanitized). `filter`: a list or a handshake. `inspect`:
   * content. `subscription`: a stream that lives on, of notices that were asked for. `task`: how a task
   * stands, with what its call will have answered.
   */
  readonly response: 'envelope' | 'filter' | 'inspect' | 'subscription' | 'task';
};

/** An opened session (2024 and 2025 eras): what the sealed id says. */
export type SessionFacts = {
  readonly version: string;
  /** Keyed hash of the sealed id, for records; absent while a session is being opened. */
  readonly hash?: string;
  /** The upstream's own session id; absent where it issues none. In 2024 the path that it wants messages at. */
  readonly upstreamSession: string | undefined;
  /** What a server may ask in it: declared by the client and granted when it was opened. Absent: nothing. */
  readonly allowedServerRequests?: readonly ServerRequestName[];
  /** The Apps extension was declared in it. Absent: it was not. */
  readonly apps?: boolean;
  /** What of tasks its server declared when it was opened. Absent: nothing. */
  readonly tasks?: readonly TaskUse[];
};

/** A question of a server that was passed on: what the sealed id of its answer says. */
export type ServerRequestFacts = {
  /** The id that the server gave it. */
  readonly id: RequestId;
  readonly method: string;
  readonly name: ServerRequestName;
};

/** A request as its answer is judged by it: what sealed ids of events and of requests say. */
export type RequestFacts = {
  readonly id: RequestId;
  readonly method: string;
  readonly target: Target;
  readonly maxResultBytes: number | undefined;
  readonly profiles: readonly string[];
  /** Under which it asked for its progress. */
  readonly progressToken?: RequestId | undefined;
  /** Its answer may be a task. */
  readonly mayDefer?: boolean;
  /** Of a request about a task: the sealed id. */
  readonly task?: string | undefined;
};

/** A task, and what its result will be judged by: what the sealed id says under which its client knows it. */
export type TaskFacts = {
  /** The id that the server gave it. */
  readonly id: string;
  /** The form that it has: tasks of one era are unknown in the other. */
  readonly era: '2025' | '2026';
  /** The tool whose call began it. */
  readonly tool: string;
  /** What the rules of the call asked of its answer. */
  readonly maxResultBytes: number | undefined;
  readonly profiles: readonly string[];
};

/** A task whose sealed id was opened. */
export type OpenedTask = TaskFacts & { readonly sealed: string };

/** What a resumed stream is judged by: what the sealed id of one of its events says. */
export type EventFacts = {
  /** The id that the upstream gave the event. */
  readonly upstreamId: string;
  /** The request that the stream answers, and what its answer owes; `undefined` on the session's own stream. */
  readonly request: RequestFacts | undefined;
  /** When it was asked, in epoch milliseconds: an exchange takes no longer for being resumed. */
  readonly requestedAt?: number | undefined;
};

/** A request on its way to a server of HTTP+SSE: what the sealed id says under which the server knows it. */
export type SentFacts = RequestFacts & {
  /** Of an `initialize`: what the server may ask once it is answered. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** Milliseconds since the epoch. */
  readonly sentAt: number;
};

/**
 * A message from a client that is valid protocol for its era: a call, or the answer to a question of a
 * server (session era), whose id was opened and whose `rule` and `target` are those of the question.
 */
export type Admitted<M extends Message = Message> = {
  readonly [admittedBrand]: true;
  readonly kind: 'admitted';
  readonly era: Era;
  readonly version: string;
  readonly message: M;
  /** Of the answer to a question: the sealed id under which the client knows that question. */
  readonly serverRequestId: string | undefined;
  readonly rule: MethodRule;
  readonly target: Target;
  /** Arguments of tools/call and prompts/get; `{}` where absent; `undefined` for other methods. */
  readonly args: JsonObject | undefined;
  readonly session: SessionFacts | undefined;
  /** What a server may ask of this client, here and now by what it declared and was granted. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** The client shows apps, as it declared here and now, or when its session was opened. */
  readonly apps: boolean;
  /** The answer may be a task: declared by this very request (2026), or wished for by it (2025-11-25). */
  readonly mayDefer: boolean;
  /** The task that a request is about, where its id was given to this caller. */
  readonly task: OpenedTask | undefined;
  /** The body exactly as received: what leaves when there are no edits. */
  readonly bytes: Uint8Array;
  /** The text of the body as decoded once; what leaves is this text with `edits` applied, else the raw bytes. */
  readonly text: string;
  /** Replacements for what must not pass (capabilities, own `_meta`), ascending, not overlapping. */
  readonly edits: readonly TextEdit[];
  /** The `Mcp-Name` header as received (trimmed), where the era and method have one. */
  readonly nameHeader: string | undefined;
  /** `Mcp-Param-*` headers, lower-case names, for comparison with the pinned schema and forwarding. */
  readonly paramHeaders: { readonly [name: string]: string };
  /** Facts for the record: clientInfo as the client tells it, members removed. */
  readonly selfReported: { readonly name: string; readonly version: string } | undefined;
  readonly removed: readonly string[];
};

/** Replace the characters from `start` to `end` (UTF-16 offsets) by `text`. */
export type TextEdit = { readonly start: number; readonly end: number; readonly text: string };
