// A conversation with questions, as a client of sessions has it: a result that asks becomes requests of the
// server on the open stream; the client's answers go back with the same request, sent once more.
// Whether a question may be asked is judged on its way to the client, like everything else.
// Source: MCP 2026-07-28, multi-round-trip requests; MCP 2025-11-25, sampling, elicitation, roots.

import { randomUUID } from 'node:crypto';
import { type Asking, type KeyedQuestion, readAsking } from '../../mcp/asking.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../../mcp/message.js';
import {
  type Leg,
  refusal,
  type SessionReader,
  tellSession,
} from '../../mcp/translate/to-stateless.js';
import type { ForwardOutcome, LeaveSignal, UpstreamAnswer } from '../../mcp/transport.js';
import { type Heard, type HearingBounds, hear } from './messages.js';
import type { Conversation, Said } from './own-answer.js';
import type { QuestionReply, SessionNotes } from './session-notes.js';
import { nameHere, type SessionWords } from './session-words.js';

/** What a conversation stands on. */
export type DialogueParts = {
  readonly reader: SessionReader;
  readonly notes: SessionNotes;
  readonly words: Pick<SessionWords, 'self'>;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: LeaveSignal;
  readonly bounds: HearingBounds;
  /** Sends the request once more, with answers. */
  again(leg: Leg): Promise<ForwardOutcome>;
  /** Called once, when all is said. */
  leave(): void;
};

/** Times that one request may be sent again. */
const MAX_LEGS = 32;
/** How long a client may think. */
const ANSWER_WITHIN_MS = 30 * 60 * 1000;
/** Questions of one session that wait at a time. */
const MAX_WAITING = 64;

const UNANSWERED = 'A question of this server was not answered, so its answer cannot be had.';
const ENDLESS = 'This server asks more often than is carried.';
const MALFORMED = 'This server asked for input in a form that is not carried.';

/** How one answer ended: with all said, or with a question. */
type Round = { readonly result: JsonObject } | undefined;

/** Tells the conversation that begins with this answer. */
export async function* converse(first: UpstreamAnswer, parts: DialogueParts): Conversation {
  const { id } = parts.reader;
  let answer = first;
  let sentId: RequestId = id;
  try {
    for (let legs = 0; legs < MAX_LEGS; legs += 1) {
      const round = yield* tellRound(answer, { ...parts.reader, sentId }, parts.bounds);
      if (round === undefined) return;
      const leg = yield* nextLeg(round.result, parts);
      if (leg === undefined) return;
      sentId = leg.id;
      const outcome = await parts.again(leg);
      if (outcome.kind === 'fault') return yield outcome;
      answer = outcome;
    }
    yield said(refusal(id, ENDLESS));
  } finally {
    parts.leave();
  }
}

function said(text: string): Said {
  return { kind: 'message', text };
}

/** What was heard, as a client of sessions is told it. */
export function toldOf(heard: Heard, reader: SessionReader): Said {
  if (heard.kind !== 'message') return heard;
  const { text, value } = heard;
  return value === undefined ? { kind: 'message', text } : said(tellSession(text, value, reader));
}

/** Tells one answer, up to its end or to the question in it. */
async function* tellRound(
  answer: UpstreamAnswer,
  reader: SessionReader,
  bounds: HearingBounds,
): AsyncGenerator<Said, Round> {
  for await (const heard of hear(answer, bounds)) {
    const result = resultThatAsks(heard, reader.sentId);
    if (result !== undefined) return { result };
    yield toldOf(heard, reader);
    if (isOwnAnswer(heard, reader.sentId)) return undefined;
  }
  return undefined;
}

function isOwnAnswer(heard: Heard, sentId: RequestId): boolean {
  return heard.kind === 'message' && isObject(heard.value) && heard.value['id'] === sentId;
}

/** Asks what is asked; the next leg, or nothing where there is none and the client was told why. */
async function* nextLeg(
  result: JsonObject,
  parts: DialogueParts,
): AsyncGenerator<Said, Leg | undefined> {
  const { id } = parts.reader;
  const asking = readAsking(result);
  const free = MAX_WAITING - parts.notes.waiting.size;
  if (asking === undefined || asking.questions.length > free) {
    yield said(refusal(id, MALFORMED));
    return undefined;
  }
  const responses = yield* ask(asking, parts);
  if (responses !== undefined) return { id: randomUUID(), responses, state: asking.state };
  yield said(refusal(id, UNANSWERED));
  return undefined;
}

function resultThatAsks(heard: Heard, sentId: RequestId): JsonObject | undefined {
  if (heard.kind !== 'message' || !isObject(heard.value) || heard.value['id'] !== sentId)
    return undefined;
  const result = heard.value['result'];
  return isObject(result) && result['resultType'] === 'input_required' ? result : undefined;
}

/** Asks, and waits for every answer; `undefined` where one will not come. */
async function* ask(
  { questions }: Asking,
  { notes, words, signal }: DialogueParts,
): AsyncGenerator<Said, JsonObject | undefined> {
  const asked = questions.map((question) => ({ id: nameHere(words), question }));
  const replies = asked.map(({ id }) => waitFor(notes, id, signal));
  try {
    for (const { id, question } of asked) yield said(requestText(id, question));
    const responses: Record<string, Json> = {};
    for (const [index, { question }] of asked.entries()) {
      const reply = await replies[index]?.reply;
      if (reply?.kind !== 'result') return undefined;
      responses[question.key] = reply.result;
    }
    return responses;
  } finally {
    for (const { end } of replies) end();
  }
}

function requestText(id: string, { name, params }: KeyedQuestion): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: METHODS[name], params });
}

const METHODS: { readonly [name in KeyedQuestion['name']]: string } = {
  sampling: 'sampling/createMessage',
  'elicitation/form': 'elicitation/create',
  'elicitation/url': 'elicitation/create',
  roots: 'roots/list',
};

function waitFor(
  notes: SessionNotes,
  id: string,
  signal: LeaveSignal,
): { readonly reply: Promise<QuestionReply>; end(): void } {
  const late: QuestionReply = { kind: 'error', error: undefined };
  let settle: (reply: QuestionReply) => void = () => undefined;
  const reply = new Promise<QuestionReply>((resolve) => {
    settle = resolve;
  });
  const giveUp = (): void => settle(late);
  const timer = setTimeout(giveUp, ANSWER_WITHIN_MS);
  timer.unref();
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp, { once: true });
  notes.waiting.set(id, settle);
  return {
    reply,
    end() {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      notes.waiting.delete(id);
      giveUp();
    },
  };
}
