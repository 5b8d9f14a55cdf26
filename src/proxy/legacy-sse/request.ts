// Requests of legacy SSE. Towards a legacy SSE server a request leaves under a sealed id, from which the replica
// that holds the stream knows the plan of its response; a cancellation names the request by the same id. If the
// upstream speaks another era, the POST ends with 202 and the response is written to the client's stream.
// Source: MCP 2024-11-05, transports, HTTP with SSE; ARCHITECTURE.md, "How a response finds its plan".

import type { Allow } from '../../policy/decision.js';
import { responseObligationsOf } from '../../policy/obligations.js';
import type { Principal } from '../../policy/principal.js';
import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import { amendAdmitted } from '../../protocol/admission.js';
import type { AdmittedMessage, SentRequestFacts } from '../../protocol/admitted-request.js';
import { editedValueAt, spanOf } from '../../protocol/json/json.js';
import { isJsonRpcId, type RequestId } from '../../protocol/jsonrpc.js';
import { paramsOf, progressTokenOf } from '../../protocol/params.js';
import { invalidParams, renderError } from '../../protocol/responses.js';
import { encodeSseMessage } from '../../protocol/sse.js';
import {
  type Body,
  type ClientEnd,
  type DisconnectSignal,
  joinPieces,
  type Outgoing,
  type PendingResponses,
  type ResponseHeaders,
} from '../../protocol/transport.js';
import type { Feature, RequestContext } from '../request-context.js';
import { acknowledge } from '../response-forwarding.js';
import { timeLeftMs } from '../stream-lifetime.js';

/** Error codes for refusals that have only an HTTP status: this plus the status, outside -32768..-32000. */
const STATUS_CODE_OFFSET = 1000;
const ACCEPTED = 202;

/** A message to a server of legacy SSE, which responds on its stream and not to the POST. */
export const DIRECT_LEGACY_SSE: Feature = {
  prepare: (call, { principal, admitted, allow }) =>
    sealRequestId(call, principal, admitted, allow),
  relay(call, { admitted }, response) {
    const refusal = acknowledge(call, response);
    if (refusal === undefined) awaitStreamResponse(call, admitted);
    return refusal;
  },
};

/** A legacy SSE message to an upstream that does not speak legacy SSE. */
export const BRIDGED_LEGACY_SSE: Feature = {
  prepare: (call, { admitted }) => findLegacyStream(call, admitted) ?? admitted,
  begin: moveToLegacyStream,
};

/**
 * Refuses a message whose stream is held by another replica, because its response could not be delivered, and a
 * request whose client does not read its stream, because its response would have to be held here.
 */
function findLegacyStream(
  call: RequestContext<'legacySse'>,
  { session, message }: Pick<AdmittedMessage, 'session' | 'message'>,
): Refusal | undefined {
  const end = session === undefined ? undefined : call.ports.legacySse.findClientEnd(session);
  if (end === undefined) return refuseWith('unknown-session');
  return end.isLagging && message.kind === 'request' ? refuseWith('overloaded') : undefined;
}

/**
 * From here on the response goes to the client's stream. Returns the signal that aborts when the stream ends,
 * which cancels the request; `undefined` for a message that is not answered there.
 */
function moveToLegacyStream(
  call: RequestContext<'legacySse'>,
  admitted: AdmittedMessage,
): DisconnectSignal | undefined {
  const { message, session } = admitted;
  if (session === undefined || message.kind !== 'request') return undefined;
  const end = call.ports.legacySse.findClientEnd(session);
  if (end === undefined) return AbortSignal.abort();
  call.outgoing.send(ACCEPTED, {}, '');
  call.outgoing = createStreamOutgoing(end, message.id);
  return end.signal;
}

function createStreamOutgoing(end: ClientEnd, id: RequestId): Outgoing {
  let isDisconnected = false;
  let resolveDisconnected: () => void = () => undefined;
  const disconnected = new Promise<void>((resolve) => {
    resolveDisconnected = resolve;
  });
  // After `cut`, a pending write no longer waits for a client that does not read.
  const write = (bytes: Uint8Array | string): void | Promise<void> => {
    const written = isDisconnected ? undefined : end.write(bytes);
    return written && Promise.race([written, disconnected]);
  };
  return {
    get isClosed() {
      return isDisconnected || end.isClosed;
    },
    // The message was already answered with 202, so its headers have been sent.
    addHeader: () => undefined,
    send(status, headers, body) {
      // A 202 means that a refusal was already written to the stream; the POST itself has ended.
      if (status !== ACCEPTED)
        void write(encodeSseMessage(toJsonRpcMessage(id, status, headers, body)));
    },
    open: () => undefined,
    write,
    // The stream stays open for other responses.
    end: () => undefined,
    disconnect() {
      isDisconnected = true;
      resolveDisconnected();
    },
  };
}

/** A JSON body as the message that it is; any other body, such as a plain-text refusal, as a JSON-RPC error. */
export function toJsonRpcMessage(
  id: RequestId,
  status: number,
  headers: ResponseHeaders,
  body: Body,
): string {
  const message = joinPieces(body);
  const text = typeof message === 'string' ? message : new TextDecoder().decode(message);
  const isMessage = headers['content-type']?.startsWith('application/json') === true;
  return isMessage ? text : renderError(id, STATUS_CODE_OFFSET + status, text);
}

/** The message under the sealed id by which the server is to know it. */
function sealRequestId(
  call: RequestContext<'legacySse'>,
  principal: Principal,
  admitted: AdmittedMessage,
  allow: Allow,
): AdmittedMessage | Refusal {
  const { message } = admitted;
  if (message.kind === 'notification') return sealCancelledId(call, admitted);
  if (message.kind !== 'request') return admitted;
  if (pendingResponsesOf(call, admitted)?.isFull === true) return refuseWith('overloaded');
  const { maxResultBytes, profiles } = responseObligationsOf(allow);
  const sealed = sealIdOf(call, principal, admitted, {
    id: message.id,
    method: admitted.rule.method,
    target: admitted.target,
    maxResultBytes,
    profiles,
    progressToken: progressTokenOf(message),
    allowedServerRequests:
      admitted.rule.method === 'initialize' ? admitted.allowedServerRequests : [],
    sentAt: Date.now(),
  });
  if (sealed !== undefined) return withSealedId(admitted, sealed);
  return refuseProtocolError(
    invalidParams({ id: message.id }, 'The id and the name of the target are too long.'),
  );
}

/**
 * After the server has accepted a message, waits for its response if this replica holds the stream. A cancelled
 * request is no longer waited for.
 */
function awaitStreamResponse(call: RequestContext<'legacySse'>, admitted: AdmittedMessage): void {
  const { message, rule } = admitted;
  const isCancellation = rule.method === 'notifications/cancelled';
  if (message.kind !== 'request' && !isCancellation) return;
  const pendingResponses = pendingResponsesOf(call, admitted);
  const sealed = editedValueAt(admitted, isCancellation ? ['params', 'requestId'] : ['id']);
  if (sealed === undefined) return;
  if (isCancellation) pendingResponses?.drop(sealed);
  else pendingResponses?.add(sealed, timeLeftMs(call));
}

/** The responses that the stream still waits for, if this replica holds it. */
function pendingResponsesOf(
  { ports }: RequestContext<'legacySse'>,
  { session }: AdmittedMessage,
): PendingResponses | undefined {
  return session === undefined
    ? undefined
    : ports.legacySse.findClientEnd(session)?.pendingResponses;
}

/** The sealed id is also used as progress token, so that progress can be matched to its request on any replica. */
function withSealedId(admitted: AdmittedMessage, sealed: string): AdmittedMessage {
  const withId = replace(admitted, ['id'], sealed);
  return progressTokenOf(admitted.message) === undefined
    ? withId
    : replace(withId, ['params', '_meta', 'progressToken'], sealed);
}

function sealIdOf(
  { ports, incoming }: RequestContext<'legacySse'>,
  principal: Principal,
  { session }: AdmittedMessage,
  sent: SentRequestFacts,
): string | undefined {
  if (session === undefined) throw new Error('a message of HTTP+SSE has a session');
  return ports.legacySse.sealRequest(sent, { upstream: incoming.upstream, principal, session });
}

/** The id of a request that this replica did not send stays unchanged; no server knows the client's id. */
function sealCancelledId(
  call: RequestContext<'legacySse'>,
  admitted: AdmittedMessage,
): AdmittedMessage {
  const { session, rule } = admitted;
  if (rule.method !== 'notifications/cancelled' || session === undefined) return admitted;
  const id = paramsOf(admitted)['requestId'];
  const sealed = isJsonRpcId(id) ? call.ports.legacySse.recallRequest(id, session) : undefined;
  return sealed === undefined ? admitted : replace(admitted, ['params', 'requestId'], sealed);
}

function replace(
  admitted: AdmittedMessage,
  path: readonly string[],
  sealed: string,
): AdmittedMessage {
  const span = spanOf(admitted.text, path);
  if (span === undefined) throw new Error('an admitted message has what was read of it');
  return amendAdmitted(admitted, [{ ...span, text: JSON.stringify(sealed) }]);
}
