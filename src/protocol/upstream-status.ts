// What the HTTP status of an upstream's answer means. A status is read together with what the body says, and never for
// the worst that it could mean: a JSON-RPC error under the id of the request is an answer, whatever 4xx carries it, and
// a session is lost only where the answer cannot mean anything else, or where a ping in that session fails too.
// Nothing here sends or reads; whoever asks acts on the reading.
// Source: docs/reference/responses.md; MCP 2025-11-25 and 2026-07-28, Streamable HTTP; RFC 9110 §15; RFC 6585 §4.

import { isObject, type Json, type RequestId, readEnvelope } from './jsonrpc.js';
import { METHOD_NOT_FOUND } from './responses.js';
import type { ForwardError } from './transport.js';

/** A JSON-RPC response in the body. `isOwn`: it carries the id of the request. Without `code` it is a result. */
export type ErrorSeen = { readonly code: number | undefined; readonly isOwn: boolean };

/** What is known of an answer besides its status. */
export type StatusFacts = {
  /** The JSON-RPC error that the body is, if it is one, or the result under the id of the request. */
  readonly error: ErrorSeen | undefined;
  /** The request named a session that the upstream itself had opened. */
  readonly namesSession: boolean;
};

export type StatusReading =
  /** A success: the body is the response. */
  | { readonly kind: 'success' }
  /** A fault of the credential that the gateway presented, whatever the body says. */
  | { readonly kind: 'credentials' }
  /** Too many requests, or out of service for a while: status, text and `Retry-After` are the client's. */
  | { readonly kind: 'busy' }
  /** An error that answers the request. With `unlessLost`, a failing ping means that the session is lost. */
  | { readonly kind: 'answer'; readonly unlessLost: boolean }
  /** The session is lost; with `ifPingFails`, only if a ping in it fails too, and else `otherwise` holds. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'lost-if-ping-fails'; readonly otherwise: 'stray-error' | 'invalid' }
  /** An error that names no request: it is that of the request that was answered with it. */
  | { readonly kind: 'stray-error' }
  /** The server failed, and says in an error under the id of the request what failed. */
  | { readonly kind: 'failure' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'invalid' };

const OK = 200;
const BAD_REQUEST = 400;
const NOT_FOUND = 404;
const FIRST_REDIRECT = 300;
const FIRST_CLIENT_ERROR = 400;
const FIRST_SERVER_ERROR = 500;
const FIRST_UNDEFINED = 600;
/** Statuses without a body that could be the response: accepted, no content, reset content. */
const WITHOUT_RESPONSE: ReadonlySet<number> = new Set([202, 204, 205]);
const CREDENTIALS: ReadonlySet<number> = new Set([401, 403, 407]);
const BUSY: ReadonlySet<number> = new Set([429, 503]);

/** Reads the status of the answer to a request. The rules are applied in order; the first that fits holds. */
export function readUpstreamStatus(status: number, facts: StatusFacts): StatusReading {
  if (CREDENTIALS.has(status)) return { kind: 'credentials' };
  if (BUSY.has(status)) return { kind: 'busy' };
  if (status >= OK && status < FIRST_REDIRECT) return { kind: WITHOUT_RESPONSE.has(status) ? 'invalid' : 'success' };
  if (status >= FIRST_CLIENT_ERROR && status < FIRST_SERVER_ERROR) return readClientError(status, facts);
  if (status < FIRST_SERVER_ERROR || status >= FIRST_UNDEFINED) return { kind: 'invalid' };
  if (facts.error?.isOwn !== true) return { kind: 'unavailable' };
  return facts.error.code === undefined ? { kind: 'answer', unlessLost: false } : { kind: 'failure' };
}

function readClientError(status: number, { error, namesSession }: StatusFacts): StatusReading {
  if (error?.isOwn === true) {
    const mayBeLost =
      namesSession && status === NOT_FOUND && error.code !== undefined && error.code !== METHOD_NOT_FOUND;
    return { kind: 'answer', unlessLost: mayBeLost };
  }
  if (namesSession && status === NOT_FOUND) return { kind: 'lost' };
  const otherwise = error === undefined ? 'invalid' : 'stray-error';
  if (namesSession && status === BAD_REQUEST) return { kind: 'lost-if-ping-fails', otherwise };
  return { kind: otherwise };
}

/** The reading, once a ping in the session has shown whether one that may be lost is. */
export async function afterPing(
  reading: StatusReading,
  isSessionAlive: () => Promise<boolean>,
): Promise<Exclude<StatusReading['kind'], 'lost-if-ping-fails'>> {
  switch (reading.kind) {
    case 'lost-if-ping-fails':
      return (await isSessionAlive()) ? reading.otherwise : 'lost';
    case 'answer':
      return !reading.unlessLost || (await isSessionAlive()) ? 'answer' : 'lost';
    default:
      return reading.kind;
  }
}

/** The error that this status stands for regardless of the body; `undefined` if the body decides. */
export function errorOfStatus(status: number): ForwardError | undefined {
  if (CREDENTIALS.has(status)) return 'upstream-credentials';
  return BUSY.has(status) ? 'upstream-unavailable' : undefined;
}

/** Whether the upstream asks to be left alone for a while. */
export function isBusyStatus(status: number): boolean {
  return BUSY.has(status);
}

/**
 * The JSON-RPC error that a message is, or the result of the request; `undefined` for anything else. `null`, absent and
 * foreign ids are not own.
 */
export function errorSeenIn(value: Json | undefined, id: RequestId | undefined): ErrorSeen | undefined {
  if (value === undefined || !isObject(value)) return undefined;
  const envelope = readEnvelope(value);
  if (envelope.kind === 'result') return envelope.id === id ? { code: undefined, isOwn: true } : undefined;
  if (envelope.kind !== 'error') return undefined;
  return { code: envelope.error.code, isOwn: id !== undefined && envelope.id === id };
}

/**
 * Whether the answer to a ping shows that its session is alive: any response to it does, and so does an answer that
 * says nothing of the session. `hasResponse`: the body is the result, or an error, under the id of the ping.
 */
export function isAliveByPing(status: number, error: ErrorSeen | undefined, hasResponse: boolean): boolean {
  const reading = readUpstreamStatus(status, { error, namesSession: true });
  switch (reading.kind) {
    case 'success':
      return hasResponse;
    case 'answer':
      return !reading.unlessLost;
    case 'credentials':
    case 'busy':
      return true;
    case 'lost':
    case 'lost-if-ping-fails':
    case 'stray-error':
    case 'failure':
    case 'unavailable':
    case 'invalid':
      return false;
  }
}

/** Delay in seconds, or a date in the one form that senders may use (RFC 9110 §10.2.3 and §5.6.7). */
const RETRY_AFTER = /^(?:\d{1,9}|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)$/;

/** The `Retry-After` of an upstream, if it is a valid one. */
export function readRetryAfter(value: string | undefined): string | undefined {
  return value !== undefined && RETRY_AFTER.test(value) ? value : undefined;
}
