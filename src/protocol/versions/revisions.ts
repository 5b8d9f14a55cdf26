// The protocol revisions that the gateway supports, their eras, and what differs between the families of revisions
// once a message was admitted: how it is answered and refused, what a disconnect means, and how tasks, input requests
// and notifications are carried. Any other revision is refused, never forwarded. Each family has one implementation
// of `ProtocolVersion` (legacy-sse.ts, session.ts, stateless.ts); a message carries its own, and nothing outside this
// folder, upstream/adapters and the table of methods compares eras or revisions (the demo in dev/ aside).
// Source: MCP 2026-07-28, versioning.

import type { FindShapeError } from '../definition-shape.js';
import type { Json, JsonObject, RpcError } from '../jsonrpc.js';
import type { Task, TaskForm } from '../tasks.js';

/**
 * How records, sealed values and tables name a family of revisions: `2024` is legacy SSE, `2025` the session
 * era (2025-03-26 to 2025-11-25), `2026` the stateless era. What differs between them is in `ProtocolVersion`.
 */
export type Era = '2024' | '2025' | '2026';

/** The eras in which the gateway lists an upstream for itself. */
export type ListedEra = Exclude<Era, '2024'>;

export const LISTED_ERAS = ['2025', '2026'] as const satisfies readonly ListedEra[];

/** A value for each of these eras. */
export function perListedEra<T>(make: (era: ListedEra) => T): { readonly [era in ListedEra]: T } {
  return { '2025': make('2025'), '2026': make('2026') };
}

/** Revisions of the session era, oldest first. */
export const SESSION_VERSIONS: readonly string[] = ['2025-03-26', '2025-06-18', '2025-11-25'];

/** The only revision of legacy SSE, where a session lives on one stream. */
export const LEGACY_SSE_VERSION = '2024-11-05';

/**
 * The revision under which a stdio server of this one is served over streamable HTTP, which came with the revision
 * after 2024-11-05: the messages of the two are the same.
 */
export function versionOverHttp(version: string): string {
  const [oldest = version] = SESSION_VERSIONS;
  return version === LEGACY_SSE_VERSION ? oldest : version;
}

/** The same for a stdio server, of which some still speak the first revision of all. */
export function versionOfStdio(version: string): string {
  return versionOverHttp(version === FIRST_VERSION ? LEGACY_SSE_VERSION : version);
}

/** The first published revision; its messages are those of 2024-11-05 as far as servers use them. */
const FIRST_VERSION = '2024-10-07';

/** The supported revision under which a server is served that negotiated this one; `undefined` if there is none. */
export function servedVersion(negotiated: string, supported: readonly string[]): string | undefined {
  const version = supported.includes(negotiated) ? negotiated : versionOverHttp(negotiated);
  return supported.includes(version) ? version : undefined;
}

/** Whether a session of this revision has arrays of messages; one revision does. */
export function hasArrays(version: string): boolean {
  return version === '2025-03-26';
}

/** The only revision with sessions that has tasks. */
export const TASK_SESSION_VERSION = '2025-11-25';

/** The only revision with sessions in which a page that the user must open is an error of its own. */
export const URL_ERROR_VERSION = '2025-11-25';

/** Revisions of the stateless era. */
export const STATELESS_VERSIONS: readonly string[] = ['2026-07-28'];

/** Offered to a client that requests a session revision that is not supported. */
export const LATEST_SESSION_VERSION = '2025-11-25';

/** From this session revision on, MCP-Protocol-Version names the version of the session. */
const FIRST_VERSION_WITH_HEADER = '2025-06-18';

/** Whether requests in a session of this revision name it in a header. Revisions are dates, so they compare as text. */
export function namesVersionInHeader(version: string): boolean {
  return version >= FIRST_VERSION_WITH_HEADER;
}

/** What the sender of a request knows of the result that it may get. */
export type ExpectedResult = {
  readonly version: string;
  /** The result may ask for input (for three methods). */
  readonly mayRequireInput?: boolean;
  /** Whether the result may be a task; undefined for a method that has no tasks. */
  readonly mayBecomeTask?: boolean | undefined;
};

/** The forms of tasks in one family. */
export type TaskRules = {
  /** The client requests a task for each call; otherwise it declares support, and the server chooses. */
  readonly areRequested: boolean;
  /** Where in a message the task stands that a call created. */
  readonly createdAt: readonly string[];
  /** The task that the result of a call created; `undefined` if it violates the specification. */
  readCreated(result: JsonObject): Task | undefined;
  /** A task whose status is reported. */
  readStatus(value: Json | undefined): Task | undefined;
  /** True for a method about a task that is answered by an empty result. */
  isAcknowledged(method: string): boolean;
  /** How the server of this handshake declares tasks to its clients. */
  formIn(handshake: JsonObject): TaskForm;
};

/** `input-required`: by a result, whereupon the request is sent again; `error`: by -32042, for pages alone. */
export type PromptForm = 'input-required' | 'error';

export type ProtocolVersion = {
  readonly era: Era;
  /** The era whose listing applies to clients: a legacy SSE server is listed in a session. */
  readonly listedEra: ListedEra;
  /** The supported revisions, oldest first. */
  readonly revisions: readonly string[];

  /** Whether messages belong to a session. */
  readonly hasSessions: boolean;
  /** The response to `initialize` opens the session, and a header names it. */
  readonly issuesSessionIds: boolean;
  /** Responses are written to the stream of the session, and the POST itself is only acknowledged. */
  readonly answersOnStream: boolean;
  /** Whether a client that closes the connection of a request cancels it. */
  readonly disconnectCancels: boolean;
  /** Whether headers repeat the method, the name and marked arguments of the body. */
  readonly mirrorsBody: boolean;

  /** Whether a server asks for input by its result, so that the client sends the request again. */
  readonly hasInputRequired: boolean;
  /** How a client of this revision is made to ask its user by the answer to its request; undefined: not so. */
  promptForm(version: string): PromptForm | undefined;
  /** `undefined` where the family has no tasks. */
  readonly tasks: TaskRules | undefined;

  /** What keeps the official SDKs from reading a list of these revisions with this definition in it. */
  readonly findShapeError: FindShapeError;
  /** Whether results say for how long and for whom they may be cached. */
  readonly hasCacheHints: boolean;
  /** The members that every complete result has. */
  readonly completeResult: JsonObject;
  readonly resourceNotFoundCode: number;
  readonly unsupportedVersionCode: number;

  /** The HTTP status for a method that is refused. */
  statusOfRefusedMethod(kind: 'request' | 'notification'): number;
  /** The HTTP status for a message whose params are invalid. */
  statusOfInvalidParams(kind: 'request' | 'notification'): number;
  /** The HTTP status of a response to relay, by the upstream's status and the code of its error. */
  statusOfResponse(status: number, rpcCode: number | undefined): number;
  /** What an upstream's error becomes: the code to use, and the versions that may be offered if they change. */
  correctionOf(error: RpcError): { readonly code: number; readonly supported?: readonly string[] };

  /** False for a method in a session whose version was negotiated before. */
  namesVersionAnew(method: string): boolean;
  /** What a result of an upstream is; `malformed` where it is not one that was expected. */
  kindOfResult(
    result: JsonObject,
    expected: ExpectedResult,
  ): 'response-result' | 'response-input-required' | 'response-task' | 'malformed';
  /** Whether a stream may carry the notification; `isSubscription`: the stream of a subscription. */
  carriesNotification(method: string, isSubscription: boolean): boolean;
  /** Whether a server may send log messages for a request with this `_meta`. */
  mayLog(meta: Json | undefined): boolean;
};

/** What of a client decides which definitions it is offered. */
export type ClientTraits = { readonly protocol: ProtocolVersion; readonly apps: boolean };
