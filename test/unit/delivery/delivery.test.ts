// The delivery of audit files: what a receiver has is delivered no second time, and what it may not have is, over the
// end of a process, a rotation, a torn line and a receiver that refuses everything.

import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { OwnFile } from '../../../src/audit/sink.js';
import { type Attempt, type Delivery, startDelivery } from '../../../src/delivery/delivery.js';
import { positionPath } from '../../../src/delivery/position.js';
import { PATIENT } from '../../support/timing.js';

const FIRST = 'audit-20300101T000000000Z-aaaaaaaa.jsonl';
const SECOND = 'audit-20300102T000000000Z-bbbbbbbb.jsonl';
const THIRD = 'audit-20300103T000000000Z-cccccccc.jsonl';

let folder: string;
let running: Delivery[] = [];
/** The file that the sink is said to write. */
let own: OwnFile | undefined;
const writing = async (file: string): Promise<void> => {
  const path = join(folder, file);
  own = { path, bytes: (await stat(path)).size };
};
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-delivery-'));
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((delivery) => delivery.close()));
  running = [];
  await rm(folder, { recursive: true });
});

const line = (id: string): string => `{"id":"${id}","time":"2030-01-01T00:00:00.000Z","type":"lifecycle"}\n`;
const put = (file: string, ...ids: readonly string[]): Promise<void> =>
  appendFile(join(folder, file), ids.map(line).join(''));

/** A delivery to a receiver that takes what `answer` says. */
function start(
  answer: (ids: readonly string[]) => Attempt = () => ({ outcome: 'delivered' }),
  now: () => number = Date.now,
) {
  const taken: string[] = [];
  const counts = { delivered: 0, refused: 0 };
  const delivery = startDelivery({
    name: 'siem',
    ownFile: () => own,
    auditPath: join(folder, 'audit.jsonl'),
    now,
    onLines(result, count) {
      counts[result] += count;
    },
    receiver: {
      render: ({ record }) => String(record?.['id']),
      async send(parts) {
        const attempt = answer(parts);
        if (attempt.outcome === 'delivered') taken.push(...parts);
        return attempt;
      },
      close: async () => undefined,
    },
  });
  running.push(delivery);
  return { taken, counts, delivery };
}

const has = (taken: readonly string[], ...ids: readonly string[]): Promise<void> =>
  vi.waitFor(() => expect([...new Set(taken)]).toEqual(ids), PATIENT);

describe('delivery', () => {
  it('begins with the newest file, and goes on in those that follow', async () => {
    await put(FIRST, 'old');
    await put(SECOND, 'one');
    await writing(SECOND);
    const { taken } = start();
    await has(taken, 'one');
    await put(SECOND, 'two');
    await put(THIRD, 'three');
    await writing(THIRD);
    await has(taken, 'one', 'two', 'three');
  });

  it('goes on after a restart with what the receiver does not have, also of a file that is no longer written', async () => {
    await put(FIRST, 'one');
    await writing(FIRST);
    const before = start((ids) =>
      ids.includes('two') ? { outcome: 'failed', why: 'away' } : { outcome: 'delivered' },
    );
    await has(before.taken, 'one');
    await put(FIRST, 'two');
    await writing(FIRST);
    await vi.waitFor(() => expect(before.delivery.state().error).toBe('away'), PATIENT);
    await before.delivery.close();
    await put(SECOND, 'three');
    await writing(SECOND);
    await has(start().taken, 'two', 'three');
  });

  it('delivers everything again where the position cannot be read', async () => {
    await put(FIRST, 'one');
    await writing(FIRST);
    const before = start();
    await has(before.taken, 'one');
    await before.delivery.close();
    await put(SECOND, 'two');
    await writing(SECOND);
    await writeFile(positionPath(join(folder, 'audit.jsonl'), 'siem'), '{"from":');
    await has(start().taken, 'one', 'two');
  });

  it('leaves a line without its end until it has one', async () => {
    await put(FIRST, 'one');
    await appendFile(join(folder, FIRST), line('two').slice(0, 20));
    await writing(FIRST);
    const { taken, delivery } = start();
    await has(taken, 'one');
    expect(await delivery.hasDelivered(join(folder, FIRST))).toBe(true);
    await appendFile(join(folder, FIRST), line('two').slice(20));
    await writing(FIRST);
    await has(taken, 'one', 'two');
  });

  it('passes over single lines that are refused, and names why', async () => {
    await put(FIRST, 'one', 'bad', 'two', 'worse', 'three');
    await writing(FIRST);
    let nowMs = Date.now();
    const { taken, counts, delivery } = start(
      (ids) =>
        ids.some((id) => ['bad', 'worse'].includes(id)) ? { outcome: 'refused', why: 'no' } : { outcome: 'delivered' },
      () => nowMs,
    );
    await has(taken, 'one', 'two', 'three');
    await vi.waitFor(() => expect(counts).toEqual({ delivered: 3, refused: 2 }), PATIENT);
    // Another line was sent once more each time, to find out whether the receiver takes any.
    expect(taken).toEqual(['one', 'one', 'two', 'two', 'three']);
    expect(delivery.state().refused).toEqual({ count: 2, why: 'no' });
    // An hour later it is no reason to look any more.
    nowMs += 3_600_000;
    expect(delivery.state().refused).toBeUndefined();
  });

  it('does not run through all files at a receiver that refuses everything', async () => {
    await put(FIRST, ...Array.from({ length: 100 }, (_, index) => String(index)));
    await writing(FIRST);
    let isBroken = true;
    const { counts, taken, delivery } = start(() =>
      isBroken ? { outcome: 'refused', why: 'no' } : { outcome: 'delivered' },
    );
    await vi.waitFor(() => expect(delivery.state().error).toBe('no'), PATIENT);
    expect(counts).toEqual({ delivered: 0, refused: 0 });
    isBroken = false;
    await vi.waitFor(() => expect(taken.at(-1)).toBe('99'), PATIENT);
    expect(counts.refused).toBe(0);
  });

  it('keeps its position without what was delivered a moment before being lost', async () => {
    await put(FIRST, 'one');
    await writing(FIRST);
    const { taken, delivery } = start();
    await has(taken, 'one');
    await delivery.close();
    const position = await readFile(positionPath(join(folder, 'audit.jsonl'), 'siem'), 'utf8');
    expect(JSON.parse(position)).toEqual({ from: FIRST, files: { [FIRST]: line('one').length } });
  });

  it('begins where it was told to although nothing was delivered before the process ended', async () => {
    await put(FIRST, 'one');
    await writing(FIRST);
    const before = start(() => ({ outcome: 'failed', why: 'away' }));
    await vi.waitFor(() => expect(before.delivery.state().error).toBe('away'), PATIENT);
    await before.delivery.close();
    await put(SECOND, 'two');
    await writing(SECOND);
    await has(start().taken, 'one', 'two');
  });

  it('begins with the file of this run, whatever lies ahead of the clock', async () => {
    await put(FIRST, 'one');
    await put('audit-20990101T000000000Z-zzzzzzzz.jsonl', 'planted');
    await writing(FIRST);
    await has(start().taken, 'one', 'planted');
  });

  it('reads nothing that may yet be undone, and no half of a line', async () => {
    await put(FIRST, 'one');
    await writing(FIRST);
    await put(FIRST, 'ghost');
    const { taken } = start();
    await has(taken, 'one');
    await truncate(join(folder, FIRST), line('one').length);
    await put(FIRST, 'a much longer line', 'two');
    await writing(FIRST);
    await has(taken, 'one', 'a much longer line', 'two');
  });

  it('passes over a line that the receiver answers with an error each time, once it takes another', async () => {
    await put(FIRST, 'one', 'bad', 'two');
    await writing(FIRST);
    const { taken, counts } = start((ids) =>
      ids.includes('bad') ? { outcome: 'failed', why: 'forbidden', isAnswer: true } : { outcome: 'delivered' },
    );
    await vi.waitFor(() => expect(counts.refused).toBe(1), { timeout: 60_000 });
    await vi.waitFor(() => expect(taken.at(-1)).toBe('two'), PATIENT);
  }, 90_000);
});
