// One session over a channel of HTTP+SSE, as a server of sessions would have it: what comes on the one stream is
// told to the exchange that it belongs to, and all else to the session's own stream. What is said is not
// judged here.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports.

import { isObject, type Json, type JsonObject, type RequestId } from '../../mcp/message.js';
import type { ForwardFault, UpstreamAnswer } from '../../mcp/transport.js';
import { type HearingBounds, hear } from '../translate/messages.js';
import { createMailbox, type Mailbox, type Reading } from './mailbox.js';
import type { Share } from './shares.js';

export type ChannelSessionSettings = {
  /** Where the server wants messages. */
  readonly endpoint: string;
  /** Whose it is, for bounds. */
  readonly owner: string | undefined;
  readonly answer: UpstreamAnswer;
  readonly bounds: HearingBounds;
  readonly idleMs: number;
  readonly ledger: Share;
  readonly now: () => number;
  /** Says something to the server in the gateway's own name. */
  readonly tell: (message: JsonObject) => void;
  /** Called once, when the channel has ended. */
  readonly onEnd: () => void;
};

/** A request under way. */
export type PendingRequest = { readonly id: RequestId; readonly token: RequestId | undefined };

/** Why a request cannot be sent. */
export type NotSent = 'id-in-use' | 'too-many';

export type ChannelSession = {
  readonly endpoint: string;
  readonly owner: string | undefined;
  /** What its owner may hold. */
  readonly ledger: Share;
  /** Enters a request before it is sent, so that no answer comes too early. */
  begin(request: PendingRequest): Mailbox | NotSent;
  /** Nobody wants the answer to this request any more. */
  cancel(id: RequestId): void;
  /** Nothing more is wanted of what this mailbox holds. */
  drop(box: Mailbox): void;
  /** All was told. It is held for a while, among the newest, for a reader who has not got it. */
  keep(box: Mailbox): void;
  /** The session's own stream, or one that goes on after an event. */
  read(lastEventId: string | undefined, isPrimed: boolean): Reading | undefined;
  /** Frees what nobody came back for; true while somebody uses the session. */
  isUsed(restMs: number): boolean;
  /** True while nothing waits and nobody listens. */
  readonly isResting: boolean;
  /** The channel has ended: nothing that is sent is ever answered. */
  readonly isOver: boolean;
  close(): void;
};

/** Requests of one session that wait at a time. */
const MAX_PENDING = 256;
/** What nobody reads is worth no more than this. */
const MAX_OWN_BYTES = 256 * 1024;
/** Answers of a session that are held after they were told, and the largest of them. */
const MAX_KEPT = 8;
const MAX_KEPT_BYTES = 256 * 1024;
const OWN_KEY = '0';
const EVENT_ID = /^([0-9]{1,15})-([0-9]{1,15})$/;

const NOBODY = {
  code: -32603,
  message: 'Nobody can be asked: no request, or more than one, waits on this channel.',
};

type Pending = { readonly request: PendingRequest; readonly box: Mailbox };

/** Reads the channel from now on. */
export function createChannelSession(settings: ChannelSessionSettings): ChannelSession {
  const { answer, bounds, idleMs, ledger, now } = settings;
  const pending = new Map<string, Pending>();
  const boxes = new Map<string, Mailbox>();
  let kept: Mailbox[] = [];
  let lastKey = 0;
  let usedAtMs = now();
  let isOver = false;
  const mailbox = (overflow: 'forget' | 'fail', key: string, maxBytes: number): Mailbox =>
    createMailbox({ key, maxBytes, ledger, idleMs, overflow, now });
  const own = mailbox('forget', OWN_KEY, MAX_OWN_BYTES);

  function route(text: string, value: Json | undefined): void {
    // What no reader of JSON takes is refused by whoever judges it.
    if (isObject(value)) routeMessage(text, value);
    else (sole() ?? own).put(text);
  }

  function routeMessage(text: string, { id, method, params }: JsonObject): void {
    if (typeof method !== 'string') answerTo(id, text);
    else if (isId(id)) ask(id, method, text);
    else notify(method, params, text);
  }

  /** What belongs to no request is told to whoever listens; where nobody does, with the one that waits. */
  function notify(method: string, params: Json | undefined, text: string): void {
    const box = method === 'notifications/progress' ? ofToken(params) : undefined;
    (box ?? (own.isRead ? own : (sole() ?? own))).put(text);
  }

  function answerTo(id: Json | undefined, text: string): void {
    const found = isId(id) ? pending.get(keyOf(id)) : undefined;
    // Nobody's: whoever judges the session's own stream drops it, and records that.
    const box = found?.box ?? own;
    box.put(text);
    if (found === undefined) return;
    pending.delete(keyOf(found.request.id));
    box.end('complete');
  }

  /** A question belongs to the call that waits. Where that is not clear, a stream must be there to take it. */
  function ask(id: RequestId, method: string, text: string): void {
    const box = sole() ?? (own.isRead ? own : undefined);
    if (method === 'ping') settings.tell({ jsonrpc: '2.0', id, result: {} });
    else if (box === undefined) settings.tell({ jsonrpc: '2.0', id, error: NOBODY });
    else box.put(text);
  }

  function sole(): Mailbox | undefined {
    if (pending.size !== 1) return undefined;
    const [only] = pending.values();
    return only?.box;
  }

  function ofToken(params: Json | undefined): Mailbox | undefined {
    const token = isObject(params) ? params['progressToken'] : undefined;
    if (!isId(token)) return undefined;
    for (const { request, box } of pending.values()) if (request.token === token) return box;
    return undefined;
  }

  function drop(box: Mailbox): void {
    for (const [key, entry] of pending) if (entry.box === box) pending.delete(key);
    boxes.delete(box.key);
    kept = kept.filter((one) => one !== box);
    box.drop();
  }

  function over(why: ForwardFault): void {
    isOver = true;
    for (const { box } of pending.values()) box.end(why);
    pending.clear();
    own.end(why);
    settings.onEnd();
  }

  async function readOn(): Promise<void> {
    let why: ForwardFault = 'upstream-unavailable';
    for await (const heard of hear(answer, bounds)) {
      if (heard.kind === 'message') route(heard.text, heard.value);
      else if (heard.kind === 'fault') why = heard.reason;
    }
    over(why);
  }
  void readOn();

  return {
    endpoint: settings.endpoint,
    owner: settings.owner,
    ledger,
    begin(request) {
      const key = keyOf(request.id);
      if (pending.has(key)) return 'id-in-use';
      if (pending.size >= MAX_PENDING) return 'too-many';
      lastKey += 1;
      const box = mailbox('fail', String(lastKey), bounds.maxResponseBytes);
      pending.set(key, { request, box });
      boxes.set(box.key, box);
      usedAtMs = now();
      return box;
    },
    cancel(id) {
      const found = pending.get(keyOf(id));
      if (found !== undefined) drop(found.box);
    },
    drop,
    keep(box) {
      if (box.bytes > MAX_KEPT_BYTES || ledger.isHalfTaken) return drop(box);
      kept.push(box);
      const oldest = kept.length > MAX_KEPT ? kept.shift() : undefined;
      if (oldest !== undefined) drop(oldest);
    },
    read(lastEventId, isPrimed) {
      usedAtMs = now();
      if (lastEventId === undefined) return own.read(own.unread, { isPrimed });
      const [, key = '', after = ''] = EVENT_ID.exec(lastEventId) ?? [];
      const box = key === OWN_KEY ? own : boxes.get(key);
      return box?.read(Number(after), { isPrimed: false });
    },
    isUsed(restMs) {
      const isRested = ({ isRead, usedAtMs: at }: Mailbox): boolean =>
        !isRead && now() - at >= restMs;
      for (const box of [...boxes.values()]) if (isRested(box)) drop(box);
      return pending.size > 0 || own.isRead || now() - usedAtMs < restMs;
    },
    get isResting() {
      return pending.size === 0 && !own.isRead;
    },
    get isOver() {
      return isOver;
    },
    close() {
      answer.abort();
      for (const box of [...boxes.values()]) drop(box);
      own.drop();
    },
  };
}

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
function keyOf(id: RequestId): string {
  return JSON.stringify(id);
}

function isId(value: Json | undefined): value is RequestId {
  return typeof value === 'string' || typeof value === 'number';
}
