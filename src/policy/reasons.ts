// The one closed, append-only table of reasons for refusals. Metric labels, audit fields, log levels, what a
// caller sees and the reference page are made from it; no other file defines a reason.
// INVARIANT: the hidden rendering of a reason does not differ from "unknown" unless its row is visible to everybody. They
// are one value, so that a refusal is no oracle for what exists.

/** The stages of the pipeline, in order. */
export type Stage = 'edge' | 'authn' | 'admit' | 'decide' | 'guard' | 'settle' | 'record' | 'forward' | 'inspect';

/**
 * How a refusal is rendered (docs/reference/responses.md). `http`: a bare status with a body that names nothing.
 * `challenge`: WWW-Authenticate. `error`: HTTP status and JSON-RPC error. `not-found`: the era's own "not found" for
 * the kind of target, HTTP 200. `refusal`: for tools/call a result with isError, for other methods a JSON-RPC error
 * with one of the gateway's own codes, HTTP 200.
 */
export type Rendering =
  | { readonly as: 'http'; readonly status: number }
  | { readonly as: 'challenge'; readonly status: 401 | 403 }
  | { readonly as: 'error'; readonly status: number; readonly code: number }
  | { readonly as: 'not-found' }
  | { readonly as: 'refusal'; readonly code: number };

type Row = {
  readonly stage: Stage;
  /** The text that a caller may read. Quotes nothing that came over the wire. */
  readonly text: string;
  /** In place of it where it is known that nothing of the request was sent to a server. */
  readonly unsent?: string;
  /** In place of it for a call that was sent, as far as the words that say so do not simply follow it. */
  readonly sent?: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly visible: Rendering;
  /** For a caller that may not know that the target exists. */
  readonly hidden: Rendering;
};

/** Of a call that ends after it was sent: nobody knows what its server did. */
const MAY_HAVE_ACTED =
  'The call had been sent to the server and may have been carried out: find out before you send it again.';

const NOT_FOUND: Rendering = { as: 'not-found' };

function always(stage: Stage, level: Row['level'], text: string, rendering: Rendering): Row {
  return { stage, text, level, visible: rendering, hidden: rendering };
}

function http(level: Row['level'], status: number, text: string): Row {
  return always('edge', level, text, { as: 'http', status });
}

function protocol(code: number, text: string, status = 400): Row {
  return always('admit', 'info', text, { as: 'error', status, code });
}

function token(text: string): Row {
  return always('authn', 'info', text, { as: 'challenge', status: 401 });
}

function hidden(stage: Stage, level: Row['level'], text: string): Row {
  return always(stage, level, text, NOT_FOUND);
}

function unavailable(stage: Stage, code: number, text: string, status = 503): Row {
  return always(stage, 'error', text, { as: 'error', status, code });
}

/** Where the text invites to try again, or says that there was no call. */
function whenSent(row: Row, sent: string): Row {
  return { ...row, sent: `${sent} ${MAY_HAVE_ACTED}` };
}

/** A refusal for a caller that sees the target; "not found" for one that does not. */
function refusal(stage: Stage, level: Row['level'], code: number, text: string): Row {
  return { stage, text, level, visible: { as: 'refusal', code }, hidden: NOT_FOUND };
}

/** The gateway's own JSON-RPC codes are outside -32768..-32000 (MCP 2026-07-28, error codes). */
export const REASONS = {
  'origin-forbidden': http('warn', 403, 'Requests from this origin are not allowed.'),
  'host-forbidden': http('warn', 421, 'This gateway does not serve this host.'),
  'body-too-large': http('info', 413, 'The request body exceeds the size limit.'),
  'unsupported-media-type': http(
    'info',
    415,
    'The body must be application/json in UTF-8, without a content encoding.',
  ),
  'malformed-json': protocol(-32700, 'The body is not valid JSON in UTF-8.'),
  'duplicate-key': protocol(-32600, 'The body contains an object with duplicate member names.'),
  'invalid-message': protocol(-32600, 'The body is not a single valid JSON-RPC message.'),
  'batch-forbidden': protocol(-32600, 'Batches are not accepted. Send one message per request.'),
  'header-mismatch': protocol(-32020, 'A required header is missing or does not match the body.'),
  'unsupported-version': protocol(-32022, 'This protocol version is not supported.'),
  'unknown-session': protocol(1404, 'This session is unknown or has ended. Initialize again.', 404),
  'session-required': protocol(-32600, 'This request needs a session. Initialize first.'),
  'method-unknown': protocol(-32601, 'Method not found', 404),
  'method-forbidden': protocol(-32601, 'Method not found', 404),

  'token-missing': token('A bearer token is required.'),
  'token-malformed': token('The token is malformed.'),
  'token-signature': token('The token could not be verified.'),
  'token-type': token('This type of token is not accepted.'),
  'token-issuer': token('The token issuer is not accepted here.'),
  'token-audience': token('The token was not issued for this resource.'),
  'token-expired': token('The token has expired.'),
  'token-not-yet-valid': token('The token is not valid yet.'),
  'token-lifetime': token('The token lifetime exceeds the allowed maximum.'),
  'token-revoked': token('The token was revoked.'),
  'token-binding': token('Proof of possession for the token is missing or invalid.'),
  'keys-unavailable': whenSent(
    unavailable('authn', 1503, 'Token signing keys are currently unavailable. Try again later.'),
    'Token signing keys are currently unavailable, so the response was withheld.',
  ),
  'insufficient-scope': {
    stage: 'decide',
    level: 'info',
    text: 'The token lacks a required scope.',
    visible: { as: 'challenge', status: 403 },
    hidden: NOT_FOUND,
  },

  'no-matching-allow': hidden('decide', 'info', 'No policy rule allows this request.'),
  'denied-by-rule': refusal('decide', 'info', 1403, 'A policy rule denies this request.'),
  blocked: {
    stage: 'decide',
    level: 'warn',
    text: 'An administrator has blocked this.',
    visible: { as: 'error', status: 403, code: 1435 },
    hidden: NOT_FOUND,
  },
  'policy-error': refusal('decide', 'error', 1500, 'A policy rule could not be evaluated, so the request was refused.'),
  'restart-pending': refusal(
    'decide',
    'warn',
    1436,
    'A new policy rule about this request takes full effect when the gateway is restarted. Until then such requests are refused.',
  ),
  'rate-limited': refusal('settle', 'info', 1429, 'Rate limit exceeded.'),
  overloaded: whenSent(
    unavailable('edge', 1503, 'Too many requests are in progress. Try again later.'),
    'Too many requests are in progress, so the response was withheld.',
  ),
  'approval-required': refusal(
    'settle',
    'info',
    1401,
    'This request needs the approval of a person and was not carried out. Once it is approved, send the same request again, unchanged.',
  ),
  'approval-denied': refusal(
    'settle',
    'info',
    1402,
    'The approval of this request was refused. Sent again, it is refused without asking anybody, until the refusal expires.',
  ),
  'approval-expired': refusal(
    'settle',
    'info',
    1410,
    'The approval of this request was not used in time, so a person has been asked again. Once it is approved, send the same request again, unchanged.',
  ),
  'approval-mismatch': refusal(
    'settle',
    'info',
    1411,
    'This request, its definition or the rules that decide it have changed since it was approved, so the approval is void. Send the request again to ask for another one.',
  ),
  'tainted-flow': refusal(
    'settle',
    'warn',
    1409,
    'A policy flow refuses this request because of results that were received earlier.',
  ),

  'tool-unpinned': hidden('decide', 'info', 'The definition is not approved.'),
  'tool-changed': hidden('decide', 'warn', 'The definition differs from the approved one.'),
  'tool-blocked': hidden('decide', 'warn', 'The definition is blocked.'),
  'tool-poisoned': hidden('decide', 'warn', 'The definition contains hidden instructions.'),
  'tool-shadowed': hidden('decide', 'warn', 'The definition imitates another one.'),
  'tool-invalid': hidden('decide', 'warn', 'The definition is invalid.'),
  'pins-stale': whenSent(
    unavailable(
      'decide',
      1504,
      'The definitions of this server could not be verified in time; the server may be unreachable. Try again later.',
    ),
    'The definitions of this server could not be verified in time, so the response was withheld.',
  ),

  'arguments-invalid': refusal('decide', 'info', 1422, 'The arguments are invalid or not allowed.'),
  'arguments-content': refusal(
    'guard',
    'warn',
    1423,
    'The arguments contain content that may not be sent to this server.',
  ),
  'arguments-redacted': refusal(
    'guard',
    'info',
    1436,
    'The arguments contain a redaction mark of this gateway, such as [redacted:secret#…]: the text that was read had been altered, and sent back the mark would overwrite the original. Change only parts without a mark, or ask the operator for access under which the text is read whole.',
  ),
  'result-invalid': refusal('inspect', 'warn', 1424, 'The result does not match its approved schema and was withheld.'),
  'result-content': refusal(
    'inspect',
    'warn',
    1425,
    'The result contains content that is not allowed and was withheld.',
  ),
  'result-too-large': refusal('inspect', 'info', 1426, 'The result exceeds the size limit and was withheld.'),
  'resource-forbidden': hidden('decide', 'info', 'This resource is not allowed.'),
  'elicitation-sensitive': refusal('inspect', 'warn', 1427, 'The server asked for a secret. Its request was withheld.'),
  'elicitation-url': refusal(
    'inspect',
    'warn',
    1428,
    'The server sent a link that is not allowed. Its request was withheld.',
  ),
  'elicitation-approval': refusal(
    'inspect',
    'warn',
    1437,
    'The server asked for an approval as only the gateway does. Its request was withheld.',
  ),
  'sampling-forbidden': refusal('inspect', 'info', 1430, 'The server may not request sampling here.'),
  'roots-forbidden': refusal('inspect', 'info', 1431, 'The server may not request roots here.'),

  'unknown-task': hidden('decide', 'info', 'The task does not exist for this caller or has expired.'),

  'elicitation-forbidden': refusal('inspect', 'info', 1432, 'The server may not request input here.'),

  'upstream-unavailable': whenSent(
    unavailable('forward', 1502, 'The MCP server behind the gateway is unreachable.', 502),
    'The MCP server behind the gateway failed before its response had come.',
  ),
  'upstream-timeout': unavailable('forward', 1505, 'The MCP server behind the gateway did not respond in time.', 504),
  'upstream-protocol': unavailable('forward', 1506, 'The MCP server behind the gateway sent an invalid response.', 502),
  'upstream-credentials': unavailable(
    'forward',
    1507,
    'The gateway could not authenticate to the MCP server behind it.',
    502,
  ),

  'asked-elsewhere': always(
    'forward',
    'info',
    'No call is waiting for this reply here: it has ended or runs on another replica. Call again.',
    { as: 'error', status: 409, code: 1433 },
  ),

  'already-answered': always('settle', 'info', 'This server request has already been answered.', {
    as: 'error',
    status: 409,
    code: 1434,
  }),

  'audit-unavailable': whenSent(
    unavailable('record', 1508, 'The audit log cannot be written, so the request was refused. Try again later.'),
    'The audit log cannot be written, so the response was withheld.',
  ),
  'store-unavailable': whenSent(
    unavailable('settle', 1509, 'The shared store cannot answer for this request, so it was refused. Try again later.'),
    'The shared store cannot answer for this request, so the response was withheld.',
  ),
  /** What still ran when the time to finish was over, and what comes when nothing is accepted any more. */
  'gateway-stopping': {
    ...always(
      'forward',
      'info',
      'This gateway is stopping and stopped waiting for the response. The request may have been carried out: find out before you send it again.',
      { as: 'error', status: 503, code: 1510 },
    ),
    unsent: 'This gateway is stopping and did not carry out the request. Another one may be running: try again.',
  },
  /** What comes after the ports have opened and before everything else has. */
  'gateway-starting': always(
    'edge',
    'info',
    'This gateway is still starting and did not carry out the request. Try again in a few seconds.',
    { as: 'error', status: 503, code: 1511 },
  ),
  internal: unavailable('decide', -32603, 'Internal error. The message was withheld.', 500),

  'malformed-request': http('info', 400, 'The request is not valid HTTP.'),
  'request-timeout': http('info', 408, 'The request was not received in time.'),
  'headers-too-large': http('info', 431, 'The request headers exceed the size limit.'),
} as const satisfies { readonly [reason: string]: Row };

/** A reason for a refusal: one key of the closed table. */
export type Reason = keyof typeof REASONS;

const ROWS: Readonly<Record<Reason, Row>> = REASONS;

/**
 * The text of a reason. `isUnsent`: it is known that nothing of the request was sent to a server; false: it is a call that
 * was sent. What says of a result that it was withheld, or whether the call was carried out, says enough.
 */
export function textOf(reason: Reason, isUnsent?: boolean): string {
  const { stage, text, unsent, sent } = ROWS[reason];
  if (isUnsent === undefined) return text;
  if (isUnsent) return unsent ?? text;
  return sent ?? (stage === 'inspect' || SAYS_ENOUGH.has(reason) ? text : `${text} ${MAY_HAVE_ACTED}`);
}

const SAYS_ENOUGH: ReadonlySet<Reason> = new Set(['gateway-stopping', 'upstream-credentials']);

/** Whether a text, such as one of an audit line, is one of the reasons. */
export function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text);
}
