// Where what was trusted first is kept, and what holds where it cannot be read or written.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  createFileKeeper,
  createFirstUse,
  createStoreKeeper,
  type FirstUseKeeper,
  type LockWork,
} from '../../../src/pins/first-use.js';
import { writeLock } from '../../../src/pins/lock.js';
import { readLock } from '../../../src/pins/lock-reader.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { observedOf, toolOf } from './samples.js';

const FIRST = toolOf('read');
const OTHER = toolOf('read', { description: 'Reads everything.' });

/** The work on lock files, done in place. */
const WORK: LockWork = {
  read: async (_, file, text) => readLock(file, text),
  write: async (lock) => writeLock(lock),
  check: async () => undefined,
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-first-use-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function firstUseOf(keeper: FirstUseKeeper, upstream = 'github', work = WORK) {
  const reports: boolean[] = [];
  const firstUse = createFirstUse(upstream, {
    keeper,
    now: () => Date.UTC(2026, 10, 22),
    scan: { hasBlocked: () => false },
    work,
    onTrusted: (_, isNew) => reports.push(isNew),
  });
  async function use(...tools: readonly JsonObject[]): Promise<string | undefined> {
    await firstUse.load();
    firstUse.observe(observedOf(tools));
    await firstUse.settled();
    const pin = firstUse.lockWith(undefined)?.pins.tool.get('read');
    return pin?.definition['description'] as string | undefined;
  }
  return { ...firstUse, use, reports };
}

it('[L-55] is kept in a file, which the next process reads', async () => {
  const before = firstUseOf(createFileKeeper(() => folder));
  expect(await before.use(FIRST)).toBe(FIRST['description']);
  expect(before.reports).toEqual([true]);
  expect(before.describe()).toBe(
    'trusted on first use on 2026-11-22T00:00:00.000Z: 1 definition, kept in github.first-use.yaml',
  );
  const after = firstUseOf(createFileKeeper(() => folder));
  expect(await after.use(OTHER)).toBe(FIRST['description']);
  expect(after.reports).toEqual([false]);
});

it('[L-55] is what another process kept first', async () => {
  const one = createFileKeeper(() => folder);
  const two = createFileKeeper(() => folder);
  const [first, second] = [firstUseOf(one, 'raced'), firstUseOf(two, 'raced')];
  const [a, b] = await Promise.all([first.use(FIRST), second.use(OTHER)]);
  expect(a).toBe(b);
  expect([...first.reports, ...second.reports].sort()).toEqual([false, true]);
});

it('[L-55] is kept in memory where the file cannot be written, and that is said', async () => {
  const blocker = join(folder, 'a-file');
  await writeFile(blocker, '');
  const keeper = createFileKeeper(() => join(blocker, 'pins'));
  const firstUse = firstUseOf(keeper);
  expect(await firstUse.use(FIRST)).toBe(FIRST['description']);
  expect(firstUse.describe()).toContain('1 definition, a restart forgets it');
  // A runtime that a reload has started again reads what the process remembers.
  const again = firstUseOf(keeper);
  expect(await again.use(OTHER)).toBe(FIRST['description']);
  expect(again.reports).toEqual([false]);
});

it('[L-55] is not known, and nothing is trusted, while the file is invalid', async () => {
  const file = join(folder, 'broken.first-use.yaml');
  await writeFile(file, 'lockfileVersion: 1\n');
  const firstUse = firstUseOf(
    createFileKeeper(() => folder),
    'broken',
  );
  expect(await firstUse.use(FIRST)).toBeUndefined();
  expect(firstUse.isSettled()).toBe(false);
  expect(firstUse.describe()).toMatch(/^what was trusted on first use cannot be used: /);
  expect(await readFile(file, 'utf8')).toBe('lockfileVersion: 1\n');
  await rm(file);
  expect(await firstUse.use(FIRST)).toBe(FIRST['description']);
  expect(firstUse.isSettled()).toBe(true);
});

it('[L-55] is read again after the store was down, before anything is trusted', async () => {
  let isDown = true;
  let kept: string | undefined;
  const reach = (): void => {
    if (isDown) throw new Error('the store cannot be reached');
  };
  const keeper = createStoreKeeper({
    async find() {
      reach();
      return kept;
    },
    async keep(_, text) {
      reach();
      kept ??= text;
      return kept;
    },
  });
  const firstUse = firstUseOf(keeper);
  expect(await firstUse.use(FIRST)).toBeUndefined();
  expect(firstUse.isSettled()).toBe(false);
  expect(firstUse.describe()).toContain('the store cannot be reached');
  isDown = false;
  await firstUse.load();
  isDown = true;
  firstUse.observe(observedOf([FIRST]));
  await firstUse.settled();
  expect(firstUse.isSettled()).toBe(false);
  isDown = false;
  expect(await firstUse.use(FIRST)).toBe(FIRST['description']);
  expect(firstUse.describe()).toContain('1 definition, kept in the shared store');
});

it('[L-55] is not settled before it is known whether something was trusted before', async () => {
  const firstUse = firstUseOf(
    createFileKeeper(() => folder),
    'unread',
  );
  expect(firstUse.isSettled()).toBe(false);
  firstUse.observe(observedOf([FIRST]));
  await firstUse.settled();
  expect(firstUse.lockWith(undefined)).toBeUndefined();
});

it('[L-55] is not trusted while it cannot be written or read', async () => {
  let kept: string | undefined;
  const keeper = createStoreKeeper({
    find: async () => kept,
    keep: async (_, text) => {
      kept ??= text;
      return kept;
    },
  });
  const failing = async () => {
    throw new Error('the thread for it ended');
  };
  const unwritten = firstUseOf(keeper, 'github', { ...WORK, write: failing });
  expect([await unwritten.use(FIRST), kept, unwritten.isSettled()]).toEqual([undefined, undefined, false]);
  await firstUseOf(keeper).use(FIRST);
  const unread = firstUseOf(keeper, 'github', { ...WORK, read: failing });
  expect([await unread.use(OTHER), unread.isSettled()]).toEqual([undefined, false]);
  expect(unread.describe()).toBe('what was trusted on first use cannot be used: the thread for it ended');
});

it('[L-55] is prepared before it counts', async () => {
  const prepared: unknown[] = [];
  const firstUse = createFirstUse('prepared', {
    keeper: createFileKeeper(() => folder),
    now: () => 0,
    scan: { hasBlocked: () => false },
    work: {
      ...WORK,
      async check(lock) {
        prepared.push([lock.pins.tool.size, firstUse.trusted(), firstUse.isSettled()]);
      },
    },
    onTrusted: () => prepared.push(firstUse.isSettled()),
  });
  await firstUse.load();
  firstUse.observe(observedOf([FIRST]));
  await vi.waitFor(() => expect(prepared).toEqual([[1, undefined, false], true]));
});
