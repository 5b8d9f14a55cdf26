// Opens channels, and the sessions over them: a session begins with its channel and with the handshake on it,
// and ends with either. A handshake is in the version of channels, whatever its client asks for.
// Source: MCP 2024-11-05, lifecycle and transports (HTTP with SSE).

import { randomUUID } from 'node:crypto';
import type { JsonObject, RequestId } from '../../mcp/message.js';
import type { ForwardOutcome, LeaveSignal, UpstreamResponse } from '../../mcp/transport.js';
import { withoutToken } from '../../policy/caller.js';
import type { UpstreamClient } from '../client.js';
import type { MessageReader } from '../hearing.js';
import type { OnBehalf } from '../presenter.js';
import { bodyResponse } from '../translate/own-answer.js';
import { createLegacySseSession, type LegacySseSession } from './channel-session.js';
import { createLegacySseSessionTable, type LegacySseSessionTable } from './channel-table.js';
import type { Ledger, Reading } from './mailbox.js';
import { readResponse, requestLegacySseVersion, withVersion } from './own-message.js';
import { ownerLedgerOf } from './shares.js';

export type BridgeSettings = {
  readonly client: UpstreamClient;
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly messageReader?: MessageReader | undefined;
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

export type LegacySseConnections = Omit<
  LegacySseSessionTable,
  'enter' | 'findOwned' | 'acquire'
> & {
  /** The answer to the handshake, with the id of the session where one was opened. */
  open(handshake: Handshake): Promise<ForwardOutcome>;
};

/** What a gateway holds of all channels of one upstream. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** One caller may hold the part of it that one of so many has, or two answers where that is more. */
const QUOTA_DIVISOR = 4;
/** How long the server may take for what the gateway itself says. */
const OWN_TIMEOUT_MS = 5_000;
/** Answers of that kind under way on one channel; a server that asks faster goes unanswered. */
const MAX_OWN_RESPONSES = 4;
const FIRST_REFUSAL = 300;
const UNAVAILABLE = { kind: 'fault', reason: 'upstream-unavailable' } as const;

/** None open. */
export function createLegacySseConnections(settings: BridgeSettings): LegacySseConnections {
  const table = createLegacySseSessionTable(settings.streamIdleMs);
  const ledger: Ledger = { bytesLeft: MAX_HELD_BYTES };
  return {
    find: table.find,
    leave: table.leave,
    close: table.close,
    get size() {
      return table.size;
    },
    async open(handshake) {
      const releaseSlot = table.acquire(handshake.owner);
      if (releaseSlot === undefined) return UNAVAILABLE;
      try {
        return await openIn(table, handshake, settings, ledger);
      } finally {
        releaseSlot();
      }
    },
  };
}

async function openIn(
  table: LegacySseSessionTable,
  handshake: Handshake,
  settings: BridgeSettings,
  ledger: Ledger,
): Promise<ForwardOutcome> {
  const opened = await settings.client.openLegacyStream(handshake.by, new AbortController().signal);
  if (opened.kind === 'fault') return opened;
  const id = randomUUID();
  const { messageEndpoint, response: answer } = opened;
  const maxOwnBytes = Math.max(MAX_HELD_BYTES / QUOTA_DIVISOR, 2 * settings.maxResponseBytes);
  const session = createLegacySseSession({
    messageEndpoint,
    response: answer,
    owner: handshake.owner,
    bounds: settings,
    idleMs: settings.streamIdleMs,
    // A session of the gateway's own has one caller, and a share to itself.
    ledger: table.findOwned(handshake.owner)?.ledger ?? ownerLedgerOf(ledger, maxOwnBytes),
    now: settings.now,
    sendMessage: createMessageSender(settings, handshake.by, messageEndpoint),
    onEnd: () => table.leave(id),
  });
  const response = await performHandshake(session, handshake, settings.requestTimeoutMs);
  const isOpened = response.kind === 'answer' && response.headers['mcp-session-id'] !== undefined;
  // Where the channel ended with its handshake, nothing would ever be answered.
  if (!isOpened || session.isOver) {
    session.close();
    return isOpened ? UNAVAILABLE : response;
  }
  table.enter(id, session);
  return { ...response, headers: { ...response.headers, 'mcp-session-id': id } };
}

/** The answer to a handshake; with a session id, still to be given, where it succeeded. */
async function performHandshake(
  session: LegacySseSession,
  { text, id, params, post }: Handshake,
  withinMs: number,
): Promise<ForwardOutcome> {
  const eventBuffer = session.begin({ id, token: undefined });
  if (typeof eventBuffer === 'string') return UNAVAILABLE;
  const posted = await post(
    session.messageEndpoint,
    requestLegacySseVersion(text),
    AbortSignal.timeout(withinMs),
  );
  if (posted.kind === 'fault') return posted;
  posted.release();
  if (posted.status >= FIRST_REFUSAL) return bodyResponse(posted.status);
  const reading = eventBuffer.read(0, { isPrimed: false });
  const answered = reading === undefined ? UNAVAILABLE : await awaitResponse(reading, withinMs);
  session.drop(eventBuffer);
  if (answered.kind === 'fault') return answered;
  const response = bodyResponse(200, withVersion(answered.text, params['protocolVersion']));
  const headers = answered.isResult
    ? { ...response.headers, 'mcp-session-id': '' }
    : response.headers;
  return { ...response, headers };
}

type Awaited =
  | { readonly kind: 'text'; readonly text: string; readonly isResult: boolean }
  | Exclude<ForwardOutcome, UpstreamResponse>;

/** The answer alone, without what comes before it. */
export async function awaitResponse(reading: Reading, withinMs: number): Promise<Awaited> {
  const timer = setTimeout(reading.leave, withinMs);
  try {
    for await (const outbound of reading.conversation) {
      if (outbound.kind === 'fault') return outbound;
      const answered = outbound.kind === 'message' ? readResponse(outbound.text) : undefined;
      if (answered !== undefined) return { kind: 'text', ...answered };
    }
    return { kind: 'fault', reason: 'upstream-timeout' };
  } finally {
    clearTimeout(timer);
    reading.leave();
  }
}

function createMessageSender(
  { client }: BridgeSettings,
  opener: OnBehalf,
  target: string,
): (message: JsonObject) => void {
  // A channel outlives the exchange that opened it: what was issued is kept, and the token is not.
  const by = opener === 'gateway' ? opener : withoutToken(opener);
  const headers = { 'content-type': 'application/json' };
  let underWay = 0;
  return (message) => {
    if (underWay >= MAX_OWN_RESPONSES) return;
    underWay += 1;
    const body = JSON.stringify(message);
    const request = {
      by,
      method: 'POST',
      target,
      headers,
      body,
      timeoutMs: OWN_TIMEOUT_MS,
    } as const;
    void client.request(request).then((outcome) => {
      underWay -= 1;
      if (outcome.kind === 'answer') outcome.release();
    });
  };
}
