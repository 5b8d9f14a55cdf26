// How each family of revisions admits what a client sends: the interface that admission.ts uses, with what it
// reads of an HTTP request. Only types.

import type {
  AdmittedMessage,
  MethodRule,
  ProtocolError,
  ServerRequestFacts,
  SessionFacts,
  TaskFacts,
} from '../admitted-request.js';
import type { CapabilityCut } from '../capabilities.js';
import type { ErrorContext } from '../errors.js';
import type { HeaderMap } from '../headers.js';
import type { JsonReading } from '../json/json.js';
import type { JsonObject, Message } from '../jsonrpc.js';
import type { ServerRequestGrants } from '../server-requests.js';
import type { ProtocolVersion } from './protocol-version.js';

/** Opens a session id for the current caller; `undefined` if it is not a live session of that caller. */
export type OpenSession = (id: string) => SessionFacts | undefined;

/** What admission reads of an HTTP request. */
export type AdmissionInput = {
  /** Lower-case names. */
  readonly headers: HeaderMap;
  /** Names of headers that were sent more than once. */
  readonly repeated: ReadonlySet<string>;
  readonly body: Uint8Array;
  /** The parsed body; admission parses it if absent. */
  readonly reading?: JsonReading | undefined;
  /** Posted to a message endpoint of legacy SSE; its sealed session is passed as `mcp-session-id`. */
  readonly isLegacySse?: boolean | undefined;
  readonly openSession: OpenSession;
  /** The versions named in an unsupported-version error; all supported ones if absent. */
  readonly supportedVersions?: readonly string[] | undefined;
  /** The server requests that policy allows for the caller; none if absent. Called only if it matters. */
  readonly grants?: (() => ServerRequestGrants) | undefined;
  /** Whether a host may declare the Apps extension here; it may not if absent. */
  readonly mayShowApps?: (() => boolean) | undefined;
  /** Opens the id of a server request that was forwarded in this session; `undefined` for any other id. */
  readonly openServerRequest?:
    | ((id: string, session: SessionFacts) => ServerRequestFacts | undefined)
    | undefined;
  /** Opens the id of a task that was given to this caller; `undefined` for any other id. */
  readonly openTask?: ((id: string) => TaskFacts | undefined) | undefined;
};

/** A message that starts something, as opposed to a reply. */
export type Call = Extract<Message, { readonly kind: 'request' | 'notification' }>;

/** A call, and what admission has read of it so far. */
export type CallContext = {
  readonly input: AdmissionInput;
  readonly call: Call;
  readonly meta: JsonObject | undefined;
  readonly errorContext: ErrorContext;
};

/** The version and session of a message that passed the checks of its family. */
export type Classified = {
  readonly kind: 'classified';
  readonly protocol: AdmissionRules;
  readonly version: string;
  readonly session: SessionFacts | undefined;
};

/** A classified call with its row of the method table. */
export type ClassifiedCall = CallContext & {
  readonly classified: Classified;
  readonly rule: MethodRule;
  readonly text: string;
};

/** A live session that a message named. */
export type SessionCheck =
  | { readonly kind: 'session'; readonly version: string; readonly session: SessionFacts }
  | ProtocolError;

/** A family of revisions, and how it admits messages. */
export type AdmissionRules = ProtocolVersion & {
  /** Checks the headers, the session and the envelope of a call. */
  classify(context: CallContext): Classified | ProtocolError;
  /** Checks the headers that mirror the body, and returns those that mirror arguments. */
  readMirrorHeaders(context: CallContext): AdmittedMessage['paramHeaders'] | ProtocolError;
  /** Whether the client may notify its server of changed roots. */
  mayNotifyRoots(input: AdmissionInput, session: SessionFacts | undefined): boolean;
  /** Cuts what the client declares and is not granted. Policy is evaluated only if something is declared. */
  cutCapabilities(context: ClassifiedCall): CapabilityCut;
  /** Whether the result of a tool call may be a task: declared by its client, or requested by it. */
  mayBecomeTask(context: ClassifiedCall): boolean;
  /** The error of a request that requires tasks to be declared, when they are not. */
  checkTasksDeclared(context: ClassifiedCall): ProtocolError | undefined;
};

/** A family with sessions, in which a client replies to server requests. */
export type SessionRules = AdmissionRules & {
  /** Opens the session that a reply names. */
  checkReply(input: AdmissionInput, errorContext: ErrorContext): SessionCheck;
};
