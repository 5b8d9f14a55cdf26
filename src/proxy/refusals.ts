// How a refusal is sent, as policy/decision.ts renders it: to its client, on the stream where the client waits for it, as an error to the server
// whose request it answered. Also complete answers to a client of HTTP+SSE, which leave the same way. Nothing here decides.
// Source: MCP transports, sending messages to the server; MCP 2024-11-05, transports, HTTP with SSE.

import { refuseBlocked } from '../policy/blocks.js';
import { type Refusal, refuseWith, renderRefusal } from '../policy/decision.js';
import type { ReplayOutcome } from '../policy/obligations.js';
import { REASONS } from '../policy/reasons.js';
import { fold } from '../policy/record.js';
import { requestIdOf, type Target } from '../protocol/jsonrpc.js';
import { INTERNAL_ERROR } from '../protocol/responses.js';
import { encodeSseMessage } from '../protocol/sse.js';
import type { Incoming, ResponseHeaders } from '../protocol/transport.js';
import type { AuthnError } from './ports.js';
import { refusalFacts } from './record-facts.js';
import type { RequestContext } from './request-context.js';

const NO_TARGET: Target = { kind: 'none' };

/**
 * A refusal with what is known at its end. While the gateway ends what still runs, what an upstream does not answer is the
 * gateway's doing; and of a call that was sent, the client has to know that it may have been carried out.
 */
export function completeRefusal(
  { admitted, incoming, record }: Pick<RequestContext, 'admitted' | 'incoming' | 'record'>,
  refusal: Refusal,
): Refusal {
  const { reason, isUnsent = record.decision.action === 'refused' } = refusal.deny;
  const isOfUpstream = REASONS[reason].stage === 'forward';
  if (isOfUpstream && incoming.shutdown?.isCut === true) return refuseWith('gateway-stopping', { isUnsent });
  if (isUnsent || admitted?.rule.method !== 'tools/call') return refusal;
  return { ...refusal, deny: { ...refusal.deny, isUnsent } };
}

/** Responds with a refusal, if no response has begun, and notes it. */
export function refuse(call: RequestContext<'legacySse' | 'sessions' | 'upstreams'>, found: Refusal): void {
  const { record, outgoing } = call;
  const refusal = completeRefusal(call, found);
  if (wasCancelledByDisconnect(call, refusal)) return;
  fold(record, refusalFacts(record, refusal));
  const rendered = renderRefusal(refusal, refusalContext(call));
  const isSentOnStream = rendered.status === 200 && sendOnLegacyStream(call, rendered.body);
  const status = isSentOnStream ? ACCEPTED : statusFor(call, rendered.status);
  const isDropped = status === ACCEPTED && !isSentOnStream;
  const bytes = isDropped ? 0 : Buffer.byteLength(rendered.body);
  fold(record, { result: { http: status, rpcCode: rendered.rpcCode, bytes } });
  if (isDropped) outgoing.send(status, { 'sallyport-decision': call.incoming.id }, '');
  else if (isSentOnStream) outgoing.send(status, {}, '');
  else outgoing.send(status, rendered.headers, rendered.body);
  void refuseToServer(call);
}

/** Sends a complete answer: to a legacy SSE client a message goes on its stream, if that can take it. */
export function sendAnswer(
  call: RequestContext<'legacySse'>,
  status: number,
  headers: ResponseHeaders,
  body: string,
): void {
  const isOnStream = status === 200 && sendOnLegacyStream(call, body);
  call.outgoing.send(isOnStream ? 202 : status, isOnStream ? {} : headers, isOnStream ? '' : body);
}

/**
 * Writes the response to a legacy SSE request to the stream on which the client waits for it (MCP 2024-11-05).
 * False if another replica holds the stream, or the client has too much unread; then the status of the POST must
 * do.
 */
function sendOnLegacyStream({ admitted, ports }: RequestContext<'legacySse'>, json: string): boolean {
  if (admitted?.protocol.answersOnStream !== true || admitted.message.kind !== 'request') return false;
  const end = admitted.session === undefined ? undefined : ports.legacySse.findClientEnd(admitted.session);
  if (end === undefined || end.isLagging) return false;
  void end.write(encodeSseMessage(json));
  return true;
}

export const ACCEPTED = 202;

/**
 * A message that has no response body is refused by its status (MCP transports, sending messages to the server), except
 * a notification, which is dropped as if it had been forwarded: clients close their connection on an error, and nobody
 * waits for what it would have done.
 */
export function statusFor({ admitted }: Pick<RequestContext, 'admitted'>, status: number): number {
  if (status !== 200 || admitted === undefined) return status;
  const { message, protocol } = admitted;
  if (message.kind === 'notification') return ACCEPTED;
  return message.kind === 'request' && !protocol.answersOnStream ? status : 400;
}

/** Sends an error to the server whose client's reply was refused, unless it already has a reply. */
async function refuseToServer(call: RequestContext<'sessions' | 'upstreams'>): Promise<void> {
  const { admitted, caller, incoming, ports, record } = call;
  if (admitted?.session === undefined || caller === undefined) return;
  const { message, session } = admitted;
  if ((message.kind !== 'result' && message.kind !== 'error') || message.id === undefined) return;
  if (record.decision.action !== 'refused') return;
  const isFirst = await claimReply(call);
  if (isFirst !== true) return;
  ports.upstreams.replyToServer(incoming.upstream, { session, id: message.id, caller }, WITHHELD);
}

/** Claims the reply to a server request: true if this is the first one. The store is asked once per request. */
export async function claimReply(call: RequestContext<'sessions'>): Promise<ReplayOutcome> {
  const { admitted, callerKey = '' } = call;
  const { serverRequestId, session } = admitted ?? {};
  if (serverRequestId === undefined || session === undefined) return true;
  call.replyClaim ??= call.ports.sessions.claimReply(serverRequestId, session, callerKey);
  return call.replyClaim;
}

const WITHHELD = { code: INTERNAL_ERROR, message: 'The response was withheld.' };

/**
 * True if the request was broken off because its client disconnected, which is how a stateless request is
 * cancelled: there is no client left to respond to, and the upstream has not failed (MCP 2026-07-28,
 * cancellation).
 */
export function wasCancelledByDisconnect(call: RequestContext, refusal: Refusal): boolean {
  const { record } = call;
  return (
    hasClientDisconnected(call) &&
    record.decision.action === 'forwarded' &&
    REASONS[refusal.deny.reason].stage === 'forward'
  );
}

/**
 * Where a disconnect cancels, the connection belongs to the request, as that of a GET does to its stream; nothing outlives
 * the stream of legacy SSE.
 */
function hasClientDisconnected({ admitted, incoming, outgoing }: RequestContext): boolean {
  if (incoming.httpMethod === 'GET') return incoming.shutdown?.isCut !== true && incoming.signal.aborted;
  if (admitted === undefined) return false;
  const { protocol } = admitted;
  return protocol.disconnectCancels ? incoming.signal.aborted : protocol.answersOnStream && outgoing.isClosed;
}

/** The refusal of a caller who could not be verified; the challenge says what is wrong with a proof of possession. */
export function refuseAuthn({ reason, proof, blocked, detail }: AuthnError): Refusal {
  if (blocked !== undefined) return refuseBlocked(blocked.id);
  return refuseWith(reason, { ...(proof !== undefined && { proof }), detail });
}

/** What the rendering of a refusal may know of this request. */
export function refusalContext(call: RequestContext): Parameters<typeof renderRefusal>[1] {
  const { admitted, incoming, snapshot } = call;
  return {
    decisionId: incoming.id,
    protocol: admitted?.protocol,
    requestId: requestIdOf(admitted?.message),
    target: admitted?.target ?? NO_TARGET,
    method: admitted?.rule.method,
    prompts: admitted?.protocol.promptForm(admitted.version),
    challenge: (reason, scopes, proof) =>
      snapshot.challenge(reason, scopes, { scheme: presentedScheme(incoming), proof }),
  };
}

/** The authentication scheme in lower case. Chosen by the client, so only compared and never shown. */
export function presentedScheme(incoming: Incoming): string | undefined {
  return incoming.headers['authorization']?.split(' ', 1)[0]?.toLowerCase();
}
