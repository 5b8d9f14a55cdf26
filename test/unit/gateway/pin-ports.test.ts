// Writers of one file: each sees what the one before it wrote, and none is lost.

import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { updateFile } from '../../../src/gateway/pin-ports.js';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-pins-'));
  file = join(folder, 'pins', 'a.lock.yaml');
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(folder, { recursive: true, force: true });
});

describe('[L-72] a lock file', () => {
  it('keeps what each of many writers at a time adds to it', async () => {
    await updateFile(file, () => '');
    const writers = Array.from({ length: 20 }, (_, index) =>
      updateFile(file, () => `${readFileSync(file, 'utf8')}${index} `),
    );
    expect(new Set(await Promise.all(writers))).toEqual(new Set([undefined]));
    const numbers = (await readFile(file, 'utf8')).trim().split(' ').map(Number);
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index));
    expect(await readdir(join(folder, 'pins'))).toEqual(['a.lock.yaml']);
  });

  it('stays as it is where nothing is to be written, and where a writer fails', async () => {
    await updateFile(file, () => 'before');
    expect(await updateFile(file, () => undefined)).toBeUndefined();
    const failing = updateFile(file, () => {
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await readFile(file, 'utf8')).toBe('before');
    expect(await readdir(join(folder, 'pins'))).toEqual(['a.lock.yaml']);
  });

  it('is not written while another writer does not finish, which is named', async () => {
    await updateFile(file, () => 'before');
    await writeFile(`${file}.new`, 'unfinished');
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const update = vi.fn(() => 'after');
    let isOver = false;
    const blocked = updateFile(file, update).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await blocked).toBe(`${file}.new`);
    expect(update).not.toHaveBeenCalled();
    expect(await readFile(file, 'utf8')).toBe('before');
    expect(await readFile(`${file}.new`, 'utf8')).toBe('unfinished');
  });
});
