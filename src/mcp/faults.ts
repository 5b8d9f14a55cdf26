// The faults of admission with their wire form: HTTP status, JSON-RPC code and a text of our own.
// No text here ever quotes the message; the one echo is the requested version, if it looks like one.
// Source: MCP 2025-11-25 transports; MCP 2026-07-28 error codes; JSON-RPC 2.0 §5.1.

import type { ProtocolFault } from './admitted.js';
import type { Era, RequestId } from './message.js';

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const HEADER_MISMATCH = -32020;
export const UNSUPPORTED_VERSION = -32022;
/** Our own code for a session that cannot be opened; outside -32768..-32000. */
export const UNKNOWN_SESSION = 1404;

/** Where a fault belongs: its era once known, and the id once read. */
export type FaultPlace = { readonly era: Era | undefined; readonly id?: RequestId | undefined };

// What a version looks like: anything else that was requested is not echoed.
const VERSION_FORM = /^[A-Za-z0-9.-]{1,32}$/;

/** A fault with status 400, the default of contract §6. */
export function faultOf(
  reason: ProtocolFault['reason'],
  code: number,
  message: string,
  place: FaultPlace,
  status = 400,
): ProtocolFault {
  const fault: ProtocolFault = { kind: 'fault', reason, status, code, message, era: place.era };
  return place.id === undefined ? fault : { ...fault, id: place.id };
}

/** 400 / -32600: not one valid message. */
export function invalidMessage(place: FaultPlace, message: string): ProtocolFault {
  return faultOf('invalid-message', INVALID_REQUEST, message, place);
}

/** 400 / -32602: the envelope holds, the params do not. */
export function invalidParams(place: FaultPlace, message: string): ProtocolFault {
  return faultOf('invalid-message', INVALID_PARAMS, message, place);
}

/** 400 / -32020: a header is missing, repeated, malformed or differs from the body. */
export function headerMismatch(place: FaultPlace, message: string): ProtocolFault {
  return faultOf('header-mismatch', HEADER_MISMATCH, message, place);
}

/** 400 with `data.supported` and `data.requested`: -32022, or -32602 inside a session. */
export function unsupportedVersion(
  place: FaultPlace,
  requested: string,
  supported: readonly string[],
  code: number = UNSUPPORTED_VERSION,
): ProtocolFault {
  const fault = faultOf('unsupported-version', code, 'Unsupported protocol version', place);
  const echo = VERSION_FORM.test(requested) ? requested : '';
  return { ...fault, data: { supported, requested: echo } };
}
