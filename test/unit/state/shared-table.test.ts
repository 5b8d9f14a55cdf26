// What a table of records promises, in memory and in a store that replicas share.

import { describe, expect, it } from 'vitest';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import { createMemoryTable, createSharedTable, type SharedTable } from '../../../src/state/shared-table.js';
import { createFakeStore } from '../../support/state.js';

type Head = { readonly name: string };
type Table = SharedTable<Head, string>;

const BOUNDS = { maxOpen: 6, maxOpenPerOwner: 2, maxKept: 50, maxBody: 1_000, maxBodies: 20_000 };
const START = Date.UTC(2026, 10, 20);

/** Two replicas of one table; in memory there is one. */
function makeTables(isShared: boolean) {
  const clock = { ms: START };
  const now = () => clock.ms;
  const store = createFakeStore(now);
  const ring = createKeyRing([{ id: 'key', bytes: new Uint8Array(32) }]);
  const shared = (): Table =>
    createSharedTable('note', { ring, now, link: store.link(), isReachable: () => true }, BOUNDS);
  const one: Table = isShared ? shared() : createMemoryTable(now, BOUNDS);
  const other = isShared ? shared() : one;
  const add = (
    id: string,
    change: { readonly owner?: string; readonly openMs?: number; readonly key?: string } = {},
  ) => {
    const { owner = id, openMs = 1_000, key = id } = change;
    const times = { openUntilMs: clock.ms + openMs, keptUntilMs: clock.ms + 100_000 };
    return one.add({ id, head: { name: id }, body: `body of ${id}`, key, owner, replaces: undefined, ...times });
  };
  return { clock, store, one, other, add };
}

const idsOf = (found: Awaited<ReturnType<Table['list']>>) =>
  found === 'unavailable' ? found : found.map(({ id }) => id);

describe.each([
  ['in memory', false],
  ['that replicas share', true],
])('a table %s', (_, isShared) => {
  it('finds a record by id and by key, and its body', async () => {
    const { other, add } = makeTables(isShared);
    expect(await add('a')).toBe('added');
    expect(await other.find('a')).toMatchObject({ id: 'a', head: { name: 'a' } });
    expect(await other.findByKey('a')).toMatchObject({ id: 'a' });
    expect(await other.bodyOf('a')).toBe('body of a');
    expect([await other.find('b'), await other.findByKey('b')]).toEqual([undefined, undefined]);
  });

  it('lets one of two changes at once take effect', async () => {
    const { one, other, add, clock } = makeTables(isShared);
    await add('a');
    const read = await one.find('a');
    if (read === undefined || read === 'unavailable') throw new Error('not found');
    const times = { openUntilMs: undefined, keptUntilMs: clock.ms + 1_000 };
    const done = await Promise.all([
      one.replace(read, { name: 'first' }, times),
      other.replace(read, { name: 'second' }, times),
    ]);
    expect([...done].sort()).toEqual([false, true]);
  });

  it('adds one of two records of one key', async () => {
    const { add } = makeTables(isShared);
    const added = await Promise.all([add('a', { key: 'same' }), add('b', { key: 'same' })]);
    expect([...added].sort()).toEqual(['added', 'changed']);
  });

  it('bounds what is open, of one owner and of all', async () => {
    const { add, clock } = makeTables(isShared);
    for (const id of ['a', 'b']) expect(await add(id, { owner: 'ann' })).toBe('added');
    expect(await add('c', { owner: 'ann' })).toBe('full');
    for (const id of ['d', 'e', 'f', 'g']) expect(await add(id)).toBe('added');
    expect(await add('h')).toBe('full');
    clock.ms += 2_000;
    expect(await add('c', { owner: 'ann' })).toBe('added');
  });

  it('lists what is open before what is over, however many are newer', async () => {
    const { one, other, add, clock } = makeTables(isShared);
    await add('old', { openMs: 50_000 });
    for (let count = 0; count < 20; count += 1) {
      await add(`n${count}`);
      clock.ms += 1_500;
    }
    expect(idsOf(await other.list(2))).toEqual(['n19', 'n18']);
    expect(idsOf(await other.open(50))).toContain('old');
    expect(idsOf(await other.overdue(2))).toEqual(['n0', 'n1']);
    const read = await one.find('old');
    if (read === undefined || read === 'unavailable') throw new Error('not found');
    await one.replace(read, read.head, { openUntilMs: undefined, keptUntilMs: clock.ms + 1_000 });
    expect(idsOf(await other.open(50))).not.toContain('old');
  });

  it('keeps no body that is too long', async () => {
    const { one, clock } = makeTables(isShared);
    const times = { openUntilMs: clock.ms + 1_000, keptUntilMs: clock.ms + 1_000 };
    const names = { id: 'a', key: 'a', owner: 'a', replaces: undefined };
    const body = 'x'.repeat(2_000);
    expect(await one.add({ ...names, ...times, head: { name: 'a' }, body })).toBe('too-large');
  });
});

it('a table that replicas share concludes nothing while the store is away, and shows the store no names', async () => {
  const { one, add, store } = makeTables(true);
  await add('a', { owner: 'ann', key: 'key of ann' });
  expect(store.dump()).not.toMatch(/ann|body of/);
  store.goDown();
  expect(await Promise.all([one.find('a'), one.list(1), one.open(1), one.overdue(1), one.bodyOf('a')])).toEqual(
    Array.from({ length: 5 }, () => 'unavailable'),
  );
  store.comeBack();
  store.forget();
  expect(await one.find('a')).toBeUndefined();
});

describe('a table whose replicas have the keys of the gateway in different orders', () => {
  const keys = ['old', 'next'].map((id, index) => ({ id, bytes: new Uint8Array(32).fill(index) }));
  const times = { openUntilMs: START + 1_000, keptUntilMs: START + 100_000 };

  it('finds at each the newest record of a key, and adds another in its place', async () => {
    const store = createFakeStore(() => START);
    const bounds = { ...BOUNDS, madeAtMs: ({ name }: Head) => Number(name) };
    const tableWith = (ring: ReturnType<typeof createKeyRing>): Table =>
      createSharedTable('note', { ring, now: () => START, link: store.link(), isReachable: () => true }, bounds);
    const [before, one, other] = [keys.slice(0, 1), keys, [...keys].reverse()].map((some) =>
      tableWith(createKeyRing(some)),
    );
    const add = (table: Table | undefined, name: string, replaces?: string) =>
      table?.add({ id: name, head: { name }, body: '', key: 'k', owner: name, replaces, ...times });
    expect(await add(before, '1')).toBe('added');
    expect(await add(other, '2')).toBe('changed');
    expect(await add(other, '2', '1')).toBe('added');
    for (const table of [one, other]) expect(await table?.findByKey('k')).toMatchObject({ id: '2' });
    expect(await add(one, '3', '1')).toBe('changed');
    expect(await add(one, '3', '2')).toBe('added');
    for (const table of [one, other]) expect(await table?.findByKey('k')).toMatchObject({ id: '3' });
  });
});
