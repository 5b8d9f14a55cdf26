// Messages are read at once where that is short work, and otherwise by the other thread and in parts; where
// that fails nothing was read.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InspectionJob } from '../../../src/inspection/jobs.js';
import { LEFT_OUT } from '../../../src/protocol/odd-items.js';
import { createJsonReading } from '../../../src/work/inspection.js';
import { createInspectionWorker, type InspectionWorker, type JobOutcome } from '../../../src/work/worker.js';
import { BUILT_THREAD, buildProgram } from '../../support/processes.js';
import { eachInTurn, FREE_TURNS } from '../../support/timing.js';

const TERMS = { upstream: 'one', maxValues: 100_000 };
const FLOOD = `[${'{},'.repeat(150_000)}{}]`;

/** A worker of which only the jobs count: each ends in this way. */
function endingWith(end: JobOutcome, jobs: InspectionJob[] = []): InspectionWorker {
  return {
    run: (job) => {
      jobs.push(job);
      return Promise.resolve(end);
    },
    close: () => Promise.resolve(),
  };
}

describe('a message', () => {
  let worker: InspectionWorker;
  beforeAll(async () => {
    await buildProgram();
    worker = createInspectionWorker({ entry: BUILT_THREAD });
  });
  afterAll(() => worker.close());

  it('[PRF-11] that is short is read at once, and no job is made of it', () => {
    const jobs: InspectionJob[] = [];
    const read = createJsonReading(endingWith({ kind: 'died' }, jobs), FREE_TURNS);
    expect(read('{"a":[1,2]}', TERMS)).toMatchObject({ ok: true, values: 4 });
    expect(read(new TextEncoder().encode('{"a":"é"}'), TERMS)).toMatchObject({ ok: true });
    expect(read(Uint8Array.of(0x22, 0xff, 0x22), TERMS)).toEqual({
      ok: false,
      error: 'malformed-json',
    });
    expect(jobs).toEqual([]);
  });

  it.each([
    ['long', JSON.stringify({ text: 'x'.repeat(300_000), list: [1, { a: null }] })],
    ['of many values', `[${'[],'.repeat(40_000)}1]`],
    ['of many names', `{${Array.from({ length: 30_000 }, (_, at) => `"k${at}":1`).join(',')}}`],
  ])('[PRF-11] that is %s is read apart, and built in turns', async (_what, text) => {
    const turns = eachInTurn();
    const reading = createJsonReading(worker, turns)(text, TERMS);
    expect(reading).toBeInstanceOf(Promise);
    expect(await reading).toMatchObject({ ok: true, text, value: JSON.parse(text) });
    expect(turns.taken.length).toBeGreaterThan(0);
  });

  it.each([1, 3_000, 100_000])(
    '[PRF-11] that lists %i items is read without the one that readers take differently',
    async (count) => {
      const item = '{"name":"a"}';
      const items = Array.from({ length: count }, () => item);
      const listOf = (odd: string): string => `{"jsonrpc":"2.0","id":1,"result":{"tools":[${odd},${items.join()}]}}`;
      const read = createJsonReading(worker, FREE_TURNS);
      const terms = { ...TERMS, maxValues: 300_000 };
      const sent = listOf('{"name":"a","name":"b"}');
      const text = listOf(JSON.stringify(LEFT_OUT['duplicate-key']));
      expect(await read(sent, { ...terms, isServerList: true })).toMatchObject({
        ok: true,
        text,
        value: JSON.parse(text),
        isReduced: true,
      });
      expect(await read(sent, terms)).toMatchObject({ ok: false, error: 'duplicate-key' });
    },
  );

  it('[PRF-11] of more values than are read is refused, without a look at its grammar', async () => {
    const read = createJsonReading(worker, FREE_TURNS);
    const refused = { ok: false, error: 'too-many-values' };
    expect(await read(FLOOD, TERMS)).toEqual(refused);
    expect(await read(FLOOD.slice(0, -1), TERMS)).toEqual(refused);
    expect(read('[1,2,3]', { upstream: 'one', maxValues: 3 })).toEqual(refused);
  });

  it.each([
    ['full', 'overloaded'],
    ['died', 'internal'],
  ] as const)('[PRF-11] that a thread did not read, because it is %s, is %s', async (kind, error) => {
    const read = createJsonReading(endingWith({ kind }), FREE_TURNS);
    expect(await read(FLOOD, TERMS)).toEqual({ ok: false, error });
  });

  it('[PRF-11] is read here where there is no other thread', async () => {
    const read = createJsonReading(endingWith({ kind: 'unavailable' }), FREE_TURNS);
    const text = JSON.stringify(['x'.repeat(300_000)]);
    expect(await read(text, TERMS)).toMatchObject({ ok: true, values: 2 });
    expect(await read(FLOOD, TERMS)).toEqual({ ok: false, error: 'too-many-values' });
  });
});
