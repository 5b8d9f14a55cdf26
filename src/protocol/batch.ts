// Arrays of messages, which one revision allows: checks the array and splits it into the texts of its
// elements. Each element is then handled as if it had been posted alone; nothing here admits a message.
// Source: MCP 2025-03-26, base protocol (batching) and transports; removed in 2025-06-18.

import type { ProtocolError, SessionFacts } from './admitted-request.js';
import { INVALID_REQUEST, protocolErrorOf } from './errors.js';
import { elementSpans } from './json/json.js';
import type { Json } from './jsonrpc.js';
import { isObject, readEnvelope } from './jsonrpc.js';
import type { AdmissionInput } from './versions/admission-rules.js';
import { checkRepeated } from './versions/detection.js';
import { hasArrays } from './versions/revisions.js';
import { checkSession } from './versions/session.js';
import { claimsStateless } from './versions/stateless.js';

/** Maximum number of messages in one array; each is decided, counted and recorded on its own. */
export const MAX_ARRAY_ELEMENTS = 64;

/** An array whose elements may be admitted one by one. */
export type AdmittedArray = {
  readonly kind: 'array';
  readonly session: SessionFacts;
  /** The elements as received, in order. */
  readonly elements: readonly string[];
  /** Whether any of them is a request, so that there is something to respond to. */
  readonly hasRequests: boolean;
};

/**
 * Admits an array of a 2025-03-26 session: not empty, not too long, objects only, no `initialize`, no id
 * twice. Everywhere else an array is refused with 400.
 */
export function admitArray(
  input: AdmissionInput,
  text: string,
  value: readonly Json[],
): AdmittedArray | ProtocolError {
  const { headers } = input;
  if (claimsStateless(undefined, headers) || headers['mcp-session-id'] === undefined)
    return batchForbidden();
  const repeated = checkRepeated(input, {});
  if (repeated !== undefined) return repeated;
  const opened = checkSession(headers, input.openSession, {});
  if (opened.kind === 'error') return opened;
  const { session } = opened;
  if (!hasArrays(session.version)) return batchForbidden();
  if (value.length === 0 || value.length > MAX_ARRAY_ELEMENTS || !areApart(value)) {
    return batchForbidden();
  }
  const spans = elementSpans(text, { start: text.indexOf('['), end: text.length });
  const elements = spans.map(({ start, end }) => text.slice(start, end));
  const hasRequests = value.some((one) => readEnvelope(one).kind === 'request');
  return { kind: 'array', session, elements, hasRequests };
}

/** True if every element is an object that can be handled independently of the others. */
function areApart(value: readonly Json[]): boolean {
  const ids = new Set<string>();
  for (const element of value) {
    if (!isObject(element) || element['method'] === 'initialize') return false;
    if (element['method'] === undefined || element['id'] === undefined) continue;
    const id = JSON.stringify(element['id']);
    if (ids.has(id)) return false;
    ids.add(id);
  }
  return true;
}

/** The error for an array that is not accepted. */
export function batchForbidden(): ProtocolError {
  const text = 'Batches are not accepted. Send one message per request.';
  return protocolErrorOf('batch-forbidden', INVALID_REQUEST, text, {});
}
