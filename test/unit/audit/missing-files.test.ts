// What is missing, planted or damaged among the audit files of a folder.

import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startChain } from '../../../src/audit/chain.js';
import { createAuditFile } from '../../../src/audit/file.js';
import { expandAuditPath, findPredecessor, listFilesOf } from '../../../src/audit/folder.js';
import { readRunName, runNameOf } from '../../../src/audit/run-name.js';
import { newestAuditFile, verifyFolder } from '../../support/audit-chain.js';
import { ring } from './samples.js';
import { lifecycle, linkLine, makeSink } from './sink-rig.js';

const publicKeys = [ring.publicKeys()[0]?.publicKey ?? ''];
let folder = '';
let path = '';
let runs = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-missing-'));
  path = join(folder, 'audit.jsonl');
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** A run that writes as many files. */
async function run(files = 1): Promise<void> {
  runs += 1;
  const rotation = files === 1 ? undefined : { bytes: 1, ageMs: undefined };
  const { sink } = makeSink(createAuditFile(path, { instance: `run${runs}`, ...(rotation && { rotation }) }));
  await sink.start();
  const isDone = async (): Promise<boolean> => {
    const own = (await listFilesOf(path)).filter((file) => file.includes(`-run${runs}.`));
    return own.length >= files;
  };
  while (!(await isDone())) await sink.append(lifecycle('work'));
  await sink.close();
}

/** Puts a file there as if a run had begun it, which signs nothing. */
async function plant(count: number, startMs = Date.now() + 60_000): Promise<string> {
  const name = runNameOf(path, startMs, 'planted');
  const lines: string[] = [];
  let head = startChain('planted');
  for (let index = 0; index < count; index += 1) {
    const event = index === 0 ? lifecycle('started', { file: name, after_file: 'none' }) : lifecycle('lie');
    const next = linkLine(head, event);
    head = next.head;
    lines.push(next.line);
  }
  await writeFile(join(folder, name), `${lines.join('\n')}\n`);
  return name;
}

describe('[O-15] a missing file', () => {
  it.each([
    ['the first of a run', [1, 3], [1], ['missing']],
    ['the first two of a run', [1, 3], [1, 2], ['missing']],
    ['a run, and the first file of the next', [1, 1, 2], [1, 2], ['missing']],
    ['the oldest run', [1, 3], [0], []],
    ['the oldest run, and the first file of the next', [1, 3], [0, 1], []],
  ])('%s', async (_, counts, gone, expected) => {
    for (const count of counts) await run(count);
    const files = await listFilesOf(path);
    for (const index of gone) await rm(files[index] ?? '');
    const verdict = await verifyFolder(folder, { publicKeys });
    expect([verdict.faults.map(({ kind }) => kind), verdict.isWhole]).toEqual([expected, expected.length === 0]);
  });
});

describe('[O-19] a planted file', () => {
  it.each([
    ['within two intervals counts as a run that was cut off early', 20_000, []],
    ['beyond them is not signed by what follows it', 20_001, ['signature']],
  ])('%s', async (_, count, expected) => {
    await run();
    const name = await plant(count);
    await run();
    const verdict = await verifyFolder(folder, { publicKeys });
    expect(verdict.faults.map(({ kind, file }) => [kind, file])).toEqual(expected.map((kind) => [kind, name]));
    expect(verdict.unsigned.lines).toBe(expected.length === 0 ? 0 : count);
  });

  it.each([
    ['under another name than its first line says', 'name', false],
    ['of this user, under its own name', 'none', true],
  ])('%s', async (_, change, isFollowed) => {
    await run();
    const before = basename(await newestAuditFile(path));
    let name = await plant(3);
    if (change === 'name') {
      const other = runNameOf(path, Date.now() + 120_000, 'other');
      await rename(join(folder, name), join(folder, other));
      name = other;
    }
    const { after, skipped } = await findPredecessor(path);
    expect(after?.file).toBe(isFollowed ? name : before);
    expect(skipped.includes(name)).toBe(!isFollowed);
  });
});

it('[O-18] a link that is copied into a later line begins no interval there', async () => {
  for (const _ of [1, 2]) await run();
  const file = await newestAuditFile(path);
  const text = await readFile(file, 'latin1');
  const lines = text.trimEnd().split('\n');
  const { chain, gateway } = JSON.parse(lines.at(-1) ?? '');
  const { detail: link } = JSON.parse(lines[0] ?? '');
  const next = linkLine(
    { epoch: gateway.epoch, seq: chain.seq, hash: chain.hash },
    lifecycle('copied', { ...link, event: 'copied' }),
  );
  await writeFile(file, `${text}${next.line}\n`);
  const verdict = await verifyFolder(folder, { publicKeys });
  expect(verdict.faults.map(({ kind, line }) => [kind, line])).toEqual([['signature', lines.length + 1]]);
});

describe('[O-15] a folder', () => {
  it.each([
    ['audit.jsonl', true, 'no record\n', true],
    ['audit.jsonl', false, 'no record\n', true],
    ['audit.jsonl.1', true, 'no record\n', true],
    ['other.jsonl', true, 'no record\n', false],
  ])('%s beside runs: %s', async (name, hasRuns, text, isRead) => {
    if (hasRuns) await run();
    await writeFile(join(folder, name), text);
    const strays: string[] = [];
    const files = await expandAuditPath(folder, (file) => strays.push(basename(file)));
    expect([files.map((file) => basename(file)).includes(name), strays]).toEqual([isRead, isRead ? [] : [name]]);
    expect((await verifyFolder(folder)).faults.map(({ kind }) => kind)).toEqual(isRead ? ['torn'] : []);
  });

  it('has an old file at the configured path, which stands for the runs beside it too', async () => {
    await run();
    const [first = ''] = await listFilesOf(path);
    await copyFile(first, path);
    await rm(first);
    await run();
    const files = await expandAuditPath(path);
    expect(files).toEqual(await listFilesOf(path));
    expect(files).toHaveLength(2);
    expect(readRunName(basename(files[1] ?? ''))).toBeDefined();
    expect(await readFile(files[0] ?? '', 'latin1')).toContain('started');
  });
});
