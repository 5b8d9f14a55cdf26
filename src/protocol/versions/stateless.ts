// The stateless era, 2026-07-28: every request carries its version and capabilities in `_meta`, and headers
// that mirror the body. Body and headers must agree; neither is ever preferred. Also assigns the HTTP
// statuses of error codes, by which a client of two eras recognizes what it has reached.
// Source: MCP 2026-07-28, base protocol (`_meta`), transports (standard request headers, HTTP status codes),
// error codes, versioning, backward compatibility; the Tasks extension.

import type { AdmittedMessage, MethodRule, ProtocolError } from '../admitted-request.js';
import { type CapabilityCut, cutCapabilities, grantsOf } from '../capabilities.js';
import { findShapeError } from '../definition-shape.js';
import { type HeaderMap, matchesName, matchesPlain, NAME_SOURCES, readParamHeaders } from '../headers.js';
import { isObject, type JsonObject, type RpcError } from '../jsonrpc.js';
import { isSubscriptionNotification } from '../methods.js';
import { LOG_LEVELS } from '../params.js';
import {
  type ErrorContext,
  HEADER_MISMATCH,
  headerMismatch,
  INVALID_PARAMS,
  invalidParams,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  malformedParamHeader,
  protocolErrorOf,
  RESOURCE_NOT_FOUND,
  UNSUPPORTED_VERSION,
  unsupportedVersion,
} from '../responses.js';
import { readFilter } from '../subscriptions.js';
import { declaresTasks, readCreatedTask, readDetailedTask, TASKS_EXTENSION } from '../tasks.js';
import type { AdmissionRules, Call, CallContext, Classified, ClassifiedCall } from './admission-rules.js';
import { type ExpectedResult, type ProtocolVersion, STATELESS_VERSIONS, type TaskRules } from './revisions.js';

const OK = 200;
const BAD_REQUEST = 400;
const SERVER_ERROR = 500;

const STATUSES: ReadonlyMap<number, number> = new Map([
  [HEADER_MISMATCH, BAD_REQUEST],
  [MISSING_CAPABILITY, BAD_REQUEST],
  [UNSUPPORTED_VERSION, BAD_REQUEST],
  [METHOD_NOT_FOUND, 404],
]);

/**
 * The HTTP status of a response: the one that the specification fixes for its error code; otherwise the
 * upstream's, unless a client would take it for a response of another era.
 */
function statusOfResponse(status: number, code: number | undefined): number {
  if (code === undefined) return OK;
  const fixed = STATUSES.get(code);
  if (fixed !== undefined) return fixed;
  return status === BAD_REQUEST || status >= SERVER_ERROR ? status : OK;
}

/** What an upstream's error becomes: the code that this era has for it, and the versions that may be offered. */
function correctionOf(error: RpcError): {
  readonly code: number;
  readonly supported?: readonly string[];
} {
  const { code, data } = error;
  if (code === RESOURCE_NOT_FOUND) return { code: INVALID_PARAMS };
  if (code !== UNSUPPORTED_VERSION || !isObject(data)) return { code };
  const offered = data['supported'];
  if (!Array.isArray(offered)) return { code };
  // Versions that the gateway does not support are not offered.
  const supported = STATELESS_VERSIONS.filter((version) => offered.includes(version));
  return supported.length === offered.length ? { code } : { code, supported };
}

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';

/** The member of `_meta` with the name and version of the client. */
export const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo';

const ENVELOPE_KEYS = [VERSION_KEY, CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY];

const TASKS: TaskRules = {
  areRequested: false,
  createdAt: ['result'],
  readCreated: readCreatedTask,
  readStatus: (value) => (isObject(value) ? readDetailedTask(value) : undefined),
  isAcknowledged: (method) => method !== 'tasks/get',
  formIn: () => 'extension',
};

export const STATELESS: AdmissionRules = {
  era: '2026',
  listedEra: '2026',
  revisions: STATELESS_VERSIONS,
  hasSessions: false,
  issuesSessionIds: false,
  answersOnStream: false,
  disconnectCancels: true,
  mirrorsBody: true,
  hasInputRequired: true,
  promptForm: () => 'input-required',
  tasks: TASKS,
  findShapeError,
  hasCacheHints: true,
  completeResult: { resultType: 'complete' },
  resourceNotFoundCode: INVALID_PARAMS,
  unsupportedVersionCode: UNSUPPORTED_VERSION,
  statusOfRefusedMethod: () => 404,
  statusOfInvalidParams: () => 400,
  statusOfResponse,
  correctionOf,
  namesVersionAnew: () => true,
  kindOfResult,
  carriesNotification: (method, isSubscription) => isSubscriptionNotification(method) === isSubscription,
  mayLog: (meta) => isObject(meta) && LOG_LEVEL_KEY in meta,
  classify: classifyStateless,
  readMirrorHeaders,
  mayNotifyRoots: () => false,
  cutCapabilities: cutStateless,
  mayBecomeTask: ({ meta }) => declaresTasks(meta?.[CAPABILITIES_KEY]),
  checkTasksDeclared: checkDeclaredByClient,
};

/** A result is complete, or asks for input or is a task where that is possible; absent means complete. */
function kindOfResult(
  result: JsonObject,
  { mayRequireInput, mayBecomeTask }: ExpectedResult,
): ReturnType<ProtocolVersion['kindOfResult']> {
  switch (result['resultType']) {
    case undefined:
    case 'complete':
      return 'response-result';
    case 'input_required':
      return mayRequireInput === true ? 'response-input-required' : 'malformed';
    case 'task':
      return mayBecomeTask === true ? 'response-task' : 'malformed';
    default:
      return 'malformed';
  }
}

/**
 * Checks what every message of this era must carry: one version in body and header, no session, the mirrored
 * method, the required members of `_meta`.
 *
 * @returns the version, or the first error in the order of the specification's error map.
 */
function classifyStateless({
  input: { headers, supportedVersions },
  call,
  meta,
  errorContext,
}: CallContext): Classified | ProtocolError {
  if (headers['mcp-session-id'] !== undefined) {
    return headerMismatch(errorContext, 'A stateless request may not name a session.');
  }
  const version = meta?.[VERSION_KEY];
  if (typeof version !== 'string') {
    return invalidParams(errorContext, '_meta must name the protocol version.');
  }
  if (!matchesPlain(headers['mcp-protocol-version'], version)) {
    return headerMismatch(errorContext, 'MCP-Protocol-Version is missing or does not match the body.');
  }
  if (!STATELESS_VERSIONS.includes(version))
    return unsupportedVersion(errorContext, version, statelessVersionsOf(supportedVersions));
  if (call.kind === 'request' && !matchesPlain(headers['mcp-method'], call.method)) {
    return headerMismatch(errorContext, 'Mcp-Method is missing or does not match the body.');
  }
  const envelopeError = checkEnvelope(meta, errorContext);
  return envelopeError ?? { kind: 'classified', protocol: STATELESS, version, session: undefined };
}

/** The versions that `server/discover` names: the others are negotiated by initialize (2026-07-28, versioning). */
function statelessVersionsOf(supported = STATELESS_VERSIONS): readonly string[] {
  const stateless = supported.filter((version) => STATELESS_VERSIONS.includes(version));
  return stateless.length > 0 ? stateless : supported;
}

function readMirrorHeaders({
  input,
  call,
  errorContext,
}: CallContext): AdmittedMessage['paramHeaders'] | ProtocolError {
  const error = checkNameHeader(call.method, call.params, input.headers, errorContext);
  if (error !== undefined) return error;
  return readParamHeaders(input.headers, input.repeated) ?? malformedParamHeader(errorContext);
}

function checkDeclaredByClient({ rule, call, meta, errorContext }: ClassifiedCall): ProtocolError | undefined {
  const isAbout = rule.targetKind === 'task' || listensToTasks(rule, call);
  if (!isAbout || declaresTasks(meta?.[CAPABILITIES_KEY])) return undefined;
  const text = 'Missing required client capability';
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const error = protocolErrorOf('invalid-message', MISSING_CAPABILITY, text, errorContext);
  return { ...error, data: { requiredCapabilities } };
}

function listensToTasks(rule: MethodRule, { params }: Call): boolean {
  if (rule.response !== 'subscription') return false;
  const filter = readFilter(params?.['notifications']);
  return filter !== undefined && filter.tasks.length > 0;
}

/**
 * True if the body or its version header claims this era. A server that decides by either must never receive
 * a message that was checked by the rules of another era.
 */
export function claimsStateless(meta: JsonObject | undefined, headers: HeaderMap): boolean {
  const header = headers['mcp-protocol-version']?.trim();
  if (header !== undefined && STATELESS_VERSIONS.includes(header)) return true;
  return meta !== undefined && ENVELOPE_KEYS.some((key) => Object.hasOwn(meta, key));
}

/**
 * Checks that `Mcp-Name` is present exactly if the body has a name to mirror, and equals it.
 * Source: MCP 2026-07-28, transports, standard request headers.
 */
function checkNameHeader(
  method: string,
  params: JsonObject | undefined,
  headers: HeaderMap,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  const source = NAME_SOURCES.get(method);
  const header = headers['mcp-name'];
  if (source === undefined) {
    return header === undefined
      ? undefined
      : headerMismatch(errorContext, 'Mcp-Name was sent, but the body has no name to match.');
  }
  const name = params?.[source];
  return typeof name === 'string' && matchesName(header, name)
    ? undefined
    : headerMismatch(errorContext, 'Mcp-Name is missing or does not match the body.');
}

/** The edits of a stateless request: cuts the capabilities that are not supported or not granted. */
function cutStateless({ input, text, meta }: ClassifiedCall): CapabilityCut {
  const path = ['params', '_meta', CAPABILITIES_KEY];
  return cutCapabilities(text, path, meta?.[CAPABILITIES_KEY], grantsOf(input, true));
}

function checkEnvelope(meta: JsonObject | undefined, errorContext: ErrorContext): ProtocolError | undefined {
  if (!isObject(meta?.[CAPABILITIES_KEY])) {
    return invalidParams(errorContext, '_meta must hold the capabilities of the client.');
  }
  const client = meta?.[CLIENT_INFO_KEY];
  if (client !== undefined && !isObject(client)) {
    return invalidParams(errorContext, 'clientInfo must be an object.');
  }
  const level = meta?.[LOG_LEVEL_KEY];
  if (level !== undefined && !LOG_LEVELS.has(level)) {
    return invalidParams(errorContext, 'logLevel is not a log level.');
  }
  return undefined;
}
