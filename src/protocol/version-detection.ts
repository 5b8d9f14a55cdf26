// Determines the era of a POSTed request or notification from body and headers together, and runs the checks
// of that era. If body and headers disagree the message is refused; neither of the two is ever preferred.
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
import type { ServerRequestGrants } from './server-requests.js';
import { checkLegacySse } from './versions/legacy-sse.js';
import { SESSION_VERSIONS, STATELESS_VERSIONS } from './versions/revisions.js';
import {
  checkInitialize,
  checkSession,
  type OpenSession,
  withoutMatchingMirrorHeaders,
} from './versions/session.js';
import { checkStateless, claimsStateless } from './versions/stateless.js';

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

/** The eras that are supported. */
export type SupportedEra = Era;

/** The era of a message that passed the checks of that era. */
export type Classified = {
  readonly kind: 'classified';
  readonly era: SupportedEra;
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
 * The era of a call, or the first error of its headers and envelope.
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
    const checked = checkStateless(
      call,
      meta,
      headers,
      statelessVersionsOf(supported),
      errorContext,
    );
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
function statelessVersionsOf(supported: readonly string[]): readonly string[] {
  const stateless = supported.filter((version) => STATELESS_VERSIONS.includes(version));
  return stateless.length > 0 ? stateless : supported;
}

function classifySession(
  input: AdmissionInput,
  call: Call,
  errorContext: ErrorContext,
): Classified | ProtocolError {
  const headers = withoutMatchingMirrorHeaders(input.headers, call);
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

/** An error if a header that must have one value was sent more than once. */
export function checkRepeated(
  input: Pick<AdmissionInput, 'repeated'>,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  if (input.repeated.size === 0) return undefined;
  return SINGLE_HEADERS.some((name) => input.repeated.has(name))
    ? headerMismatch(errorContext, 'A header of the protocol was sent more than once.')
    : undefined;
}

export function errorContextOf(era: SupportedEra, call: Call): ErrorContext {
  return call.kind === 'request' ? { era, id: call.id } : { era };
}
