// Serves clients of sessions before an upstream of the stateless era. The session is the gateway's own:
// what it says of itself goes along with every request; what only sessions have is answered here.
// Source: MCP 2025-11-25; MCP 2026-07-28; mcp-spec.md §2.3.

import type { SessionFacts } from '../../mcp/admitted.js';
import { amendResponse } from '../../mcp/amended-answer.js';
import { canRequireInput } from '../../mcp/asking.js';
import { inOnePiece } from '../../mcp/body.js';
import type { MirroredParameter } from '../../mcp/headers.js';
import { Leaving } from '../../mcp/leaving.js';
import type { RequestId } from '../../mcp/message.js';
import {
  discoverForm,
  type RequestEnvelope,
  type SessionReader,
  statelessForm,
} from '../../mcp/translate/to-stateless.js';
import type {
  ForwardOutcome,
  LeaveSignal,
  RoutedOutcome,
  UpstreamResponse,
} from '../../mcp/transport.js';
import { LEGACY_SSE_VERSION } from '../../mcp/versions.js';
import type { Caller } from '../../policy/caller.js';
import type { AuthorizedRequest } from '../../settle/settle.js';
import type { SessionUpstream } from '../client.js';
import type { MessageReader } from '../hearing.js';
import { converse, toSessionItem } from './dialogue.js';
import { envelopeOf, handshakeEnvelope } from './envelopes.js';
import { isJson, isStream, mentionsInputRequired, parseBody, readMessages } from './messages.js';
import { acceptedResponse, bodyResponse, type Conversation, streamResponse } from './own-answer.js';
import { type OwnSession, respondHere, takeReply } from './own-session.js';
import {
  createSessionStates,
  ownerOf,
  type ServerRequestReply,
  type SessionState,
  type SessionStates,
} from './session-notes.js';
import { listenForSession } from './session-stream.js';
import {
  localSessionBus,
  receiveSessionMessage,
  type SessionBus,
  type SessionMessage,
} from './session-words.js';
import { createTranslatedPages, type TranslatedPages } from './told-pages.js';

export type TranslationSettings = {
  readonly client: SessionUpstream;
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly messageReader?: MessageReader | undefined;
  /** Told to upstreams in `clientInfo`. */
  readonly gatewayVersion: string;
  readonly sessionBus: SessionBus;
};

/** In place of an upstream's session id: what marks a session as one that only the gateway knows. */
export const OWN_SESSION = 'sallyport:stateless-upstream';

export type SessionClients = {
  forward(
    authorized: AuthorizedRequest,
    by: Caller,
    mirrored: readonly MirroredParameter[],
  ): Promise<RoutedOutcome>;
  openStream(session: SessionFacts, by: Caller, signal: LeaveSignal): Promise<ForwardOutcome>;
  endSession(session: SessionFacts): ForwardOutcome;
  /** What the gateway itself says to a question. */
  replyToServerRequest(
    session: SessionFacts,
    by: Caller,
    id: RequestId,
    reply: ServerRequestReply,
  ): void;
  /** What another replica says of a session. */
  receive(message: SessionMessage): void;
  /** Ends here what ended elsewhere: sessions by their keyed hashes. */
  forgetWhere(isOver: (session: string) => boolean): void;
};

type Parts = TranslationSettings & {
  readonly sessionStates: SessionStates;
  readonly pages: TranslatedPages;
};
type Request = {
  readonly parts: Parts;
  readonly authorized: AuthorizedRequest;
  readonly by: Caller;
  readonly mirrored: readonly MirroredParameter[];
  readonly id: RequestId;
  readonly sessionState: SessionState | undefined;
  readonly leaving: Leaving;
};

/** Serves them over one upstream. */
export function createSessionClients(settings: TranslationSettings): SessionClients {
  const parts: Parts = {
    ...settings,
    sessionStates: createSessionStates(),
    pages: createTranslatedPages(),
  };
  return {
    forward: (authorized, by, mirrored) => forward(parts, authorized, by, mirrored),
    openStream(session, by, signal) {
      const { sessionState } = ownOf(parts, session, by);
      const declared = { allowedServerRequests: [], apps: session.apps ?? false };
      return listenForSession(
        { ...parts, by, envelope: envelopeOf(parts.gatewayVersion, declared, undefined) },
        sessionState,
        signal,
      );
    },
    endSession(session) {
      parts.sessionStates.forget(keyOf(session));
      return bodyResponse(200);
    },
    replyToServerRequest(session, by, id, reply) {
      void takeReply(ownOf(parts, session, by), id, reply);
    },
    receive: (message) => receiveSessionMessage(parts.sessionStates, message),
    forgetWhere: parts.sessionStates.forgetWhere,
  };
}

/** Under which a session is remembered: nothing of one that nobody has opened. */
function keyOf({ hash }: SessionFacts): string {
  if (hash === undefined) throw new Error('only opened sessions are remembered');
  return hash;
}

async function forward(
  parts: Parts,
  authorized: AuthorizedRequest,
  by: Caller,
  mirrored: readonly MirroredParameter[],
): Promise<RoutedOutcome> {
  const { message, session } = authorized.admitted;
  const own = session === undefined ? undefined : ownOf(parts, session, by);
  const response = own === undefined ? undefined : respondHere(own, message);
  if (response !== undefined) return response;
  // Without a session only a handshake is admitted.
  if (message.kind !== 'request') return acceptedResponse();
  const { id } = message;
  const sessionState = own?.sessionState;
  return send({ parts, authorized, by, mirrored, id, sessionState, leaving: new Leaving() });
}

function ownOf(
  { sessionStates, sessionBus }: Parts,
  facts: SessionFacts,
  { principal }: Caller,
): OwnSession {
  const session = keyOf(facts);
  const owner = ownerOf(principal);
  // Behind a channel it is known to the replica that holds the channel, and to no other.
  const isOfHere = facts.version === LEGACY_SSE_VERSION;
  return {
    session,
    owner,
    sessionState: sessionStates.of(session, owner),
    sessionBus: isOfHere ? localSessionBus(sessionBus, sessionStates) : sessionBus,
  };
}

async function send(request: Request): Promise<ForwardOutcome> {
  const { parts, authorized, by, mirrored, id, sessionState, leaving } = request;
  const { admitted } = authorized;
  const isHandshake = admitted.rule.method === 'initialize';
  const envelope = isHandshake
    ? handshakeEnvelope(parts.gatewayVersion, authorized)
    : envelopeOf(parts.gatewayVersion, admitted, sessionState?.logLevel);
  const form = isHandshake
    ? discoverForm(id, envelope)
    : statelessForm(admitted, envelope, mirrored);
  sessionState?.running.set(id, leaving);
  const outcome = await parts.client.forwardAs(authorized, by, form, leaving, false);
  if (outcome.kind === 'fault') {
    leave(request);
    return outcome;
  }
  const reader = readerOf(authorized, id);
  const mayRequireInput =
    canRequireInput(admitted.rule.method) && admitted.allowedServerRequests.length > 0;
  const response = mayRequireInput
    ? await withInputRequired(request, outcome, reader, envelope)
    : translateResponse(request, outcome, reader);
  return isHandshake && response.kind === 'answer'
    ? { ...response, headers: { ...response.headers, 'mcp-session-id': OWN_SESSION } }
    : response;
}

function leave({ sessionState, id, leaving }: Request): void {
  if (sessionState?.running.get(id) === leaving) sessionState.running.delete(id);
}

function readerOf({ admitted }: AuthorizedRequest, id: RequestId): SessionReader {
  return { method: admitted.rule.method, version: admitted.version, id, sentId: id };
}

/** An answer without a dialogue: whole where it came whole. */
function translateResponse(
  request: Request,
  response: UpstreamResponse,
  reader: SessionReader,
): UpstreamResponse {
  if (isStream(response)) {
    return streamResponse(translateStream(request, response, reader), {
      release() {
        leave(request);
        response.release();
      },
      abort() {
        leave(request);
        response.abort();
      },
    });
  }
  leave(request);
  // To a client of sessions a status says nothing of a method: what the body says does.
  const status = isJson(response) ? 200 : statusOf(response.status);
  return amendResponse(response, {
    status,
    headers: { 'content-type': response.headers['content-type'] },
    async readBody(maxBytes, withinMs) {
      const body = await response.readBody(maxBytes, withinMs);
      if (typeof body === 'string') return body;
      const bytes = inOnePiece(body);
      const ids = { source: reader.sentId, translated: reader.id };
      return request.parts.pages.translate(reader.method, bytes, ids, async () => {
        const inbound = await parseBody(bytes, request.parts.messageReader);
        // What is no JSON is not told otherwise: it is refused by whoever reads it.
        if (inbound.kind !== 'message') return undefined;
        const translated = toSessionItem(inbound, reader);
        return translated.kind === 'message'
          ? { source: inbound.text, translated: translated.text }
          : undefined;
      });
    },
  });
}

/** A 404 would say that the session is lost, which no server without sessions can know. */
function statusOf(status: number): number {
  return status === 404 || status === 405 ? 502 : status;
}

async function* translateStream(
  request: Request,
  response: UpstreamResponse,
  reader: SessionReader,
): Conversation {
  try {
    for await (const inbound of readMessages(response, request.parts))
      yield toSessionItem(inbound, reader);
  } finally {
    leave(request);
  }
}

/** An answer that may ask: it is looked at first, because a question makes a stream of it. */
async function withInputRequired(
  request: Request,
  response: UpstreamResponse,
  reader: SessionReader,
  envelope: RequestEnvelope,
): Promise<ForwardOutcome> {
  const { parts, authorized, by, mirrored, sessionState, leaving } = request;
  let first = response;
  if (isJson(response)) {
    const body = await response.readBody(parts.maxResponseBytes, parts.requestTimeoutMs);
    if (typeof body === 'string') {
      leave(request);
      return { kind: 'fault', reason: body === 'too-large' ? 'upstream-protocol' : body };
    }
    const bytes = inOnePiece(body);
    response.release();
    first = bodyResponse(200, bytes);
    if (!mentionsInputRequired(bytes)) return translateResponse(request, first, reader);
  } else if (!isStream(response)) return translateResponse(request, response, reader);
  if (sessionState === undefined) return translateResponse(request, first, reader);
  const conversation = converse(first, {
    reader,
    sessionState,
    sessionBus: parts.sessionBus,
    signal: leaving,
    bounds: parts,
    again: (retry) =>
      parts.client.forwardAs(
        authorized,
        by,
        statelessForm(authorized.admitted, envelope, mirrored, retry),
        leaving,
        false,
      ),
    leave: () => leave(request),
  });
  const stop = (): void => {
    // A conversation that was never read does not leave by itself.
    leave(request);
    leaving.abort();
  };
  return streamResponse(conversation, { release: stop, abort: stop });
}
