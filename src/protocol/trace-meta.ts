// Puts the gateway's own trace context into `_meta` of a message on its way to the upstream. Pure.
// Source: MCP 2026-07-28, base protocol (`_meta`); OpenTelemetry, semantic conventions for MCP (context propagation).

import { copyAdmitted } from './admission.js';
import type { AdmittedMessage } from './admitted-request.js';
import { memberSpans, spanOf } from './json/json.js';
import { isObject } from './jsonrpc.js';
import { paramsOf } from './params.js';
import { TRACEPARENT } from './trace-context.js';

/**
 * The message with `traceparent` in its `_meta`: where the client had one there, or the revision has it there. The same
 * message where an edit replaces `_meta` as a whole; the header carries the context in any case.
 */
export function withTraceparent(admitted: AdmittedMessage, traceparent: string): AdmittedMessage {
  const isExpected = admitted.traceparent !== undefined || admitted.protocol.mirrorsBody;
  if (!isExpected || !isObject(paramsOf(admitted)['_meta'])) return admitted;
  const { text, edits } = admitted;
  const meta = spanOf(text, ['params', '_meta']);
  if (meta === undefined || edits.some(({ start, end }) => start <= meta.start && end > meta.start)) return admitted;
  const isCut = (start: number, stop: number): boolean =>
    edits.some((edit) => edit.text === '' && edit.start <= start && edit.end >= stop);
  const isEmpty = memberSpans(text, meta).every(({ start, value }) => isCut(start, value.end));
  const at = meta.start + 1;
  const own = { start: at, end: at, text: `"${TRACEPARENT}":"${traceparent}"${isEmpty ? '' : ','}` };
  const before = edits.filter(({ start }) => start < at);
  return copyAdmitted(admitted, { edits: [...before, own, ...edits.slice(before.length)] });
}
