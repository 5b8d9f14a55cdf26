// Answers that look like an upstream's and are made here: for what the other era has no word for, and for
// conversations that are told in another form than they come in. They are judged like any other.
// Source: MCP 2025-11-25 and 2026-07-28, transports.

import type { Json, RequestId } from '../../mcp/message.js';
import { encodeSseComment, encodeSseMessage, encodeSsePriming } from '../../mcp/sse.js';
import type { ForwardFault, UpstreamAnswer } from '../../mcp/transport.js';

/** What is told: a message as JSON text, only that it lives, or why it ends without an answer. */
export type Said =
  | { readonly kind: 'message'; readonly text: string; readonly eventId?: string | undefined }
  /** Nothing yet, but an id after which the stream can be resumed. */
  | { readonly kind: 'primed'; readonly eventId: string }
  | { readonly kind: 'alive' }
  | { readonly kind: 'fault'; readonly reason: ForwardFault };

/** A conversation under way. */
export type Conversation = AsyncGenerator<Said, void>;

const encoder = new TextEncoder();
const NO_BYTES = new Uint8Array();

/** A whole answer, JSON where there is a body. */
export function wholeAnswer(status: number, body: Uint8Array | string = ''): UpstreamAnswer {
  const bytes = typeof body === 'string' ? encoder.encode(body) : body;
  let isRead = false;
  return {
    kind: 'answer',
    status,
    headers: bytes.byteLength === 0 ? {} : { 'content-type': 'application/json' },
    whole: (maxBytes) => Promise.resolve(bytes.byteLength > maxBytes ? 'too-large' : bytes),
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
export function resultAnswer(id: RequestId, result: Json = {}): UpstreamAnswer {
  return wholeAnswer(200, JSON.stringify({ jsonrpc: '2.0', id, result }));
}

/** 202: a notification, or the answer to a question, was taken. */
export function acceptedAnswer(): UpstreamAnswer {
  return wholeAnswer(202);
}

/** A conversation as an event stream, told as fast as it is read. `ground` is what it stands on. */
export function streamAnswer(
  conversation: Conversation,
  ground: Pick<UpstreamAnswer, 'release' | 'abort'>,
): UpstreamAnswer {
  let isOver = false;
  const leave = (give: 'release' | 'abort'): void => {
    if (give === 'release' && isOver) return;
    isOver = true;
    ground[give]();
    void conversation.return(undefined).catch(() => undefined);
  };
  return {
    kind: 'answer',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    whole: () => Promise.resolve(NO_BYTES),
    async next() {
      if (isOver) return undefined;
      const { value } = await conversation.next();
      if (value !== undefined && value.kind !== 'fault') return encoder.encode(encodeSaid(value));
      isOver = true;
      return value?.reason;
    },
    release: () => leave('release'),
    abort: () => leave('abort'),
  };
}

function encodeSaid(said: Exclude<Said, { readonly kind: 'fault' }>): string {
  switch (said.kind) {
    case 'alive':
      return encodeSseComment('');
    case 'primed':
      return encodeSsePriming(said.eventId);
    case 'message':
      return encodeSseMessage(said.text, { id: said.eventId });
  }
}
