// Delivers the lines of audit files to a receiver: in order, at least once, with the position kept beside the files
// (position.ts). It reads what the file sink has written and so delays no call; what a receiver cannot take waits in the
// files. What a receiver refuses for what is in it is halved until the line is found that it does not take. Such a line is
// passed over, counted and named, and stays in the file, but only at a receiver that takes other lines. Everything else
// is tried again, in smaller parts, for as long as it takes.
// docs/reference/audit.md#delivery

import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditRecord } from '../audit/chain.js';
import { createEventJoiner } from '../audit/query.js';
import { type NewLines, readNewLines } from '../audit/reader.js';
import { nextTurn, type OwnFile } from '../audit/sink.js';
import { parseObject } from '../protocol/jsonrpc.js';
import { escapeForTerminal, makeVisible } from '../text/escaping.js';
import { errorCode } from '../text/wording.js';
import { type FileState, openPosition, type Position } from './position.js';

/** A line to deliver. */
export type Line = {
  /** As it is in the file, without its line feed; Latin-1 text. */
  readonly text: string;
  /** With all members that are known; `undefined` if the line is no record. It is read with the first use. */
  readonly record: AuditRecord | undefined;
};

/** What became of a batch. */
export type Attempt =
  /** The receiver has it, but for some lines that it says it did not take, and some that were too long for it. */
  | { readonly outcome: 'delivered'; readonly refused?: number; readonly leftOut?: number; readonly why?: string }
  /** The receiver does not take it because of what is in it: a part of it may pass. */
  | { readonly outcome: 'refused'; readonly why: string }
  /** It may pass later. `isAnswer`: the receiver has said so, in place of a broken connection or silence. */
  | { readonly outcome: 'failed'; readonly why: string; readonly isAnswer?: boolean };

type Untaken = Exclude<Attempt, { readonly outcome: 'delivered' }>;

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
  /** Since when the receiver has lacked lines without a break, in this process; `undefined` if it has all. */
  readonly behindSinceMs: number | undefined;
  /** When the receiver took something last; `undefined` before. */
  readonly takenAtMs: number | undefined;
  /** The name of the first file that is delivered; `undefined` until it is known. */
  readonly from: string | undefined;
  /** Lines that the receiver did not take since the start, and why the last of them; undefined an hour after that one. */
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
  /** The file that the sink writes. */
  readonly ownFile: () => OwnFile | undefined;
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
/** After so many failures a line alone that the receiver answers with an error is one that it refuses. */
const MAX_ANSWERS = 4;
/** The position is written as often at most, and when everything is delivered. */
const SAVE_EVERY_MS = 1_000;
/** How long lines that a receiver did not take are a reason to look. The metric counts them for ever. */
const REFUSED_SHOWN_MS = 60 * 60_000;
/** How long `close` goes on delivering. */
const CLOSE_WITHIN_MS = 3_000;

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

/** The next lines; `undefined` if there are none, but perhaps a line that is still being written. */
async function nextBatch(states: readonly FileState[]): Promise<Batch | undefined> {
  for (const { path, offset, bytes } of states) {
    const found = await readNewLines(path, offset, bytes);
    if (found.start !== found.end) return { ...limit(found), file: path };
  }
  return undefined;
}

function bytesOf(states: readonly FileState[]): number {
  return states.reduce((sum, { offset, bytes }) => sum + bytes - offset, 0);
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

/** What a receiver says is shown to people. */
function clean(why: string): string {
  return makeVisible(escapeForTerminal(why.slice(0, MAX_WHY)));
}
const MAX_WHY = 200;

/** Starts the delivery to one receiver. */
export function startDelivery(ports: DeliveryPorts): Delivery {
  const { name, auditPath, receiver, now, onLines } = ports;
  const readLine = createLineReader();
  const ending = new AbortController();
  let position: Position | undefined;
  let error: string | undefined;
  let waitingBytes = 0;
  let waitingSinceMs: number | undefined;
  // Until the files were looked at, lines may wait.
  let behindSinceMs: number | undefined = now();
  let takenAtMs: number | undefined;
  let refused: DeliveryState['refused'];
  let refusedAtMs = 0;
  /** What the receiver has taken last, or the first line of this run: it shows whether it takes anything. */
  let probe: string | undefined;
  let savedAt = 0;
  let endAt = Number.POSITIVE_INFINITY;

  async function render(lines: readonly string[]): Promise<readonly string[]> {
    const parts: string[] = [];
    for (const line of lines) {
      if (parts.length % LINES_PER_TURN === 0) await nextTurn();
      parts.push(renderLine(line));
    }
    return parts;
  }

  /** A line that somebody has changed may be of any shape. */
  function renderLine(text: string): string {
    try {
      return receiver.render(readLine(text));
    } catch {
      return receiver.render({ text, record: undefined });
    }
  }

  async function firstLineOfRun(): Promise<string | undefined> {
    const own = ports.ownFile();
    const [first] = own === undefined ? [] : (await readNewLines(own.path, 0, own.bytes)).lines;
    return first === undefined ? undefined : renderLine(first);
  }

  /** Rejects when the delivery has to end. */
  async function pause(ms: number): Promise<void> {
    const { signal } = ending;
    if (!signal.aborted) await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
    else if (performance.now() < endAt) await sleep(Math.min(ms, IDLE_MS));
    if (performance.now() >= endAt) throw new Ended();
  }

  async function send(parts: readonly string[]): Promise<Attempt> {
    const attempt = await receiver
      .send(parts)
      .catch((cause): Attempt => ({ outcome: 'failed', why: errorCode(cause) }));
    if (attempt.outcome !== 'delivered' || (attempt.refused ?? 0) < parts.length) return attempt;
    return { outcome: 'refused', why: attempt.why ?? 'the receiver took no line of the batch' };
  }

  function noteTaken(parts: readonly string[], attempt: Extract<Attempt, { refused?: number }>): void {
    const { refused: lost = 0, leftOut = 0, why } = attempt;
    probe = parts.at(-1);
    error = undefined;
    takenAtMs = now();
    onLines('delivered', parts.length - lost - leftOut);
    if (lost > 0) noteRefused(lost, why ?? 'the receiver did not say why');
    if (leftOut > 0) noteRefused(leftOut, 'longer than maxMessage: its place in the files was sent');
  }

  function noteRefused(count: number, why: string): void {
    onLines('refused', count);
    refusedAtMs = now();
    refused = { count: (refused?.count ?? 0) + count, why: clean(why) };
  }

  /** True if the receiver takes another line: then it is this line that it does not take. */
  async function takesOthers(): Promise<boolean> {
    return probe !== undefined && (await send([probe])).outcome === 'delivered';
  }

  /** Resolves when the receiver has the lines, or has refused them one by one. */
  async function deliver(parts: readonly string[], failures = 0): Promise<void> {
    if (parts.length === 0) return;
    const attempt = await send(parts);
    if (attempt.outcome === 'delivered') return noteTaken(parts, attempt);
    return parts.length === 1 ? deliverOne(parts, attempt, failures) : deliverHalves(parts, attempt, failures);
  }

  async function deliverOne(parts: readonly string[], attempt: Untaken, failures: number): Promise<void> {
    const isRefusal = attempt.outcome === 'refused' || (attempt.isAnswer === true && failures >= MAX_ANSWERS);
    if (isRefusal && (await takesOthers())) return noteRefused(1, attempt.why);
    await wait(attempt.why, failures);
    return deliver(parts, failures + 1);
  }

  /** Where it is the connection that failed, smaller parts come through a slow one. */
  async function deliverHalves(parts: readonly string[], attempt: Untaken, failures: number): Promise<void> {
    const hasFailed = attempt.outcome === 'failed';
    if (hasFailed) await wait(attempt.why, failures);
    const half = parts.length >> 1;
    await deliver(parts.slice(0, half), hasFailed ? failures + 1 : failures);
    return deliver(parts.slice(half));
  }

  async function wait(why: string, failures: number): Promise<void> {
    error = clean(why);
    waitingBytes = bytesOf((await position?.behind().catch(() => undefined)) ?? []) || waitingBytes;
    await pause(Math.min(FIRST_PAUSE_MS * 2 ** failures, MAX_PAUSE_MS));
  }

  /** Resolves with false where nothing is left. */
  async function deliverNext(known: Position): Promise<boolean> {
    const states = await known.behind();
    const batch = await nextBatch(states);
    waitingBytes = batch === undefined ? 0 : bytesOf(states);
    if (batch === undefined) {
      waitingSinceMs = undefined;
      behindSinceMs = undefined;
      error = undefined;
      await known.save();
      return false;
    }
    waitingSinceMs = timeOf(batch.lines[0] ?? '') ?? now();
    behindSinceMs ??= now();
    await deliver(await render(batch.lines));
    known.advance(batch.file, batch.end);
    if (performance.now() - savedAt < SAVE_EVERY_MS) return true;
    await known.save();
    savedAt = performance.now();
    return true;
  }

  /** Resolves with false when the delivery has ended. */
  async function goOn(): Promise<boolean> {
    const isEnding = ending.signal.aborted;
    try {
      position ??= await openPosition(auditPath, name, ports.ownFile);
      probe ??= await firstLineOfRun();
      if (await deliverNext(position)) return true;
      if (isEnding) return false;
      await pause(IDLE_MS);
    } catch (cause) {
      if (cause instanceof Ended) return false;
      error = `the position or the audit files cannot be read or written (${errorCode(cause)})`;
      behindSinceMs ??= now();
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
    state: () => ({
      ...{ error, waitingBytes, waitingSinceMs, behindSinceMs, takenAtMs, from: position?.from },
      refused: now() - refusedAtMs < REFUSED_SHOWN_MS ? refused : undefined,
    }),
    async hasDelivered(file) {
      if (position === undefined) return false;
      const state = (await position.behind()).find(({ path }) => path === file);
      // What is older than the first file was recorded before there was this receiver.
      if (state === undefined) return true;
      const { start, end } = await readNewLines(file, state.offset, state.bytes);
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
