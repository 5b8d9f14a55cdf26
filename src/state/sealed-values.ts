// The sealed values that clients and upstreams carry for the gateway: session ids, list cursors, event ids, ids of
// server requests and of requests over legacy SSE, request states and task ids. Each is sealed under its own purpose
// and bound to the upstream and to issuer, subject and client of the caller, never to the bytes of a token. Any replica
// with the gateway key opens it; nothing is stored (docs/contract.md §10).

import type {
  EventFacts,
  RequestFacts,
  SentRequestFacts,
  ServerRequestFacts,
  SessionFacts,
  SessionTarget,
  TaskFacts,
} from '../protocol/admitted-request.js';
import type { Json, Target } from '../protocol/jsonrpc.js';
import { SERVER_REQUEST_METHODS, SERVER_REQUEST_NAMES } from '../protocol/server-requests.js';
import { TASK_CAPABILITIES } from '../protocol/tasks.js';
import { isListedEra } from '../protocol/versions/revisions.js';
import type { KeyRing } from './keys.js';

import { keyTagOf, open, seal } from './sealed-token.js';

// A session id carries what the gateway must know of the session: its version, the allowed server requests, the task
// uses that its server declared, whether its client shows apps, and the upstream's own id (MCP 2025-11-25, session
// management).

const SESSION_PURPOSE = 'session';

/** Who owns the session. Exact strings, as verified: no trimming, case folding or normalization. */
export type SessionBinding = {
  readonly upstream: string;
  /** The `iss` claim. */
  readonly issuer: string;
  readonly subject: string;
  readonly client: string;
};

/** The binding as associated data: of a session, and of what is issued within one. */
function bindings({ upstream, issuer, subject, client }: SessionBinding): readonly string[] {
  return [upstream, issuer, subject, client];
}

/**
 * Makes a session id, valid until `expiresAtMs` (milliseconds since the epoch). Two calls never return the same id.
 * @throws RangeError for a binding with a lone surrogate.
 */
export function sealSession(
  ring: KeyRing,
  binding: SessionBinding,
  session: SessionFacts,
  expiresAtMs: number,
): string {
  const { version, target, allowedServerRequests = [], tasks = [], apps = false } = session;
  const payload = JSON.stringify([
    version,
    writeTarget(target),
    allowedServerRequests,
    tasks,
    apps,
  ]);
  return seal(ring, SESSION_PURPOSE, bindings(binding), payload, expiresAtMs);
}

/**
 * Opens a session id for the caller that sent it. `undefined` when it is unknown, expired or another caller's; the
 * three are not distinguished.
 */
export function openSession(
  ring: KeyRing,
  binding: SessionBinding,
  id: string,
  nowMs: number,
): SessionFacts | undefined {
  const payload = open(ring, SESSION_PURPOSE, bindings(binding), id, nowMs);
  return payload === undefined ? undefined : readSession(payload.toString('utf8'));
}

/**
 * The keyed digest that identifies a session: made under the key that sealed its id, so that it is the same at every
 * replica and during a key rotation, whichever key is first. `undefined` where there is no such key.
 */
export function sessionHash(ring: KeyRing, id: string): string | undefined {
  return ring.hmacUnder(keyTagOf(id), SESSION_PURPOSE, id);
}

function readSession(text: string): SessionFacts | undefined {
  const value: unknown = JSON.parse(text);
  if (!Array.isArray(value)) return undefined;
  const [version, written, allowedServerRequests, tasks, apps]: readonly unknown[] = value;
  const target = readTarget(written);
  if (typeof version !== 'string' || !Array.isArray(allowedServerRequests)) return undefined;
  if (target === undefined) return undefined;
  const uses = TASK_CAPABILITIES.filter((use) => Array.isArray(tasks) && tasks.includes(use));
  return {
    version,
    target,
    allowedServerRequests: SERVER_REQUEST_NAMES.filter((name) =>
      allowedServerRequests.includes(name),
    ),
    ...(uses.length === 0 ? {} : { tasks: uses }),
    ...(apps === true ? { apps } : {}),
  };
}

/** The kind stands apart from what an upstream issued, so no id can be taken for another kind. */
function writeTarget(target: SessionTarget): Json {
  switch (target.kind) {
    case 'upstream':
      return target.id === undefined ? [target.kind] : [target.kind, target.id];
    case 'legacy-sse':
      return [target.kind, target.messageEndpoint];
    case 'aggregate':
      return [target.kind, Object.fromEntries(target.sessions)];
    case 'gateway':
    case 'bridged':
      return [target.kind];
  }
}

function readTarget(written: unknown): SessionTarget | undefined {
  if (!Array.isArray(written)) return undefined;
  const [kind, value]: readonly unknown[] = written;
  const text = typeof value === 'string' ? value : undefined;
  switch (kind) {
    case 'upstream':
      return { kind, id: text };
    case 'legacy-sse':
      return text === undefined ? undefined : { kind, messageEndpoint: text };
    case 'aggregate':
      return typeof value === 'object' && value !== null
        ? { kind, sessions: new Map(Object.entries(value)) }
        : undefined;
    case 'gateway':
    case 'bridged':
      return { kind };
    default:
      return undefined;
  }
}

// The cursor of a list of an aggregate: each backend's own cursor, bound to the aggregate, the caller and the list.
// Source: MCP 2025-11-25, pagination (cursors are opaque); docs/contract.md §10 (sealed values).

const CURSOR_PURPOSE = 'cursor';
/** Longest sealed cursor that is read. Backends choose their own cursors, and some are long. */
const MAX_SEALED_CHARS = 256 * 1024;

/** Where each backend's list continues. The empty string is a cursor like any other. */
type BackendCursors = ReadonlyMap<string, string>;

/** Who owns the cursor; `upstream` is the aggregate. */
type CursorBinding = SessionBinding & { readonly method: string };

/** Makes a cursor, valid until `expiresAtMs` (milliseconds since the epoch). */
export function sealCursor(
  ring: KeyRing,
  binding: CursorBinding,
  cursors: BackendCursors,
  expiresAtMs: number,
): string {
  const payload = JSON.stringify([...cursors]);
  return seal(ring, CURSOR_PURPOSE, [...bindings(binding), binding.method], payload, expiresAtMs);
}

/** Opens a cursor; `undefined` for whatever was not issued for this list to this caller. */
export function openCursor(
  ring: KeyRing,
  binding: CursorBinding,
  sealed: string,
  nowMs: number,
): BackendCursors | undefined {
  const bound = [...bindings(binding), binding.method];
  const payload = open(ring, CURSOR_PURPOSE, bound, sealed, nowMs, MAX_SEALED_CHARS);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const cursors = new Map<string, string>();
  for (const entry of value as readonly unknown[]) {
    const [backend, cursor]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    if (typeof backend !== 'string' || typeof cursor !== 'string') return undefined;
    cursors.set(backend, cursor);
  }
  return cursors;
}

// The id of an event in a stream: the upstream's own id and the request that the stream answers, bound also to the
// session, so that any replica checks a resumed stream by it (MCP 2025-11-25, resumability and redelivery).
const EVENT_PURPOSE = 'event';
/** An event whose id would be longer gets none: headers are bounded, and the stream continues without. */
const MAX_EVENT_CHARACTERS = 4096;

/** Makes the id of an event; `undefined` where its content is too long for a header. */
export function sealEvent(
  ring: KeyRing,
  binding: ServerRequestBinding,
  { upstreamId, request, requestedAt }: EventFacts,
  expiresAtMs: number,
): string | undefined {
  const plan = request === undefined ? null : writeRequest(request);
  const payload = JSON.stringify(
    plan === null ? [upstreamId, plan] : [upstreamId, plan, requestedAt],
  );
  if (payload.length > MAX_EVENT_CHARACTERS) return undefined;
  return seal(ring, EVENT_PURPOSE, [...bindings(binding), binding.session], payload, expiresAtMs);
}

/** Opens the id of an event; `undefined` for whatever was not issued in this session of this caller. */
export function openEvent(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sealed: string,
  nowMs: number,
): EventFacts | undefined {
  const bound = [...bindings(binding), binding.session];
  const payload = open(ring, EVENT_PURPOSE, bound, sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [upstreamId, plan, requestedAt]: readonly unknown[] = value;
  if (typeof upstreamId !== 'string') return undefined;
  if (plan === null) return { upstreamId, request: undefined };
  const request = Array.isArray(plan) ? readRequest(plan) : undefined;
  if (request === undefined) return undefined;
  return typeof requestedAt === 'number'
    ? { upstreamId, request, requestedAt }
    : { upstreamId, request };
}

/** Writes a request for a sealed value. */
function writeRequest(request: RequestFacts): readonly unknown[] {
  const { id, method, target, maxResultBytes, profiles } = request;
  const { progressToken = null, mayDefer = false, task = null } = request;
  const plan = [id, method, target.kind, nameIn(target), maxResultBytes ?? null, profiles];
  const isPlain = progressToken === null && task === null && !mayDefer;
  return isPlain ? plan : [...plan, progressToken, mayDefer, task];
}

/** Reads what `writeRequest` wrote; `undefined` for anything else. */
function readRequest(plan: readonly unknown[]): RequestFacts | undefined {
  const [id, method, kind, name, maxResultBytes, profiles, token, mayDefer, task] = plan;
  const target = targetOf(kind, name);
  if (typeof id !== 'string' && typeof id !== 'number') return undefined;
  if (typeof method !== 'string' || target === undefined || !Array.isArray(profiles)) {
    return undefined;
  }
  return {
    id,
    method,
    target,
    maxResultBytes: typeof maxResultBytes === 'number' ? maxResultBytes : undefined,
    profiles: profiles.filter((one): one is string => typeof one === 'string'),
    ...(typeof token === 'string' || typeof token === 'number' ? { progressToken: token } : {}),
    ...(mayDefer === true ? { mayDefer } : {}),
    ...(typeof task === 'string' ? { task } : {}),
  };
}

function nameIn(target: Target): string {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
    case 'question':
      return target.name;
    case 'resource':
      return target.uri;
    case 'template':
      return target.uriTemplate;
    case 'task':
      return target.tool ?? '';
    case 'none':
      return '';
  }
}

function targetOf(kind: unknown, name: unknown): Target | undefined {
  if (typeof name !== 'string') return undefined;
  switch (kind) {
    case 'tool':
    case 'prompt':
      return { kind, name };
    case 'resource':
      return { kind, uri: name };
    case 'template':
      return { kind, uriTemplate: name };
    case 'task':
      return { kind, tool: name };
    case 'none':
      return { kind };
    default: {
      const serverRequest = SERVER_REQUEST_NAMES.find((one) => one === name);
      return kind === 'question' && serverRequest !== undefined
        ? { kind, name: serverRequest }
        : undefined;
    }
  }
}

// The id under which a client sees a server request: the server's own id and what was requested, bound also to the
// session, so that nobody else can reply (MCP 2025-11-25, transports).

const SERVER_REQUEST_PURPOSE = 'server-request';

/** `session` is the keyed hash of the session's sealed id. */
export type ServerRequestBinding = SessionBinding & { readonly session: string };

/** Makes the id of a server request, valid until `expiresAtMs` (milliseconds since the epoch). */
export function sealServerRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  { id, method, name }: ServerRequestFacts,
  expiresAtMs: number,
): string {
  const bound = [...bindings(binding), binding.session];
  return seal(ring, SERVER_REQUEST_PURPOSE, bound, JSON.stringify([id, method, name]), expiresAtMs);
}

/** Opens the id of a reply; `undefined` for whatever was not issued in this session of this caller. */
export function openServerRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sealed: string,
  nowMs: number,
): ServerRequestFacts | undefined {
  const bound = [...bindings(binding), binding.session];
  const payload = open(ring, SERVER_REQUEST_PURPOSE, bound, sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [id, method, asked]: readonly unknown[] = value;
  const name = SERVER_REQUEST_NAMES.find((one) => one === asked);
  if (name === undefined || typeof method !== 'string' || !SERVER_REQUEST_METHODS.has(method)) {
    return undefined;
  }
  return typeof id === 'string' || typeof id === 'number' ? { id, method, name } : undefined;
}

// The id under which an HTTP+SSE server sees a request: the client's own id and the plan by which the response is
// checked, bound also to the session, so that the replica that holds the stream can check a response to what another
// one sent.

const REQUEST_PURPOSE = 'request';
/** A request whose id would be longer is not sent: servers store ids and return them. */
const MAX_REQUEST_CHARACTERS = 8192;

/** Makes the id of a request, valid until `expiresAtMs`; `undefined` where its content is too long. */
export function sealRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sent: SentRequestFacts,
  expiresAtMs: number,
): string | undefined {
  const payload = JSON.stringify([writeRequest(sent), sent.allowedServerRequests, sent.sentAt]);
  if (payload.length > MAX_REQUEST_CHARACTERS) return undefined;
  return seal(ring, REQUEST_PURPOSE, [...bindings(binding), binding.session], payload, expiresAtMs);
}

/** Opens the id of a response; `undefined` for whatever was not sent in this session of this caller. */
export function openRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sealed: string,
  nowMs: number,
): SentRequestFacts | undefined {
  const bound = [...bindings(binding), binding.session];
  const payload = open(ring, REQUEST_PURPOSE, bound, sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [plan, allowedServerRequests, sentAt]: readonly unknown[] = value;
  const request = Array.isArray(plan) ? readRequest(plan) : undefined;
  if (request === undefined || !Array.isArray(allowedServerRequests) || typeof sentAt !== 'number')
    return undefined;
  return {
    ...request,
    allowedServerRequests: SERVER_REQUEST_NAMES.filter((name) =>
      allowedServerRequests.includes(name),
    ),
    sentAt,
  };
}

// What a stateless client carries between the rounds of an input-required result: the upstream's own state, byte for
// byte, bound also to the request. A state that was changed, stolen or kept too long does not open (MCP 2026-07-28,
// multi-round-trip requests).

const REQUEST_STATE_PURPOSE = 'request-state';

/** How long a person may take to reply. */
export const REQUEST_STATE_TTL_MS = 15 * 60 * 1000;
/** The longest state of an upstream that is carried, in UTF-16 units. */
export const MAX_STATE_CHARS = 64 * 1024;
/** A sealed state of that length, in base64url, with allowance for characters of three bytes. */
const MAX_SEALED_STATE_CHARS = 4 * MAX_STATE_CHARS + 256;

/** Who owns the state, and for which request: exact strings. */
export type StateBinding = SessionBinding & {
  readonly method: string;
  /** Kind and name of the request's target. */
  readonly target: string;
  /** Digest of the params without what changes from round to round. */
  readonly params: string;
};

function stateBindings(binding: StateBinding): readonly string[] {
  const { upstream, issuer, subject, client, method, target, params } = binding;
  return [upstream, issuer, subject, client, method, target, params];
}

/** Seals the state of an upstream until `expiresAtMs`; `undefined` where it is too long to be carried. */
export function sealRequestState(
  ring: KeyRing,
  binding: StateBinding,
  state: string,
  expiresAtMs: number,
): string | undefined {
  if (state.length > MAX_STATE_CHARS) return undefined;
  return seal(ring, REQUEST_STATE_PURPOSE, stateBindings(binding), state, expiresAtMs);
}

/** The state that was sealed under exactly this binding; `undefined`, without a reason, for everything else. */
export function openRequestState(
  ring: KeyRing,
  binding: StateBinding,
  sealed: string,
  nowMs: number,
): string | undefined {
  return open(
    ring,
    REQUEST_STATE_PURPOSE,
    stateBindings(binding),
    sealed,
    nowMs,
    MAX_SEALED_STATE_CHARS,
  )?.toString('utf8');
}

// The id under which a client knows a task: the server's own id and what its result is checked by (MCP 2025-11-25,
// tasks, security; the Tasks extension).

const TASK_PURPOSE = 'task';
/** A task whose id would be longer is not carried, because the id is also sent in a header. */
const MAX_TASK_CHARACTERS = 4096;

/** Makes the id of a task, valid until `expiresAtMs`; `undefined` where its content is too long. */
export function sealTask(
  ring: KeyRing,
  binding: SessionBinding,
  { id, era, tool, maxResultBytes, profiles }: TaskFacts,
  expiresAtMs: number,
): string | undefined {
  const payload = JSON.stringify([id, era, tool, maxResultBytes ?? null, profiles]);
  if (payload.length > MAX_TASK_CHARACTERS) return undefined;
  return seal(ring, TASK_PURPOSE, bindings(binding), payload, expiresAtMs);
}

/** Opens the id of a task; `undefined` for whatever was not issued to this caller, and for what has expired. */
export function openTask(
  ring: KeyRing,
  binding: SessionBinding,
  sealed: string,
  nowMs: number,
): TaskFacts | undefined {
  const payload = open(ring, TASK_PURPOSE, bindings(binding), sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [id, era, tool, maxResultBytes, profiles]: readonly unknown[] = value;
  if (typeof id !== 'string' || typeof tool !== 'string' || !Array.isArray(profiles))
    return undefined;
  if (!isListedEra(era)) return undefined;
  return {
    id,
    era,
    tool,
    maxResultBytes: typeof maxResultBytes === 'number' ? maxResultBytes : undefined,
    profiles: profiles.filter((one): one is string => typeof one === 'string'),
  };
}
