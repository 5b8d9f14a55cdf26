// Processes that write beside one audit path, as programs of their own: one after the other, both at once, and killed.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAuditFile } from '../../../src/audit/file.js';
import { listFilesOf } from '../../../src/audit/folder.js';
import { newestAuditFile, readAudit, verifyFolder } from '../../support/audit-chain.js';
import { until } from './samples.js';
import { makeSink } from './sink-rig.js';

let built = '';
let folder = '';
let path = '';
let running: ChildProcess[] = [];

beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), 'sallyport-built-'));
  const root = resolve(import.meta.dirname, '../../..');
  await promisify(execFile)(
    process.execPath,
    [
      join(root, 'node_modules/typescript/bin/tsc'),
      ...['--ignoreConfig', '--module', 'nodenext', '--target', 'es2023', '--noCheck'],
      ...['--types', 'node', '--typeRoots', join(root, 'node_modules/@types')],
      ...['--rootDir', root, '--outDir', built],
      join(root, 'test/unit/audit/endless-writer.ts'),
    ],
    { cwd: root },
  );
  await writeFile(join(built, 'package.json'), '{"type":"module"}');
});
afterAll(() => rm(built, { recursive: true, force: true }));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-writers-'));
  path = join(folder, 'audit.jsonl');
  running = [];
});
afterEach(async () => {
  for (const child of running) child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

type Writer = {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  /** Whole lines so far. */
  printed(): readonly string[];
};

function startWriter(rotateBytes?: number): Writer {
  const script = join(built, 'test/unit/audit/endless-writer.js');
  const more = rotateBytes === undefined ? [] : [String(rotateBytes)];
  const child = spawn(process.execPath, [script, path, ...more], { stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(child);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const ended = new Promise((done) => child.once('close', done));
  return { child, ended, printed: () => text.split('\n').slice(0, -1) };
}

function kill({ child, ended }: Writer): Promise<unknown> {
  child.kill('SIGKILL');
  return ended;
}

async function expectComplete(writers: readonly Writer[]): Promise<void> {
  const text = await readAudit(path);
  for (const name of writers.flatMap((writer) => writer.printed())) expect(text).toContain(`"event":"${name}"`);
}

/** The faults of the files, but for what a kill tore off at the end of one. */
async function damage(): Promise<readonly unknown[]> {
  return (await verifyFolder(folder)).faults.filter(({ kind }) => kind !== 'torn');
}

describe('processes that write audit files', () => {
  it('[O-35] kill -9 leaves a whole chain with every line that was said to be durable', async () => {
    const writers: Writer[] = [];
    for (let round = 0; round < 3; round += 1) {
      const writer = startWriter();
      writers.push(writer);
      await until(() => writer.printed().length > 200 * (round + 1));
      await kill(writer);
      expect(await damage()).toEqual([]);
    }
    await expectComplete(writers);
    const { sink } = makeSink(createAuditFile(path, { instance: 'last' }));
    await sink.start();
    await sink.close();
    const verdict = await verifyFolder(folder);
    expect([verdict.faults, verdict.twoWriters]).toEqual([[], []]);
    expect(verdict.lines).toBeGreaterThan(600);
  });

  it('[O-38] two at once never share a file, lose nothing, and are reported', async () => {
    const one = startWriter();
    await until(() => one.printed().length > 10);
    const two = startWriter();
    await until(() => two.printed().length > 10);
    const count = one.printed().length;
    await until(() => one.printed().length > count + 10);
    await Promise.all([kill(one), kill(two)]);
    expect(await damage()).toEqual([]);
    const files = await listFilesOf(path);
    expect(files).toHaveLength(2);
    for (const [index, { child }] of [one, two].entries()) {
      const others = [one, two].filter((writer) => writer.child !== child);
      const text = await readFile(files[index] ?? '', 'latin1');
      for (const other of others) expect(text).not.toContain(`"event":"${other.child.pid}-`);
    }
    await expectComplete([one, two]);
    expect((await verifyFolder(folder)).twoWriters).toEqual([
      expect.stringMatching(/^two writers: audit-.* was written on after audit-.* had begun/),
    ]);
  });

  it('[O-32] files that are moved away and files that are full lose nothing under load', async () => {
    const writer = startWriter(20_000);
    const goOn = async (): Promise<void> => {
      const count = writer.printed().length;
      await until(() => writer.printed().length > count + 200);
    };
    await goOn();
    await rename(await newestAuditFile(path), join(folder, 'moved.jsonl'));
    await goOn();
    await kill(writer);
    expect((await listFilesOf(path)).length).toBeGreaterThan(2);
    expect(await damage()).toEqual([]);
    const text = (await readAudit(path)) + (await readFile(join(folder, 'moved.jsonl'), 'latin1'));
    for (const name of writer.printed()) expect(text).toContain(`"event":"${name}"`);
  });
});
