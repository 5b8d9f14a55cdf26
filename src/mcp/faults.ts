// The faults of admission with their wire form: HTTP status, JSON-RPC code and a text of our own.
// No text here ever quotes the message; the one echo is the requested version, if it looks like one.
// Source: MCP 2025-11-25 transports; MCP 2026-07-28 error codes; JSON-RPC 2.0 §5.1.

import type { ProtocolError } from './admitted.js';
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
export type ErrorContext = { readonly era: Era | undefined; readonly id?: RequestId | undefined };

// What a version looks like: anything else that was requested is not echoed.
const VERSION_FORM = /^[A-Za-z0-9.-]{1,32}$/;

/** A fault with status 400, the default of contract §6. */
export function protocolErrorOf(
  reason: ProtocolError['reason'],
  code: number,
  message: string,
  errorContext: ErrorContext,
  status = 400,
): ProtocolError {
  const error: ProtocolError = {
    kind: 'fault',
    reason,
    status,
    code,
    message,
    era: errorContext.era,
  };
  return errorContext.id === undefined ? error : { ...error, id: errorContext.id };
}

/** 400 / -32600: not one valid message. */
export function invalidMessage(errorContext: ErrorContext, message: string): ProtocolError {
  return protocolErrorOf('invalid-message', INVALID_REQUEST, message, errorContext);
}

/** 400 / -32602: the envelope holds, the params do not. */
export function invalidParams(errorContext: ErrorContext, message: string): ProtocolError {
  return protocolErrorOf('invalid-message', INVALID_PARAMS, message, errorContext);
}

/** 400 / -32020: a header is missing, repeated, malformed or differs from the body. */
export function headerMismatch(errorContext: ErrorContext, message: string): ProtocolError {
  return protocolErrorOf('header-mismatch', HEADER_MISMATCH, message, errorContext);
}

/** 400 with `data.supported` and `data.requested`: -32022, or -32602 inside a session. */
export function unsupportedVersion(
  errorContext: ErrorContext,
  requested: string,
  supported: readonly string[],
  code: number = UNSUPPORTED_VERSION,
): ProtocolError {
  const error = protocolErrorOf(
    'unsupported-version',
    code,
    'Unsupported protocol version',
    errorContext,
  );
  const echo = VERSION_FORM.test(requested) ? requested : '';
  return { ...error, data: { supported, requested: echo } };
}
