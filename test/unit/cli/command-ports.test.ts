// Writers of one file: each sees what the one before it wrote, and none is lost.

import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runCommand } from '../../../src/cli/command-ports.js';
import { updateFile } from '../../../src/pins/file-update.js';
import { isSignatureOf } from '../../../src/pins/signature.js';
import { makeSigner } from '../../support/signers.js';

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

describe('[L-91] a command that signs', () => {
  const input = Buffer.from('the bytes to sign\u0000\n');

  it('reads its input as a stream, and as a file that it opens by name', async () => {
    for (const command of ['cat', 'cat /dev/stdin'])
      expect(await runCommand(command, input)).toEqual({ printed: input.toString() });
  });

  it('need not read its input, and its failure is no signature', async () => {
    expect(await runCommand('echo signature', Buffer.alloc(1024 * 1024))).toEqual({
      printed: 'signature\n',
    });
    expect(await runCommand('cat >/dev/null; exit 3', input)).toEqual({ why: 'ended with 3' });
    expect(await runCommand('no-such-program-anywhere 2>/dev/null', input)).toEqual({
      why: 'ended with 127',
    });
  });

  it('signs with a key that is elsewhere, as openssl prints it', async () => {
    const signer = makeSigner('kms', 'P-256');
    const key = join(folder, 'kms.pem');
    await writeFile(key, signer.privateKey, { mode: 0o600 });
    const ran = await runCommand(`openssl dgst -sha256 -sign '${key}' /dev/stdin | base64`, input);
    const signature = Buffer.from('printed' in ran ? ran.printed : '', 'base64');
    expect(isSignatureOf(signer, input, signature)).toBe(true);
  });
});
