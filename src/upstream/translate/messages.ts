// The messages of an upstream's answer, whether it came whole or as a stream, one at a time and in order.
// Reads and frames; what a message says is for others.
// Source: MCP 2025-11-25 and 2026-07-28, transports, sending messages to the server.

import { inOnePiece } from '../../mcp/body.js';
import type { ReadOutcome } from '../../mcp/json-reader.js';
import type { Json } from '../../mcp/message.js';
import { createSseFramer, type SseEvent, type SseFault } from '../../mcp/sse.js';
import type { ForwardFault, UpstreamAnswer, WholeAnswer } from '../../mcp/transport.js';
import { HEARING_ALONE, type Hearing } from '../hearing.js';

/** Bytes of one message, and the time for a whole body. `hearing`: read alone and at once where not given. */
export type HearingBounds = {
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly hearing?: Hearing | undefined;
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
  { maxResponseBytes, requestTimeoutMs, hearing = HEARING_ALONE }: HearingBounds,
): AsyncGenerator<Heard, void> {
  if (isStream(answer)) yield* hearEvents(answer, maxResponseBytes, hearing);
  else if (isJson(answer)) {
    const whole = await answer.whole(maxResponseBytes, requestTimeoutMs);
    answer.release();
    yield await hearWhole(whole, hearing);
  } else {
    answer.release();
    yield fault('upstream-protocol');
  }
}

function fault(reason: ForwardFault): Heard {
  return { kind: 'fault', reason };
}

/** The one message of a whole body. */
export async function hearWhole(
  bytes: WholeAnswer,
  { read }: Hearing = HEARING_ALONE,
): Promise<Heard> {
  if (typeof bytes === 'string') return fault(bytes === 'too-large' ? 'upstream-protocol' : bytes);
  const reading = await read(inOnePiece(bytes));
  if (!reading.ok)
    return fault(reading.fault === 'overloaded' ? 'overloaded' : 'upstream-protocol');
  return { kind: 'message', text: reading.text, value: reading.value };
}

async function* hearEvents(
  answer: UpstreamAnswer,
  maxBytes: number,
  hearing: Hearing,
): AsyncGenerator<Heard, void> {
  const framer = createSseFramer({ maxEventBytes: maxBytes });
  try {
    for (;;) {
      const chunk = await answer.next();
      if (chunk === undefined) return;
      if (typeof chunk === 'string') return yield fault(chunk);
      const room = answer.hold?.(framer.unfinishedBytes() + chunk.byteLength);
      if ((await room) === 'overloaded') return yield fault('overloaded');
      yield* framed(framer.push(chunk), hearing);
      void answer.hold?.(framer.unfinishedBytes());
    }
  } finally {
    // Nothing where it has ended.
    answer.release();
  }
}

async function* framed(
  events: readonly SseEvent[] | SseFault,
  hearing: Hearing,
): AsyncGenerator<Heard, void> {
  if ('fault' in events) return yield fault('upstream-protocol');
  for (const event of events) {
    const turn = hearing.turn();
    if (turn !== undefined) await turn;
    const startedMs = performance.now();
    const heard = heardIn(event, hearing);
    hearing.spend(performance.now() - startedMs);
    const late = heard instanceof Promise ? await heard : heard;
    if (late !== undefined) yield late;
  }
}

function heardIn(event: SseEvent, { read }: Hearing): Heard | undefined | Promise<Heard> {
  if (event.kind === 'comment') return { kind: 'alive' };
  if (event.kind !== 'message' || event.event !== 'message' || event.data === '') return undefined;
  const { data } = event;
  const reading = read(data);
  return reading instanceof Promise
    ? reading.then((late) => messageOf(data, late))
    : messageOf(data, reading);
}

/** What cannot be read is told all the same: whoever judges it refuses it. */
function messageOf(text: string, reading: ReadOutcome): Heard {
  return { kind: 'message', text, value: reading.ok ? reading.value : undefined };
}

/** Whether a whole answer may ask for input: a quick look, that may be wrong to say yes. */
export function asks(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).includes('input_required');
}
