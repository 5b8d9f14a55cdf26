// Opens channels, and the sessions over them: a session begins with its channel and with the handshake on it,
// and ends with either. A handshake is in the version of channels, whatever its client asks for.
// Source: MCP 2024-11-05, lifecycle and transports (HTTP with SSE).

import { randomUUID } from 'node:crypto';
import type { JsonObject, RequestId } from '../../mcp/message.js';
import type { ForwardOutcome, LeaveSignal, UpstreamAnswer } from '../../mcp/transport.js';
import { withoutToken } from '../../policy/caller.js';
import type { UpstreamClient } from '../client.js';
import type { Hearing } from '../hearing.js';
import type { OnBehalf } from '../presenter.js';
import { wholeAnswer } from '../translate/own-answer.js';
import { type ChannelSession, createChannelSession } from './channel-session.js';
import { type ChannelTable, createChannelTable } from './channel-table.js';
import type { Ledger, Reading } from './mailbox.js';
import { askChannelVersion, readAnswered, tellVersion } from './own-message.js';
import { shareOf } from './shares.js';

export type BridgeSettings = {
  readonly client: UpstreamClient;
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly hearing?: Hearing | undefined;
  /** Longest silence of an answer, and longest rest of a session. */
  readonly streamIdleMs: number;
  readonly now: () => number;
};

/** Posts a message to the address that a channel named. */
export type Post = (
  target: string,
  body: string,
  signal: LeaveSignal | undefined,
) => Promise<ForwardOutcome>;

/** An `initialize` that opens a session. */
export type Handshake = {
  readonly text: string;
  readonly id: RequestId;
  readonly params: JsonObject;
  /** Whose session it will be; `undefined` for one of the gateway's own, which it counts itself. */
  readonly owner: string | undefined;
  /** On whose behalf its channel is opened, and spoken on by the gateway. */
  readonly by: OnBehalf;
  readonly post: Post;
};

export type Channels = Omit<ChannelTable, 'enter' | 'findOwned' | 'takeRoom'> & {
  /** The answer to the handshake, with the id of the session where one was opened. */
  open(handshake: Handshake): Promise<ForwardOutcome>;
};

/** What a gateway holds of all channels of one upstream. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** One caller may hold the part of it that one of so many has, or two answers where that is more. */
const SHARES = 4;
/** How long the server may take for what the gateway itself says. */
const OWN_TIMEOUT_MS = 5_000;
/** Answers of that kind under way on one channel; a server that asks faster goes unanswered. */
const MAX_OWN_ANSWERS = 4;
const FIRST_REFUSAL = 300;
const UNAVAILABLE = { kind: 'fault', reason: 'upstream-unavailable' } as const;

/** None open. */
export function createChannels(settings: BridgeSettings): Channels {
  const table = createChannelTable(settings.streamIdleMs);
  const ledger: Ledger = { bytesLeft: MAX_HELD_BYTES };
  return {
    find: table.find,
    leave: table.leave,
    close: table.close,
    get size() {
      return table.size;
    },
    async open(handshake) {
      const leaveRoom = table.takeRoom(handshake.owner);
      if (leaveRoom === undefined) return UNAVAILABLE;
      try {
        return await openIn(table, handshake, settings, ledger);
      } finally {
        leaveRoom();
      }
    },
  };
}

async function openIn(
  table: ChannelTable,
  handshake: Handshake,
  settings: BridgeSettings,
  ledger: Ledger,
): Promise<ForwardOutcome> {
  const opened = await settings.client.openChannel(handshake.by, new AbortController().signal);
  if (opened.kind === 'fault') return opened;
  const id = randomUUID();
  const { endpoint, answer } = opened;
  const shareBytes = Math.max(MAX_HELD_BYTES / SHARES, 2 * settings.maxResponseBytes);
  const session = createChannelSession({
    endpoint,
    answer,
    owner: handshake.owner,
    bounds: settings,
    idleMs: settings.streamIdleMs,
    // A session of the gateway's own has one caller, and a share to itself.
    ledger: table.findOwned(handshake.owner)?.ledger ?? shareOf(ledger, shareBytes),
    now: settings.now,
    tell: createTeller(settings, handshake.by, endpoint),
    onEnd: () => table.leave(id),
  });
  const told = await shake(session, handshake, settings.requestTimeoutMs);
  const isOpened = told.kind === 'answer' && told.headers['mcp-session-id'] !== undefined;
  // Where the channel ended with its handshake, nothing would ever be answered.
  if (!isOpened || session.isOver) {
    session.close();
    return isOpened ? UNAVAILABLE : told;
  }
  table.enter(id, session);
  return { ...told, headers: { ...told.headers, 'mcp-session-id': id } };
}

/** The answer to a handshake; with a session id, still to be given, where it succeeded. */
async function shake(
  session: ChannelSession,
  { text, id, params, post }: Handshake,
  withinMs: number,
): Promise<ForwardOutcome> {
  const box = session.begin({ id, token: undefined });
  if (typeof box === 'string') return UNAVAILABLE;
  const posted = await post(
    session.endpoint,
    askChannelVersion(text),
    AbortSignal.timeout(withinMs),
  );
  if (posted.kind === 'fault') return posted;
  posted.release();
  if (posted.status >= FIRST_REFUSAL) return wholeAnswer(posted.status);
  const reading = box.read(0, { isPrimed: false });
  const answered = reading === undefined ? UNAVAILABLE : await awaitAnswer(reading, withinMs);
  session.drop(box);
  if (answered.kind === 'fault') return answered;
  const told = wholeAnswer(200, tellVersion(answered.text, params['protocolVersion']));
  const headers = answered.isResult ? { ...told.headers, 'mcp-session-id': '' } : told.headers;
  return { ...told, headers };
}

type Awaited =
  | { readonly kind: 'text'; readonly text: string; readonly isResult: boolean }
  | Exclude<ForwardOutcome, UpstreamAnswer>;

/** The answer alone, without what comes before it. */
export async function awaitAnswer(reading: Reading, withinMs: number): Promise<Awaited> {
  const timer = setTimeout(reading.leave, withinMs);
  try {
    for await (const said of reading.conversation) {
      if (said.kind === 'fault') return said;
      const answered = said.kind === 'message' ? readAnswered(said.text) : undefined;
      if (answered !== undefined) return { kind: 'text', ...answered };
    }
    return { kind: 'fault', reason: 'upstream-timeout' };
  } finally {
    clearTimeout(timer);
    reading.leave();
  }
}

function createTeller(
  { client }: BridgeSettings,
  opener: OnBehalf,
  target: string,
): (message: JsonObject) => void {
  // A channel outlives the exchange that opened it: what was issued is kept, and the token is not.
  const by = opener === 'gateway' ? opener : withoutToken(opener);
  const headers = { 'content-type': 'application/json' };
  let underWay = 0;
  return (message) => {
    if (underWay >= MAX_OWN_ANSWERS) return;
    underWay += 1;
    const body = JSON.stringify(message);
    const told = { by, method: 'POST', target, headers, body, timeoutMs: OWN_TIMEOUT_MS } as const;
    void client.request(told).then((outcome) => {
      underWay -= 1;
      if (outcome.kind === 'answer') outcome.release();
    });
  };
}
