// A request on its way to a server of HTTP+SSE: it leaves under a sealed id, by which whoever holds the stream
// knows what its answer is judged by. A cancellation names the request by the same id.
// Source: MCP 2024-11-05, transports; ARCHITECTURE.md, "How a response finds its plan".

import { responseObligationsOf } from '../../policy/authorized-request.js';
import type { Allow } from '../../policy/decision.js';
import type { Principal } from '../../policy/principal.js';
import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import { amendAdmitted } from '../../protocol/admission.js';
import type { Admitted } from '../../protocol/admitted-request.js';
import { invalidParams, renderError } from '../../protocol/errors.js';
import { spanOf } from '../../protocol/json/json.js';
import type { RequestId } from '../../protocol/jsonrpc.js';
import { encodeSseMessage } from '../../protocol/sse.js';
import {
  type AwaitedResponses,
  type Body,
  type ClientEnd,
  inOnePiece,
  type LeaveSignal,
  type Outgoing,
  type ResponseHeaders,
} from '../../protocol/transport.js';
import { tokenOf } from '../features/progress.js';
import type { Call } from '../request-context.js';
import { timeLeftMs } from '../stream-lifetime.js';

// The answer to what was posted to a channel, where the upstream answers as other eras do: the POST is done with
// 202, and what the exchange writes goes to the stream that its client holds. Decides nothing.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

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

/** The message under the id that the server is to know it by. */
export function addressRequest(
  call: Call,
  principal: Principal,
  admitted: Admitted,
  allow: Allow,
): Admitted | Refusal {
  const { message } = admitted;
  if (message.kind === 'notification') return addressCancellation(call, admitted);
  if (message.kind !== 'request') return admitted;
  if (awaitedOf(call, admitted)?.isFull === true) return refuseWith('overloaded');
  const { maxResultBytes, profiles } = responseObligationsOf(allow);
  const sealed = seal(call, principal, admitted, {
    id: message.id,
    method: admitted.rule.method,
    target: admitted.target,
    maxResultBytes,
    profiles,
    progressToken: tokenOf(message),
    allowedServerRequests:
      admitted.rule.method === 'initialize' ? admitted.allowedServerRequests : [],
    sentAt: Date.now(),
  });
  if (sealed !== undefined) return underSealed(admitted, sealed);
  const errorContext = { era: admitted.era, id: message.id };
  return refuseProtocolError(
    invalidParams(errorContext, 'The id and the name of what it asks for are too long.'),
  );
}

/**
 * What the server has taken under a sealed id is waited for where this replica holds the stream; what was
 * cancelled is waited for no longer.
 */
export function awaitLateResponse(call: Call, admitted: Admitted): void {
  const { message, rule } = admitted;
  const isCancellation = rule.method === 'notifications/cancelled';
  if (message.kind !== 'request' && !isCancellation) return;
  const awaited = awaitedOf(call, admitted);
  const sealed = sealedAt(admitted, isCancellation ? ['params', 'requestId'] : ['id']);
  if (sealed === undefined) return;
  if (isCancellation) awaited?.drop(sealed);
  else awaited?.add(sealed, timeLeftMs(call));
}

/** What stands there as it left; `undefined` where it left as it came. */
function sealedAt({ text, edits }: Admitted, path: readonly string[]): string | undefined {
  const span = spanOf(text, path);
  const edit = edits.find(({ start }) => start === span?.start);
  return edit === undefined ? undefined : String(JSON.parse(edit.text));
}

/** What the channel still owes, where this replica holds it. */
function awaitedOf({ ports }: Call, { era, session }: Admitted): AwaitedResponses | undefined {
  return era === '2024' && session !== undefined
    ? ports.legacySse.find(session)?.awaited
    : undefined;
}

/** The sealed id is its progress token too: whoever holds the stream knows by it whose progress it is. */
function underSealed(admitted: Admitted, sealed: string): Admitted {
  const addressed = replace(admitted, ['id'], sealed);
  return tokenOf(admitted.message) === undefined
    ? addressed
    : replace(addressed, ['params', '_meta', 'progressToken'], sealed);
}

function seal(
  { ports, incoming }: Call,
  principal: Principal,
  { session }: Admitted,
  sent: Parameters<Call['ports']['legacySse']['sealRequest']>[0],
): string | undefined {
  if (session === undefined) throw new Error('a message of HTTP+SSE has a session');
  return ports.legacySse.sealRequest(sent, { upstream: incoming.upstream, principal, session });
}

/** What this replica did not send stays as it is: no server knows it by the id of the client. */
function addressCancellation(call: Call, admitted: Admitted): Admitted {
  const { message, session, rule } = admitted;
  if (rule.method !== 'notifications/cancelled' || session === undefined) return admitted;
  const id = 'params' in message ? message.params?.['requestId'] : undefined;
  const sealed = isId(id) ? call.ports.legacySse.recallRequest(id, session) : undefined;
  return sealed === undefined ? admitted : replace(admitted, ['params', 'requestId'], sealed);
}

function isId(value: unknown): value is RequestId {
  return typeof value === 'string' || typeof value === 'number';
}

function replace(admitted: Admitted, path: readonly string[], sealed: string): Admitted {
  const span = spanOf(admitted.text, path);
  if (span === undefined) throw new Error('an admitted message has what was read of it');
  return amendAdmitted(admitted, [{ ...span, text: JSON.stringify(sealed) }]);
}
