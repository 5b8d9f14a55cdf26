// Serves clients of the stateless era before an upstream of sessions. The sessions are the gateway's own,
// one a caller and what it declares; ids and tokens within them are its own too, so that two clients of
// one caller never meet. A client that leaves cancels, because in its era that is what leaving means.
// Source: MCP 2026-07-28; MCP 2025-11-25; mcp-spec.md §2.4.

import type { Admitted } from '../../mcp/admitted.js';
import { amendAnswer } from '../../mcp/amended-answer.js';
import { mayAskFirst } from '../../mcp/asking.js';
import { inOnePiece } from '../../mcp/body.js';
import { spanOf } from '../../mcp/json.js';
import { Leaving } from '../../mcp/leaving.js';
import type { JsonObject } from '../../mcp/message.js';
import {
  discoverResult,
  type SentAs,
  sentAs,
  sessionBody,
  tellStateless,
} from '../../mcp/translate/to-sessions.js';
import { capabilitiesFor, refusal } from '../../mcp/translate/to-stateless.js';
import type {
  ForwardFault,
  ForwardOutcome,
  LeaveSignal,
  PlacedOutcome,
  UpstreamAnswer,
} from '../../mcp/transport.js';
import { LATEST_SESSION_VERSION } from '../../mcp/versions.js';
import { type Caller, withoutToken } from '../../policy/caller.js';
import type { Cleared } from '../../settle/settle.js';
import { createListingRequest } from '../listing-port.js';
import type { TranslationSettings } from './for-sessions.js';
import { listenInSession } from './listen-in-session.js';
import { hearWhole, isJson, isStream } from './messages.js';
import { headersIn, openUpstreamSession } from './open-session.js';
import { streamAnswer, wholeAnswer } from './own-answer.js';
import { createParking, type Parking } from './parking.js';
import { relayInSession, resume } from './session-call.js';
import {
  createSessionPool,
  type PooledSession,
  type SessionPool,
  type UpstreamSession,
} from './session-pool.js';
import { createTeller, type Tell } from './told-messages.js';
import { createToldPages, type ToldPages } from './told-pages.js';

export type StatelessSettings = TranslationSettings & {
  readonly now: () => number;
  /** Sessions with this upstream at a time, and how long one rests before it is ended. */
  readonly maxSessions?: number;
  readonly idleMs?: number;
};

export type StatelessClients = {
  forward(
    cleared: Cleared,
    by: Caller,
    carried: readonly string[],
    signal: LeaveSignal | undefined,
  ): Promise<PlacedOutcome>;
  close(): void;
};

/** What the files of this folder share. */
export type StatelessParts = StatelessSettings & {
  readonly pool: SessionPool;
  readonly parking: Parking;
  readonly pages: ToldPages;
  readonly tell: Tell;
};

const MAX_SESSIONS = 1_000;
const IDLE_MS = 5 * 60 * 1000;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
/** 404 by the specification; servers that have forgotten a session also answer 400. */
const LOST_STATUSES: ReadonlySet<number> = new Set([400, 404]);
const LOST =
  'The session with this server was lost, and nothing is known of the call. It was not sent again.';

/** Serves them over one upstream. */
export function createStatelessClients(settings: StatelessSettings): StatelessClients {
  const tell = createTeller(settings);
  const pool = createSessionPool({
    maxSessions: settings.maxSessions ?? MAX_SESSIONS,
    idleMs: settings.idleMs ?? IDLE_MS,
    now: settings.now,
    end: (session) => endSession(settings, session),
  });
  const parts: StatelessParts = {
    ...settings,
    pool,
    parking: createParking(settings.words),
    pages: createToldPages(),
    tell,
  };
  return {
    forward: (cleared, by, carried, signal) => forward({ parts, cleared, by, signal }, carried),
    close() {
      parts.parking.close();
      pool.close();
    },
  };
}

function endSession({ client }: StatelessSettings, session: UpstreamSession): void {
  if (session.upstreamSession === undefined) return;
  void client.endSession(session, session.caller).then((outcome) => {
    if (outcome.kind === 'answer') outcome.release();
  });
}

/** One message on its way. */
type Passage = {
  readonly parts: StatelessParts;
  readonly cleared: Cleared;
  readonly by: Caller;
  readonly signal: LeaveSignal | undefined;
};

async function forward(passage: Passage, carried: readonly string[]): Promise<PlacedOutcome> {
  const { parts, cleared, by, signal } = passage;
  const { admitted } = cleared;
  if (admitted.message.kind !== 'request') return wholeAnswer(202);
  const { id, method } = admitted.message;
  const open = (): Promise<UpstreamSession | ForwardFault> =>
    openSession(passage, carried.at(-1) ?? LATEST_SESSION_VERSION);
  if (method === 'subscriptions/listen')
    return listenInSession(parts, { cleared, by }, open, signal);
  if (isAnswer(admitted)) return answerParked(passage);
  const take = (): Promise<PooledSession | ForwardFault> => parts.pool.take(keyOf(cleared), open);
  const session = await take();
  if (typeof session === 'string') return { kind: 'fault', reason: session };
  if (method === 'server/discover') {
    session.release();
    return wholeAnswer(200, discoverResult(id, session.handshake));
  }
  const outcome = await send(passage, session);
  if (outcome !== 'lost') return outcome;
  // Nobody knows what a call has done before its session was lost; whatever else may be asked again.
  if (method === 'tools/call') return wholeAnswer(200, refusal(id, LOST));
  const renewed = await take();
  if (typeof renewed === 'string') return { kind: 'fault', reason: renewed };
  const again = await send(passage, renewed);
  return again === 'lost' ? wholeAnswer(200, refusal(id, LOST)) : again;
}

function isAnswer({ message }: Admitted): boolean {
  return 'params' in message && message.params?.['requestState'] !== undefined;
}

async function openSession(
  { parts, cleared: { admitted }, by }: Passage,
  version: string,
): Promise<UpstreamSession | ForwardFault> {
  const { client, requestTimeoutMs, gatewayVersion, now } = parts;
  const ports = {
    request: createListingRequest(client, by),
    now,
    requestTimeoutMs,
    setTimer(run: () => void, delayMs: number) {
      const timer = setTimeout(run, delayMs);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
  const opened = await openUpstreamSession(ports, {
    version,
    capabilities: capabilitiesFor(admitted),
    clientInfo: { name: 'sallyport', version: gatewayVersion },
    logLevel: logLevelOf(admitted),
  });
  return typeof opened === 'string' ? opened : { ...opened, caller: withoutToken(by) };
}

function logLevelOf({ message }: Admitted): string | undefined {
  const meta = 'params' in message ? message.params?.['_meta'] : undefined;
  const level = (meta as JsonObject | undefined)?.[LOG_LEVEL];
  return typeof level === 'string' ? level : undefined;
}

/** Whose session it is, and on which terms: exact strings, as verified. */
export function keyOf({ principal, admitted }: Cleared): string {
  const { issuerUrl, subject, client } = principal;
  const terms = [[...admitted.askable].sort(), admitted.apps, logLevelOf(admitted) ?? null];
  return JSON.stringify([issuerUrl, subject, client, ...terms]);
}

async function send(
  { parts, cleared, by, signal }: Passage,
  session: PooledSession,
): Promise<ForwardOutcome | 'lost'> {
  const { admitted } = cleared;
  const sent = sentAs(admitted, session.nextId());
  const form = {
    headers: Object.entries(headersIn(session)),
    body: sessionBody(admitted, sent),
  };
  const stop = new Leaving();
  let isOver = false;
  const cancel = (): void => {
    if (isOver) return;
    isOver = true;
    stop.abort();
    session.release();
    const params = { requestId: sent.sentId, reason: 'The client has left.' };
    parts.tell(session, by, { jsonrpc: '2.0', method: 'notifications/cancelled', params });
  };
  if (signal?.aborted === true) {
    session.release();
    return { kind: 'fault', reason: 'upstream-unavailable' };
  }
  signal?.addEventListener('abort', cancel, { once: true });
  const mayRest = admitted.askable.length > 0 && mayAskFirst(admitted.rule.method);
  const outcome = await parts.client.forwardAs(cleared, by, form, stop, mayRest);
  const end = (): void => {
    isOver = true;
    signal?.removeEventListener('abort', cancel);
    session.release();
  };
  if (outcome.kind === 'fault') {
    end();
    return outcome;
  }
  if (LOST_STATUSES.has(outcome.status) && session.upstreamSession !== undefined) {
    outcome.release();
    end();
    parts.pool.forget(session);
    return 'lost';
  }
  const call = { parts, by, session, sent, cancel, end, askable: admitted.askable };
  return isStream(outcome) ? relayInSession(call, outcome) : tellWhole(outcome, sent, end, parts);
}

/** An answer that came whole. */
function tellWhole(
  answer: UpstreamAnswer,
  sent: SentAs,
  end: () => void,
  { pages, hearing }: StatelessParts,
): UpstreamAnswer {
  end();
  if (!isJson(answer)) return answer;
  return amendAnswer(answer, {
    async whole(maxBytes, withinMs) {
      const whole = await answer.whole(maxBytes, withinMs);
      if (typeof whole === 'string') return whole;
      const bytes = inOnePiece(whole);
      const ids = { heard: sent.sentId, told: sent.id };
      return pages.tell(sent.method, bytes, ids, async () => {
        const heard = await hearWhole(bytes, hearing);
        // What is no JSON is not told otherwise: it is refused by whoever reads it.
        if (heard.kind !== 'message' || heard.value === undefined) return undefined;
        const told = tellStateless(heard.text, heard.value, sent);
        return told === undefined ? undefined : { heard: heard.text, told };
      });
    },
  });
}

/** The second leg of a dialogue: what waited in mid-call goes on with the client's answer. */
function answerParked({ parts, cleared: { admitted }, by, signal }: Passage): PlacedOutcome {
  const state = openedState(admitted);
  const parked = state === undefined ? undefined : parts.parking.find(state);
  // Its connection cannot be handed over: elsewhere, and after its time, the call begins anew.
  if (state === undefined || parked === undefined)
    return { kind: 'fault', reason: 'asked-elsewhere' };
  const conversation = resume(parked, { admitted, by }, signal);
  // It waits on: the same answer may come again.
  if (conversation === undefined) return { kind: 'fault', reason: 'overloaded' };
  parts.parking.leave(state);
  return streamAnswer(conversation, { release: () => undefined, abort: parked.call.cancel });
}

/** The state as it leaves: opened by an edit of the text. */
function openedState({ text, edits }: Admitted): string | undefined {
  const span = spanOf(text, ['params', 'requestState']);
  const edit = edits.find((one) => one.start === span?.start);
  return edit === undefined ? undefined : String(JSON.parse(edit.text));
}
