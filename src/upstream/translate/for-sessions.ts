// Serves clients of sessions before an upstream of the stateless era. The session is the gateway's own:
// what it says of itself goes along with every request; what only sessions have is answered here.
// Source: MCP 2025-11-25; MCP 2026-07-28; mcp-spec.md §2.3.

import type { SessionFacts } from '../../mcp/admitted.js';
import { amendAnswer } from '../../mcp/amended-answer.js';
import { mayAskFirst } from '../../mcp/asking.js';
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
  PlacedOutcome,
  UpstreamAnswer,
} from '../../mcp/transport.js';
import { CHANNEL_VERSION } from '../../mcp/versions.js';
import type { Caller } from '../../policy/caller.js';
import type { Cleared } from '../../settle/settle.js';
import type { SessionUpstream } from '../client.js';
import type { Hearing } from '../hearing.js';
import { converse, toldOf } from './dialogue.js';
import { envelopeOf, handshakeEnvelope } from './envelopes.js';
import { asks, hear, hearWhole, isJson, isStream } from './messages.js';
import { acceptedAnswer, type Conversation, streamAnswer, wholeAnswer } from './own-answer.js';
import { answerHere, type OwnSession, takeAnswer } from './own-session.js';
import {
  createNotesBook,
  type NotesBook,
  ownerOf,
  type QuestionReply,
  type SessionNotes,
} from './session-notes.js';
import { listenForSession } from './session-stream.js';
import { hearWord, type SessionWord, type SessionWords, wordsHere } from './session-words.js';
import { createToldPages, type ToldPages } from './told-pages.js';

export type TranslationSettings = {
  readonly client: SessionUpstream;
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly hearing?: Hearing | undefined;
  /** Told to upstreams in `clientInfo`. */
  readonly gatewayVersion: string;
  readonly words: SessionWords;
};

/** In place of an upstream's session id: what marks a session as one that only the gateway knows. */
export const OWN_SESSION = 'sallyport:stateless-upstream';

export type SessionClients = {
  forward(
    cleared: Cleared,
    by: Caller,
    mirrored: readonly MirroredParameter[],
  ): Promise<PlacedOutcome>;
  openStream(session: SessionFacts, by: Caller, signal: LeaveSignal): Promise<ForwardOutcome>;
  endSession(session: SessionFacts): ForwardOutcome;
  /** What the gateway itself says to a question. */
  answerQuestion(session: SessionFacts, by: Caller, id: RequestId, reply: QuestionReply): void;
  /** What another replica says of a session. */
  hear(word: SessionWord): void;
  /** Ends here what ended elsewhere: sessions by their keyed hashes. */
  forgetWhere(isOver: (session: string) => boolean): void;
};

type Parts = TranslationSettings & { readonly book: NotesBook; readonly pages: ToldPages };
type Request = {
  readonly parts: Parts;
  readonly cleared: Cleared;
  readonly by: Caller;
  readonly mirrored: readonly MirroredParameter[];
  readonly id: RequestId;
  readonly notes: SessionNotes | undefined;
  readonly leaving: Leaving;
};

/** Serves them over one upstream. */
export function createSessionClients(settings: TranslationSettings): SessionClients {
  const parts: Parts = { ...settings, book: createNotesBook(), pages: createToldPages() };
  return {
    forward: (cleared, by, mirrored) => forward(parts, cleared, by, mirrored),
    openStream(session, by, signal) {
      const { notes } = ownOf(parts, session, by);
      const declared = { askable: [], apps: session.apps ?? false };
      return listenForSession(
        { ...parts, by, envelope: envelopeOf(parts.gatewayVersion, declared, undefined) },
        notes,
        signal,
      );
    },
    endSession(session) {
      parts.book.forget(keyOf(session));
      return wholeAnswer(200);
    },
    answerQuestion(session, by, id, reply) {
      void takeAnswer(ownOf(parts, session, by), id, reply);
    },
    hear: (word) => hearWord(parts.book, word),
    forgetWhere: parts.book.forgetWhere,
  };
}

/** Under which a session is remembered: nothing of one that nobody has opened. */
function keyOf({ hash }: SessionFacts): string {
  if (hash === undefined) throw new Error('only opened sessions are remembered');
  return hash;
}

async function forward(
  parts: Parts,
  cleared: Cleared,
  by: Caller,
  mirrored: readonly MirroredParameter[],
): Promise<PlacedOutcome> {
  const { message, session } = cleared.admitted;
  const own = session === undefined ? undefined : ownOf(parts, session, by);
  const answer = own === undefined ? undefined : answerHere(own, message);
  if (answer !== undefined) return answer;
  // Without a session only a handshake is admitted.
  if (message.kind !== 'request') return acceptedAnswer();
  const { id } = message;
  const notes = own?.notes;
  return send({ parts, cleared, by, mirrored, id, notes, leaving: new Leaving() });
}

function ownOf({ book, words }: Parts, facts: SessionFacts, { principal }: Caller): OwnSession {
  const session = keyOf(facts);
  const owner = ownerOf(principal);
  // Behind a channel it is known to the replica that holds the channel, and to no other.
  const isOfHere = facts.version === CHANNEL_VERSION;
  return {
    session,
    owner,
    notes: book.of(session, owner),
    words: isOfHere ? wordsHere(words, book) : words,
  };
}

async function send(request: Request): Promise<ForwardOutcome> {
  const { parts, cleared, by, mirrored, id, notes, leaving } = request;
  const { admitted } = cleared;
  const isHandshake = admitted.rule.method === 'initialize';
  const envelope = isHandshake
    ? handshakeEnvelope(parts.gatewayVersion, cleared)
    : envelopeOf(parts.gatewayVersion, admitted, notes?.logLevel);
  const form = isHandshake
    ? discoverForm(id, envelope)
    : statelessForm(admitted, envelope, mirrored);
  notes?.running.set(id, leaving);
  const outcome = await parts.client.forwardAs(cleared, by, form, leaving, false);
  if (outcome.kind === 'fault') {
    leave(request);
    return outcome;
  }
  const reader = readerOf(cleared, id);
  const mayAsk = mayAskFirst(admitted.rule.method) && admitted.askable.length > 0;
  const told = mayAsk
    ? await withDialogue(request, outcome, reader, envelope)
    : tell(request, outcome, reader);
  return isHandshake && told.kind === 'answer'
    ? { ...told, headers: { ...told.headers, 'mcp-session-id': OWN_SESSION } }
    : told;
}

function leave({ notes, id, leaving }: Request): void {
  if (notes?.running.get(id) === leaving) notes.running.delete(id);
}

function readerOf({ admitted }: Cleared, id: RequestId): SessionReader {
  return { method: admitted.rule.method, version: admitted.version, id, sentId: id };
}

/** An answer without a dialogue: whole where it came whole. */
function tell(request: Request, answer: UpstreamAnswer, reader: SessionReader): UpstreamAnswer {
  if (isStream(answer)) {
    return streamAnswer(tellAll(request, answer, reader), {
      release() {
        leave(request);
        answer.release();
      },
      abort() {
        leave(request);
        answer.abort();
      },
    });
  }
  leave(request);
  // To a client of sessions a status says nothing of a method: what the body says does.
  const status = isJson(answer) ? 200 : statusOf(answer.status);
  return amendAnswer(answer, {
    status,
    headers: { 'content-type': answer.headers['content-type'] },
    async whole(maxBytes, withinMs) {
      const whole = await answer.whole(maxBytes, withinMs);
      if (typeof whole === 'string') return whole;
      const bytes = inOnePiece(whole);
      const ids = { heard: reader.sentId, told: reader.id };
      return request.parts.pages.tell(reader.method, bytes, ids, async () => {
        const heard = await hearWhole(bytes, request.parts.hearing);
        // What is no JSON is not told otherwise: it is refused by whoever reads it.
        if (heard.kind !== 'message') return undefined;
        const told = toldOf(heard, reader);
        return told.kind === 'message' ? { heard: heard.text, told: told.text } : undefined;
      });
    },
  });
}

/** A 404 would say that the session is lost, which no server without sessions can know. */
function statusOf(status: number): number {
  return status === 404 || status === 405 ? 502 : status;
}

async function* tellAll(
  request: Request,
  answer: UpstreamAnswer,
  reader: SessionReader,
): Conversation {
  try {
    for await (const heard of hear(answer, request.parts)) yield toldOf(heard, reader);
  } finally {
    leave(request);
  }
}

/** An answer that may ask: it is looked at first, because a question makes a stream of it. */
async function withDialogue(
  request: Request,
  answer: UpstreamAnswer,
  reader: SessionReader,
  envelope: RequestEnvelope,
): Promise<ForwardOutcome> {
  const { parts, cleared, by, mirrored, notes, leaving } = request;
  let first = answer;
  if (isJson(answer)) {
    const whole = await answer.whole(parts.maxResponseBytes, parts.requestTimeoutMs);
    if (typeof whole === 'string') {
      leave(request);
      return { kind: 'fault', reason: whole === 'too-large' ? 'upstream-protocol' : whole };
    }
    const bytes = inOnePiece(whole);
    answer.release();
    first = wholeAnswer(200, bytes);
    if (!asks(bytes)) return tell(request, first, reader);
  } else if (!isStream(answer)) return tell(request, answer, reader);
  if (notes === undefined) return tell(request, first, reader);
  const conversation = converse(first, {
    reader,
    notes,
    words: parts.words,
    signal: leaving,
    bounds: parts,
    again: (leg) =>
      parts.client.forwardAs(
        cleared,
        by,
        statelessForm(cleared.admitted, envelope, mirrored, leg),
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
  return streamAnswer(conversation, { release: stop, abort: stop });
}
