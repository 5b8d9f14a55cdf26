// Applies the Accept header of requests. A client without one accepts everything; one that accepts only JSON
// gets the response alone and no server requests.
// Source: MCP 2025-11-25, transports (the client must accept both); RFC 9110 §12.5.1 and §15.5.7.

import { type Refusal, refuseProtocolError } from '../policy/refusal.js';
import { copyAdmitted } from '../protocol/admission.js';
import type { AdmittedMessage, ProtocolError } from '../protocol/admitted-request.js';
import { type ErrorContext, INVALID_REQUEST, protocolErrorOf } from '../protocol/errors.js';
import { acceptsType } from '../protocol/headers.js';
import type { Incoming } from '../protocol/transport.js';
import type { RequestContext } from './request-context.js';

const STREAM = 'text/event-stream';
const JSON_BODY = 'application/json';
const NOT_ACCEPTABLE = 406;
/** The value that clients must send. Nearly all send exactly this, so it is compared before parsing. */
const USUAL_ACCEPT = `${JSON_BODY}, ${STREAM}`;

/** True if the client accepts an event stream. */
export function acceptsEventStream({ headers }: Incoming): boolean {
  const accept = headers['accept'];
  return accept === USUAL_ACCEPT || acceptsType(accept, STREAM);
}

/** 406: the client accepts no media type of this response. */
export function notAcceptable(errorContext: ErrorContext): ProtocolError {
  const text = 'The Accept header excludes every media type of the response.';
  return protocolErrorOf('invalid-message', INVALID_REQUEST, text, errorContext, NOT_ACCEPTABLE);
}

/**
 * Adapts an admitted message to a client that accepts no event stream: it cannot be sent server requests while a
 * response is pending. A message answered by its status, or on a legacy SSE stream, needs no media type.
 */
export function adaptToAcceptHeader(
  { incoming }: Pick<RequestContext, 'incoming'>,
  admitted: AdmittedMessage,
): AdmittedMessage | Refusal {
  const { message, protocol, session, rule } = admitted;
  if (message.kind !== 'request' || protocol.answersOnStream || acceptsEventStream(incoming))
    return admitted;
  const takesJson = acceptsType(incoming.headers['accept'], JSON_BODY);
  if (!takesJson || rule.response === 'subscription')
    return refuseProtocolError(notAcceptable({ id: message.id }));
  if (session === undefined) return admitted;
  return copyAdmitted(admitted, {
    allowedServerRequests: [],
    session: { ...session, allowedServerRequests: [] },
  });
}
