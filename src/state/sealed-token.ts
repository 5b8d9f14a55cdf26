// Seals what clients and upstreams carry for the gateway, AES-256-GCM under a key of its purpose. Each kind is declared
// once, with its lifetime, which use does not extend, and what it is bound to: most to the upstream and to issuer, subject
// and client of the caller, what upstreams carry to the upstream alone, and nothing to the bytes of a token. Any replica with the gateway key opens it; nothing is stored. Possession
// proves nothing: what a value is bound to is associated data, compared by the cipher byte by byte. Why something does not
// open is never reported.
// Layout: version 1 | key tag 8 | expiry ms 6 | nonce 12 | ciphertext | tag 16, as base64url without padding.
// The header, up to the nonce, is in clear text and authenticated (NIST SP 800-38D;
// docs/reference/state.md#what-is-sealed).

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type {
  CallerListScope,
  CallerScope,
  ListScope,
  RequestScope,
  Sealed,
  SessionScope,
} from '../policy/sealed-types.js';
import type {
  EventFacts,
  RequestFacts,
  SentRequestFacts,
  ServerRequestFacts,
  SessionFacts,
  SessionTarget,
  TaskFacts,
} from '../protocol/admitted-request.js';
import { KEY_TAG_BYTES, type KeyRing } from './derived-keys.js';

const VERSION = 1;
const EXPIRY_AT = 1 + KEY_TAG_BYTES;
const EXPIRY_BYTES = 6;
const HEAD_BYTES = EXPIRY_AT + EXPIRY_BYTES;
const NONCE_BYTES = 12;
const CIPHERTEXT_AT = HEAD_BYTES + NONCE_BYTES;
const TAG_BYTES = 16;
const LENGTH_BYTES = 4;

/** The longest sealed text that is decoded; longer ones are refused unread. */
export const MAX_SEALED_CHARACTERS = 16_384;

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Header, purpose and bindings, each preceded by its length, so that no two lists give the same bytes. Undefined when a
 * binding is not a well-formed string: a lone surrogate has no UTF-8 encoding, and two strings could become equal.
 */
function associatedBytes(head: Buffer, purpose: string, associated: readonly string[]): Buffer | undefined {
  if (associated.some((text) => LONE_SURROGATE.test(text))) return undefined;
  const parts = [purpose, ...associated].flatMap((text) => {
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(Buffer.byteLength(text));
    return [length, Buffer.from(text)];
  });
  return Buffer.concat([head, ...parts]);
}

/**
 * Seals `payload` for one purpose, bound to `associated` (exact strings, in this order), until `expiresAtMs`
 * (milliseconds since the epoch). The result is base64url: visible ASCII, fit for a header.
 * @throws RangeError for an invalid expiry or a binding with a lone surrogate.
 */
export function seal(
  ring: KeyRing,
  purpose: string,
  associated: readonly string[],
  payload: string,
  expiresAtMs: number,
): string {
  const { tag, key } = ring.sealingKey(purpose);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(VERSION, 0);
  tag.copy(head, 1);
  head.writeUIntBE(Math.floor(expiresAtMs), EXPIRY_AT, EXPIRY_BYTES);
  const bound = associatedBytes(head, purpose, associated);
  if (bound === undefined) throw new RangeError('a binding must be a well-formed string');
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(bound);
  const ciphertext = [cipher.update(payload, 'utf8'), cipher.final()];
  return Buffer.concat([head, nonce, ...ciphertext, cipher.getAuthTag()]).toString('base64url');
}

/** The tag of the key under which a text that was opened is sealed. */
function keyTagOf(sealed: string): Uint8Array {
  return Buffer.from(sealed, 'base64url').subarray(1, EXPIRY_AT);
}

/** The bytes of a sealed text, or `undefined` when it is not their canonical encoding. */
function readSealed(text: string, maxCharacters: number): Buffer | undefined {
  if (text.length > maxCharacters) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < CIPHERTEXT_AT + TAG_BYTES || bytes[0] !== VERSION) return undefined;
  // INVARIANT: a value has exactly one encoding; otherwise a value revoked by its text would stay valid under another.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/**
 * Opens what `seal` made for the same purpose and the same bindings. `undefined` for everything else: other purpose,
 * other binding, unknown key, changed byte, expired, not ours, longer than `maxCharacters`. Never throws and does not
 * distinguish the causes.
 */
export function open(
  ring: KeyRing,
  purpose: string,
  associated: readonly string[],
  sealed: string,
  nowMs: number,
  maxCharacters = MAX_SEALED_CHARACTERS,
): string | undefined {
  const bytes = readSealed(sealed, maxCharacters);
  if (bytes === undefined) return undefined;
  const key = ring.openingKey(purpose, bytes.subarray(1, EXPIRY_AT));
  const bound = associatedBytes(bytes.subarray(0, HEAD_BYTES), purpose, associated);
  if (key === undefined || bound === undefined) return undefined;
  const nonce = bytes.subarray(HEAD_BYTES, CIPHERTEXT_AT);
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key.key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(bound);
  decipher.setAuthTag(bytes.subarray(end));
  const payload = decipher.update(bytes.subarray(CIPHERTEXT_AT, end));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return bytes.readUIntBE(EXPIRY_AT, EXPIRY_BYTES) > nowMs ? payload.toString('utf8') : undefined;
}

/** A kind of sealed value: JSON, sealed under a purpose of its own and bound to exact strings. */
type SealedToken<Payload, Text extends string | undefined = string> = {
  /** Seals until `expiresAtMs` (milliseconds since the epoch). Two calls never return the same text. */
  seal(ring: KeyRing, bound: readonly string[], payload: Payload, expiresAtMs: number): Text;
  /** `undefined`, without a reason, for whatever was not sealed for this purpose under exactly this binding. */
  open(ring: KeyRing, bound: readonly string[], sealed: string, nowMs: number): Payload | undefined;
};

type Form<Payload, Written> = {
  /** What of a payload is sealed, by default all of it; `undefined` where it is too long. */
  readonly write?: (payload: Payload) => Written;
  readonly read?: (written: Written) => Payload;
  /** The longest sealed text that is opened. */
  readonly maxCharacters?: number;
};

/**
 * A purpose with the form of its payload. Nothing of an opened payload is checked, because the cipher has proved that
 * a gateway with this key wrote it. INVARIANT: who changes the form changes the purpose too, because replicas of two
 * versions may run side by side. With `maxPayload`, what is longer as JSON, in UTF-16 units, is not sealed, nor what
 * would be longer than `maxCharacters` when sealed.
 */
export function sealedToken<Payload, Written = Payload>(
  purpose: string,
  form: Form<Payload, Written> & { readonly maxPayload: number },
): SealedToken<Payload, string | undefined>;
export function sealedToken<Payload, Written = Payload>(
  purpose: string,
  form?: Form<Payload, Written>,
): SealedToken<Payload>;
export function sealedToken<Payload, Written>(
  purpose: string,
  form: Form<Payload, Written> & { readonly maxPayload?: number } = {},
): SealedToken<Payload, string | undefined> {
  const { write, read, maxPayload, maxCharacters = MAX_SEALED_CHARACTERS } = form;
  return {
    seal(ring, bound, payload, expiresAtMs) {
      const written = write === undefined ? payload : write(payload);
      const text = written === undefined ? undefined : JSON.stringify(written);
      if (text === undefined || (maxPayload !== undefined && text.length > maxPayload)) return undefined;
      const sealed = seal(ring, purpose, bound, text, expiresAtMs);
      // A character takes up to three bytes: what would never open again is not sealed either.
      return maxPayload !== undefined && sealed.length > maxCharacters ? undefined : sealed;
    },
    open(ring, bound, sealed, nowMs) {
      const text = open(ring, purpose, bound, sealed, nowMs, maxCharacters);
      if (text === undefined) return undefined;
      const written = JSON.parse(text) as Payload & Written;
      return read === undefined ? written : read(written);
    },
  };
}

type Carried<Payload, Scope, Written> = Form<Payload, Written> & {
  /** How long a value opens, unless whoever seals it says otherwise. */
  readonly ttlMs: number;
  /** Exact strings, as verified, without trimming, case folding or normalization. */
  readonly bind: (scope: Scope, ring: KeyRing) => readonly string[];
};

/** A kind that clients or servers carry, under the keys of one gateway. */
type SealedKind<Payload, Scope, Text extends string | undefined> = (
  ring: KeyRing,
  now: () => number,
) => Sealed<Payload, Scope, Text> & { seal(payload: Payload, scope: Scope, ttlMs?: number): Text };

/** A kind of {@link sealedToken} that is bound to a scope and opens for a time. */
function sealed<Payload, Scope, Written = Payload>(
  purpose: string,
  form: Carried<Payload, Scope, Written> & { readonly maxPayload: number },
): SealedKind<Payload, Scope, string | undefined>;
function sealed<Payload, Scope, Written = Payload>(
  purpose: string,
  form: Carried<Payload, Scope, Written>,
): SealedKind<Payload, Scope, string>;
function sealed<Payload, Scope, Written>(
  purpose: string,
  { ttlMs: usualMs, bind, ...form }: Carried<Payload, Scope, Written> & { readonly maxPayload?: number },
): SealedKind<Payload, Scope, string | undefined> {
  const kind = sealedToken<Payload, Written>(purpose, form);
  return (ring, now) => ({
    seal: (payload: Payload, scope: Scope, ttlMs: number = usualMs) =>
      kind.seal(ring, bind(scope, ring), payload, Math.min(now() + ttlMs, LATEST_EXPIRY_MS)),
    open: (text, scope) => kind.open(ring, bind(scope, ring), text, now()),
  });
}

/** The latest time that a sealed value can state. */
export const LATEST_EXPIRY_MS = 2 ** 48 - 1;

/** A caller at an upstream, or at an aggregate. */
function bindToCaller({ upstream, principal: { issuerUrl, subject, client } }: CallerScope): readonly string[] {
  return [upstream, issuerUrl, subject, client];
}

function bindToSession(scope: SessionScope): readonly string[] {
  return [...bindToCaller(scope), scope.session.hash ?? ''];
}

type AggregateTarget = Extract<SessionTarget, { readonly kind: 'aggregate' }>;
/** JSON has no maps. */
type WrittenSession = Omit<SessionFacts, 'target'> & {
  readonly target:
    | Exclude<SessionTarget, AggregateTarget>
    | { readonly kind: 'aggregate'; readonly sessions: readonly [string, string][] };
};

/** Lifetime of a sealed session. Clients abandon most sessions, and nothing but the id is kept of one. */
export const SESSION_TTL_MS = 24 * 60 * 60 * 1000;

/** What the gateway must know of a session (MCP 2025-11-25, session management). */
export const SESSION_ID = sealed<SessionFacts, CallerScope, WrittenSession>('session/2', {
  ttlMs: SESSION_TTL_MS,
  bind: bindToCaller,
  write({ version, target, allowedServerRequests, elicitation, tasks, apps }) {
    return {
      version,
      target: target.kind === 'aggregate' ? { ...target, sessions: [...target.sessions] } : target,
      ...(allowedServerRequests && { allowedServerRequests }),
      ...(elicitation && { elicitation }),
      ...(tasks && { tasks }),
      ...(apps === true && { apps }),
    };
  },
  read: ({ target, ...session }) => ({
    ...session,
    target: target.kind === 'aggregate' ? { ...target, sessions: new Map(target.sessions) } : target,
  }),
});

/**
 * The keyed digest that identifies a session: made under the key that sealed its id, so that it is the same at every
 * replica and during a key rotation, whichever key is first. `undefined` where there is no such key.
 */
export function sessionHash(ring: KeyRing, id: string): string | undefined {
  return ring.hmacUnder(keyTagOf(id), 'session', id);
}

/** How long a client of an aggregate may wait between two pages. */
const CURSOR_TTL_MS = 60 * 60 * 1000;
/** Servers choose their own cursors, and some are long. */
const MAX_CURSOR_CHARACTERS = 256 * 1024;

/**
 * The cursor of a list of an aggregate: where each backend's list continues. The empty string is a cursor like any other
 * (MCP 2025-11-25, pagination).
 */
export const LIST_CURSOR = sealed<ReadonlyMap<string, string>, CallerListScope, readonly (readonly [string, string])[]>(
  'cursor',
  {
    ttlMs: CURSOR_TTL_MS,
    bind: (scope) => [...bindToCaller(scope), scope.method],
    write: (cursors) => [...cursors],
    read: (cursors) => new Map(cursors),
    maxCharacters: MAX_CURSOR_CHARACTERS,
  },
);

/** The cursor of a list of one upstream, for as long as the server takes it. */
export const UPSTREAM_CURSOR = sealed<string, ListScope>('upstream-cursor', {
  ttlMs: Number.POSITIVE_INFINITY,
  bind: ({ upstream, method }) => [upstream, method],
  maxCharacters: MAX_CURSOR_CHARACTERS,
});

const MAX_FIRST_USE = 4 * 1024 * 1024;

/** What an upstream offered first, as the text of a lock file, kept in the shared store and bound to the upstream. */
export const FIRST_USE = sealedToken<string>('first-use', {
  maxPayload: MAX_FIRST_USE,
  maxCharacters: 2 * MAX_FIRST_USE,
});

/** The part of a request that is sealed, by which its response is checked. */
function requestOf(request: RequestFacts): RequestFacts {
  const { id, method, target, maxResultBytes, profiles, progressToken, mayDefer, task } = request;
  const { args, decidedUnder } = request;
  return {
    ...{ id, method, target, maxResultBytes, profiles, progressToken, task, args, decidedUnder },
    ...(mayDefer === true && { mayDefer }),
  };
}

/**
 * The id of an event in a stream: the upstream's own id and the request that the stream answers, so that any replica
 * checks a resumed stream by it. Headers are bounded: an event whose id would be longer
 * gets none, and the stream continues (MCP 2025-11-25, resumability and redelivery).
 */
export const EVENT_ID = sealed<EventFacts, SessionScope>('event/3', {
  ttlMs: SESSION_TTL_MS,
  bind: bindToSession,
  write: ({ upstreamId, request, requestedAt }) =>
    request === undefined ? { upstreamId, request } : { upstreamId, request: requestOf(request), requestedAt },
  maxPayload: 4096,
});

/** How long a server request waits for its reply, which a person may have to give. */
export const SERVER_REQUEST_TTL_MS = 2 * 60 * 60 * 1000;

/**
 * The id under which a client sees a server request: the server's own id and what was requested. Bound to the session,
 * so that nobody else can reply (MCP 2025-11-25, transports).
 */
export const SERVER_REQUEST_ID = sealed<ServerRequestFacts, SessionScope>('server-request/4', {
  ttlMs: SERVER_REQUEST_TTL_MS,
  bind: bindToSession,
  write: ({ id, method, name, about }) => ({
    ...{ id, method, name },
    ...(about !== undefined && { about }),
  }),
});

/**
 * The id under which a legacy SSE server sees a request: the client's own id and the plan by which the response is
 * checked, so that the replica that holds the stream can check the response to a request that another replica sent.
 * Servers store ids and return them, so a request whose id would be longer is not sent.
 */
export const LEGACY_REQUEST_ID = sealed<SentRequestFacts, SessionScope>('request/3', {
  ttlMs: SESSION_TTL_MS,
  bind: bindToSession,
  write: (sent) => ({
    ...requestOf(sent),
    allowedServerRequests: sent.allowedServerRequests,
    sentAt: sent.sentAt,
  }),
  maxPayload: 8192,
});

/** How long a person may take to reply to an input-required result. */
const REQUEST_STATE_TTL_MS = 15 * 60 * 1000;
/** The longest state of an upstream that is carried, in UTF-16 units. */
export const MAX_STATE_CHARS = 64 * 1024;

/**
 * What a stateless client carries between the rounds of an input-required result: the upstream's own state, bound to the
 * request by its method, its target and a digest of its params (MCP 2026-07-28, multi-round-trip requests).
 */
export const REQUEST_STATE = sealed<string, RequestScope, string | undefined>('request-state/2', {
  ttlMs: REQUEST_STATE_TTL_MS,
  bind: (scope, ring) => [...bindToCaller(scope), scope.method, scope.target, ring.hmac('request-state', scope.params)],
  write: (state) => (state.length > MAX_STATE_CHARS ? undefined : state),
  // As JSON a character takes up to six bytes, of which base64url makes eight.
  maxPayload: 6 * MAX_STATE_CHARS + 2,
  maxCharacters: 8 * MAX_STATE_CHARS + 256,
});

/** Longest lifetime of a task id, whatever lifetime the server promises. */
export const MAX_TASK_TTL_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * The id under which a client knows a task: the server's own id and what its result is checked by. It is also sent in
 * a header, so a task whose id would be longer is not carried (MCP 2025-11-25, tasks, security; the Tasks extension).
 */
export const TASK_ID = sealed<TaskFacts, CallerScope>('task/2', {
  ttlMs: MAX_TASK_TTL_MS,
  bind: bindToCaller,
  write: ({ id, era, tool, maxResultBytes, profiles }) => ({
    ...{ id, era, tool, maxResultBytes, profiles },
  }),
  maxPayload: 4096,
});
