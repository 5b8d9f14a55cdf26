// Makes a sink over a place for the tests of observe/, and reads what it wrote.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  type ChainHead,
  type Checkpoint,
  type CheckpointBounds,
  checkpointBytes,
  checkpointDetail,
  createGroupBytes,
  linkDetail,
  MAX_LINES_BETWEEN_CHECKPOINTS,
  startChain,
} from '../../../src/audit/chain.js';
import { buildEvent, type EventText } from '../../../src/audit/event.js';
import { listFilesOf } from '../../../src/audit/folder.js';
import { AuditSink, type ChainWriter } from '../../../src/audit/sink.js';
import type { ChainVerdict } from '../../../src/audit/verify.js';
import { verifyChain } from '../../support/audit-chain.js';
import { context, NOW, ring } from './samples.js';

export function lifecycle(event: string, detail: Record<string, string | number> = {}): EventText {
  const key = ring.publicKeys()[0]?.publicKey ?? '';
  const all = event === 'started' ? { ...detail, public_key: key } : detail;
  return buildEvent({ type: 'lifecycle', event, detail: all }, context);
}

/** The next line of a chain, without its line feed, and the head that it makes. */
export function linkLine(head: ChainHead, event: EventText): { readonly line: string; readonly head: ChainHead } {
  const group = createGroupBytes(head);
  group.begin(head);
  group.add(event);
  return { line: group.bytes().toString('latin1').trimEnd(), head: group.head() };
}

/** Lines as earlier versions wrote them: of sallyport.audit/1, with hashes in hex. */
export function makeFirstForm(events: readonly string[]): {
  readonly lines: readonly string[];
  readonly head: ChainHead;
} {
  const lines: string[] = [];
  let head = startChain('epoch-1');
  for (const event of events) {
    const { before, after } = lifecycle(event);
    const first = before.replace('sallyport.audit/2', 'sallyport.audit/1');
    const seq = head.seq + 1;
    const open = `${first}${head.epoch}${after},"chain":{"seq":${seq},"prev":"${head.hash}"`;
    const hash = createHash('sha256').update(`${head.hash}\n${open}`).digest('hex');
    lines.push(`${open},"hash":"${hash}"}}`);
    head = { ...head, seq, hash };
  }
  return { lines, head };
}

export type Rig = {
  readonly sink: AuditSink;
  readonly results: Map<string, number>;
  /** Every state that was told, in order. */
  readonly states: (string | undefined)[];
  readonly clock: { ms: number };
};

let epochs = 0;

const BOUNDS = { everyMs: 30_000, everyLines: MAX_LINES_BETWEEN_CHECKPOINTS };

export function makeSink(writer: ChainWriter, bounds: CheckpointBounds = BOUNDS): Rig {
  const results = new Map<string, number>();
  const states: (string | undefined)[] = [];
  const clock = { ms: NOW };
  const sign = (head: ChainHead): Checkpoint => {
    const point = { ...head, time: new Date(NOW).toISOString(), bounds };
    return { ...point, ...ring.sign(checkpointBytes(point)) };
  };
  const sink = new AuditSink('file', writer, {
    lifecycle,
    opening(event, opening) {
      const after = opening?.after && { ...opening.after, checkpoint: sign(opening.after.head) };
      const link = opening === undefined ? {} : linkDetail(opening.file, after, opening.skipped);
      return lifecycle(event, { ...(opening?.why === undefined ? {} : { why: opening.why }), ...link });
    },
    checkpoint(head: ChainHead) {
      return buildEvent({ type: 'checkpoint', detail: checkpointDetail(sign(head)) }, context);
    },
    bounds,
    newEpoch() {
      epochs += 1;
      return `epoch-${process.pid}-${epochs}`;
    },
    monotonicMs: () => clock.ms,
    onResult: (result, count) => results.set(result, (results.get(result) ?? 0) + count),
    onWritten: () => undefined,
    onWrite: () => undefined,
    onCheckpoint: () => undefined,
    onState: (error) => states.push(error),
  });
  return { sink, results, states, clock };
}

/** Lines of the files of configured paths, as the verifier wants them. */
export async function linesOf(...paths: readonly string[]): Promise<string[]> {
  const files = await Promise.all(paths.map(listFilesOf));
  const texts = await Promise.all(files.flat().map((path) => readFile(path, 'latin1')));
  return texts.flatMap((text) => text.replace(/\n$/, '').split('\n'));
}

export async function verified(...paths: readonly string[]): Promise<ChainVerdict> {
  return verifyChain(await linesOf(...paths));
}

/** The `event` of every lifecycle line, in order. */
export async function eventsOf(...paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const line of await linesOf(...paths)) {
    const name = /"detail":\{"event":"([^"]*)"/.exec(line)?.[1];
    if (name !== undefined) found.push(name);
  }
  return found;
}
