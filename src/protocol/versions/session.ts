// The session era, 2025-03-26 to 2025-11-25: what its messages are checked by, and how they are answered. Edits
// an `initialize` before it is forwarded. Opening a sealed session id is left to a port of the caller.
// Source: MCP 2025-11-25, transports (session management, protocol version header), lifecycle and tasks.

import type { AdmittedMessage, ProtocolError, SessionFacts, TextEdit } from '../admitted-request.js';
import { type CapabilityCut, type CapabilityGrants, cutCapabilities, grantsOf } from '../capabilities.js';
import { findSessionShapeError } from '../definition-shape.js';
import {
  type HeaderMap,
  matchesName,
  matchesPlain,
  NAME_SOURCES,
  NO_PARAM_HEADERS,
  PARAM_PREFIX,
  readParamHeaders,
} from '../headers.js';
import { spanOf } from '../json/json.js';
import { isObject, type JsonObject } from '../jsonrpc.js';
import {
  type ErrorContext,
  headerMismatch,
  INVALID_PARAMS,
  INVALID_REQUEST,
  invalidMessage,
  METHOD_NOT_FOUND,
  malformedParamHeader,
  protocolErrorOf,
  RESOURCE_NOT_FOUND,
  UNKNOWN_SESSION,
  unsupportedVersion,
} from '../responses.js';
import { readPlainTask, type TaskCapability } from '../tasks.js';
import type {
  AdmissionInput,
  Call,
  CallContext,
  Classified,
  ClassifiedCall,
  OpenSession,
  SessionCheck,
  SessionRules,
} from './admission-rules.js';
import {
  type ClientTraits,
  LATEST_SESSION_VERSION,
  LEGACY_SSE_VERSION,
  namesVersionInHeader,
  type ProtocolVersion,
  SESSION_VERSIONS,
  STATELESS_VERSIONS,
  TASK_SESSION_VERSION,
  type TaskRules,
  URL_ERROR_VERSION,
} from './revisions.js';

/** All versions that are offered to a client whose version is not supported. */
const ALL_VERSIONS: readonly string[] = [...STATELESS_VERSIONS, ...SESSION_VERSIONS];

/** The task capability that a session's server must have declared, by method. */
const REQUIRED_TASK_CAPABILITIES: ReadonlyMap<string, TaskCapability> = new Map([
  ['tasks/get', 'call'],
  ['tasks/result', 'call'],
  ['tasks/cancel', 'cancel'],
  ['tasks/list', 'list'],
]);

const TASKS: TaskRules = {
  areRequested: true,
  createdAt: ['result', 'task'],
  readCreated: (result) => readPlainTask(result['task']),
  readStatus: readPlainTask,
  isAcknowledged: () => false,
  formIn: (handshake) => (handshake['protocolVersion'] === TASK_SESSION_VERSION ? 'session' : 'none'),
};

/** What holds in every session, on either transport. */
export const IN_SESSIONS = {
  listedEra: '2025',
  hasSessions: true,
  disconnectCancels: false,
  mirrorsBody: false,
  hasInputRequired: false,
  promptForm: (version) => (version === URL_ERROR_VERSION ? 'error' : undefined),
  findShapeError: findSessionShapeError,
  hasCacheHints: false,
  completeResult: {},
  resourceNotFoundCode: RESOURCE_NOT_FOUND,
  unsupportedVersionCode: INVALID_PARAMS,
  /** The body says what failed; a session ends by a status of its own (MCP 2025-11-25, transports). */
  statusOfResponse: () => 200,
  correctionOf: ({ code }) => ({ code }),
  /** A server without tasks answers the call at once, even if a task was requested. */
  kindOfResult(result, { version, mayBecomeTask }) {
    const isTask = version === TASK_SESSION_VERSION && mayBecomeTask !== undefined && isObject(result['task']);
    if (!isTask) return 'response-result';
    return mayBecomeTask === true ? 'response-task' : 'malformed';
  },
  carriesNotification: () => true,
  mayLog: () => true,
} as const satisfies Partial<ProtocolVersion>;

export const SESSION: SessionRules = {
  ...IN_SESSIONS,
  era: '2025',
  revisions: SESSION_VERSIONS,
  issuesSessionIds: true,
  answersOnStream: false,
  tasks: TASKS,
  namesVersionAnew: (method) => method === 'initialize',
  // A 404 would mean that the session is lost. A notification is dropped: clients close their connection on an error.
  statusOfRefusedMethod: (kind) => (kind === 'request' ? 200 : 202),
  // A client takes another status for an error of the transport, and shows its user no text.
  statusOfInvalidParams: (kind) => (kind === 'request' ? 200 : 202),
  classify: classifyInSession,
  checkReply: ({ headers, openSession }, errorContext) => checkSession(headers, openSession, errorContext),
  readMirrorHeaders: readSessionParamHeaders,
  mayNotifyRoots: (_input, session) => session?.allowedServerRequests?.includes('roots') === true,
  cutCapabilities: (context) => cutInSession(context, grantsOf),
  mayBecomeTask: ({ call, classified }) =>
    call.params?.['task'] !== undefined && taskCapabilitiesOf(classified).includes('call'),
  checkTasksDeclared: checkDeclaredByServer,
};

/** A client of the session era that shows no apps. */
export const PLAIN_SESSION: ClientTraits = Object.freeze({ protocol: SESSION, apps: false });

function classifyInSession({ input, call, errorContext }: CallContext): Classified | ProtocolError {
  const header = input.headers['mcp-protocol-version']?.trim();
  const isOpen = input.headers['mcp-session-id'] !== undefined;
  if (!isOpen && header !== undefined && !SESSION_VERSIONS.includes(header))
    return unsupportedVersion(errorContext, header, input.supportedVersions ?? ALL_VERSIONS);
  const headers = withoutMatchingMirrorHeaders(input.headers, call);
  if (call.method === 'initialize') {
    const error = checkInitialize(headers, input.openSession, errorContext);
    if (error !== undefined) return error;
    const requested = call.params?.['protocolVersion'];
    // The requested version, otherwise the latest supported one.
    const version = SESSION_VERSIONS.find((one) => one === requested) ?? LATEST_SESSION_VERSION;
    return { kind: 'classified', protocol: SESSION, version, session: undefined };
  }
  const checked = checkSession(headers, input.openSession, errorContext);
  if (checked.kind === 'error') return checked;
  const { version, session } = checked;
  return { kind: 'classified', protocol: SESSION, version, session };
}

/** What the client declared when it opened the session holds for all of it, so only an `initialize` is cut. */
export function cutInSession(
  { input, call, text, classified }: ClassifiedCall,
  grants: (input: AdmissionInput, tasks: boolean) => CapabilityGrants,
): CapabilityCut {
  const { session, version } = classified;
  if (call.method !== 'initialize')
    return {
      edits: [],
      allowedServerRequests: session?.allowedServerRequests ?? [],
      elicitation: session?.elicitation ?? [],
      apps: session?.apps ?? false,
    };
  return cutInitialize(text, call.params ?? {}, version, grants(input, false));
}

function taskCapabilitiesOf({ session }: Classified): readonly TaskCapability[] {
  return session?.tasks ?? [];
}

export function checkDeclaredByServer({ classified, rule, errorContext }: ClassifiedCall): ProtocolError | undefined {
  const needed = REQUIRED_TASK_CAPABILITIES.get(rule.method);
  if (needed === undefined || taskCapabilitiesOf(classified).includes(needed)) return undefined;
  const text = 'Method not found: the server of this session has not declared it.';
  return protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, text, errorContext, 200);
}

/**
 * Removes `Mcp-Method` and `Mcp-Name` if what is sent of them says what the body says, whatever the version header says;
 * otherwise returns the headers as they are, and they are refused later. Of a call those that mirror arguments are
 * removed too: they are compared once the definition of the tool is known. Clients of both eras send them with every
 * request, `initialize` included, before any version is agreed. In a session they decide nothing and are not forwarded;
 * they are ignored only if a reader that trusted them would read what the body says.
 * Source: MCP 2026-07-28, transports, validation of standard headers by intermediaries.
 */
export function withoutMatchingMirrorHeaders(headers: HeaderMap, call: Call): HeaderMap {
  const others = call.method === 'tools/call' ? withoutParamHeaders(headers) : headers;
  if (others['mcp-method'] === undefined && others['mcp-name'] === undefined) return others;
  const { 'mcp-method': method, 'mcp-name': name, ...rest } = others;
  const isAgreed = (method === undefined || matchesPlain(method, call.method)) && agreesWithName(name, call);
  return isAgreed ? rest : others;
}

function withoutParamHeaders(headers: HeaderMap): HeaderMap {
  for (const name in headers)
    if (name.startsWith(PARAM_PREFIX))
      return Object.fromEntries(Object.entries(headers).filter(([one]) => !one.startsWith(PARAM_PREFIX)));
  return headers;
}

/** The headers that mirror the arguments of a call; those of other messages were refused with the session. */
export function readSessionParamHeaders({
  input,
  call,
  errorContext,
}: CallContext): AdmittedMessage['paramHeaders'] | ProtocolError {
  if (call.method !== 'tools/call') return NO_PARAM_HEADERS;
  return readParamHeaders(input.headers, input.repeated) ?? malformedParamHeader(errorContext);
}

function agreesWithName(header: string | undefined, call: Call): boolean {
  if (header === undefined) return true;
  const source = NAME_SOURCES.get(call.method);
  const bodyValue = source === undefined ? undefined : call.params?.[source];
  return typeof bodyValue === 'string' && matchesName(header, bodyValue);
}

/**
 * Opens the session that the headers name, and checks that the version header agrees with it. A session that
 * is unknown, has ended or belongs to another caller gets the same 404. `mayResume`: the request may name the
 * event after which a stream continues.
 * Source: MCP 2025-11-25, transports, session management and protocol version header.
 */
export function checkSession(
  headers: HeaderMap,
  openSession: OpenSession,
  errorContext: ErrorContext,
  mayResume = false,
): SessionCheck {
  const stray = checkStrayHeaders(headers, errorContext, mayResume);
  if (stray !== undefined) return stray;
  const id = headers['mcp-session-id'];
  if (id === undefined) return sessionRequired(errorContext);
  const session = openSession(id);
  // A legacy SSE session exists only on its own stream.
  if (session === undefined || session.version === LEGACY_SSE_VERSION) return unknownSession(errorContext);
  return (
    checkVersionHeader(headers, session, errorContext) ?? {
      kind: 'session',
      version: session.version,
      session,
    }
  );
}

/**
 * Checks the headers of an `initialize`: it opens a session, so it may not name one. One that is no session of the
 * caller gets the 404 of every dead session, by which clients know that they have to forget it.
 * Source: MCP 2025-11-25, transports, session management.
 */
function checkInitialize(
  headers: HeaderMap,
  openSession: OpenSession,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  const stray = checkStrayHeaders(headers, errorContext);
  const id = headers['mcp-session-id'];
  if (stray !== undefined || id === undefined) return stray;
  return openSession(id) === undefined
    ? unknownSession(errorContext)
    : invalidMessage(errorContext, 'initialize may not name a session.');
}

/**
 * The edits of an `initialize`: the version to request, and the capabilities that are not supported or not
 * granted; with the server requests that the remaining ones allow. Ascending, not overlapping.
 * Source: MCP 2025-11-25, lifecycle, version and capability negotiation.
 */
function cutInitialize(text: string, params: JsonObject, version: string, terms: CapabilityGrants): CapabilityCut {
  const path = ['params', 'capabilities'];
  const cut = cutCapabilities(text, path, params['capabilities'], terms);
  const edits: TextEdit[] = [...cut.edits];
  if (params['protocolVersion'] !== version) {
    const span = spanOf(text, ['params', 'protocolVersion']);
    if (span !== undefined) edits.push({ ...span, text: JSON.stringify(version) });
  }
  edits.sort((one, other) => one.start - other.start);
  return { ...cut, edits };
}

/** Refuses headers without meaning in this era: another reader might trust them, or replay events because of them. */
export function checkStrayHeaders(
  headers: HeaderMap,
  errorContext: ErrorContext,
  mayResume = false,
): ProtocolError | undefined {
  if (!mayResume && headers['last-event-id'] !== undefined) {
    return invalidMessage(errorContext, 'Last-Event-ID is allowed only on GET, which resumes a stream.');
  }
  for (const name in headers) {
    if (headers[name] === undefined) continue;
    if (name === 'mcp-method' || name === 'mcp-name')
      return headerMismatch(errorContext, 'Mcp-Method or Mcp-Name does not match the body.');
    if (name.startsWith(PARAM_PREFIX))
      return headerMismatch(
        errorContext,
        'Headers that mirror arguments require a protocol version that defines them.',
      );
  }
  return undefined;
}

function checkVersionHeader(
  headers: HeaderMap,
  session: SessionFacts,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  const header = headers['mcp-protocol-version']?.trim();
  if (header === undefined) return undefined;
  if (!SESSION_VERSIONS.includes(header)) {
    return unsupportedVersion(errorContext, header, SESSION_VERSIONS, INVALID_PARAMS);
  }
  if (!namesVersionInHeader(session.version) || header === session.version) return undefined;
  return headerMismatch(errorContext, 'MCP-Protocol-Version differs from the version of the session.');
}

/** 404: the id names no live session of this caller. */
export function unknownSession(errorContext: ErrorContext): ProtocolError {
  const text = 'This session is unknown or has ended. Initialize again.';
  return protocolErrorOf('unknown-session', UNKNOWN_SESSION, text, errorContext, 404);
}

/** 400: the message needs a session and names none. */
export function sessionRequired(errorContext: ErrorContext): ProtocolError {
  const text = 'This request needs a session. Initialize first.';
  return protocolErrorOf('session-required', INVALID_REQUEST, text, errorContext);
}
