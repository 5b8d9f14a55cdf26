// Where a member's answer goes that is to be joined with others: the one message that answers the request is
// kept, whatever else its stream says is handed on as it comes.

import { inOnePiece } from '../../mcp/body.js';
import { isObject, type Json, type RequestId } from '../../mcp/message.js';
import type { Outgoing, ResponseHeaders } from '../../mcp/transport.js';
import { readWritten } from './written-events.js';

/** A member's whole answer. Without `text` it has a status and no message, or broke off. */
export type BackendResponse = {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
  /** The JSON-RPC message that answers, be it a result or an error. */
  readonly text: string | undefined;
};

/** A member's end of a joined answer. */
export type Collected = {
  readonly outgoing: Outgoing;
  /** Settles once the answer has come, or cannot come any more. */
  readonly response: Promise<BackendResponse>;
};

/** The status of an answer that never came. */
export const BROKEN_OFF = 0;
const NOTHING: BackendResponse = { status: BROKEN_OFF, headers: {}, body: '', text: undefined };
const decoder = new TextDecoder();

/**
 * Collects the answer to the request `id`. `others` is told of every other message of the stream; `isGone`
 * says that nobody waits any more.
 */
export function collectResponse(
  id: RequestId | undefined,
  isGone: () => boolean,
  others: (text: string) => void | Promise<void>,
): Collected {
  let settle: (response: BackendResponse) => void = () => undefined;
  const response = new Promise<BackendResponse>((resolve) => {
    settle = resolve;
  });
  return {
    response,
    outgoing: {
      get isClosed() {
        return isGone();
      },
      // The whole has told the client what there is to tell.
      also: () => undefined,
      send(status, headers, body) {
        const joined = inOnePiece(body);
        const text = typeof joined === 'string' ? joined : decoder.decode(joined);
        const isMessage = headers['content-type']?.startsWith('application/json') === true;
        settle({ status, headers, body: text, text: isMessage ? text : undefined });
      },
      open: () => undefined,
      write: readWritten((event) => {
        if (event.kind !== 'message' || event.data === '') return undefined;
        if (!isResponseTo(id, event.data)) return others(event.data);
        return settle({ status: 200, headers: {}, body: event.data, text: event.data });
      }),
      end: () => settle(NOTHING),
      cut: () => settle(NOTHING),
    },
  };
}

function isResponseTo(id: RequestId | undefined, text: string): boolean {
  const message: Json = JSON.parse(text);
  return isObject(message) && message['method'] === undefined && message['id'] === id;
}
