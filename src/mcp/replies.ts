// Whether what a client posts is the answer to a question of a server: in a session, with an id that was
// given out in that very session. It is then judged and forwarded under the question's own row and target.
// Source: MCP 2025-11-25, transports (sending messages to the server: responses).

import type { MethodRule, ProtocolError, ServerRequestFacts, TextEdit } from './admitted.js';
import { type AdmissionInput, checkRepeated } from './classify.js';
import { checkLegacySse } from './eras/channels.js';
import { checkSession, type SessionCheck } from './eras/sessions.js';
import { claimsStateless } from './eras/stateless.js';
import { type ErrorContext, invalidMessage } from './faults.js';
import { spanOf } from './json.js';
import { isObject, type Message } from './message.js';
import { findMethod } from './methods.js';
import { ownMetaEdits } from './removal.js';

/** The answer to a question: a result or an error. */
export type Reply = Extract<Message, { readonly kind: 'result' | 'error' }>;

/** What the id of an answer says, and what of its text is changed before it leaves. */
export type ReplyReading = {
  readonly kind: 'reply';
  readonly session: Extract<SessionCheck, { readonly kind: 'session' }>;
  readonly serverRequest: ServerRequestFacts;
  /** The id of the answer as the client sent it. */
  readonly serverRequestId: string;
  readonly rule: MethodRule;
  readonly edits: readonly TextEdit[];
  readonly removed: readonly string[];
};

/**
 * Reads an answer of a client, or says why none is waited for. The id is restored by an edit of the text.
 * Source: MCP 2025-11-25, transports; contract §10 (sealed values).
 */
export function readReply(
  input: AdmissionInput,
  text: string,
  reply: Reply,
): ReplyReading | ProtocolError {
  const era = input.isLegacySse === true ? '2024' : '2025';
  const errorContext: ErrorContext = { era };
  if (claimsStateless(undefined, input.headers)) return unexpected({ era: '2026' });
  const repeated = checkRepeated(input, errorContext);
  if (repeated !== undefined) return repeated;
  const session =
    era === '2024'
      ? checkLegacySse(input, errorContext)
      : checkSession(input.headers, input.openSession, errorContext);
  if (session.kind === 'fault') return session;
  const serverRequestId = typeof reply.id === 'string' ? reply.id : '';
  const serverRequest = input.openServerRequest?.(serverRequestId, session.session);
  const rule = serverRequest && findMethod(era, 'server', serverRequest.method);
  const id = spanOf(text, ['id']);
  if (serverRequest === undefined || rule === undefined || id === undefined)
    return unexpected(errorContext);
  const meta = reply.kind === 'result' ? reply.result['_meta'] : undefined;
  const own = ownMetaEdits(text, isObject(meta) ? meta : undefined, 'result');
  const edits = [...own.edits, { ...id, text: JSON.stringify(serverRequest.id) }];
  edits.sort((one, other) => one.start - other.start);
  return {
    kind: 'reply',
    session,
    serverRequest,
    serverRequestId,
    rule,
    edits,
    removed: own.removed,
  };
}

function unexpected(errorContext: ErrorContext): ProtocolError {
  return invalidMessage(errorContext, 'No request is waiting for this answer.');
}
