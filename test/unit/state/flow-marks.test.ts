import { describe, expect, it } from 'vitest';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import { createMemoryFlows, createSharedFlows } from '../../../src/state/flow-marks.js';
import { createFakeStore } from '../../support/state.js';

const KEEP_MS = 60_000;
const KEY = { id: 'first', bytes: Buffer.alloc(32, 1) };
const OTHER = { id: 'second', bytes: Buffer.alloc(32, 2) };

describe('[FL-05] the history in memory', () => {
  it('is full rather than forgetful, until marks have expired', () => {
    let now = 0;
    const flows = createMemoryFlows(() => now, 2);
    expect(flows.record(['a'], ['x', 'y'], '1', KEEP_MS)).toBe(true);
    expect(flows.record(['b'], ['x'], '2', KEEP_MS)).toBe(false);
    expect(flows.record(['a'], ['x'], '3', KEEP_MS)).toBe(true);
    now = KEEP_MS;
    expect(flows.record(['b'], ['x'], '4', KEEP_MS)).toBe(true);
    expect(flows.read(['b'], ['x'], 0)).toEqual(new Map([['x', { decision: '4', ageMs: 0 }]]));
  });
});

describe('[FL-05] the history in a store', () => {
  const ports = (keys: Parameters<typeof createKeyRing>[0], store = createFakeStore(Date.now)) => ({
    ring: createKeyRing(keys),
    now: Date.now,
    link: store.link(),
    epoch: { lostForMs: () => 0 },
    isReachable: () => true,
    onError: () => undefined,
  });

  it('cannot be recorded or read without the store', async () => {
    const store = createFakeStore(Date.now);
    const flows = createSharedFlows(ports([KEY], store));
    store.goDown();
    expect(await flows.record(['a'], ['x'], '1', KEEP_MS)).toBe(false);
    expect(await flows.read(['a'], ['x'], 0)).toBe('unavailable');
    const apart = createSharedFlows({ ...ports([KEY], store), isReachable: () => false });
    expect(await apart.record(['a'], ['x'], '1', KEEP_MS)).toBe(false);
    expect(await apart.read(['a'], ['x'], 0)).toBe('unavailable');
  });

  it('is found by a replica whose keys are in another order', async () => {
    const store = createFakeStore(Date.now);
    const [one, other] = [ports([KEY, OTHER], store), ports([OTHER, KEY], store)];
    await createSharedFlows(one).record(['a'], ['x'], '1', KEEP_MS);
    const found = await createSharedFlows(other).read(['a'], ['x'], 0);
    expect(found).toEqual(new Map([['x', { decision: '1', ageMs: expect.any(Number) }]]));
  });

  it('is unknown where somebody else has written', async () => {
    const { link, ...rest } = ports([KEY]);
    const forged = {
      ...link,
      flowMarks: async (hashes: readonly string[]) => ({
        marks: hashes.map(() => 'forged'),
        epoch: '',
      }),
    };
    const flows = createSharedFlows({ ...rest, link: forged });
    expect(await flows.read(['a'], ['x'], 0)).toBe('unavailable');
  });
});
