// Decides which era a POSTed call belongs to, by body and headers alike, and makes the era's own checks.
// Where body and headers disagree it refuses; it never follows one of the two.
// Source: MCP 2026-07-28, versioning and transports (backward compatibility); MCP 2025-11-25, transports.

import type {
  ProtocolError,
  ServerRequestFacts,
  SessionFacts,
  TaskFacts,
} from './admitted-request.js';
import { type ErrorContext, headerMismatch, unsupportedVersion } from './errors.js';
import type { HeaderMap } from './headers.js';
import type { JsonReading } from './json/json.js';
import type { Era, JsonObject, Message } from './jsonrpc.js';
import type { Grants } from './server-requests.js';
import { checkLegacySse } from './versions/legacy-sse.js';
import { SESSION_VERSIONS, STATELESS_VERSIONS } from './versions/revisions.js';
import {
  checkInitialize,
  checkSession,
  type OpenSession,
  withoutAgreedMirrors,
} from './versions/session.js';
import { checkStateless, claimsStateless } from './versions/stateless.js';

/** What of an HTTP request admission reads. */
export type AdmissionInput = {
  /** Lower-case names. */
  readonly headers: HeaderMap;
  /** Names of headers that were sent more than once. */
  readonly repeated: ReadonlySet<string>;
  readonly body: Uint8Array;
  /** The body as it was read; it is read here where not given. */
  readonly reading?: JsonReading | undefined;
  /** It was posted to a channel of HTTP+SSE, whose sealed session stands as `mcp-session-id`. */
  readonly isLegacySse?: boolean | undefined;
  readonly openSession: OpenSession;
  /** What an unsupported version is told to use instead; all that is carried where not given. */
  readonly supportedVersions?: readonly string[] | undefined;
  /** What policy lets servers ask of the caller; nothing where not given. Asked only where it matters. */
  readonly grants?: (() => Grants) | undefined;
  /** Whether a host may declare the Apps extension here; it may not where not given. */
  readonly mayShowApps?: (() => boolean) | undefined;
  /** Opens the id of a question that was passed on in this session; `undefined` for every other id. */
  readonly openServerRequest?:
    | ((id: string, session: SessionFacts) => ServerRequestFacts | undefined)
    | undefined;
  /** Opens the id of a task that this caller was given; `undefined` for every other id. */
  readonly openTask?: ((id: string) => TaskFacts | undefined) | undefined;
};

/** A message that asks for something: what a client may post. */
export type Call = Extract<Message, { readonly kind: 'request' | 'notification' }>;

/** The eras that are carried. */
export type CarriedEra = Era;

/** What an era says of a message once its own checks hold. */
export type Classified = {
  readonly kind: 'classified';
  readonly era: CarriedEra;
  readonly version: string;
  readonly session: SessionFacts | undefined;
};

const ALL_VERSIONS: readonly string[] = [...STATELESS_VERSIONS, ...SESSION_VERSIONS];
const SINGLE_HEADERS = [
  'mcp-protocol-version',
  'mcp-session-id',
  'mcp-method',
  'mcp-name',
  'last-event-id',
];

/**
 * Which era a call belongs to, or the first fault of its headers and envelope.
 * Source: MCP 2026-07-28, versioning; transports, backward compatibility.
 */
export function classify(
  input: AdmissionInput,
  call: Call,
  meta: JsonObject | undefined,
): Classified | ProtocolError {
  const { headers } = input;
  if (input.isLegacySse === true) return classifyLegacySse(input, call, meta);
  const isStateless = claimsStateless(meta, headers);
  const errorContext = errorContextOf(isStateless ? '2026' : '2025', call);
  const repeated = checkRepeated(input, errorContext);
  if (repeated !== undefined) return repeated;
  const supported = input.supportedVersions ?? ALL_VERSIONS;
  if (isStateless) {
    const checked = checkStateless(call, meta, headers, ofStatelessEra(supported), errorContext);
    if (checked.kind === 'fault') return checked;
    return { kind: 'classified', era: '2026', version: checked.version, session: undefined };
  }
  const header = headers['mcp-protocol-version']?.trim();
  const isOpen = headers['mcp-session-id'] !== undefined;
  if (!isOpen && header !== undefined && !SESSION_VERSIONS.includes(header)) {
    return unsupportedVersion({ ...errorContext, era: undefined }, header, supported);
  }
  return classifySession(input, call, errorContext);
}

function classifyLegacySse(
  input: AdmissionInput,
  call: Call,
  meta: JsonObject | undefined,
): Classified | ProtocolError {
  const errorContext = errorContextOf('2024', call);
  const checked = checkRepeated(input, errorContext) ?? checkLegacySse(input, errorContext, meta);
  if (checked.kind === 'fault') return checked;
  return { kind: 'classified', era: '2024', version: checked.version, session: checked.session };
}

/** The versions that `server/discover` names: the others are negotiated by initialize (2026-07-28, versioning). */
function ofStatelessEra(supported: readonly string[]): readonly string[] {
  const stateless = supported.filter((version) => STATELESS_VERSIONS.includes(version));
  return stateless.length > 0 ? stateless : supported;
}

function classifySession(
  input: AdmissionInput,
  call: Call,
  errorContext: ErrorContext,
): Classified | ProtocolError {
  const headers = withoutAgreedMirrors(input.headers, call);
  if (call.method === 'initialize') {
    const requested = call.params?.['protocolVersion'];
    const name = typeof requested === 'string' ? requested : '';
    const checked = checkInitialize(headers, name, errorContext);
    if (checked.kind === 'fault') return checked;
    return { kind: 'classified', era: '2025', version: checked.version, session: undefined };
  }
  const checked = checkSession(headers, input.openSession, errorContext);
  if (checked.kind === 'fault') return checked;
  const { version, session } = checked;
  return { kind: 'classified', era: '2025', version, session };
}

/** A fault when a header that must have one value was sent more than once. */
export function checkRepeated(
  input: Pick<AdmissionInput, 'repeated'>,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  if (input.repeated.size === 0) return undefined;
  return SINGLE_HEADERS.some((name) => input.repeated.has(name))
    ? headerMismatch(errorContext, 'A header of the protocol was sent more than once.')
    : undefined;
}

/** Where a fault of this call belongs. */
export function errorContextOf(era: CarriedEra, call: Call): ErrorContext {
  return call.kind === 'request' ? { era, id: call.id } : { era };
}
