// What a client of sessions says to its session alone, where the upstream has none: answered here once every
// replica was told, because any of them may serve the session next.
// Source: MCP 2025-11-25, ping, logging, resources (subscriptions), cancellation; contract §10.

import type { Admitted } from '../../mcp/admitted.js';
import type { Json, JsonObject, RequestId } from '../../mcp/message.js';
import { refusal } from '../../mcp/translate/to-stateless.js';
import type { PlacedOutcome, UpstreamAnswer } from '../../mcp/transport.js';
import { acceptedAnswer, resultAnswer, wholeAnswer } from './own-answer.js';
import { MAX_RESOURCES, type QuestionReply, type SessionNotes } from './session-notes.js';
import { noteNews, replicaOf, type SessionNews, type SessionWords } from './session-words.js';

/** A session as it stands at this replica, and the way to the others. */
export type OwnSession = {
  /** The keyed hash of its sealed id. */
  readonly session: string;
  readonly owner: string;
  readonly notes: SessionNotes;
  readonly words: SessionWords;
};

const TOO_MANY = 'This session has subscribed to as many resources as are kept.';
const ASKED_ELSEWHERE = { kind: 'fault', reason: 'asked-elsewhere' } as const;
const UNTOLD = {
  unavailable: { kind: 'fault', reason: 'store-unavailable' },
  overloaded: { kind: 'fault', reason: 'overloaded' },
} as const;

/** The answer to what a client of sessions says to its session alone; `undefined` for what its upstream must hear. */
export function answerHere(
  own: OwnSession,
  message: Admitted['message'],
): UpstreamAnswer | Promise<PlacedOutcome> | undefined {
  switch (message.kind) {
    case 'result':
    case 'error':
      return takeAnswer(own, message.id ?? '', message);
    case 'notification':
      return message.method === 'notifications/cancelled'
        ? cancelRunning(own, message.params?.['requestId'])
        : acceptedAnswer();
    case 'request':
      return answerRequest(own, message.id, message.method, message.params ?? {});
  }
}

function answerRequest(
  own: OwnSession,
  id: RequestId,
  method: string,
  params: JsonObject,
): UpstreamAnswer | Promise<PlacedOutcome> | undefined {
  const { resources } = own.notes;
  const uri = String(params['uri']);
  const done = resultAnswer(id);
  switch (method) {
    case 'ping':
      return done;
    case 'logging/setLevel':
      return spread(own, { kind: 'log-level', level: String(params['level']) }, done);
    case 'resources/subscribe':
      if (resources.size >= MAX_RESOURCES && !resources.has(uri))
        return wholeAnswer(200, refusal(id, TOO_MANY));
      return spread(own, { kind: 'subscribed', uri }, done);
    case 'resources/unsubscribe':
      return spread(own, { kind: 'unsubscribed', uri }, done);
    default:
      return undefined;
  }
}

/** Tells every replica, this one too: a session that stands differently elsewhere would lie to its client. */
async function spread(
  { session, owner, words }: OwnSession,
  news: SessionNews,
  done: UpstreamAnswer,
): Promise<PlacedOutcome> {
  const told = await words.tellAll({ session, owner, news });
  return told === 'told' ? done : UNTOLD[told];
}

/** Gives a request up, wherever it runs. */
function cancelRunning(
  own: OwnSession,
  id: Json | undefined,
): UpstreamAnswer | Promise<PlacedOutcome> {
  if (typeof id !== 'string' && typeof id !== 'number') return acceptedAnswer();
  const news = { kind: 'cancelled', id } as const;
  if (!own.notes.running.has(id)) return spread(own, news, acceptedAnswer());
  noteNews(own.notes, news);
  return acceptedAnswer();
}

/** Gives an answer to whoever asked, be it another replica; it is refused where nobody waits for it. Never rejects. */
export async function takeAnswer(
  { session, owner, notes, words }: OwnSession,
  id: RequestId,
  reply: QuestionReply,
): Promise<PlacedOutcome> {
  const settle = notes.waiting.get(id);
  if (settle !== undefined) {
    settle(reply);
    return acceptedAnswer();
  }
  const asker = replicaOf(id);
  if (asker === words.self) return ASKED_ELSEWHERE;
  const told = await words.tell(asker, { session, owner, news: { kind: 'answered', id, reply } });
  if (told === 'told') return acceptedAnswer();
  return told === 'nobody' ? ASKED_ELSEWHERE : UNTOLD[told];
}
