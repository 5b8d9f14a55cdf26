// The answer to what was posted to a channel, where the upstream answers as other eras do: the POST is done with
// 202, and what the exchange writes goes to the stream that its client holds. Decides nothing.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

import type { Admitted } from '../mcp/admitted.js';
import { type Body, inOnePiece } from '../mcp/body.js';
import type { RequestId } from '../mcp/message.js';
import { renderError } from '../mcp/render.js';
import { encodeSseMessage } from '../mcp/sse.js';
import type { ClientEnd, LeaveSignal, Outgoing, ResponseHeaders } from '../mcp/transport.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import type { Call } from './call.js';

/** Own codes of refusals that have a status and no message: outside -32768..-32000. */
const CODE_OF_STATUS = 1000;
const ACCEPTED = 202;

/** True for a message of HTTP+SSE before an upstream that does not speak it. */
export function isBridged(
  { snapshot }: Pick<Call, 'snapshot'>,
  { era }: Pick<Admitted, 'era'>,
): boolean {
  return era === '2024' && !snapshot.legacySse.isDirect;
}

/**
 * Refuses what is answered on a stream that another replica holds: nobody could hear the answer. And what is
 * answered on one whose client does not read: the answers would be held here.
 */
export function findLegacyStream(
  call: Call,
  { session, message }: Pick<Admitted, 'session' | 'message'>,
): Refusal | undefined {
  const end = session === undefined ? undefined : call.ports.legacySse.find(session);
  if (end === undefined) return refuseWith('unknown-session');
  return end.isLagging && message.kind === 'request' ? refuseWith('overloaded') : undefined;
}

/**
 * From here on the exchange answers on the channel. Returns the signal of the channel's end, which ends what is
 * under way for it; `undefined` for every message that is not answered there.
 */
export function moveToLegacyStream(call: Call, admitted: Admitted): LeaveSignal | undefined {
  const { message, session } = admitted;
  if (session === undefined || message.kind !== 'request' || !isBridged(call, admitted))
    return undefined;
  const end = call.ports.legacySse.find(session);
  if (end === undefined) return AbortSignal.abort();
  call.outgoing.send(ACCEPTED, {}, '');
  call.outgoing = onLegacyStream(end, message.id);
  return end.signal;
}

function onLegacyStream(end: ClientEnd, id: RequestId): Outgoing {
  let isCut = false;
  let cut: () => void = () => undefined;
  const whenCut = new Promise<void>((resolve) => {
    cut = resolve;
  });
  // Whoever is cut off waits no longer for a client that does not read.
  const write = (bytes: Uint8Array | string): void | Promise<void> => {
    const written = isCut ? undefined : end.write(bytes);
    return written && Promise.race([written, whenCut]);
  };
  return {
    get isClosed() {
      return isCut || end.isClosed;
    },
    // The message was answered with 202; its headers have gone.
    also: () => undefined,
    send(status, headers, body) {
      // What was said on the channel before is acknowledged by the POST, which has ended.
      if (status !== ACCEPTED) void write(encodeSseMessage(messageIn(id, status, headers, body)));
    },
    open: () => undefined,
    write,
    // The channel goes on; only this exchange says no more.
    end: () => undefined,
    cut() {
      isCut = true;
      cut();
    },
  };
}

/** A whole answer as the message that it is; one that is none, such as a page of an error, as an error. */
export function messageIn(
  id: RequestId,
  status: number,
  headers: ResponseHeaders,
  body: Body,
): string {
  const message = inOnePiece(body);
  const text = typeof message === 'string' ? message : new TextDecoder().decode(message);
  const isMessage = headers['content-type']?.startsWith('application/json') === true;
  return isMessage ? text : renderError(id, CODE_OF_STATUS + status, text);
}
