// Delivers the lines of audit files to a receiver: in order, at least once, with the position kept beside the files
// (position.ts). It reads what the file sink has written and so delays no call; what a receiver cannot take waits in the
// files. A batch that a receiver refuses for what is in it is halved until the line is found that it does not take; this
// line is counted and named, and stays in the file. Everything else is tried again, for as long as it takes.
// docs/reference/audit.md#delivery

import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditRecord } from '../audit/chain.js';
import { createEventJoiner } from '../audit/query.js';
import { type NewLines, readNewLines } from '../audit/reader.js';
import { nextTurn } from '../audit/sink.js';
import { parseObject } from '../protocol/jsonrpc.js';
import { errorCode } from '../text/wording.js';
import { openPosition, type Position } from './position.js';

/** A line to deliver. */
export type Line = {
  /** As it is in the file, without its line feed; Latin-1 text. */
  readonly text: string;
  /** With all members that are known; `undefined` if the line is no record. It is read with the first use. */
  readonly record: AuditRecord | undefined;
};

/** What became of a batch. */
export type Attempt =
  /** The receiver has it, but for some lines that it says it did not take. */
  | { readonly outcome: 'delivered'; readonly refused?: number; readonly why?: string }
  /** The receiver does not take it because of what is in it: a part of it may pass. */
  | { readonly outcome: 'refused'; readonly why: string }
  /** It may pass later. */
  | { readonly outcome: 'failed'; readonly why: string };

type Decided = Exclude<Attempt, { readonly outcome: 'failed' }>;

/** A connection to a receiver. */
export type Receiver = {
  /** A line as it is sent. Costs little: many are rendered in one turn of the event loop. */
  render(line: Line): string;
  send(parts: readonly string[]): Promise<Attempt>;
  close(): Promise<void>;
};

export type DeliveryState = {
  /** Why lines wait; `undefined` while the receiver takes them. */
  readonly error: string | undefined;
  /** Bytes of files that the receiver does not have. */
  readonly waitingBytes: number;
  /** When the oldest line was written that the receiver does not have; `undefined` if it has all. */
  readonly waitingSinceMs: number | undefined;
  /** Lines that the receiver did not take, and why the last of them. */
  readonly refused: { readonly count: number; readonly why: string } | undefined;
};

export type Delivery = {
  readonly name: string;
  state(): DeliveryState;
  /** True if the receiver has all of a file. */
  hasDelivered(file: string): Promise<boolean>;
  /** Delivers what was written until now, as far as that succeeds within a bounded time, and ends. */
  close(): Promise<void>;
};

export type DeliveryPorts = {
  readonly name: string;
  /** The configured path of the audit files. */
  readonly auditPath: string;
  readonly receiver: Receiver;
  readonly now: () => number;
  readonly onLines: (result: 'delivered' | 'refused', count: number) => void;
};

/** Lines of a batch at most; how many bytes a piece of a file has at most, says reader.ts. */
const MAX_LINES = 500;
/** Lines that are read and rendered in one turn of the event loop, so that no call waits for long. */
const LINES_PER_TURN = 25;
/** Pause while nothing is left to deliver. */
const IDLE_MS = 500;
/** Pauses after failures double from the first to the second. */
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** The position is written as often at most, and when everything is delivered. */
const SAVE_EVERY_MS = 1_000;
/** How long `close` goes on delivering. */
const CLOSE_WITHIN_MS = 3_000;

/** As many lines in a row may be refused at once; beyond that the receiver seems to refuse everything. */
const MAX_REFUSED_IN_ROW = 10;

type Batch = NewLines & { readonly file: string };

class Ended extends Error {
  override readonly name = 'Ended';
}

/** As many of the lines as a batch has. */
function limit(found: NewLines): NewLines {
  if (found.lines.length <= MAX_LINES) return found;
  const lines = found.lines.slice(0, MAX_LINES);
  const end = lines.reduce((offset, line) => offset + line.length + 1, found.start);
  return { lines, start: found.start, end };
}

async function nextBatch(position: Position): Promise<Batch | undefined> {
  for (const file of await position.files()) {
    const found = await readNewLines(file, position.offsetIn(file));
    if (found.start !== found.end) return { ...limit(found), file };
  }
  return undefined;
}

async function bytesBehind(position: Position): Promise<number> {
  let bytes = 0;
  for (const file of await position.files()) bytes += Math.max(0, (await stat(file)).size - position.offsetIn(file));
  return bytes;
}

function timeOf(text: string): number | undefined {
  const ms = Date.parse(String(parseObject(text)?.['time']));
  return Number.isNaN(ms) ? undefined : ms;
}

/** Outcomes are completed by their decisions where lines are read in order. */
function createLineReader(): (text: string) => Line {
  const join = createEventJoiner();
  return (text) => {
    let read: { readonly record: AuditRecord | undefined } | undefined;
    function readRecord(): AuditRecord | undefined {
      const record = parseObject(text);
      return record && join(record, text.length).record;
    }
    return {
      text,
      get record() {
        read ??= { record: readRecord() };
        return read.record;
      },
    };
  };
}

/** Starts the delivery to one receiver. The file sink has to be open. */
export function startDelivery(ports: DeliveryPorts): Delivery {
  const { name, auditPath, receiver, now, onLines } = ports;
  const readLine = createLineReader();
  const ending = new AbortController();
  let position: Position | undefined;
  let error: string | undefined;
  let waitingBytes = 0;
  let waitingSinceMs: number | undefined;
  let refused: DeliveryState['refused'];
  let refusedInRow = 0;
  let savedAt = 0;
  let endAt = Number.POSITIVE_INFINITY;

  async function render(lines: readonly string[]): Promise<readonly string[]> {
    const parts: string[] = [];
    for (const line of lines) {
      if (parts.length % LINES_PER_TURN === 0) await nextTurn();
      parts.push(receiver.render(readLine(line)));
    }
    return parts;
  }

  /** Rejects when the delivery has to end. */
  async function pause(ms: number): Promise<void> {
    const { signal } = ending;
    if (!signal.aborted) await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
    else if (performance.now() < endAt) await sleep(Math.min(ms, IDLE_MS));
    if (performance.now() >= endAt) throw new Ended();
  }

  async function sendUntilDecided(parts: readonly string[], known: Position): Promise<Decided> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const attempt = await receiver
        .send(parts)
        .catch((cause): Attempt => ({ outcome: 'failed', why: errorCode(cause) }));
      error = attempt.outcome === 'failed' ? attempt.why : undefined;
      if (attempt.outcome !== 'failed') return attempt;
      waitingBytes = await bytesBehind(known);
      await pause(pauseMs);
    }
  }

  /** Resolves when the receiver has the lines, or has refused them one by one. */
  async function deliver(parts: readonly string[], known: Position): Promise<void> {
    const attempt = await sendUntilDecided(parts, known);
    if (attempt.outcome === 'refused' && parts.length > 1) {
      const half = parts.length >> 1;
      await deliver(parts.slice(0, half), known);
      return deliver(parts.slice(half), known);
    }
    await count(parts.length, attempt.outcome === 'refused' ? parts.length : (attempt.refused ?? 0), attempt.why);
  }

  async function count(sent: number, lost: number, why = 'the receiver did not say why'): Promise<void> {
    refusedInRow = lost === sent ? refusedInRow + 1 : 0;
    onLines('delivered', sent - lost);
    if (lost === 0) return;
    onLines('refused', lost);
    refused = { count: (refused?.count ?? 0) + lost, why };
    if (refusedInRow <= MAX_REFUSED_IN_ROW) return;
    error = `the receiver refuses every line (${why})`;
    await pause(MAX_PAUSE_MS);
  }

  /** Resolves with false where nothing is left. */
  async function deliverNext(known: Position): Promise<boolean> {
    const batch = await nextBatch(known);
    waitingBytes = batch === undefined ? 0 : await bytesBehind(known);
    if (batch === undefined) {
      waitingSinceMs = undefined;
      error = undefined;
      await known.save();
      return false;
    }
    waitingSinceMs = timeOf(batch.lines[0] ?? '') ?? now();
    await deliver(await render(batch.lines), known);
    known.advance(batch.file, batch.end);
    if (performance.now() - savedAt < SAVE_EVERY_MS) return true;
    await known.save();
    savedAt = performance.now();
    return true;
  }

  /** Resolves with false when the delivery has ended. */
  async function goOn(): Promise<boolean> {
    try {
      position ??= await openPosition(auditPath, name);
      if (await deliverNext(position)) return true;
      if (ending.signal.aborted) return false;
      await pause(IDLE_MS);
    } catch (cause) {
      if (cause instanceof Ended) return false;
      error = `the position or the audit files cannot be read or written (${errorCode(cause)})`;
      await sleep(IDLE_MS, undefined, { ref: false });
    }
    return performance.now() < endAt;
  }

  async function run(): Promise<void> {
    while (await goOn());
  }

  const finished = run();
  return {
    name,
    state: () => ({ error, waitingBytes, waitingSinceMs, refused }),
    async hasDelivered(file) {
      // What is older than the first file was recorded before there was this receiver.
      if (position === undefined || !(await position.files()).includes(file)) return position !== undefined;
      const { start, end } = await readNewLines(file, position.offsetIn(file));
      return start === end;
    },
    async close() {
      endAt = performance.now() + CLOSE_WITHIN_MS;
      ending.abort();
      await Promise.race([finished, sleep(CLOSE_WITHIN_MS + IDLE_MS, undefined, { ref: false })]);
      await position?.save().catch(() => undefined);
      await receiver.close().catch(() => undefined);
    },
  };
}
