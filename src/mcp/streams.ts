// Decides whether a request without a body is valid protocol: a GET that opens or resumes a stream of a
// session, a DELETE that ends one. Both belong to the session era alone.
// Source: MCP 2025-11-25, transports (listening for messages, resumability, session management).

import type { EventFacts, ProtocolError, SessionFacts } from './admitted.js';
import { type AdmissionInput, checkRepeated } from './classify.js';
import { checkSession, type SessionCheck, unknownSession } from './eras/sessions.js';
import { claimsStateless } from './eras/stateless.js';
import { type ErrorContext, INVALID_REQUEST, protocolErrorOf } from './faults.js';

/** A session's stream that may be opened; `resumed` where it goes on after an event of an earlier one. */
export type StreamCheck =
  | (Extract<SessionCheck, { readonly kind: 'session' }> & { readonly resumed?: EventFacts })
  | ProtocolError;

/** Opens the id of an event of this session and caller; `undefined` for every other. */
export type OpenEvent = (id: string, session: SessionFacts) => EventFacts | undefined;

/**
 * Admits a GET that opens a stream of a session, or resumes one. There is none without a session, and an
 * event id of another session, caller or gateway is as unknown as a session.
 * Source: MCP 2025-11-25, transports, listening for messages and resumability.
 */
export function admitStreamOpen(
  input: Omit<AdmissionInput, 'body'> & { readonly openEvent?: OpenEvent },
): StreamCheck {
  const checked = admitWithoutBody(input, true);
  const id = input.headers['last-event-id'];
  if (checked.kind === 'fault' || id === undefined) return checked;
  const resumed = input.openEvent?.(id, checked.session);
  return resumed === undefined ? unknownSession({ era: '2025' }) : { ...checked, resumed };
}

/** Admits a DELETE that ends a session; there is nothing to end without one. */
export function admitSessionEnd(input: Omit<AdmissionInput, 'body'>): SessionCheck {
  return admitWithoutBody(input, false);
}

function admitWithoutBody(input: Omit<AdmissionInput, 'body'>, mayResume: boolean): SessionCheck {
  const { headers } = input;
  const isStateless = claimsStateless(undefined, headers);
  if (isStateless || headers['mcp-session-id'] === undefined) {
    const era = isStateless ? '2026' : undefined;
    return protocolErrorOf('method-forbidden', INVALID_REQUEST, 'Method not allowed', { era }, 405);
  }
  const errorContext: ErrorContext = { era: '2025' };
  return (
    checkRepeated(input, errorContext) ??
    checkSession(headers, input.openSession, errorContext, mayResume)
  );
}
