import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAuditFile } from '../../../src/audit/file.js';
import {
  AuditLease,
  hasProcessEnded,
  LEASE_TIMES,
  type LeaseOptions,
  leasePath,
  nextLeasePath,
  type ProcessIdentity,
  readOwnIdentity,
} from '../../../src/audit/writer-lease.js';
import { until } from './samples.js';
import { eventsOf, lifecycle, makeSink, verified } from './sink-rig.js';

const TIMES = { ...LEASE_TIMES, pollMs: 1 };
const MINUTE = 60_000;

let folder = '';
let path = '';
/** The monotonic clock of every process in a test, in milliseconds. */
let clock = { ms: 0 };
let leases: AuditLease[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-lease-'));
  path = join(folder, 'audit.jsonl');
  clock = { ms: 0 };
  leases = [];
});

afterEach(async () => {
  for (const lease of leases) await lease.release();
  await rm(folder, { recursive: true, force: true });
});

/** As of a process that nobody can look at: of another machine, or another namespace of process ids. */
const UNKNOWN = (): Promise<undefined> => Promise.resolve(undefined);

function optionsOf(instance: string, more: Partial<LeaseOptions> = {}): LeaseOptions {
  return { instance, times: TIMES, monotonicMs: () => clock.ms, identity: UNKNOWN, ...more };
}

function leaseOf(instance: string, more: Partial<LeaseOptions> = {}): AuditLease {
  const lease = new AuditLease(path, optionsOf(instance, more));
  leases.push(lease);
  return lease;
}

/** Lets time pass until something has come to its end; `step` runs at every second. */
async function pass<Value>(
  wanted: Promise<Value>,
  step: () => Promise<unknown> = () => Promise.resolve(),
): Promise<{ readonly value: Value; readonly seconds: number }> {
  const startedMs = clock.ms;
  let isDone = false;
  const settled = wanted.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await new Promise((resolve) => setTimeout(resolve, 4));
    if (isDone) break;
    clock.ms += 1000;
    await step();
  }
  return { value: await settled, seconds: (clock.ms - startedMs) / 1000 };
}

async function holder(): Promise<unknown> {
  const state = JSON.parse(await readFile(leasePath(path), 'utf8')) as { instance: unknown };
  return state.instance;
}

describe('the lease of an audit file', () => {
  it('[O-38] names the instance, is private, and goes with a clean end', async () => {
    const lease = leaseOf('one');
    expect(await lease.acquire()).toBeUndefined();
    expect(await holder()).toBe('one');
    expect((await stat(leasePath(path))).mode & 0o777).toBe(0o600);
    await lease.release();
    expect(await readdir(folder)).toEqual([]);
  });

  it('[O-38] a start waits twenty seconds for one that is renewed, then says who has it', async () => {
    const one = leaseOf('one');
    await one.acquire();
    const waited: string[] = [];
    const acquired = leaseOf('two').acquire((text) => waited.push(text));
    const { value, seconds } = await pass(acquired, () => one.hold());
    expect(value).toContain(`another gateway writes the audit file ${path}: instance one on host`);
    expect(value).toContain(leasePath(path));
    expect(seconds).toBeGreaterThanOrEqual(20);
    expect(waited).toHaveLength(1);
    expect(await holder()).toBe('one');
    await one.hold();
  });

  it('[O-38] takes over one that is not renewed, within the wait; who lost it writes no more', async () => {
    const one = leaseOf('one');
    await one.acquire();
    const { value, seconds } = await pass(leaseOf('two').acquire());
    expect(value).toBeUndefined();
    expect(seconds).toBeGreaterThanOrEqual(15);
    expect(await holder()).toBe('two');
    expect(one.isFresh).toBe(false);
    await expect(one.hold()).rejects.toThrow('lost the lease');
    expect(one.lost).toContain('instance two');
    // For good: even when the other one has ended.
    await leases[1]?.release();
    await expect(one.hold()).rejects.toThrow('lost the lease');
    await one.release();
    expect(await readdir(folder)).toEqual([]);
  });

  it('[O-38] takes one over sooner that the clock calls old, when its holder would rely on it no more', async () => {
    const one = leaseOf('one');
    await one.acquire();
    const longAgo = new Date(Date.now() - MINUTE);
    await utimes(leasePath(path), longAgo, longAgo);
    // Too long to be watched for the whole time.
    const times = { ...TIMES, staleMs: MINUTE / 2, waitMs: 2 * MINUTE };
    const { value, seconds } = await pass(leaseOf('two', { times }).acquire());
    expect(value).toBeUndefined();
    expect(seconds).toBeGreaterThanOrEqual(10);
    expect(seconds).toBeLessThan(MINUTE / 2 / 1000);
  });

  it('[O-38] a clock that was set does not make a living writer look dead', async () => {
    const one = leaseOf('one', { monotonicMs: () => 2 * clock.ms });
    await one.acquire();
    const late = leaseOf('two', { now: () => Date.now() + 60 * MINUTE });
    const { value } = await pass(late.acquire(), () => one.hold());
    expect(value).toContain('instance one');
    const early = leaseOf('three', { now: () => Date.now() - 60 * MINUTE });
    expect((await pass(early.acquire(), () => one.hold())).value).toContain('instance one');
  });

  it('[O-38] of several that take over at once only one has it', async () => {
    await leaseOf('dead').acquire();
    const takers = ['a', 'b', 'c', 'd', 'e'].map((name) => leaseOf(name));
    const all = Promise.all(takers.map((lease) => lease.acquire()));
    // Only who has it renews it: asking for it beside a start that waits would take it for neither.
    const alive = () => Promise.all(takers.filter((one) => one.isFresh).map((one) => one.hold()));
    const { value } = await pass(all, alive);
    expect(value.filter((refused) => refused === undefined)).toHaveLength(1);
    expect(takers.filter((lease) => lease.isFresh)).toHaveLength(1);
    const winner = takers[value.indexOf(undefined)];
    await winner?.hold();
    expect(await readdir(folder)).toEqual(['audit.jsonl.lease']);
  });

  it('[O-38] a claim and an unfinished lease that a crash left are taken over too', async () => {
    await leaseOf('dead').acquire();
    await writeFile(nextLeasePath(path), '');
    const { value } = await pass(leaseOf('two').acquire());
    expect(value).toBeUndefined();
    await leases[1]?.release();
    await writeFile(leasePath(path), '{"schema":"sallyport.le');
    const refused = leaseOf('three').acquire();
    expect((await pass(refused)).value).toBeUndefined();
    expect(await holder()).toBe('three');
  });

  it('[O-38] is made again when somebody removed it, not when another one may have had it', async () => {
    const one = leaseOf('one');
    await one.acquire();
    await unlink(leasePath(path));
    clock.ms += 10_000;
    await one.hold();
    expect(await holder()).toBe('one');
    await unlink(leasePath(path));
    clock.ms += 15_000;
    await expect(one.hold()).rejects.toThrow('removed meanwhile');
    expect(await readdir(folder)).toEqual([]);
  });

  it('[O-38] outlives its folder, as long as it is looked for', async () => {
    const one = leaseOf('one');
    await one.acquire();
    await rename(folder, `${folder}-away`);
    for (let turn = 0; turn < 6; turn += 1) {
      clock.ms += 10_000;
      await expect(one.hold()).rejects.toThrow('ENOENT');
    }
    await mkdir(folder);
    await one.hold();
    expect(await holder()).toBe('one');
    await rm(`${folder}-away`, { recursive: true });
  });

  it('[O-38] there is none for what is no file', async () => {
    const lease = new AuditLease('/dev/full', optionsOf('one'));
    expect(await lease.acquire()).toBeUndefined();
    expect(lease.isFresh).toBe(true);
    await lease.hold();
    await expect(stat('/dev/full.lease')).rejects.toThrow('ENOENT');
  });

  it('[O-38] without a place for it nothing is written', async () => {
    await writeFile(path, '');
    await mkdir(leasePath(path));
    const { sink, states } = makeSink(createAuditFile(path, { lease: optionsOf('one') }));
    await expect(sink.start()).rejects.toThrow('EISDIR');
    expect(states).toEqual(['EISDIR']);
    expect(await readFile(path, 'utf8')).toBe('');
    await sink.close();
  });
});

describe('an audit file behind a link', () => {
  const writer = (instance: string) => makeSink(createAuditFile(path, { lease: optionsOf(instance) }));

  it('[O-38] has its lease beside the file itself, also where that is not there yet', async () => {
    await mkdir(join(folder, 'day'));
    await symlink('day/1.jsonl', path);
    const one = writer('one');
    await one.sink.start();
    expect((await readdir(join(folder, 'day'))).sort()).toEqual(['1.jsonl', '1.jsonl.lease']);
    const two = writer('two');
    await expect(two.sink.start()).rejects.toThrow('another gateway writes the audit file');
    await one.sink.close();
    await two.sink.close();
  });

  it('[O-38] takes the lease of the next file where the link was set anew', async () => {
    await symlink('1.jsonl', path);
    const one = writer('one');
    await one.sink.start();
    await unlink(path);
    await symlink('2.jsonl', path);
    await one.sink.append(lifecycle('next'));
    expect((await readdir(folder)).filter((name) => name.endsWith('.lease'))).toEqual(['2.jsonl.lease']);
    const two = writer('two');
    await expect(two.sink.start()).rejects.toThrow('another gateway writes the audit file');
    await two.sink.close();
    // Where another one was faster it has the next file, and this one waits.
    await unlink(path);
    await symlink('3.jsonl', path);
    const three = writer('three');
    await three.sink.start();
    await expect(one.sink.append(lifecycle('late'))).rejects.toThrow('instance three');
    expect(await eventsOf(path)).toEqual(['started']);
    await three.sink.close();
    await unlink(path);
    await symlink('4.jsonl', path);
    await one.sink.append(lifecycle('last'));
    expect(await eventsOf(path)).toEqual(['continued', 'resumed', 'last']);
    await one.sink.close();
  });
});

describe('a writer whose lease was taken over', () => {
  it('[O-38] says so, writes nothing more, and the file of the other stays whole', async () => {
    const one = makeSink(createAuditFile(path, { lease: optionsOf('one') }));
    await one.sink.start();
    const two = makeSink(createAuditFile(path, { lease: optionsOf('two') }));
    await expect(two.sink.start()).rejects.toThrow('another gateway writes the audit file');
    expect(await eventsOf(path)).toEqual(['started']);
    clock.ms += MINUTE;
    const asked = pass(two.sink.acquire(() => undefined));
    expect((await asked).value).toBeUndefined();
    await until(() => two.sink.isWritable);
    await two.sink.append(lifecycle('mine'));
    await expect(one.sink.append(lifecycle('refused'))).rejects.toThrow('lost the lease');
    expect(one.sink.isWritable).toBe(false);
    expect(one.states.at(-1)).toContain('instance two');
    await one.sink.close();
    expect(await holder()).toBe('two');
    await two.sink.append(lifecycle('still mine'));
    await two.sink.close();
    const events = await eventsOf(path);
    expect(events).toEqual(['started', 'started', 'mine', 'still mine', 'stopped']);
    expect((await verified(path)).faults).toEqual([]);
    expect((await readdir(folder)).sort()).toEqual(['audit.jsonl']);
  });
});

describe('who a process is', () => {
  it('[O-39] is known of this one, and that it lives', async () => {
    const own = await readOwnIdentity();
    expect(own?.pid).toBe(process.pid);
    if (own === undefined) throw new Error('unknown');
    expect(await hasProcessEnded(own, own)).toBe(false);
  });

  it('[O-39] ended: no such process, or another one under its number', async () => {
    const own = await readOwnIdentity();
    if (own === undefined) throw new Error('unknown');
    expect(await hasProcessEnded({ ...own, pid: 2 ** 30 }, own)).toBe(true);
    expect(await hasProcessEnded({ ...own, started: '1' }, own)).toBe(true);
  });

  it.each([
    ['another namespace of process ids', { namespace: 'pid:[1]' }],
    ['another boot', { boot: 'another' }],
  ])('[O-39] nothing is known of a process of %s', async (_, other) => {
    const own = await readOwnIdentity();
    if (own === undefined) throw new Error('unknown');
    expect(await hasProcessEnded({ ...own, pid: 2 ** 30, ...other }, own)).toBe(false);
  });

  it('[O-39] a lease of a process that ended is taken over at once, one of a living process not', async () => {
    const own = await readOwnIdentity();
    if (own === undefined) throw new Error('unknown');
    const as = (identity: ProcessIdentity) => ({ identity: () => Promise.resolve(identity) });
    await leaseOf('dead', as({ ...own, pid: 2 ** 30 })).acquire();
    const atOnce = { times: { ...TIMES, waitMs: 0 }, ...as(own) };
    expect(await leaseOf('two', atOnce).acquire()).toBeUndefined();
    expect(await leaseOf('three', atOnce).acquire()).toContain('instance two');
  });
});
