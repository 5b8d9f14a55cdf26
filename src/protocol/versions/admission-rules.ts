// How each family of revisions admits what a client sends: the interface that admission.ts uses, with what it reads
// of an HTTP request, and the members of `params` that each revision defines. All other members are cut out: what a
// revision does not define is read by no check here, and could mean anything to a server.
// Source: MCP schema, 2024-11-05 to 2026-07-28; docs/reference/arguments.md#other-members-of-a-message.

import type {
  AdmittedMessage,
  MethodRule,
  ProtocolError,
  ServerRequestFacts,
  SessionFacts,
  TaskFacts,
  TextEdit,
} from '../admitted-request.js';
import type { CapabilityCut } from '../capabilities.js';
import type { HeaderMap } from '../headers.js';
import { type JsonReading, removalEdits, spanOf } from '../json/json.js';
import type { Json, JsonObject, Message } from '../jsonrpc.js';
import type { ErrorContext } from '../responses.js';
import type { ServerRequestGrants } from '../server-requests.js';
import type { ProtocolVersion } from './revisions.js';

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
  readonly openServerRequest?: ((id: string, session: SessionFacts) => ServerRequestFacts | undefined) | undefined;
  /** Trace context in `_meta` ends here, because the gateway sends its own. */
  readonly isTraced?: boolean;
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

/** A member, with the first revision that has it unless all have. */
type Member = { readonly since?: string };
type Members = { readonly [name: string]: Member };

const ALWAYS: Member = {};
const INPUT_RETRY: Members = {
  inputResponses: { since: '2026-07-28' },
  requestState: { since: '2026-07-28' },
};
const CURSOR: Members = { cursor: ALWAYS };
const RESOURCE: Members = { uri: ALWAYS };
const TASK: Members = { taskId: ALWAYS };

const MEMBERS: ReadonlyMap<string, Members> = new Map<string, Members>([
  ['initialize', { protocolVersion: ALWAYS, capabilities: ALWAYS, clientInfo: ALWAYS }],
  ['tools/list', CURSOR],
  ['prompts/list', CURSOR],
  ['resources/list', CURSOR],
  ['resources/templates/list', CURSOR],
  ['tasks/list', CURSOR],
  ['tools/call', { name: ALWAYS, arguments: ALWAYS, ...INPUT_RETRY }],
  ['prompts/get', { name: ALWAYS, arguments: ALWAYS, ...INPUT_RETRY }],
  ['resources/read', { ...RESOURCE, ...INPUT_RETRY }],
  ['resources/subscribe', RESOURCE],
  ['resources/unsubscribe', RESOURCE],
  ['completion/complete', { ref: ALWAYS, argument: ALWAYS, context: { since: '2025-06-18' } }],
  ['logging/setLevel', { level: ALWAYS }],
  ['subscriptions/listen', { notifications: ALWAYS }],
  ['tasks/get', TASK],
  ['tasks/result', TASK],
  ['tasks/cancel', TASK],
  ['tasks/update', { ...TASK, inputResponses: ALWAYS }],
  ['notifications/cancelled', { requestId: ALWAYS, reason: ALWAYS }],
  [
    'notifications/progress',
    { progressToken: ALWAYS, progress: ALWAYS, total: ALWAYS, message: { since: '2025-03-26' } },
  ],
]);

/** The same as maps, in which a name that is not there is found to be missing several times faster than in an object. */
const MEMBERS_OF: ReadonlyMap<string, ReadonlyMap<string, Member>> = new Map(
  [...MEMBERS].map(([method, members]) => [method, new Map(Object.entries(members))]),
);

/** A message without the members of its params that were cut, and the edits that cut them out of its text. */
type ParamsCut = {
  readonly call: Call;
  readonly names: readonly string[];
  readonly edits: readonly TextEdit[];
};

const NO_NAMES: readonly string[] = [];
const NO_EDITS: readonly TextEdit[] = [];

/**
 * Cuts out what the revision does not define for the method. With `hasNoTask` also a request for a task, which is not
 * available here: it stays in the message, and features/task-requests.ts records it.
 */
export function cutUndefinedParams(
  call: Call,
  version: string,
  { text, hasNoTask }: { readonly text: string; readonly hasNoTask: boolean },
): ParamsCut {
  const { params, method } = call;
  if (params === undefined) return { call, names: NO_NAMES, edits: NO_EDITS };
  const defined = MEMBERS_OF.get(method);
  const isUndefined = (name: string): boolean => name !== 'task' && !isDefined(defined, name, version);
  const isCut = (name: string): boolean => isUndefined(name) || (name === 'task' && hasNoTask);
  // Listed once: there may be tens of thousands.
  const given = Object.keys(params);
  const span = given.some(isCut) ? spanOf(text, ['params']) : undefined;
  if (span === undefined) return { call, names: NO_NAMES, edits: NO_EDITS };
  const names: string[] = [];
  const kept: [string, Json][] = [];
  for (const name of given) {
    if (isUndefined(name)) names.push(name);
    else kept.push([name, params[name] ?? null]);
  }
  return {
    call: { ...call, params: Object.fromEntries(kept) },
    names,
    edits: removalEdits(text, span, isCut),
  };
}

/** Methods without a row have no members but `_meta`. */
function isDefined(defined: ReadonlyMap<string, Member> | undefined, name: string, version: string): boolean {
  if (name === '_meta') return true;
  const member = defined?.get(name);
  return member !== undefined && (member.since === undefined || version >= member.since);
}
