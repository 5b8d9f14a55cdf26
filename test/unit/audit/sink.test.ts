import { describe, expect, it, vi } from 'vitest';
import { CALL_RESERVE, type ChainWriter, QUEUE_CAPACITY, SinkUnavailable } from '../../../src/audit/sink.js';
import { verifyChain } from '../../support/audit-chain.js';
import { until } from './samples.js';
import { lifecycle, makeSink } from './sink-rig.js';

type Gate = { release(): void; fail(code: string): void };

/** A writer in memory whose commits wait to be released or to fail. */
function createGatedWriter() {
  const written: string[] = [];
  const gates: Gate[] = [];
  let isOpen = true;
  const writer: ChainWriter = {
    prepare: (known) => Promise.resolve({ head: known }),
    commit: (bytes) =>
      new Promise<void>((resolve, reject) => {
        const release = (): void => {
          written.push(bytes.toString('latin1'));
          resolve();
        };
        const fail = (code: string): void => reject(Object.assign(new Error(code), { code }));
        if (isOpen) release();
        else gates.push({ release, fail });
      }),
    abandon: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  return {
    writer,
    written,
    gates,
    hold() {
      isOpen = false;
    },
    letPass() {
      isOpen = true;
    },
    lines: () => written.join('').replace(/\n$/, '').split('\n'),
  };
}

/** How each promise ended, without throwing. */
function outcomes(promises: readonly Promise<void>[]): Promise<string[]> {
  return Promise.all(
    promises.map((promise) =>
      promise.then(
        () => 'durable',
        (error: unknown) => (error instanceof SinkUnavailable ? 'refused' : 'wrong'),
      ),
    ),
  );
}

describe('AuditSink', () => {
  it('[O-20] gathers what arrives during a write into one next write, in order', async () => {
    const gated = createGatedWriter();
    const { sink } = makeSink(gated.writer);
    await sink.start();
    gated.hold();
    const appended = [sink.append(lifecycle('first'))];
    await until(() => gated.gates.length === 1);
    for (let index = 0; index < 50; index += 1) appended.push(sink.append(lifecycle(`e${index}`)));
    let isDone = false;
    void Promise.all(appended).then(() => {
      isDone = true;
    });
    gated.gates[0]?.release();
    await until(() => gated.gates.length === 2);
    expect(isDone).toBe(false);
    gated.letPass();
    gated.gates[1]?.release();
    await Promise.all(appended);
    expect(gated.written).toHaveLength(3);
    const names = gated.lines().map((line) => /"event":"([^"]*)"/.exec(line)?.[1]);
    expect(names).toEqual(['started', 'first', ...Array.from({ length: 50 }, (_, index) => `e${index}`)]);
    await sink.close();
    expect(verifyChain(gated.lines()).isWhole).toBe(true);
  });

  it('[O-20] waits for what the next turns of the loop bring, while the group is small', async () => {
    const gated = createGatedWriter();
    const { sink } = makeSink(gated.writer);
    await sink.start();
    const appended: Promise<void>[] = [];
    const append = (name: string): void => void appended.push(sink.append(lifecycle(name)));
    const done = new Promise<void>((resolve) => {
      setImmediate(() => {
        append('second');
        setImmediate(() => {
          append('third');
          resolve();
        });
      });
    });
    append('first');
    await done;
    await Promise.all(appended);
    expect(gated.written).toHaveLength(2);
    await sink.close();
  });

  it('[O-20] lets no timer stand before a write, however many waited for the one before', async () => {
    const gated = createGatedWriter();
    const { sink } = makeSink(gated.writer);
    await sink.start();
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance', 'Date'] });
    try {
      for (let group = 0; group < 3; group += 1) {
        const waiting = Array.from({ length: 32 }, () => sink.append(lifecycle('call')));
        await Promise.all(waiting);
      }
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
    expect(gated.written).toHaveLength(1 + 3);
    await sink.close();
  });

  it('[O-21] refuses all that waits when a write fails, and goes on from the last durable line', async () => {
    const gated = createGatedWriter();
    const { sink, results, states } = makeSink(gated.writer);
    await sink.start();
    const durable = sink.head;
    gated.hold();
    const failing = [sink.append(lifecycle('lost-1'))];
    await until(() => gated.gates.length === 1);
    failing.push(sink.append(lifecycle('lost-2')));
    gated.gates[0]?.fail('ENOSPC');
    expect(await outcomes(failing)).toEqual(['refused', 'refused']);
    expect(sink.isWritable).toBe(false);
    expect(sink.head).toEqual(durable);
    expect(results.get('refused')).toBe(2);
    gated.letPass();
    await sink.append(lifecycle('after'));
    expect(sink.isWritable).toBe(true);
    await sink.close();
    expect(states).toEqual([undefined, 'ENOSPC', undefined]);
    const text = gated.written.join('');
    expect(text).not.toContain('lost-');
    expect(text).toContain('"event":"resumed","after":"ENOSPC","refused":2');
    expect(verifyChain(gated.lines()).isWhole).toBe(true);
  });

  it('[O-22] keeps outcomes over a failure and writes them before what comes later', async () => {
    const gated = createGatedWriter();
    const { sink, results } = makeSink(gated.writer);
    await sink.start();
    gated.hold();
    const call = sink.append(lifecycle('call'));
    sink.enqueue(lifecycle('outcome-1'), true);
    await until(() => gated.gates.length === 1);
    sink.enqueue(lifecycle('outcome-2'), true);
    gated.gates[0]?.fail('EIO');
    expect(await outcomes([call])).toEqual(['refused']);
    gated.letPass();
    await sink.append(lifecycle('later'));
    const names = gated.lines().map((line) => /"event":"([^"]*)"/.exec(line)?.[1]);
    expect(names).toEqual(['started', 'resumed', 'outcome-1', 'outcome-2', 'later']);
    expect(results.get('lost')).toBeUndefined();
    await sink.close();
  });

  it('[O-21] recovers by itself, without traffic', async () => {
    const gated = createGatedWriter();
    const { sink } = makeSink(gated.writer);
    await sink.start();
    gated.hold();
    const call = sink.append(lifecycle('call'));
    await until(() => gated.gates.length === 1);
    gated.letPass();
    gated.gates[0]?.fail('EIO');
    await outcomes([call]);
    await until(() => sink.isWritable);
    await sink.close();
  });

  it('[O-23] is bounded, and keeps a reserve for calls', async () => {
    const gated = createGatedWriter();
    const { sink, results } = makeSink(gated.writer);
    await sink.start();
    gated.hold();
    const calls = [sink.append(lifecycle('x'))];
    await until(() => gated.gates.length === 1);
    let taken = 0;
    while (sink.enqueue(lifecycle('noise'), false)) taken += 1;
    expect(taken).toBe(QUEUE_CAPACITY - CALL_RESERVE);
    for (let index = 0; index < CALL_RESERVE; index += 1) calls.push(sink.append(lifecycle('c')));
    expect(sink.isWritable).toBe(false);
    expect(await outcomes([sink.append(lifecycle('one too many'))])).toEqual(['refused']);
    expect(sink.enqueue(lifecycle('outcome'), true)).toBe(false);
    expect(results.get('lost')).toBe(2);
    gated.letPass();
    gated.gates[0]?.release();
    expect(new Set(await outcomes(calls))).toEqual(new Set(['durable']));
    await sink.close();
    expect(verifyChain(gated.lines()).isWhole).toBe(true);
  });

  it('[O-24] a write that does not come back refuses those who wait and those who come', async () => {
    const gated = createGatedWriter();
    const { sink, clock, states } = makeSink(gated.writer);
    await sink.start();
    gated.hold();
    const waiting = [sink.append(lifecycle('a'))];
    await until(() => gated.gates.length === 1);
    waiting.push(sink.append(lifecycle('b')));
    clock.ms += 60_000;
    expect(await outcomes([...waiting, sink.append(lifecycle('c'))])).toEqual(['refused', 'refused', 'refused']);
    expect(sink.isWritable).toBe(false);
    expect(states.at(-1)).toBe('stalled');
    gated.letPass();
    gated.gates[0]?.release();
    await until(() => sink.isWritable);
    await sink.close();
    expect(verifyChain(gated.lines()).isWhole).toBe(true);
  });

  it('[O-24] counts what a stall refused before it refuses it, writes the number, and nothing of it', async () => {
    const gated = createGatedWriter();
    const { sink, clock, results } = makeSink(gated.writer);
    await sink.start();
    gated.hold();
    const first = sink.append(lifecycle('under-way'));
    await until(() => gated.gates.length === 1);
    const waiting = sink.append(lifecycle('waited'));
    sink.enqueue(lifecycle('outcome'), true);
    clock.ms += 60_000;
    const counted = waiting.catch(() => results.get('refused'));
    const late = sink.append(lifecycle('late'));
    expect(await counted).toBe(2);
    expect(await outcomes([first, late])).toEqual(['refused', 'refused']);
    gated.letPass();
    gated.gates[0]?.release();
    await until(() => sink.isWritable);
    await sink.append(lifecycle('after'));
    await sink.close();
    const names = gated.lines().map((line) => /"event":"([^"]*)"/.exec(line)?.[1]);
    expect(names.filter((name) => name !== undefined)).toEqual([
      ...['started', 'under-way', 'resumed', 'outcome', 'after', 'stopped'],
    ]);
    expect(gated.written.join('')).toContain('"event":"resumed","after":"stalled","refused":2');
    expect(results.get('refused')).toBe(2);
    expect(verifyChain(gated.lines()).isWhole).toBe(true);
  });

  it('[O-24] reports a stall once that began before anything was written', async () => {
    const gated = createGatedWriter();
    let open = (): void => undefined;
    let prepares = 0;
    const { sink, clock } = makeSink({
      ...gated.writer,
      async prepare(known) {
        prepares += 1;
        if (prepares === 2)
          await new Promise<void>((resolve) => {
            open = resolve;
          });
        return gated.writer.prepare(known);
      },
    });
    await sink.start();
    const refused = [sink.append(lifecycle('under-way'))];
    await until(() => prepares === 2);
    clock.ms += 60_000;
    refused.push(sink.append(lifecycle('late')));
    expect(await outcomes(refused)).toEqual(['refused', 'refused']);
    open();
    await until(() => sink.isWritable);
    await sink.close();
    expect(gated.written.join('').match(/"event":"resumed"[^}]*/g)).toEqual([
      '"event":"resumed","after":"stalled","refused":1',
    ]);
  });

  it('[O-25] writes all that waits, a checkpoint and the end of the run when it closes', async () => {
    const gated = createGatedWriter();
    const { sink, results } = makeSink(gated.writer);
    await sink.start();
    for (let index = 0; index < 5000; index += 1) sink.enqueue(lifecycle('outcome'), true);
    await sink.close();
    expect(gated.lines()).toHaveLength(1 + 5000 + 2);
    expect(gated.lines().at(-1)).toContain('"type":"checkpoint"');
    expect(results.get('lost')).toBeUndefined();
    expect(await outcomes([sink.append(lifecycle('late'))])).toEqual(['refused']);
    expect(verifyChain(gated.lines())).toMatchObject({ isWhole: true, checkpoints: 1 });
  });
});
