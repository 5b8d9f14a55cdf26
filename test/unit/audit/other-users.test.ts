// Audit files of other users of the machine, as the platform tells who this one is: nothing follows them, and they keep
// nothing from being removed.

import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAuditFile } from '../../../src/audit/file.js';
import { findOldFiles, findPredecessor } from '../../../src/audit/folder.js';
import { newestAuditFile } from '../../support/audit-chain.js';
import { lifecycle, makeSink } from './sink-rig.js';

vi.mock('node:os', async (original) => {
  const os = await original<typeof import('node:os')>();
  return { ...os, userInfo: vi.fn(os.userInfo) };
});

let folder = '';
let path = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-users-'));
  path = join(folder, 'audit.jsonl');
});
afterEach(async () => {
  vi.mocked(userInfo).mockReset();
  await rm(folder, { recursive: true, force: true });
});

async function run(instance: string): Promise<string> {
  const { sink } = makeSink(createAuditFile(path, { instance }));
  await sink.start();
  const file = await newestAuditFile(path);
  await sink.append(lifecycle('work'));
  await sink.close();
  return file;
}

/** The platform says that this is another user than the one who wrote the files, or that it does not know. */
function become(who: 'the same' | 'another' | 'nobody' | 'no user'): void {
  const own = { ...userInfo(), uid: process.getuid?.() ?? -1 };
  vi.mocked(userInfo).mockImplementation((): never => {
    if (who === 'no user') throw new Error('no entry');
    const uid = { 'the same': own.uid, another: own.uid + 12_345, nobody: -1 }[who];
    return { ...own, uid } as never;
  });
}

describe('the newest audit file of a folder', () => {
  it.each([
    ['the same', true],
    ['another', false],
    // Where there are no users, or this one has no entry.
    ['nobody', true],
    ['no user', true],
  ] as const)('[O-33] is followed by %s: %s', async (who, isFollowed) => {
    const name = basename(await run('first'));
    become(who);
    const { after, skipped } = await findPredecessor(path);
    expect([after?.file, skipped]).toEqual(isFollowed ? [name, []] : [undefined, [name]]);
  });
});

describe('a new file before an old one', () => {
  it.each([
    ['the same', true],
    ['another', false],
  ] as const)('[O-39] keeps it for %s: %s', async (who, isKept) => {
    const files = [await run('first'), await run('second')];
    const past = new Date(Date.now() - 5_000);
    await utimes(files[1] ?? '', past, past);
    become(who);
    const old: string[] = [];
    const retention = { keptMs: 1_000, nowMs: Date.now() };
    for await (const { file } of findOldFiles(path, retention, () => false)) old.push(file);
    expect(old).toEqual(isKept ? [] : [basename(files[1] ?? '')]);
  });
});
