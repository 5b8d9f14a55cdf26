import { mkdir, mkdtemp, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type ConfigWatch,
  DISK_FILES,
  type FilesRead,
  noteReads,
  type WatchTargets,
  watchConfiguration,
} from '../../../src/config/files.js';

let folder = '';
let watches: ConfigWatch[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-watch-'));
});

afterEach(async () => {
  for (const watch of watches) await watch.close();
  watches = [];
  await rm(folder, { recursive: true, force: true });
});

/** Puts a whole text in place at once: a look never finds a file half written. */
async function put(file: string, text: string): Promise<void> {
  const made = join(folder, '.put');
  await writeFile(made, text);
  await rename(made, file);
}

/** A watch and the means to wait for its calls. `pollMs` is long where only `check` should look. */
async function watchOver(
  targets: WatchTargets,
  pollMs: number,
  onChange: (call: number) => void | Promise<void> = () => {},
  debounceMs = 5,
  read?: FilesRead,
) {
  let calls = 0;
  const errors: unknown[] = [];
  const waiting = new Set<() => void>();
  const watch = await watchConfiguration({
    ...{ targets, pollMs, debounceMs },
    ...(read === undefined ? {} : { read }),
    onError: (error) => errors.push(error),
    onChange: async () => {
      calls += 1;
      for (const wake of waiting) wake();
      await onChange(calls);
    },
  });
  watches.push(watch);
  const reached = async (count: number): Promise<void> => {
    while (calls < count) {
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
    }
  };
  return { watch, errors, reached, calls: () => calls };
}

/** What somebody has read who reads these files now. */
function readOf(...files: string[]): FilesRead {
  const noting = noteReads(DISK_FILES);
  for (const file of files) noting.files.readFile(file);
  return noting.read;
}

const NEVER_MS = 2 ** 30;
const only = (...files: string[]): WatchTargets => ({ files, folders: [] });

describe('[C-17] changes of files', () => {
  it('are told by the watch of the folder, without a poll', async () => {
    const file = join(folder, 'gateway.yaml');
    await put(file, 'a');
    const { reached } = await watchOver(only(file), NEVER_MS);
    await put(file, 'b');
    await reached(1);
  });

  it('are not looked for when the gateway itself wrote in a watched folder', async () => {
    const watched = join(folder, 'watched');
    const elsewhere = join(folder, 'elsewhere');
    for (const path of [watched, elsewhere]) await mkdir(path);
    const held = join(elsewhere, 'held');
    const file = join(watched, 'gateway.yaml');
    const own = join(watched, 'audit.jsonl');
    await put(held, 'a');
    await symlink(held, file);
    await writeFile(own, '');
    const { reached, calls } = await watchOver({ ...only(file), isOwn: (one) => one === own }, NEVER_MS);
    // No folder that is watched tells of this change: what follows decides whether anyone looks.
    await put(held, 'b');
    await writeFile(own, 'a line');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(calls()).toBe(0);
    await writeFile(join(watched, 'other'), 'a line');
    await reached(1);
  });

  it('are told by polling, where no folder could be watched', async () => {
    const file = join(folder, 'mounted', 'gateway.yaml');
    const { reached } = await watchOver(only(file), 10);
    await mkdir(join(folder, 'mounted'));
    await put(file, 'a');
    await reached(1);
  });

  it('are told again and again when a ConfigMap is swapped', async () => {
    const swap = async (version: string): Promise<void> => {
      await mkdir(join(folder, version));
      await put(join(folder, version, 'gateway.yaml'), version);
      await symlink(version, join(folder, `next-${version}`));
      await rename(join(folder, `next-${version}`), join(folder, '..data'));
    };
    await swap('v1');
    const file = join(folder, 'gateway.yaml');
    await symlink(join('..data', 'gateway.yaml'), file);
    const { reached } = await watchOver(only(file), 20);
    for (const count of [1, 2, 3]) {
      await swap(`v${count + 1}`);
      await reached(count);
    }
  });

  it('of files that come and go in a folder count, of others not', async () => {
    const targets = { files: [], folders: [{ path: folder, suffix: '.policy.yaml' }] };
    // Events of the folder are not followed: a check of theirs could read it while the file is removed.
    const { watch, calls } = await watchOver(targets, NEVER_MS, undefined, NEVER_MS);
    await put(join(folder, 'a.policy.yaml'), 'a');
    await watch.check();
    expect(calls()).toBe(1);
    await put(join(folder, 'notes.txt'), 'a');
    await put(join(folder, '.b.policy.yaml'), 'a');
    await watch.check();
    expect(calls()).toBe(1);
    await rm(join(folder, 'a.policy.yaml'));
    await watch.check();
    expect(calls()).toBe(2);
  });

  it('are of content: a touch is none, and the same text written again is none', async () => {
    const file = join(folder, 'gateway.yaml');
    await put(file, 'a');
    const { watch, calls } = await watchOver(only(file), NEVER_MS);
    await utimes(file, new Date(0), new Date(0));
    await watch.check();
    await put(file, 'a');
    await watch.check();
    expect(calls()).toBe(0);
  });

  it('are coalesced: many writes while one is told are one further call', async () => {
    const file = join(folder, 'gateway.yaml');
    await put(file, '0');
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { watch, calls, reached } = await watchOver(only(file), NEVER_MS, (call) => (call === 1 ? held : undefined));
    await put(file, '1');
    const first = watch.check();
    await reached(1);
    for (const text of ['2', '3', '4']) {
      await put(file, text);
      void watch.check();
    }
    expect(calls()).toBe(1);
    release();
    await first;
    expect(calls()).toBe(2);
  });

  it('are told again where what was read between two equal looks was something else', async () => {
    const file = join(folder, 'gateway.yaml');
    await put(file, '0');
    const reads: string[] = [];
    const { watch } = await watchOver(only(file), NEVER_MS, async (call) => {
      if (call === 1) await put(file, '2');
      reads.push(await readFile(file, 'utf8'));
      if (call === 1) await put(file, '1');
    });
    await put(file, '1');
    await watch.check();
    expect(reads[0]).toBe('2');
    expect(reads.at(-1)).toBe('1');
  });

  it('are told after a call that failed, too', async () => {
    const file = join(folder, 'gateway.yaml');
    await put(file, '0');
    const failure = new Error('rejected');
    const { watch, calls, errors } = await watchOver(only(file), NEVER_MS, () => {
      throw failure;
    });
    for (const text of ['1', '2']) {
      await put(file, text);
      await watch.check();
    }
    expect(calls()).toBe(2);
    expect(errors).toEqual([failure, failure]);
  });

  it('of other files follow a new target, beginning with a call if they were not read', async () => {
    const [before, after] = [join(folder, 'a'), join(folder, 'b')];
    await put(before, '0');
    await put(after, '0');
    const { watch, calls } = await watchOver(only(before), NEVER_MS);
    watch.noteReading(only(before), readOf(before));
    await watch.check();
    expect(calls()).toBe(0);
    watch.noteReading(only(after), readOf(before));
    await watch.check();
    expect(calls()).toBe(0);
    watch.noteReading(only(after), undefined);
    await watch.check();
    expect(calls()).toBe(1);
    await put(before, '1');
    await watch.check();
    expect(calls()).toBe(1);
  });

  it('are told again, after a pause, while what was read is not what the files hold', async () => {
    const file = join(folder, 'gateway.yaml');
    await put(file, '0');
    const read = readOf(file);
    const begun: ConfigWatch[] = [];
    const rig = await watchOver(only(file), 5, (call) => {
      // Twice nothing could be read, and once only something older.
      begun[0]?.noteReading(only(file), [undefined, undefined, read, readOf(file)][call - 1]);
    });
    begun.push(rig.watch);
    await put(file, '1');
    await rig.reached(4);
    for (let look = 0; look < 3; look += 1) await rig.watch.check();
    expect(rig.calls()).toBe(4);
  });

  it('of what was named and not there are told when it appears', async () => {
    const [file, secret, other] = ['gateway.yaml', 'secret', 'other'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    await put(file, '0');
    const { watch, calls } = await watchOver(only(file), NEVER_MS);
    const noting = noteReads(DISK_FILES);
    noting.files.readFile(file);
    expect(() => noting.files.readFile(secret)).toThrow();
    expect(() => noting.files.listFolder(other)).toThrow();
    watch.noteReading({ files: [file, secret], folders: [{ path: other, suffix: '' }] }, noting.read);
    await watch.check();
    expect(calls()).toBe(0);
    await put(secret, 'a');
    await watch.check();
    expect(calls()).toBe(1);
    await mkdir(other);
    await watch.check();
    expect(calls()).toBe(2);
  });

  describe('since the files were read, before they were watched', () => {
    const rows: readonly (readonly [what: string, changes: () => Promise<void>, calls: number])[] = [
      ['none', async () => {}, 0],
      ['the same text again', () => put(join(folder, 'a.policy.yaml'), 'a'), 0],
      ['of a file', () => put(join(folder, 'gateway.yaml'), 'b'), 1],
      ['of a file of a folder', () => put(join(folder, 'a.policy.yaml'), 'b'), 1],
      ['a file that was added', () => put(join(folder, 'b.policy.yaml'), ''), 1],
      ['a file that was removed', () => rm(join(folder, 'a.policy.yaml')), 1],
      ['a file that could not be read', () => put(join(folder, 'absent'), 'a'), 1],
      ['a file that nobody read', () => put(join(folder, 'unread'), 'b'), 0],
      ['a file of another kind', () => put(join(folder, 'notes.txt'), 'b'), 0],
    ];
    it.each(rows)('%s', async (_what, change, expected) => {
      const files = ['gateway.yaml', 'absent', 'unread'].map((name) => join(folder, name));
      for (const name of ['gateway.yaml', 'a.policy.yaml', 'unread']) await put(join(folder, name), 'a');
      const noting = noteReads(DISK_FILES);
      noting.files.listFolder(folder);
      for (const name of ['gateway.yaml', 'a.policy.yaml']) noting.files.readFile(join(folder, name));
      expect(() => noting.files.readFile(join(folder, 'absent'))).toThrow();
      await change();
      const targets = { files, folders: [{ path: folder, suffix: '.policy.yaml' }] };
      const { watch, calls } = await watchOver(targets, NEVER_MS, undefined, NEVER_MS, noting.read);
      await watch.check();
      expect(calls()).toBe(expected);
      await watch.check();
      expect(calls()).toBe(expected);
    });

    it('of a file that held two texts while it was read twice', async () => {
      const file = join(folder, 'gateway.yaml');
      const noting = noteReads(DISK_FILES);
      for (const text of ['a', 'b']) {
        await put(file, text);
        noting.files.readFile(file);
      }
      const { watch, calls } = await watchOver(only(file), NEVER_MS, undefined, NEVER_MS, noting.read);
      await watch.check();
      expect(calls()).toBe(1);
    });
  });

  it('are not told after close', async () => {
    const file = join(folder, 'gateway.yaml');
    await put(file, '0');
    const { watch, calls } = await watchOver(only(file), 5);
    await watch.close();
    await put(file, '1');
    await watch.check();
    expect(calls()).toBe(0);
  });
});
