// Records the upstream session behind each client that uses legacy SSE, whose own session exists before its
// handshake: which upstream session belongs to the client's stream, which server requests are allowed in it,
// and whether it is initialized. Only the replica that holds the stream knows it, and it is removed with the
// stream.
// Source: MCP 2024-11-05, lifecycle; MCP 2025-11-25, lifecycle; docs/reference/protocol.md#serving-all-eras.

import type { AuthorizedRequest } from '../../../policy/obligations.js';
import type { Caller } from '../../../policy/principal.js';
import type { SessionFacts, SessionTarget } from '../../../protocol/admitted-request.js';
import { applyEdits, changeMembers } from '../../../protocol/json/json.js';
import {
  isObject,
  isResponseTo,
  type JsonObject,
  requestIdOf,
  type ServerRequestName,
} from '../../../protocol/jsonrpc.js';
import { isEventStream } from '../../../protocol/sse.js';
import type { DisconnectSignal, ForwardOutcome, UpstreamResponse } from '../../../protocol/transport.js';
import { LEGACY_SSE_VERSION, SESSION_VERSIONS } from '../../../protocol/versions/revisions.js';
import type { UpstreamClient } from '../../client.js';
import { readInitializeResult } from '../../exchange.js';
import { bodyResponse, isJson, type ReadBounds, readMessages } from '../../response-messages.js';

export type LegacySseClientSessions = {
  /** Opens an upstream session with the handshake of a legacy SSE client, in a version of the upstream's. */
  open(
    authorized: AuthorizedRequest,
    caller: Caller,
    version: string,
    signal: DisconnectSignal | undefined,
  ): Promise<ForwardOutcome>;
  /** True if the client's handshake has succeeded or is under way; there can be no second one. */
  hasOpened(legacySession: SessionFacts): boolean;
  /** Records a session that only the gateway knows, and returns it. */
  enter(authorized: AuthorizedRequest, target: SessionTarget, version: string): SessionFacts | undefined;
  /** The upstream session behind a legacy SSE session; `undefined` before its handshake. */
  find(legacySession: SessionFacts): SessionFacts | undefined;
  /** The server requests allowed in it, as declared and granted in the handshake. */
  allowedServerRequests(legacySession: SessionFacts): readonly ServerRequestName[];
  /** Records that the client has sent `notifications/initialized`. */
  markInitialized(legacySession: SessionFacts): void;
  /** Resolves with the session once it is initialized; `undefined` if the stream ends first. */
  waitUntilInitialized(legacySession: SessionFacts, signal: DisconnectSignal): Promise<SessionFacts | undefined>;
  /** Removes the session and returns it, so that it can be ended at the upstream. */
  forget(legacySession: SessionFacts): SessionFacts | undefined;
};

type Entry = { readonly upstreamSession: SessionFacts; isInitialized: boolean };

type ClientSessionDependencies = ReadBounds & {
  readonly client: Pick<UpstreamClient, 'forwardAs'>;
};

/** Creates an empty table. `client` speaks the session era with the upstream. */
export function createLegacySseClientSessions(dependencies: ClientSessionDependencies): LegacySseClientSessions {
  const entries = new Map<string, Entry>();
  const waiting = new Map<string, () => void>();
  const opening = new Set<string>();

  function add(authorized: AuthorizedRequest, target: SessionTarget, version: string) {
    const { session, allowedServerRequests } = authorized.admitted;
    if (session?.hash === undefined) return undefined;
    const { hash } = session;
    const upstreamSession: SessionFacts = { version, hash, target, allowedServerRequests };
    entries.set(hash, { upstreamSession, isInitialized: false });
    return upstreamSession;
  }

  async function openAtUpstream(
    authorized: AuthorizedRequest,
    caller: Caller,
    version: string,
    signal: DisconnectSignal | undefined,
  ): Promise<ForwardOutcome> {
    const form = handshakeForm(authorized, version);
    const outcome = await dependencies.client.forwardAs(authorized, caller, form, signal, false);
    if (outcome.kind === 'error' || !(isEventStream(outcome) || isJson(outcome))) return outcome;
    const opened = await readHandshake(outcome, authorized, dependencies);
    if ('kind' in opened) return opened;
    // A stream that has ended meanwhile has already been removed.
    if (signal?.aborted === true) return { kind: 'error', reason: 'upstream-unavailable' };
    add(authorized, opened.target, opened.version);
    return bodyResponse(outcome.status, opened.text);
  }

  return {
    async open(authorized, caller, version, signal) {
      const hash = authorized.admitted.session?.hash ?? '';
      opening.add(hash);
      try {
        return await openAtUpstream(authorized, caller, version, signal);
      } finally {
        opening.delete(hash);
      }
    },
    hasOpened: ({ hash = '' }) => opening.has(hash) || entries.has(hash),
    enter: add,
    find: ({ hash = '' }) => entries.get(hash)?.upstreamSession,
    allowedServerRequests: ({ hash = '' }) => entries.get(hash)?.upstreamSession.allowedServerRequests ?? [],
    markInitialized({ hash = '' }) {
      const entry = entries.get(hash);
      if (entry === undefined) return;
      entry.isInitialized = true;
      waiting.get(hash)?.();
    },
    waitUntilInitialized({ hash = '' }, signal) {
      const known = entries.get(hash);
      if (known?.isInitialized === true || signal.aborted)
        return Promise.resolve(signal.aborted ? undefined : known?.upstreamSession);
      return new Promise((resolve) => {
        const settle = (): void => {
          waiting.delete(hash);
          signal.removeEventListener('abort', settle);
          resolve(signal.aborted ? undefined : entries.get(hash)?.upstreamSession);
        };
        waiting.set(hash, settle);
        signal.addEventListener('abort', settle, { once: true });
      });
    },
    forget({ hash = '' }) {
      const upstreamSession = entries.get(hash)?.upstreamSession;
      entries.delete(hash);
      waiting.get(hash)?.();
      return upstreamSession;
    },
  };
}

function handshakeForm({ admitted }: AuthorizedRequest, version: string): { headers: []; body: string } {
  const text = applyEdits(admitted.text, admitted.edits);
  const set = { protocolVersion: version };
  return { headers: [], body: changeMembers(text, { path: ['params'], set }) };
}

type Opened = {
  readonly text: string;
  readonly version: string;
  readonly target: SessionTarget;
};

/**
 * Reads the upstream's session from the response, which is given the version of legacy SSE; an error is
 * returned as received.
 */
async function readHandshake(
  response: UpstreamResponse,
  { admitted }: AuthorizedRequest,
  bounds: ReadBounds,
): Promise<Opened | ForwardOutcome> {
  const id = requestIdOf(admitted.message);
  for await (const inbound of readMessages(response, bounds)) {
    if (inbound.kind === 'error') return inbound;
    if (inbound.kind === 'message' && isResponseTo(inbound.value, id))
      return openedSessionOf(response, inbound.text, inbound.value);
  }
  return PROTOCOL;
}

function openedSessionOf(response: UpstreamResponse, text: string, value: JsonObject): Opened | ForwardOutcome {
  if (!isObject(value['result'])) return bodyResponse(response.status, text);
  const session = readInitializeResult(value['result'], response.headers, SESSION_VERSIONS);
  if ('kind' in session) return PROTOCOL;
  const { version, id } = session;
  const set = { protocolVersion: LEGACY_SSE_VERSION };
  return { version, target: { kind: 'upstream', id }, text: changeMembers(text, { path: ['result'], set }) };
}

const PROTOCOL = { kind: 'error', reason: 'upstream-protocol' } as const;
