// Builds upstream responses in the gateway itself: for requests that have no equivalent in the upstream's
// era, and for streams that are translated. They are checked like any other response.
// Source: MCP 2025-11-25 and 2026-07-28, transports.

import type { RequestId } from '../../protocol/jsonrpc.js';
import { encodeSseComment, encodeSseMessage, encodeSsePriming } from '../../protocol/sse.js';
import type { ForwardError, UpstreamResponse } from '../../protocol/transport.js';

/** An item to send: a message as JSON text, a keep-alive, or the error that ends the stream. */
export type OutboundItem =
  | { readonly kind: 'message'; readonly text: string; readonly eventId?: string | undefined }
  /** No message yet, but an event id after which the stream can be resumed. */
  | { readonly kind: 'primed'; readonly eventId: string }
  | { readonly kind: 'alive' }
  | { readonly kind: 'error'; readonly reason: ForwardError };

/** The items of one response, in order. */
export type OutboundItems = AsyncGenerator<OutboundItem, void>;

const encoder = new TextEncoder();
const NO_BYTES = new Uint8Array();

/** A complete response, with a JSON body if there is one. */
export function bodyResponse(status: number, body: Uint8Array | string = ''): UpstreamResponse {
  const bytes = typeof body === 'string' ? encoder.encode(body) : body;
  let isRead = false;
  return {
    kind: 'response',
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

/** An empty result of the gateway's own. */
export function resultResponse(id: RequestId): UpstreamResponse {
  return bodyResponse(200, JSON.stringify({ jsonrpc: '2.0', id, result: {} }));
}

/** 202: a notification, or the response to a server request, was accepted. */
export function acceptedResponse(): UpstreamResponse {
  return bodyResponse(202);
}

/**
 * An event stream that is produced as fast as it is read. `source` is released or aborted with it, also behind the error
 * that ends it: a conversation that is not returned to after its last item would never clean up.
 */
export function streamResponse(
  items: OutboundItems,
  source: Pick<UpstreamResponse, 'release' | 'abort'>,
): UpstreamResponse {
  let isOver = false;
  let isReleased = false;
  const readBatch = createBatchReader(items);
  const leave = (disposal: 'release' | 'abort'): void => {
    if (disposal === 'release' && isReleased) return;
    isOver = true;
    isReleased = true;
    source[disposal]();
    void items.return(undefined).catch(() => undefined);
  };
  return {
    kind: 'response',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    readBody: () => Promise.resolve(NO_BYTES),
    async next() {
      if (isOver) return undefined;
      const outbound = await readBatch();
      if (typeof outbound === 'string' && outbound !== '') return encoder.encode(outbound);
      isOver = true;
      return outbound === undefined || typeof outbound === 'string' ? undefined : outbound.reason;
    },
    release: () => leave('release'),
    abort: () => leave('abort'),
  };
}

type ErrorItem = Extract<OutboundItem, { readonly kind: 'error' }>;

/**
 * Combines all items that are available within one turn of the event loop into one chunk. A later read
 * returns how the conversation ends: undefined or an error.
 */
function createBatchReader(items: OutboundItems): () => Promise<string | ErrorItem | undefined> {
  let pending: Promise<OutboundItem | undefined> | undefined;

  /** The next item; it stays pending until it is consumed. */
  function nextItem(): Promise<OutboundItem | undefined> {
    pending ??= items.next().then(({ value }) => value ?? undefined);
    return pending;
  }

  /** All items that follow within this turn; later items and the end are left for the next read. */
  async function readAvailable(): Promise<string> {
    const turn = endOfTurn();
    let text = '';
    for (;;) {
      // A rejection is reported by the next read, after the items that preceded it.
      const outbound = await Promise.race([nextItem(), turn]).catch(() => TURN_ENDED);
      if (outbound === undefined || outbound.kind === 'later' || outbound.kind === 'error')
        return text;
      pending = undefined;
      text += encodeOutbound(outbound);
    }
  }

  return async () => {
    const outbound = await nextItem();
    if (outbound === undefined || outbound.kind === 'error') return outbound;
    pending = undefined;
    return encodeOutbound(outbound) + (await readAvailable());
  };
}

const TURN_ENDED = { kind: 'later' } as const;

function endOfTurn(): Promise<typeof TURN_ENDED> {
  return new Promise((resolve) => {
    setImmediate(() => resolve(TURN_ENDED));
  });
}

function encodeOutbound(outbound: Exclude<OutboundItem, { readonly kind: 'error' }>): string {
  switch (outbound.kind) {
    case 'alive':
      return encodeSseComment('');
    case 'primed':
      return encodeSsePriming(outbound.eventId);
    case 'message':
      return encodeSseMessage(outbound.text, { id: outbound.eventId });
  }
}
