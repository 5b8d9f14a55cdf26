import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Settings } from '../../../src/config/settings.js';
import type { Version } from '../../../src/gateway/config-version.js';
import { createLockCounters, type LockCounters } from '../../../src/gateway/lock-counters.js';
import type { CounterStore } from '../../../src/state/memory.js';
import type { SeenCounter } from '../../../src/state/store.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-counters-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function versionOf(counter: number, sha256 = `${counter}`, upstream = 'github'): Version {
  const signed = new Map([[upstream, { counter, sha256 }]]);
  const settings = { file: '/srv/gateway.yaml', pinsDir: '/srv/pins', signing: {} };
  // The parts that counters read.
  return { signed, settings } as unknown as Version;
}

type Given = {
  readonly path?: string;
  readonly store?: CounterStore;
  readonly nowMs?: () => number;
};

function countersOf({ path, store, nowMs }: Given): LockCounters {
  const sinks = path === undefined ? [{ type: 'stdout' }] : [{ type: 'file', path }];
  return createLockCounters({
    state: { countersOf: store && (() => store) },
    settings: { audit: { sinks } } as unknown as Settings,
    ...(nowMs === undefined ? {} : { nowMs }),
  });
}

async function refused(counters: LockCounters, version: Version, phase: 'start' | 'reload') {
  const reading = await counters.accept({ version, diagnostics: [] }, phase);
  const [found] = reading.diagnostics;
  expect(reading.version).toBe(found === undefined ? version : undefined);
  return found?.message;
}

/** A store that can be cut off. */
function makeStore() {
  const kept = new Map<string, SeenCounter>();
  let isDown = false;
  return {
    set isDown(value: boolean) {
      isDown = value;
    },
    async raise(counters: ReadonlyMap<string, SeenCounter>) {
      if (isDown) throw new Error('no connection');
      const isOlder = ([name, seen]: [string, SeenCounter]) => {
        const known = kept.get(name);
        return seen.counter === known?.counter ? seen.sha256 !== known.sha256 : seen.counter < (known?.counter ?? 0);
      };
      if ([...counters].some(isOlder)) return new Map(kept);
      for (const [name, seen] of counters) kept.set(name, seen);
      return new Map(kept);
    },
  };
}

describe('[L-93] counters of lock files', () => {
  it('are kept in a file beside the audit log, over a restart', async () => {
    const path = join(folder, 'audit.jsonl');
    const first = countersOf({ path });
    expect(await refused(first, versionOf(3), 'start')).toBeUndefined();
    expect(first.error()).toBeUndefined();
    const second = countersOf({ path });
    expect(await refused(second, versionOf(2), 'start')).toContain('its counter is 2, and 3 was');
    expect(await refused(second, versionOf(3, 'other'), 'start')).toContain('differs from the file');
    expect(await refused(second, versionOf(3), 'start')).toBeUndefined();
    const { counters } = JSON.parse(await readFile(join(folder, 'audit.lock-counters'), 'utf8'));
    expect(counters).toEqual({ github: { counter: 3, sha256: '3' } });
  });

  it('are taken over from the place of earlier versions', async () => {
    const path = join(folder, 'audit.jsonl');
    const former = `${path}.lock-counters`;
    const seen = { counters: { github: { counter: 3, sha256: '3' }, other: { counter: 9, sha256: '9' } } };
    await writeFile(former, JSON.stringify({ schema: 'sallyport.lock-counters/1', ...seen }));
    expect(await refused(countersOf({ path }), versionOf(2), 'start')).toContain('its counter is 2, and 3 was');
    // Nothing has taken effect yet.
    expect(JSON.parse(await readFile(former, 'utf8'))).toMatchObject(seen);
    expect(await refused(countersOf({ path }), versionOf(3), 'start')).toBeUndefined();
    expect(JSON.parse(await readFile(join(folder, 'audit.lock-counters'), 'utf8'))).toMatchObject(seen);
    await expect(readFile(former)).rejects.toThrow('ENOENT');
  });

  it('are raised from the place of earlier versions too once the new file exists', async () => {
    const path = join(folder, 'audit.jsonl');
    await refused(countersOf({ path }), versionOf(3), 'start');
    const counters = { github: { counter: 7, sha256: '7' } };
    await writeFile(`${path}.lock-counters`, JSON.stringify({ schema: 'sallyport.lock-counters/1', counters }));
    expect(await refused(countersOf({ path }), versionOf(4), 'start')).toContain('its counter is 4, and 7 was');
  });

  it('are said to be forgotten where the next version can be neither created nor removed', async () => {
    const path = join(folder, 'audit.jsonl');
    await mkdir(join(folder, 'audit.lock-counters.new'));
    const counters = countersOf({ path });
    expect(await refused(counters, versionOf(3), 'start')).toBeUndefined();
    expect(counters.error()).toContain('cannot be written');
  }, 20_000);

  it('lose none of what gateways that share the folder write at the same time', async () => {
    const path = join(folder, 'audit.jsonl');
    const names = Array.from({ length: 8 }, (_, index) => `upstream-${index}`);
    await Promise.all(names.map((name) => refused(countersOf({ path }), versionOf(3, '3', name), 'start')));
    const { counters } = JSON.parse(await readFile(join(folder, 'audit.lock-counters'), 'utf8'));
    expect(Object.keys(counters)).toEqual(names);
    // What one of them left that ended while it wrote is no hindrance for long.
    await writeFile(join(folder, 'audit.lock-counters.new'), '{');
    expect(await refused(countersOf({ path }), versionOf(4), 'start')).toBeUndefined();
    expect(await readFile(join(folder, 'audit.lock-counters'), 'utf8')).toContain('"github"');
  });

  it('are forgotten by a restart without a store and a file, which is said', async () => {
    const counters = countersOf({});
    await refused(counters, versionOf(3), 'start');
    expect(counters.error()).toContain('a restart forgets the counters of lock files: there is');
    expect(await refused(counters, versionOf(2), 'reload')).toContain('is older than one');
  });

  it('are said to be forgotten where the file cannot be written, until it can', async () => {
    let nowMs = 0;
    const path = join(folder, 'missing/audit.jsonl');
    const counters = countersOf({ path, nowMs: () => nowMs });
    expect(await refused(counters, versionOf(3), 'start')).toBeUndefined();
    expect(counters.error()).toMatch(/^a restart forgets .*audit\.lock-counters cannot be/);
    expect(await refused(counters, versionOf(2), 'reload')).toContain('is older than one');
    counters.retry();
    expect(counters.error()).toBeDefined();
    await mkdir(join(folder, 'missing'));
    nowMs = 31_000;
    counters.retry();
    await expect.poll(() => counters.error()).toBeUndefined();
    expect(await readFile(join(folder, 'missing/audit.lock-counters'), 'utf8')).toContain('"counter": 3');
  });

  it('are asked of the store: a start waits for it, a running gateway knows its own', async () => {
    const store = makeStore();
    const first = countersOf({ store });
    await refused(first, versionOf(3), 'start');
    store.isDown = true;
    expect(await refused(countersOf({ store }), versionOf(9), 'start')).toBe(
      'the counters of lock files cannot be read: no connection',
    );
    expect(await refused(first, versionOf(4), 'reload')).toBeUndefined();
    expect(await refused(first, versionOf(2), 'reload')).toContain('is older than one');
    expect(first.error()).toContain('no connection');
    store.isDown = false;
    expect(await refused(first, versionOf(4), 'reload')).toBeUndefined();
    expect(first.error()).toBeUndefined();
    // Another replica learns of it.
    expect(await refused(countersOf({ store }), versionOf(3), 'start')).toContain('and 4 was seen');
  });

  it('are put in order by the store where two replicas read different files at the same time', async () => {
    for (const later of [versionOf(4), versionOf(3, 'other')]) {
      const store = makeStore();
      let isRead = false;
      // Another replica remembers its counters between the look of this one and its own.
      const between: CounterStore = {
        async raise(counters) {
          const known = await store.raise(counters);
          if (!isRead) await refused(countersOf({ store }), later, 'start');
          isRead = true;
          return known;
        },
      };
      expect(await refused(countersOf({ store: between }), versionOf(3), 'start')).toMatch(
        /and 4 was seen|differs from the file that was seen/,
      );
    }
  });

  it('are compared once the store is back: an older file in force is said', async () => {
    let nowMs = 0;
    const store = makeStore();
    const counters = countersOf({ store, nowMs: () => nowMs });
    await refused(counters, versionOf(2), 'start');
    store.isDown = true;
    expect(await refused(counters, versionOf(3), 'reload')).toBeUndefined();
    store.isDown = false;
    await refused(countersOf({ store }), versionOf(4), 'start');
    nowMs = 31_000;
    counters.retry();
    await expect.poll(() => counters.error()).toContain('lock files are in force that are older');
    expect(counters.error()).toContain('github');
    expect(await refused(counters, versionOf(3), 'reload')).toContain('and 4 was seen');
  });

  it('are raised only for a version that takes effect, all together', async () => {
    const store = makeStore();
    const counters = countersOf({ store });
    await refused(counters, versionOf(3), 'start');
    const next = versionOf(4);
    expect(await counters.check({ version: next, diagnostics: [] }, 'reload')).toMatchObject({
      version: next,
    });
    // Another cause kept it from taking effect: the version in force may be read again, here and elsewhere.
    expect(await refused(counters, versionOf(3), 'reload')).toBeUndefined();
    expect(await refused(countersOf({ store }), versionOf(3), 'start')).toBeUndefined();
    // One of two lock files is older than one that another replica records meanwhile: neither counts.
    const both = (github: number, desk: number): Version => ({
      ...versionOf(github),
      signed: new Map([
        ['github', { counter: github, sha256: `${github}` }],
        ['desk', { counter: desk, sha256: `${desk}` }],
      ]),
    });
    let reads = 0;
    const raced = countersOf({
      store: {
        async raise(given) {
          reads += 1;
          if (reads === 2) await store.raise(both(3, 9).signed);
          return store.raise(given);
        },
      },
    });
    expect(await refused(raced, both(5, 2), 'reload')).toContain('and 9 was seen');
    expect(await refused(raced, both(4, 9), 'reload')).toBeUndefined();
  });

  it('are not asked where no signatures are required', async () => {
    const store = makeStore();
    store.isDown = true;
    const version = { ...versionOf(1), settings: { signing: undefined } } as unknown as Version;
    expect(await refused(countersOf({ store }), version, 'start')).toBeUndefined();
  });
});
