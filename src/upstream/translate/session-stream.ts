// The stream of a session whose upstream has no sessions: one subscription there, asked anew whenever the
// session subscribes to something else. Where the upstream knows no subscriptions there is no stream of
// its own (405), and what the gateway itself sees is all that is told.
// Source: MCP 2026-07-28, subscriptions; MCP 2025-11-25, transports (listening for messages).

import type { Json } from '../../mcp/message.js';
import { ownForm, type RequestEnvelope, tellNotice } from '../../mcp/translate/to-stateless.js';
import type { ForwardOutcome, LeaveSignal, UpstreamAnswer } from '../../mcp/transport.js';
import type { Caller } from '../../policy/caller.js';
import type { SessionUpstream } from '../client.js';
import { type HearingBounds, hear, isStream } from './messages.js';
import { type Conversation, type Said, streamAnswer, wholeAnswer } from './own-answer.js';
import type { SessionNotes } from './session-notes.js';

type StreamParts = HearingBounds & {
  readonly client: Pick<SessionUpstream, 'subscribe'>;
  readonly by: Caller;
  readonly envelope: RequestEnvelope;
};

const LISTEN_ID = 1;

/** Opens it: the answer to the session's GET. */
export async function listenForSession(
  parts: StreamParts,
  notes: SessionNotes,
  signal: LeaveSignal,
): Promise<ForwardOutcome> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  signal.addEventListener('abort', end, { once: true });
  const first = await subscribe(parts, notes, stop.signal);
  if (first.kind === 'fault') return first;
  if (!isStream(first.answer)) {
    first.answer.release();
    return wholeAnswer(first.answer.status >= 500 ? first.answer.status : 405);
  }
  return streamAnswer(tell(parts, notes, first, stop), { release: end, abort: end });
}

type Subscribed =
  | {
      readonly kind: 'subscribed';
      readonly answer: UpstreamAnswer;
      readonly renewed: () => boolean;
    }
  | Extract<ForwardOutcome, { readonly kind: 'fault' }>;

/**
 * One subscription to what the session wants to hear now; it is given up when that changes, but not before it
 * was answered: what changes meanwhile, however often, costs one more.
 */
async function subscribe(
  { client, by, envelope }: StreamParts,
  notes: SessionNotes,
  signal: LeaveSignal,
): Promise<Subscribed> {
  const notifications: Record<string, Json> = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
  };
  if (notes.resources.size > 0) notifications['resourceSubscriptions'] = [...notes.resources];
  const form = ownForm('subscriptions/listen', LISTEN_ID, { notifications }, envelope);
  let isRenewed = false;
  let isAnswered = false;
  const controller = new AbortController();
  const end = (): void => {
    notes.listeners.delete(renew);
    signal.removeEventListener('abort', end);
    controller.abort();
  };
  function renew(): void {
    isRenewed = true;
    if (isAnswered) end();
  }
  notes.listeners.add(renew);
  signal.addEventListener('abort', end, { once: true });
  const outcome = await client.subscribe(form, by, controller.signal);
  isAnswered = true;
  if (isRenewed || outcome.kind === 'fault') end();
  if (outcome.kind === 'fault') return outcome;
  return { kind: 'subscribed', answer: outcome, renewed: () => isRenewed };
}

async function* tell(
  parts: StreamParts,
  notes: SessionNotes,
  first: Extract<Subscribed, { readonly kind: 'subscribed' }>,
  stop: AbortController,
): Conversation {
  let current = first;
  try {
    for (;;) {
      yield* tellOne(current, parts);
      if (!current.renewed() || stop.signal.aborted) return;
      const next = await subscribe(parts, notes, stop.signal);
      if (next.kind === 'fault') return yield next;
      current = next;
    }
  } finally {
    // Its upstream may have ended it, and nobody listens to the session's notes any more.
    stop.abort();
  }
}

async function* tellOne(
  { answer, renewed }: Extract<Subscribed, { readonly kind: 'subscribed' }>,
  bounds: HearingBounds,
): Conversation {
  for await (const heard of hear(answer, bounds)) {
    // A subscription that was given up for another ends with a fault of its own.
    if (heard.kind === 'fault' && renewed()) return;
    const said = heard.kind === 'message' ? noticeIn(heard.text, heard.value) : heard;
    if (said !== undefined) yield said;
  }
}

function noticeIn(text: string, value: Json | undefined): Said | undefined {
  const told = value === undefined ? undefined : tellNotice(text, value);
  return told === undefined ? undefined : { kind: 'message', text: told };
}
