import { describe, expect, it } from 'vitest';
import {
  type ChainHead,
  type CheckpointBounds,
  checkpointBytes,
  checkpointDetail,
  readCheckpoint,
  startChain,
} from '../../../src/audit/chain.js';
import { buildEvent, type EventText } from '../../../src/audit/event.js';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import { verifyChain } from '../../support/audit-chain.js';
import { context, NOW, ring } from './samples.js';
import { linkLine, makeSink } from './sink-rig.js';

const BOUNDS: CheckpointBounds = { everyMs: 30_000, everyLines: 10 };
const publicKey = ring.publicKeys()[0]?.publicKey ?? '';
const publicKeys = [publicKey];
const nextRing = createKeyRing([{ id: 'next', bytes: Buffer.alloc(32, 9) }]);
const nextKey = nextRing.publicKeys()[0]?.publicKey ?? '';

type Made = { readonly lines: string[]; readonly heads: ChainHead[] };

function lifecycleAt(seconds: number, event: string, detail: Record<string, string> = {}) {
  const nowMs = NOW + seconds * 1000;
  return buildEvent({ type: 'lifecycle', event, detail }, { ...context, nowMs });
}

function pointAt(
  seconds: number,
  head: ChainHead,
  bounds: CheckpointBounds | undefined = BOUNDS,
  signer = ring,
): EventText {
  const nowMs = NOW + seconds * 1000;
  const point = { ...head, time: new Date(nowMs).toISOString(), bounds };
  const detail = checkpointDetail({ ...point, ...signer.sign(checkpointBytes(point)) });
  return buildEvent({ type: 'checkpoint', detail }, { ...context, nowMs });
}

/** A chain that is written line by line; `point` puts a checkpoint in. */
class Chain {
  readonly lines: string[] = [];
  head: ChainHead;
  constructor(head: ChainHead = startChain('epoch-1')) {
    this.head = head;
  }

  add(event: EventText): this {
    const linked = linkLine(this.head, event);
    this.head = linked.head;
    this.lines.push(linked.line);
    return this;
  }

  start(signer = ring, seconds = 0): this {
    const { keyId = '', publicKey: key = '' } = signer.publicKeys()[0] ?? {};
    return this.add(lifecycleAt(seconds, 'started', { key_id: keyId, public_key: key }));
  }

  /** Lines one second apart. */
  run(count: number, seconds: number, name = 'x'): this {
    for (let index = 0; index < count; index += 1) this.add(lifecycleAt(seconds + index, name));
    return this;
  }

  point(seconds: number, bounds: CheckpointBounds | undefined = BOUNDS, signer = ring): this {
    return this.add(pointAt(seconds, this.head, bounds, signer));
  }

  pointOfFormOne(seconds: number): this {
    const { head } = this;
    const time = new Date(NOW + seconds * 1000).toISOString();
    const text = { ...head, time, bounds: undefined };
    const detail = checkpointDetail({ ...text, ...ring.sign(checkpointBytes(text)) });
    return this.add(buildEvent({ type: 'checkpoint', detail }, { ...context, nowMs: NOW }));
  }
}

function errorKinds({ lines }: Pick<Made, 'lines'>, keys: readonly string[] | 'none' = publicKeys) {
  return verifyChain(lines, keys === 'none' ? {} : { publicKeys: keys }).faults.map(({ kind }) => kind);
}

/** Three intervals of honest lines, each ended by a checkpoint, and the end of the run. */
function honest(): Chain {
  const chain = new Chain().start();
  for (const turn of [0, 1, 2]) chain.run(9, turn * 10).point(turn * 10 + 9);
  return chain.run(3, 30).add(lifecycleAt(33, 'stopped')).point(33);
}

/** What stands before the line, chained on anew with what is asked for: an attack on the tail. */
function rewrite(chain: Chain, from: number, events: (forged: Chain) => void): Chain {
  let head = startChain('epoch-1');
  for (const line of chain.lines.slice(0, from)) {
    const [, seq, hash] = /"seq":(\d+),"prev":"[^"]+","hash":"([^"]+)"/.exec(line) ?? [];
    head = { epoch: 'epoch-1', seq: Number(seq), hash: hash ?? '' };
  }
  const forged = new Chain(head);
  forged.lines.push(...chain.lines.slice(0, from));
  events(forged);
  return forged;
}

describe('the interval between checkpoints', () => {
  it('[O-18] an honest chain is whole, with all of its lines signed', () => {
    const verdict = verifyChain(honest().lines, { publicKeys });
    expect(verdict).toMatchObject({ isWhole: true, unchecked: [], unsigned: { lines: 0 } });
  });

  it('[O-18] later checkpoints dropped, lines edited and chained anew fail by the count of lines', () => {
    // Checkpoint 11 is the first; two intervals of ten lines may follow it.
    const tail = (count: number) => rewrite(honest(), 11, (forged) => forged.run(count, 10, 'lie'));
    expect(errorKinds(tail(20))).toEqual([]);
    expect(verifyChain(tail(20).lines, { publicKeys }).unsigned).toEqual({
      lines: 20,
      fromSeq: 11,
    });
    expect(errorKinds(tail(21))).toEqual(['unsigned']);
  });

  it('[O-18] and by the time of the lines, however few they are', () => {
    const tail = (...seconds: readonly number[]) =>
      rewrite(honest(), 11, (forged) => {
        for (const at of seconds) forged.add(lifecycleAt(at, 'lie'));
      });
    expect(errorKinds(tail(20, 40, 60))).toEqual([]);
    expect(errorKinds(tail(20, 40, 60, 80))).toEqual(['unsigned']);
    // Pauses count as an interval each: a quiet file cannot be made of pauses alone.
    expect(errorKinds(tail(3600))).toEqual([]);
    expect(verifyChain(tail(3600).lines).notes.join()).toContain('3591 s without a line');
    expect(errorKinds(tail(3600, 7200, 10_800))).toEqual(['unsigned']);
  });

  it('[O-18] a jump in time without lines between is a note, forwards and backwards', () => {
    const jumped = new Chain().start().point(1).run(1, 86_400).point(86_410).run(1, 5).point(6);
    const verdict = verifyChain(jumped.lines, { publicKeys });
    expect(verdict.faults).toEqual([]);
    expect(verdict.notes.join()).toContain('86399 s without a line');
  });

  it('[O-18] a run that ended has a checkpoint behind its end', () => {
    const ended = honest();
    expect(errorKinds({ lines: ended.lines.slice(0, -1) })).toEqual(['unsigned']);
    const without = rewrite(ended, 11, (forged) => forged.add(lifecycleAt(12, 'stopped')));
    expect(errorKinds(without)).toEqual(['unsigned']);
    // The checkpoint of the next run does as well.
    expect(errorKinds(without.start(ring, 60).point(61))).toEqual([]);
  });

  it('[O-18] lines before the first checkpoint are under its signature', () => {
    const real = honest();
    const { lines } = real;
    const forged = rewrite(real, 4, (tail) => tail.run(7, 5, 'lie'));
    expect(errorKinds({ lines: [...forged.lines, ...lines.slice(11)] })).not.toEqual([]);
    expect(errorKinds(rewrite(honest(), 1, (tail) => tail.run(5, 1, 'lie')))).toEqual(['signature']);
  });

  it('[O-18] bounds are signed: neither wider nor none can be put in their place', () => {
    const real = honest();
    const { lines } = real;
    const wide = (lines[10] ?? '').replace('"every_lines":10', '"every_lines":10000');
    const none = (lines[10] ?? '').replace('"every_ms":30000,"every_lines":10,', '');
    for (const forged of [wide, none]) {
      expect(forged).not.toBe(lines[10]);
      const { detail } = JSON.parse(forged) as { detail: Record<string, string | number> };
      const event = buildEvent({ type: 'checkpoint', detail }, context);
      const chain = rewrite(real, 10, (tail) => tail.add(event).run(30, 10, 'lie'));
      expect(errorKinds(chain)).toContain('signature');
      expect(errorKinds(chain, 'none')).toContain('signature');
    }
    expect(readCheckpoint({ ...JSON.parse(wide).detail, every_ms: -1 })).toBeUndefined();
    expect(readCheckpoint({ ...JSON.parse(wide).detail, every_ms: undefined })).toBeUndefined();
  });

  it('[O-18] after a checkpoint of form 1 too much is a note, and none follows one of form 2', () => {
    const old = new Chain().start().pointOfFormOne(1);
    for (let turn = 0; turn < 4; turn += 1) old.add(lifecycleAt(turn * 25, 'x'));
    const verdict = verifyChain(old.lines, { publicKeys });
    expect(verdict.faults).toEqual([]);
    expect(verdict.notes.join()).toContain('states no bounds');
    expect(errorKinds(old.point(100).run(3, 101))).toEqual([]);
    expect(errorKinds(honest().pointOfFormOne(40))).toEqual(['downgraded']);
  });
});

describe('keys and older files', () => {
  /** As after a rotation: the file begins with `continued` and names no key. */
  function rotated(): { readonly older: Chain; readonly newer: Chain } {
    const older = new Chain().start().run(5, 0).point(6);
    const newer = new Chain(older.head);
    newer.add(lifecycleAt(7, 'continued')).run(3, 8).point(11).run(2, 12);
    return { older, newer };
  }

  it('[O-19] a rotated file alone is not checked, and no tampering', () => {
    const { older, newer } = rotated();
    const alone = verifyChain(newer.lines);
    expect(alone).toMatchObject({ isWhole: false, faults: [] });
    expect(alone.unchecked.join()).toMatch(/^give --key or the older file: /);
    expect(verifyChain([...older.lines, ...newer.lines]).isWhole).toBe(true);
    expect(verifyChain(newer.lines, { publicKeys }).isWhole).toBe(true);
    expect(verifyChain(newer.lines.slice(0, 3)).isWhole).toBe(false);
    expect(verifyChain(newer.lines.slice(0, 3), { publicKeys })).toMatchObject({
      isWhole: false,
      faults: [],
    });
  });

  it('[O-19] across a change of keys, one of them alone is not enough, and no tampering', () => {
    const chain = new Chain().start().run(5, 0).point(6);
    chain.start(nextRing, 8).run(25, 9).point(34, BOUNDS, nextRing).run(2, 35);
    expect(verifyChain(chain.lines, { publicKeys: [publicKey, nextKey] }).faults).toEqual([
      // Twenty-five lines between two checkpoints, where ten may be.
      expect.objectContaining({ kind: 'unsigned' }),
    ]);
    const kept = new Chain().start().run(5, 0).point(6);
    kept.start(nextRing, 8).run(5, 9).point(14, BOUNDS, nextRing).run(2, 15);
    expect(verifyChain(kept.lines, { publicKeys: [publicKey, nextKey] }).isWhole).toBe(true);
    expect(verifyChain(kept.lines).isWhole).toBe(true);
    for (const key of [publicKey, nextKey]) {
      const verdict = verifyChain(kept.lines, { publicKeys: [key] });
      expect(verdict).toMatchObject({ isWhole: false, faults: [] });
      expect(verdict.unchecked.join()).toContain('a key that was not given');
    }
    expect(verifyChain(kept.lines, { publicKeys }).unsigned).toEqual({ lines: 9, fromSeq: 7 });
  });

  it('[O-19] a forged checkpoint is tampering where the key that it names is known', () => {
    const forged = honest();
    const point = { ...forged.head, time: new Date(NOW).toISOString(), bounds: BOUNDS };
    const { signature } = nextRing.sign(checkpointBytes(point));
    const keyId = ring.publicKeys()[0]?.keyId ?? '';
    const detail = checkpointDetail({ ...point, keyId, signature });
    forged.add(buildEvent({ type: 'checkpoint', detail }, context));
    expect(errorKinds(forged)).toEqual(['signature']);
    expect(errorKinds(forged, 'none')).toEqual(['signature']);
    // Written anew as a whole under a key of the attacker's own: nothing is signed by the one that is given.
    const own = new Chain().start(nextRing).run(3, 0).point(4, BOUNDS, nextRing);
    expect(errorKinds(own)).toEqual(['signature']);
  });
});

describe('keys of the attacker', () => {
  it('[O-19] a checkpoint under a key that its run did not name is tampering, not a change of keys', () => {
    // Whoever rewrote the end signs it with a key of his own, so that the interval is no longer counted.
    const forged = rewrite(honest(), 11, (tail) =>
      tail.run(9, 10, 'lie').point(19, BOUNDS, nextRing).run(50, 20, 'lie'),
    );
    expect(errorKinds(forged)).toContain('signature');
    expect(errorKinds(forged, 'none')).toContain('signature');
  });

  it('[O-18] the interval begins at the time that is signed, not at that of the line', () => {
    // Two pauses of an interval each may follow; a later time of the checkpoint's line hid one of them.
    const real = honest();
    const tail = (seconds: number) =>
      rewrite(real, 10, (forged) => {
        const { detail } = JSON.parse(real.lines[10] ?? '') as {
          detail: Record<string, string | number>;
        };
        const nowMs = NOW + seconds * 1000;
        forged.add(buildEvent({ type: 'checkpoint', detail }, { ...context, nowMs }));
        for (const at of [100, 130, 160]) forged.add(lifecycleAt(at, 'lie'));
      });
    expect(errorKinds(tail(9))).toEqual(['unsigned']);
    expect(errorKinds(tail(100))).toEqual(['unsigned']);
  });

  it('[O-18] a checkpoint is held against one named key, however many a file names', () => {
    const chain = new Chain();
    const keys = Array.from({ length: 40 }, (_, index) =>
      createKeyRing([{ id: `k${index}`, bytes: Buffer.alloc(32, index + 1) }]),
    );
    for (const key of keys) chain.start(key);
    expect(errorKinds(chain.point(1, BOUNDS, keys.at(-1)), 'none')).toEqual([]);
    // A signature by a key that another id is named for is none.
    const { keyId = '' } = keys.at(-1)?.publicKeys()[0] ?? {};
    const point = { ...chain.head, time: new Date(NOW).toISOString(), bounds: BOUNDS };
    const { signature } = keys[7]?.sign(checkpointBytes(point)) ?? { signature: '' };
    const detail = checkpointDetail({ ...point, keyId, signature });
    chain.add(buildEvent({ type: 'checkpoint', detail }, context));
    expect(errorKinds(chain, 'none')).toEqual(['signature']);
  });
});

describe('the checkpoints that a sink writes', () => {
  const counts = (lines: readonly string[]): readonly number[] => {
    const found = [0];
    for (const line of lines) {
      if (line.includes('"type":"checkpoint"')) found.push(0);
      else found[found.length - 1] = (found.at(-1) ?? 0) + 1;
    }
    return found;
  };

  function memory() {
    let text = '';
    const writer = {
      prepare: (known: ChainHead | undefined) => Promise.resolve({ head: known }),
      commit(bytes: Buffer) {
        text += bytes.toString('latin1');
        return Promise.resolve();
      },
      abandon: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
    return { writer, lines: () => text.trimEnd().split('\n') };
  }

  it('[O-18] stand between any ten thousand lines, within one large group too', async () => {
    const { writer, lines } = memory();
    const bounds = { everyMs: 3_600_000, everyLines: 100 };
    const { sink } = makeSink(writer, bounds);
    await sink.start();
    for (let index = 0; index < 1500; index += 1) sink.enqueue(lifecycleAt(0, 'x'), true);
    await sink.close();
    expect(Math.max(...counts(lines()))).toBeLessThanOrEqual(100);
    expect(counts(lines()).length).toBeGreaterThan(15);
    expect(verifyChain(lines(), { publicKeys }).faults).toEqual([]);
  });

  it('[O-18] stand within two intervals of the lines, whatever times they have', async () => {
    const { writer, lines } = memory();
    const { sink } = makeSink(writer);
    await sink.start();
    sink.checkpoint();
    await sink.append(lifecycleAt(0, 'x'));
    // As after an outage: what was kept has its own times.
    for (let index = 0; index < 200; index += 1) sink.enqueue(lifecycleAt(index * 7, 'kept'), true);
    for (let index = 0; index < 20; index += 1) sink.enqueue(lifecycleAt(index * 900, 'few'), true);
    await sink.close();
    expect(verifyChain(lines(), { publicKeys }).faults).toEqual([]);
  });

  it('[O-18] begin with a restart, which does not know how much was left unsigned', async () => {
    const first = memory();
    const { sink } = makeSink(first.writer);
    await sink.start();
    const left = sink.head;
    const second = memory();
    const again = makeSink({
      ...second.writer,
      prepare: (known) => Promise.resolve({ head: known ?? left }),
    });
    await again.sink.start();
    expect(second.lines()[1]).toContain('"type":"checkpoint"');
    await again.sink.close();
    await sink.close();
  });
});
