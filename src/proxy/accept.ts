// What a client that takes no event streams, or nothing that is sent here, is given. A client that says nothing
// takes all; one that takes JSON alone gets the answer alone, and is asked nothing on the way.
// Source: MCP 2025-11-25, transports (the client must accept both); RFC 9110 §12.5.1 and §15.5.7.

import { type Refusal, refuseProtocolError } from '../policy/refusal.js';
import type { Admitted, ProtocolError } from '../protocol/admitted-request.js';
import { type ErrorContext, INVALID_REQUEST, protocolErrorOf } from '../protocol/errors.js';
import { acceptsType } from '../protocol/headers.js';
import type { Incoming } from '../protocol/transport.js';
import type { Call } from './request-context.js';

const STREAM = 'text/event-stream';
const JSON_BODY = 'application/json';
const NOT_ACCEPTABLE = 406;
/** What clients are asked to send, and nearly all send in these very words. */
const AS_ASKED = `${JSON_BODY}, ${STREAM}`;

/** True where the client takes an event stream. */
export function takesStream({ headers }: Incoming): boolean {
  const accept = headers['accept'];
  return accept === AS_ASKED || acceptsType(accept, STREAM);
}

/** 406: nothing of what this request is answered with is taken. */
export function notAcceptable(errorContext: ErrorContext): ProtocolError {
  const text = 'The Accept header leaves out what this request is answered with.';
  return protocolErrorOf('invalid-message', INVALID_REQUEST, text, errorContext, NOT_ACCEPTABLE);
}

/**
 * The message of a client that takes no stream: nobody can ask it anything in the middle of an answer. A
 * message that is answered by its status, or on a channel, asks for no type.
 */
export function withoutStream(
  { incoming }: Pick<Call, 'incoming'>,
  admitted: Admitted,
): Admitted | Refusal {
  const { message, era, session, rule } = admitted;
  if (message.kind !== 'request' || era === '2024' || takesStream(incoming)) return admitted;
  const takesJson = acceptsType(incoming.headers['accept'], JSON_BODY);
  if (!takesJson || rule.response === 'subscription')
    return refuseProtocolError(notAcceptable({ era, id: message.id }));
  if (era === '2026' || session === undefined) return admitted;
  return {
    ...admitted,
    allowedServerRequests: [],
    session: { ...session, allowedServerRequests: [] },
  };
}
