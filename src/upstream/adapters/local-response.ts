// Answers that look like an upstream's and are made here: for what the other era has no word for, and for
// conversations that are told in another form than they come in. They are judged like any other.
// Source: MCP 2025-11-25 and 2026-07-28, transports.

import type { Json, RequestId } from '../../protocol/jsonrpc.js';
import { encodeSseComment, encodeSseMessage, encodeSsePriming } from '../../protocol/sse.js';
import type { ForwardError, UpstreamResponse } from '../../protocol/transport.js';

/** What is told: a message as JSON text, only that it lives, or why it ends without an answer. */
export type OutboundItem =
  | { readonly kind: 'message'; readonly text: string; readonly eventId?: string | undefined }
  /** Nothing yet, but an id after which the stream can be resumed. */
  | { readonly kind: 'primed'; readonly eventId: string }
  | { readonly kind: 'alive' }
  | { readonly kind: 'fault'; readonly reason: ForwardError };

/** A conversation under way. */
export type Conversation = AsyncGenerator<OutboundItem, void>;

const encoder = new TextEncoder();
const NO_BYTES = new Uint8Array();

/** A whole answer, JSON where there is a body. */
export function bodyResponse(status: number, body: Uint8Array | string = ''): UpstreamResponse {
  const bytes = typeof body === 'string' ? encoder.encode(body) : body;
  let isRead = false;
  return {
    kind: 'answer',
    status,
    headers: bytes.byteLength === 0 ? {} : { 'content-type': 'application/json' },
    readBody: (maxBytes) => Promise.resolve(bytes.byteLength > maxBytes ? 'too-large' : bytes),
    next() {
      const chunk = isRead || bytes.byteLength === 0 ? undefined : bytes;
      isRead = true;
      return Promise.resolve(chunk);
    },
    release: () => undefined,
    abort: () => undefined,
  };
}

/** A result of the gateway's own. */
export function resultResponse(id: RequestId, result: Json = {}): UpstreamResponse {
  return bodyResponse(200, JSON.stringify({ jsonrpc: '2.0', id, result }));
}

/** 202: a notification, or the answer to a question, was taken. */
export function acceptedResponse(): UpstreamResponse {
  return bodyResponse(202);
}

/** A conversation as an event stream, told as fast as it is read. `ground` is what it stands on. */
export function streamResponse(
  conversation: Conversation,
  source: Pick<UpstreamResponse, 'release' | 'abort'>,
): UpstreamResponse {
  let isOver = false;
  const gathered = gather(conversation);
  const leave = (give: 'release' | 'abort'): void => {
    if (give === 'release' && isOver) return;
    isOver = true;
    source[give]();
    void conversation.return(undefined).catch(() => undefined);
  };
  return {
    kind: 'answer',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    readBody: () => Promise.resolve(NO_BYTES),
    async next() {
      if (isOver) return undefined;
      const outbound = await gathered();
      if (typeof outbound === 'string' && outbound !== '') return encoder.encode(outbound);
      isOver = true;
      return outbound === undefined || typeof outbound === 'string' ? undefined : outbound.reason;
    },
    release: () => leave('release'),
    abort: () => leave('abort'),
  };
}

type ErrorItem = Extract<OutboundItem, { readonly kind: 'fault' }>;

/**
 * Reads a conversation by all that it says in one turn of the event loop, as the events of one reading, and
 * then by how it ends: undefined, or a fault.
 */
function gather(conversation: Conversation): () => Promise<string | ErrorItem | undefined> {
  let pending: Promise<OutboundItem | undefined> | undefined;

  /** What is said next; it stays pending until it is taken. */
  function coming(): Promise<OutboundItem | undefined> {
    pending ??= conversation.next().then(({ value }) => value ?? undefined);
    return pending;
  }

  /** All that follows within this turn; what comes later, and how it ends, is for the next reading. */
  async function rest(): Promise<string> {
    const turn = endOfTurn();
    let text = '';
    for (;;) {
      // What fails fails at the next reading, behind what was said before.
      const outbound = await Promise.race([coming(), turn]).catch(() => LATER);
      if (outbound === undefined || outbound.kind === 'later' || outbound.kind === 'fault')
        return text;
      pending = undefined;
      text += encodeOutbound(outbound);
    }
  }

  return async () => {
    const outbound = await coming();
    if (outbound === undefined || outbound.kind === 'fault') return outbound;
    pending = undefined;
    return encodeOutbound(outbound) + (await rest());
  };
}

const LATER = { kind: 'later' } as const;

function endOfTurn(): Promise<typeof LATER> {
  return new Promise((resolve) => {
    setImmediate(() => resolve(LATER));
  });
}

function encodeOutbound(outbound: Exclude<OutboundItem, { readonly kind: 'fault' }>): string {
  switch (outbound.kind) {
    case 'alive':
      return encodeSseComment('');
    case 'primed':
      return encodeSsePriming(outbound.eventId);
    case 'message':
      return encodeSseMessage(outbound.text, { id: outbound.eventId });
  }
}
