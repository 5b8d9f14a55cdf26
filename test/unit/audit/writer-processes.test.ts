// Processes that write one audit file, as programs of their own: one after the other, both at once, killed
// and held up.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAuditFile } from '../../../src/audit/file.js';
import { verifyChain } from '../../support/audit-chain.js';
import { until } from './samples.js';
import { linesOf, makeSink, verified } from './sink-rig.js';

/** The lease of a living process stays, however slow the machine is: nobody waits until it is stale. */
const IMPATIENT = { renewEveryMs: 200, staleMs: 60_000, waitMs: 300, pollMs: 20 };
/** Waits until a lease that is not renewed is stale. */
const PATIENT = { renewEveryMs: 200, staleMs: 1_500, waitMs: 60_000, pollMs: 20 };

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

function startWriter(times?: object, ...asked: 'asked'[]): Writer {
  const script = join(built, 'test/unit/audit/endless-writer.js');
  const more = times === undefined ? [] : [JSON.stringify(times)];
  const child = spawn(process.execPath, [script, path, ...more, ...asked], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
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

describe('processes that write an audit file', () => {
  it('[O-35] kill -9 leaves a whole chain with every line that was said to be durable', async () => {
    for (let round = 0; round < 3; round += 1) {
      // The lease of the one before is no hindrance: its process has ended.
      const writer = startWriter();
      await until(() => writer.printed().length > 200 * (round + 1));
      await kill(writer);
      const lines = await linesOf(path);
      const torn = verifyChain(lines).faults;
      // At most the last line is unfinished, and nothing else is wrong.
      expect(torn.filter(({ line }) => line !== lines.length)).toEqual([]);
      const text = lines.join('\n');
      for (const name of writer.printed()) expect(text).toContain(`"event":"${name}"`);
    }
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await sink.close();
    const verdict = await verified(path);
    expect(verdict.faults).toEqual([]);
    expect(verdict.lines).toBeGreaterThan(600);
  });

  it('[O-38] the second of two is refused, and writes nothing', async () => {
    const one = startWriter(IMPATIENT);
    await until(() => one.printed().length > 10);
    const two = startWriter(IMPATIENT);
    await two.ended;
    expect(two.child.exitCode).toBe(1);
    expect(two.printed().join()).toMatch(
      new RegExp(`^refused: another gateway writes .*instance writer-${one.child.pid}, `),
    );
    const count = one.printed().length;
    await until(() => one.printed().length > count + 10);
    await kill(one);
    expect(await readFile(path, 'latin1')).not.toContain(`"event":"${two.child.pid}-`);
  });

  it('[O-38] one that was held up until another took over writes nothing more', async () => {
    // It is stopped between two lines: a line that is on its way to the disk can be called back by nobody.
    const one = startWriter(PATIENT, 'asked');
    one.child.stdin?.write('first\n');
    await until(() => one.printed().length === 1);
    one.child.kill('SIGSTOP');
    const two = startWriter(PATIENT);
    await until(() => two.printed().length > 10);
    one.child.kill('SIGCONT');
    one.child.stdin?.write('late\n');
    await one.ended;
    expect(one.child.exitCode).toBe(1);
    expect(one.printed().at(-1)).toMatch(/^refused: .*lost the lease/);
    const count = two.printed().length;
    await until(() => two.printed().length > count + 10);
    await kill(two);
    const lines = await linesOf(path);
    const { faults: errors } = verifyChain(lines);
    expect(errors.filter(({ line }) => line !== lines.length)).toEqual([]);
  });

  it('[O-32] rotation by mv and by copytruncate needs no signal, also under load', async () => {
    const writer = startWriter(IMPATIENT);
    const goOn = async (): Promise<void> => {
      const count = writer.printed().length;
      await until(() => writer.printed().length > count + 50);
    };
    await goOn();
    await rename(path, `${path}.1`);
    await goOn();
    await copyFile(path, `${path}.2`);
    await truncate(path, 0);
    await goOn();
    await kill(writer);
    expect(writer.printed().join()).not.toContain('refused');
    const moved = verifyChain(await linesOf(`${path}.1`, `${path}.2`)).faults;
    // A copy ends where it was made, perhaps in the middle of a line.
    expect(moved.filter(({ kind }) => kind !== 'torn')).toEqual([]);
  });
});
