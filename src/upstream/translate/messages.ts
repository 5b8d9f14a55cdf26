// The messages of an upstream's answer, whether it came whole or as a stream, one at a time and in order.
// Reads and frames; what a message says is for others.
// Source: MCP 2025-11-25 and 2026-07-28, transports, sending messages to the server.

import { inOnePiece } from '../../mcp/body.js';
import { readJson, readJsonText } from '../../mcp/json.js';
import type { Json } from '../../mcp/message.js';
import { createSseFramer, type SseEvent, type SseFault } from '../../mcp/sse.js';
import type { ForwardFault, UpstreamAnswer, WholeAnswer } from '../../mcp/transport.js';

/** Bytes of one message, and the time for a whole body. */
export type HearingBounds = {
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
};

/** `value` is absent where the text is no JSON that every parser reads alike. A fault is the last. */
export type Heard =
  | { readonly kind: 'message'; readonly text: string; readonly value: Json | undefined }
  | { readonly kind: 'alive' }
  | { readonly kind: 'fault'; readonly reason: ForwardFault };

/** The media type of an answer, without its parameters. */
export function isStream(answer: UpstreamAnswer): boolean {
  return mediaType(answer) === 'text/event-stream' && answer.status === 200;
}

/** True where the body is one JSON message. */
export function isJson(answer: UpstreamAnswer): boolean {
  return mediaType(answer) === 'application/json';
}

function mediaType({ headers }: UpstreamAnswer): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Yields what comes. Ending it early gives the answer up. */
export async function* hear(
  answer: UpstreamAnswer,
  { maxResponseBytes, requestTimeoutMs }: HearingBounds,
): AsyncGenerator<Heard, void> {
  if (isStream(answer)) yield* hearEvents(answer, maxResponseBytes);
  else if (isJson(answer)) yield hearWhole(await answer.whole(maxResponseBytes, requestTimeoutMs));
  else {
    answer.release();
    yield fault('upstream-protocol');
  }
}

function fault(reason: ForwardFault): Heard {
  return { kind: 'fault', reason };
}

/** The one message of a whole body. */
export function hearWhole(bytes: WholeAnswer): Heard {
  if (typeof bytes === 'string') return fault(bytes === 'too-large' ? 'upstream-protocol' : bytes);
  const reading = readJson(inOnePiece(bytes));
  if (!reading.ok) return fault('upstream-protocol');
  return { kind: 'message', text: reading.text, value: reading.value };
}

async function* hearEvents(answer: UpstreamAnswer, maxBytes: number): AsyncGenerator<Heard, void> {
  const framer = createSseFramer({ maxEventBytes: maxBytes });
  try {
    for (;;) {
      const chunk = await answer.next();
      if (chunk === undefined) return;
      yield* typeof chunk === 'string' ? [fault(chunk)] : framed(framer.push(chunk));
      if (typeof chunk === 'string') return;
    }
  } finally {
    // Nothing where it has ended.
    answer.release();
  }
}

function framed(events: readonly SseEvent[] | SseFault): readonly Heard[] {
  if ('fault' in events) return [fault('upstream-protocol')];
  return events.map(heardIn).filter((heard) => heard !== undefined);
}

function heardIn(event: SseEvent): Heard | undefined {
  if (event.kind === 'comment') return { kind: 'alive' };
  if (event.kind !== 'message' || event.event !== 'message' || event.data === '') return undefined;
  const reading = readJsonText(event.data);
  return { kind: 'message', text: event.data, value: reading.ok ? reading.value : undefined };
}

/** Whether a whole answer may ask for input: a quick look, that may be wrong to say yes. */
export function asks(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).includes('input_required');
}
