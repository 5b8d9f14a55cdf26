// Folders of audit files as they come about: several gateways, files that were taken away, renamed or old, and many.

import { mkdtemp, readdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startChain } from '../../../src/audit/chain.js';
import { buildEvent } from '../../../src/audit/event.js';
import { createAuditFile } from '../../../src/audit/file.js';
import {
  createWriterWatch,
  expandAuditPath,
  findOldFiles,
  findPredecessor,
  isAuditFileOf,
  listFilesOf,
} from '../../../src/audit/folder.js';
import { readRunName, runNameOf } from '../../../src/audit/run-name.js';
import type { AuditSink } from '../../../src/audit/sink.js';
import { newestAuditFile, verifyFolder } from '../../support/audit-chain.js';
import { context, ring } from './samples.js';
import { lifecycle, linkLine, makeSink } from './sink-rig.js';

const publicKeys = [ring.publicKeys()[0]?.publicKey ?? ''];
let folder = '';
let path = '';
let runs = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-folder-'));
  path = join(folder, 'audit.jsonl');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function start(): Promise<AuditSink> {
  runs += 1;
  const { sink } = makeSink(createAuditFile(path, { instance: `run${runs}` }));
  await sink.start();
  return sink;
}

/** A run from start to end; the file that it wrote. */
async function run(): Promise<string> {
  const sink = await start();
  const file = await newestAuditFile(path);
  await sink.append(lifecycle('work'));
  await sink.close();
  return file;
}

/** The names of files that are kept for a second. */
async function findOld(isOwn: (name: string) => boolean): Promise<readonly string[]> {
  const old: string[] = [];
  const retention = { keptMs: 1_000, nowMs: Date.now() };
  for await (const { file } of findOldFiles(path, retention, isOwn)) old.push(file);
  return old;
}

const kinds = async (): Promise<readonly string[]> => (await verifyFolder(folder)).faults.map(({ kind }) => kind);

describe('audit verify of a folder', () => {
  it('[O-38] reports two successors of one file, which is no fault', async () => {
    const first = basename(await run());
    const [one, two] = [await start(), await start()];
    const files = (await listFilesOf(path)).slice(1).map((file) => basename(file));
    await Promise.all([one.append(lifecycle('a')), two.append(lifecycle('b'))]);
    await Promise.all([one.close(), two.close()]);
    const verdict = await verifyFolder(folder, { publicKeys });
    expect([verdict.faults, verdict.unchecked, verdict.unsigned.lines]).toEqual([[], [], 0]);
    // The second found the first line of the first, which wrote on.
    expect(verdict.twoWriters).toEqual([
      `two writers: ${files[0]} was written on after ${files[1]} had begun, from 0 on`,
    ]);
    // As if both had looked at the same moment.
    await rm(join(folder, files[0] ?? ''));
    const late = await run();
    expect((await verifyFolder(folder)).faults).toMatchObject([{ kind: 'missing', file: files[1] }]);
    expect([first, basename(late)]).toHaveLength(2);
  });

  it('[O-38] reports two that began at the same moment', async () => {
    const first = await run();
    const second = await run();
    const hidden = join(folder, 'hidden');
    await rename(second, hidden);
    const third = await run();
    await rename(hidden, second);
    const verdict = await verifyFolder(folder, { publicKeys });
    expect(verdict.faults).toEqual([]);
    const [before, one, two] = [first, second, third].map((file) => basename(file));
    expect(verdict.twoWriters).toEqual([`two writers: ${one} and ${two} both follow ${before}`]);
  });

  it.each([
    ['a file that is cut', 'missing', (text: string) => text.split('\n').slice(0, 2).join('\n').concat('\n')],
    ['a file without its first line', 'second-chain', (text: string) => text.slice(text.indexOf('\n') + 1)],
    ['a changed line', 'edited', (text: string) => text.replace('"event":"work"', '"event":"play"')],
    ['an emptied file', 'missing', () => ''],
  ])('[O-15] finds %s in the middle', async (_, kind, change) => {
    const files = [await run(), await run(), await run()];
    const middle = files[1] ?? '';
    await writeFile(middle, change(await readFile(middle, 'latin1')), 'latin1');
    expect(await kinds()).toContain(kind);
  });

  it('[O-15] finds a file that was taken out, unless it is the oldest, which only a key or the file can show', async () => {
    const files = [await run(), await run(), await run()];
    await rm(files[0] ?? '');
    const begun = await verifyFolder(folder);
    expect([begun.faults, begun.unchecked]).toEqual([[], [expect.stringContaining('give --key or the older file')]]);
    expect((await verifyFolder(folder, { publicKeys })).isWhole).toBe(true);
    await rm(files[2] ?? '');
    const [third, fourth] = [await run(), await run()];
    expect(await kinds()).toEqual([]);
    await rm(third);
    expect(await verifyFolder(folder, { publicKeys })).toMatchObject({
      faults: [{ kind: 'missing', file: basename(fourth) }],
    });
  });

  it('[O-15] finds the files of runs by what they say, whatever their names are now', async () => {
    const files = [await run(), await run(), await run()];
    await rename(files[2] ?? '', join(folder, 'a.jsonl'));
    await rename(files[0] ?? '', join(folder, 'z.jsonl'));
    expect(await verifyFolder(folder, { publicKeys })).toMatchObject({ isWhole: true, twoWriters: [] });
  });

  it('[O-19] says of each file what is unsigned', async () => {
    const sink = await start();
    await sink.append(lifecycle('unsigned'));
    const next = await start();
    await next.append(lifecycle('unsigned too'));
    const { unsigned, notes } = await verifyFolder(folder);
    // The first is signed by the next one up to the line that it found last.
    expect(unsigned).toEqual({ lines: 2, fromSeq: 0 });
    expect(notes.join()).not.toContain('unsigned at the end');
    await sink.append(lifecycle('more'));
    expect((await verifyFolder(folder)).notes.join('\n')).toMatch(/run\d+\.jsonl: \d+ unsigned at the end/);
    await Promise.all([sink.close(), next.close()]);
  });
});

describe('the files of a path', () => {
  it('are those of its name, in order, and no links', async () => {
    const at = Date.UTC(2030, 0, 1);
    const [one, two] = [runNameOf(path, at, 'b0000000-1'), runNameOf(path, at + 1, 'a')];
    const other = runNameOf(join(folder, 'audit-2.jsonl'), at, 'c');
    for (const name of [two, one, other, 'audit.jsonl', 'audit-x.jsonl']) await writeFile(join(folder, name), '');
    await symlink(join(folder, one), join(folder, runNameOf(path, at + 2, 'd')));
    expect((await listFilesOf(path)).map((file) => basename(file))).toEqual(['audit.jsonl', one, two]);
    expect(readRunName(other)).toMatchObject({ configured: 'audit-2.jsonl', startMs: at, instance: 'c' });
    expect([one, other, 'audit.jsonl', 'x'].map((name) => isAuditFileOf(path, join(folder, name)))).toEqual([
      ...[true, false, true, false],
    ]);
  });

  it('stand for a folder, a file, and a path without a file', async () => {
    const file = await run();
    for (const named of [folder, file, path]) expect(await expandAuditPath(named)).toEqual([file]);
    expect(await expandAuditPath(join(folder, 'other.jsonl'))).toEqual([join(folder, 'other.jsonl')]);
    await rm(file);
    await expect(expandAuditPath(folder)).rejects.toThrow('no audit file');
  });

  it('[O-31] are a thousand, of which a start reads the end of the last alone', async () => {
    const last = await run();
    const { startMs = 0 } = readRunName(basename(last)) ?? {};
    for (let index = 1; index <= 1_000; index += 1)
      await writeFile(join(folder, runNameOf(path, startMs - index, 'old')), 'no line\n');
    const { after, skipped } = await findPredecessor(path);
    expect([after?.file, skipped]).toEqual([basename(last), []]);
  });

  it('[O-38] show who else writes them, until that run has ended or is silent', async () => {
    const clock = { ms: 0 };
    const own = await start();
    const look = createWriterWatch(path, `run${runs}`, 1_000, () => clock.ms);
    expect(await look()).toEqual([]);
    const other = await start();
    const file = basename(await newestAuditFile(path));
    expect(await look()).toEqual([file]);
    clock.ms = 1_500;
    expect(await look()).toEqual([]);
    await other.append(lifecycle('again'));
    expect(await look()).toEqual([file]);
    await other.close();
    expect(await look()).toEqual([]);
    await own.close();
  });

  it('[O-39] are old by their last line and their last change, the oldest first, and never before one that is not', async () => {
    const files = [await run(), await run(), await run()];
    const names = files.map((file) => basename(file));
    const found = (own = '') => findOld((name) => name === own);
    expect(await found()).toEqual([]);
    const past = new Date(Date.now() - 5_000);
    for (const file of [files[0], files[2]]) await utimes(file ?? '', past, past);
    expect(await found()).toEqual([names[0]]);
    await utimes(files[1] ?? '', past, past);
    expect(await found()).toEqual(names);
    expect(await found(names[1])).toEqual([names[0]]);
    expect(await readdir(folder)).toHaveLength(3);
    // A file without a line keeps no other, however new it is.
    await writeFile(join(folder, runNameOf(path, 1, 'empty')), '');
    expect(await found()).toEqual(names);
  });

  const [PAST, NOW, FUTURE] = [-5_000, 0, 1_000_000];
  it.each([
    ['past', PAST, 'past', PAST, true],
    ['future', FUTURE, 'past', PAST, true],
    ['past', PAST, 'future', FUTURE, true],
    ['future', FUTURE, 'future', FUTURE, false],
    ['future', FUTURE, 'present', NOW, false],
    ['present', NOW, 'future', FUTURE, false],
    ['past', PAST, 'present', NOW, false],
    ['present', NOW, 'past', PAST, false],
  ])(
    '[O-39] a last line of the %s (%d) and a last change of the %s (%d): removed with those after it: %s',
    async (_line, lineMs, _change, changeMs, isRemoved) => {
      const nowMs = Date.now();
      const name = runNameOf(path, nowMs - 60_000, 'planted');
      const event = buildEvent({ type: 'lifecycle', event: 'lie', detail: {} }, { ...context, nowMs: nowMs + lineMs });
      await writeFile(join(folder, name), `${linkLine(startChain('planted'), event).line}\n`);
      const files = [join(folder, name), await run()];
      const past = new Date(nowMs + PAST);
      await utimes(files[1] ?? '', past, past);
      const changed = new Date(nowMs + changeMs);
      await utimes(files[0] ?? '', changed, changed);
      expect(await findOld(() => false)).toEqual(isRemoved ? files.map((file) => basename(file)) : []);
    },
  );
});
