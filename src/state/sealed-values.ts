// The sealed values that clients and upstreams store for the gateway, each with a purpose of its own: session ids, list cursors, event
// ids, ids of server requests and of requests over legacy SSE, request states and task ids. Each is bound to the
// upstream and to issuer, subject and client of the caller (or to more), never to the bytes of a token. Any replica
// with the gateway key opens it; nothing is stored (docs/contract.md §10).

import type { Owner } from '../policy/principal.js';
import type {
  EventFacts,
  RequestFacts,
  SentRequestFacts,
  ServerRequestFacts,
  SessionFacts,
  SessionTarget,
  TaskFacts,
} from '../protocol/admitted-request.js';
import type { KeyRing } from './keys.js';
import { keyTagOf, sealedToken } from './sealed-token.js';

/**
 * Binds a sealed value to a caller at an upstream, or at an aggregate: exact strings, as verified, without trimming,
 * case folding or normalization.
 */
export function bindingOf(
  upstream: string,
  { issuerUrl, subject, client }: Owner,
): readonly [string, string, string, string] {
  return [upstream, issuerUrl, subject, client];
}

type Aggregate = Extract<SessionTarget, { readonly kind: 'aggregate' }>;
/** JSON has no maps. */
type WrittenSession = Omit<SessionFacts, 'target'> & {
  readonly target:
    | Exclude<SessionTarget, Aggregate>
    | { readonly kind: 'aggregate'; readonly sessions: readonly [string, string][] };
};

/** Lifetime of a sealed session. Clients abandon most sessions, and nothing but the id is kept of one. */
export const SESSION_TTL_MS = 24 * 60 * 60 * 1000;

/** What the gateway must know of a session (MCP 2025-11-25, session management). */
export const SESSION_ID = sealedToken<SessionFacts, WrittenSession>('session/2', {
  write({ version, target, allowedServerRequests, tasks, apps }) {
    return {
      version,
      target: target.kind === 'aggregate' ? { ...target, sessions: [...target.sessions] } : target,
      ...(allowedServerRequests && { allowedServerRequests }),
      ...(tasks && { tasks }),
      ...(apps === true && { apps }),
    };
  },
  read: ({ target, ...session }) => ({
    ...session,
    target:
      target.kind === 'aggregate' ? { ...target, sessions: new Map(target.sessions) } : target,
  }),
});

/**
 * The keyed digest that identifies a session: made under the key that sealed its id, so that it is the same at every
 * replica and during a key rotation, whichever key is first. `undefined` where there is no such key.
 */
export function sessionHash(ring: KeyRing, id: string): string | undefined {
  return ring.hmacUnder(keyTagOf(id), 'session', id);
}

/**
 * The cursor of a list of an aggregate: where each backend's list continues, bound also to the method. Backends choose
 * their own cursors, and some are long; the empty string is a cursor like any other (MCP 2025-11-25, pagination).
 */
export const LIST_CURSOR = sealedToken<
  ReadonlyMap<string, string>,
  readonly (readonly [string, string])[]
>('cursor', {
  write: (cursors) => [...cursors],
  read: (cursors) => new Map(cursors),
  maxCharacters: 256 * 1024,
});

const MAX_FIRST_USE = 4 * 1024 * 1024;

/** What an upstream offered first, as the text of a lock file, kept in the shared store and bound to the upstream. */
export const FIRST_USE = sealedToken<string>('first-use', {
  maxPayload: MAX_FIRST_USE,
  maxCharacters: 2 * MAX_FIRST_USE,
});

/** The latest time that a sealed value can state, for one that the store forgets. */
export const LATEST_EXPIRY_MS = 2 ** 48 - 1;

/** The part of a request that is sealed, by which its response is checked. */
function requestOf(request: RequestFacts): RequestFacts {
  const { id, method, target, maxResultBytes, profiles, progressToken, mayDefer, task } = request;
  return {
    ...{ id, method, target, maxResultBytes, profiles, progressToken, task },
    ...(mayDefer === true && { mayDefer }),
  };
}

/**
 * The id of an event in a stream: the upstream's own id and the request that the stream answers, bound also to the
 * session, so that any replica checks a resumed stream by it. Headers are bounded: an event whose id would be longer
 * gets none, and the stream continues (MCP 2025-11-25, resumability and redelivery).
 */
export const EVENT_ID = sealedToken<EventFacts>('event/2', {
  write: ({ upstreamId, request, requestedAt }) =>
    request === undefined
      ? { upstreamId, request }
      : { upstreamId, request: requestOf(request), requestedAt },
  maxPayload: 4096,
});

/**
 * The id under which a client sees a server request: the server's own id and what was requested, bound also to the
 * session, so that nobody else can reply (MCP 2025-11-25, transports).
 */
export const SERVER_REQUEST_ID = sealedToken<ServerRequestFacts>('server-request/3', {
  write: ({ id, method, name, tool }) => ({
    ...{ id, method, name },
    ...(tool !== undefined && { tool }),
  }),
});

/**
 * The id under which a legacy SSE server sees a request: the client's own id and the plan by which the response is
 * checked, bound also to the session, so that the replica that holds the stream can check the response to a request that
 * another replica sent. Servers store ids and return them, so a request whose id would be longer is not sent.
 */
export const LEGACY_REQUEST_ID = sealedToken<SentRequestFacts>('request/2', {
  write: (sent) => ({
    ...requestOf(sent),
    allowedServerRequests: sent.allowedServerRequests,
    sentAt: sent.sentAt,
  }),
  maxPayload: 8192,
});

/** How long a person may take to reply to an input-required result. */
export const REQUEST_STATE_TTL_MS = 15 * 60 * 1000;
/** The longest state of an upstream that is carried, in UTF-16 units. */
export const MAX_STATE_CHARS = 64 * 1024;

/**
 * What a stateless client carries between the rounds of an input-required result: the upstream's own state, bound also
 * to the request: its method, its target and a digest of its params without what changes from round to round (MCP
 * 2026-07-28, multi-round-trip requests).
 */
export const REQUEST_STATE = sealedToken<string, string | undefined>('request-state/2', {
  write: (state) => (state.length > MAX_STATE_CHARS ? undefined : state),
  // As JSON a character takes up to six bytes, of which base64url makes eight.
  maxPayload: 6 * MAX_STATE_CHARS + 2,
  maxCharacters: 8 * MAX_STATE_CHARS + 256,
});

/**
 * The id under which a client knows a task: the server's own id and what its result is checked by. It is also sent in
 * a header, so a task whose id would be longer is not carried (MCP 2025-11-25, tasks, security; the Tasks extension).
 */
export const TASK_ID = sealedToken<TaskFacts>('task/2', {
  write: ({ id, era, tool, maxResultBytes, profiles }) => ({
    ...{ id, era, tool, maxResultBytes, profiles },
  }),
  maxPayload: 4096,
});
