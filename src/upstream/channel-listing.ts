// The gateway's own listing over HTTP+SSE: one channel that is kept open between listings, and each request
// answered as if over HTTP, so that one lister serves both transports. It answers no request of a server.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

import { applyEdits, readJsonText, spanOf } from '../mcp/json.js';
import { readEnvelope } from '../mcp/jsonrpc.js';
import { isObject, type Json } from '../mcp/message.js';
import { createSseFramer, type SseEvent } from '../mcp/sse.js';
import type { UpstreamAnswer } from '../mcp/transport.js';
import type { UpstreamClient } from './client.js';
import type { ListingFault, ListingRequest } from './listing-call.js';
import { LISTING_CAPS } from './listing-pages.js';
import { LISTING_FAULTS } from './listing-port.js';

type Answered = Awaited<ReturnType<ListingRequest>>;
type Input = Parameters<ListingRequest>[0];

/** One channel of our own. `waiting` is keyed by the id under which the server knows a request. */
type OwnChannel = {
  readonly endpoint: string;
  readonly answer: UpstreamAnswer;
  readonly waiting: Map<number, (text: string | undefined) => void>;
  lastId: number;
  isOpen: boolean;
};

/** Stands for the channel towards the lister, which ends what has an id. */
const CHANNEL_ID = 'channel';
const OK = 200;
const FIRST_REFUSAL = 300;
const NOT_FOUND = 404;
const NOT_ALLOWED = 405;

/** The port of a lister over a channel of an upstream. */
export function createChannelRequest(
  client: Pick<UpstreamClient, 'request' | 'openChannel'>,
): ListingRequest {
  let channel: OwnChannel | undefined;

  function close(): void {
    channel?.answer.abort();
    channel = undefined;
  }

  /** A session begins with its channel; the one before it ends. */
  async function reopen(
    timeoutMs: number,
  ): Promise<{ readonly failure: ListingFault } | undefined> {
    close();
    const opened = await openOwn(client, timeoutMs);
    if ('failure' in opened) return opened;
    channel = opened;
    return undefined;
  }

  async function post(input: Input): Promise<Answered> {
    const fault = isInitialize(input.body) ? await reopen(input.timeoutMs) : undefined;
    if (fault !== undefined) return fault;
    // Not there, or broken off: the session is lost, and the lister opens another.
    if (channel?.isOpen !== true) return answerOf(NOT_FOUND);
    return sendOwn(client, channel, input);
  }

  return async (input) => {
    if (input.method === 'DELETE') {
      close();
      return answerOf(OK);
    }
    // No server speaks the stateless era on this transport.
    return input.headers['mcp-method'] === undefined ? post(input) : answerOf(NOT_ALLOWED);
  };
}

function isInitialize(body: string | undefined): boolean {
  const message: Json = JSON.parse(body ?? 'null');
  return isObject(message) && message['method'] === 'initialize';
}

async function openOwn(
  client: Pick<UpstreamClient, 'openChannel'>,
  timeoutMs: number,
): Promise<OwnChannel | { readonly failure: ListingFault }> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const opened = await client.openChannel('gateway', late.signal);
  clearTimeout(timer);
  if (opened.kind === 'fault')
    return { failure: late.signal.aborted ? 'timeout' : LISTING_FAULTS[opened.reason] };
  const { endpoint, answer } = opened;
  const channel = { endpoint, answer, waiting: new Map(), lastId: 0, isOpen: true };
  void readOn(channel);
  return channel;
}

/** Reads until the channel ends; whoever still waits then learns that no answer comes. */
async function readOn(channel: OwnChannel): Promise<void> {
  const framer = createSseFramer({ maxEventBytes: LISTING_CAPS.maxBytes });
  for (;;) {
    const chunk = await channel.answer.next();
    const events = chunk instanceof Uint8Array ? framer.push(chunk) : undefined;
    if (events === undefined || 'fault' in events) break;
    takeAll(channel, events);
  }
  channel.isOpen = false;
  channel.answer.abort();
  for (const tell of channel.waiting.values()) tell(undefined);
}

function takeAll(channel: OwnChannel, events: readonly SseEvent[]): void {
  for (const event of events) {
    if (event.kind === 'message' && event.event === 'message') take(channel, event.data);
  }
}

/** What is no answer to a request of ours is nobody's. */
function take({ waiting }: OwnChannel, data: string): void {
  const reading = readJsonText(data);
  const envelope = reading.ok ? readEnvelope(reading.value) : undefined;
  if (envelope?.kind !== 'result' && envelope?.kind !== 'error') return;
  if (typeof envelope.id === 'number') waiting.get(envelope.id)?.(data);
}

/** Posts a message, and waits for its answer on the channel where it has one. */
async function sendOwn(
  client: Pick<UpstreamClient, 'request'>,
  channel: OwnChannel,
  { body = '', timeoutMs }: Input,
): Promise<Answered> {
  channel.lastId += 1;
  const id = channel.lastId;
  const asked = spanOf(body, ['id']);
  const answered = asked === undefined ? undefined : awaitAnswer(channel, id, timeoutMs);
  const posted = await client.request({
    by: 'gateway',
    method: 'POST',
    target: channel.endpoint,
    headers: { 'content-type': 'application/json' },
    body: asked === undefined ? body : applyEdits(body, [{ ...asked, text: String(id) }]),
    timeoutMs,
  });
  if (posted.kind === 'fault') return { failure: LISTING_FAULTS[posted.reason] };
  posted.release();
  if (posted.status >= FIRST_REFUSAL || answered === undefined || asked === undefined)
    return answerOf(posted.status);
  const text = await answered;
  if (text === undefined) return { failure: channel.isOpen ? 'timeout' : 'unavailable' };
  const span = spanOf(text, ['id']);
  if (span === undefined) return { failure: 'protocol' };
  return answerOf(OK, applyEdits(text, [{ ...span, text: body.slice(asked.start, asked.end) }]));
}

function awaitAnswer(
  { waiting }: OwnChannel,
  id: number,
  timeoutMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => tell(undefined), timeoutMs);
    function tell(text: string | undefined): void {
      clearTimeout(timer);
      waiting.delete(id);
      resolve(text);
    }
    waiting.set(id, tell);
  });
}

function answerOf(status: number, text?: string): Answered {
  const bytes = new TextEncoder().encode(text ?? '');
  return {
    status,
    headers: { 'content-type': 'application/json', 'mcp-session-id': CHANNEL_ID },
    body: {
      async *[Symbol.asyncIterator]() {
        yield bytes;
      },
    },
  };
}
