import {
  appendFile,
  copyFile,
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAuditFile, createAuditStream } from '../../../src/audit/file.js';
import { verifyChain } from '../../support/audit-chain.js';
import { until } from './samples.js';
import { eventsOf, lifecycle, linesOf, makeSink, verified } from './sink-rig.js';

let folder = '';
let path = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-audit-'));
  path = join(folder, 'audit.jsonl');
});

afterEach(() => rm(folder, { recursive: true, force: true }));

describe('createAuditFile', () => {
  it('[O-30] has the line in the file when append resolves, readable by its owner alone', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await sink.append(lifecycle('seen'));
    expect(await readFile(path, 'latin1')).toContain('"event":"seen"');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await sink.close();
    expect((await verified(path)).isWhole).toBe(true);
  });

  it('[O-31] goes on with the chain after a restart', async () => {
    for (const name of ['one', 'two']) {
      const { sink } = makeSink(createAuditFile(path));
      await sink.start();
      await sink.append(lifecycle(name));
      await sink.close();
    }
    expect(await eventsOf(path)).toEqual(['started', 'one', 'stopped', 'started', 'two', 'stopped']);
    expect((await verified(path)).isWhole).toBe(true);
  });

  it('[O-32] opens a removed file again, and says so', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await rm(path);
    await sink.append(lifecycle('after'));
    expect(await eventsOf(path)).toEqual(['continued', 'after']);
    expect((await linesOf(path))[0]).toContain('"why":"vanished"');
    await sink.close();
  });

  it('[O-32] follows a rotation, and both files together are one chain', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await sink.append(lifecycle('before'));
    await rename(path, `${path}.1`);
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(`${path}.1`)).toEqual(['started', 'before']);
    expect(await eventsOf(path)).toEqual(['continued', 'after', 'stopped']);
    expect((await verified(`${path}.1`, path)).isWhole).toBe(true);
  });

  it('[O-37] nothing is written behind a cut, until the file was taken away', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await sink.append(lifecycle('hidden'));
    await sink.append(lifecycle('kept'));
    const [first = ''] = await linesOf(path);
    await truncate(path, first.length + 1);
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('does not end where');
    expect(await eventsOf(path)).toEqual(['started']);
    await rename(path, `${path}.1`);
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(path)).toEqual(['continued', 'resumed', 'after', 'stopped']);
    expect((await verified(`${path}.1`, path)).faults).toMatchObject([{ line: 2, kind: 'missing' }]);
  });

  it('[O-32] follows copytruncate, and both files together are one chain', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await sink.append(lifecycle('before'));
    await copyFile(path, `${path}.1`);
    await truncate(path, 0);
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(path)).toEqual(['continued', 'after', 'stopped']);
    expect((await verified(`${path}.1`, path)).isWhole).toBe(true);
  });

  it('[O-32] follows copytruncate between its look and its write', async () => {
    const file = createAuditFile(path);
    let isDue = false;
    const { sink } = makeSink({
      ...file,
      async commit(bytes) {
        if (isDue) {
          await copyFile(path, `${path}.1`);
          await truncate(path, 0);
        }
        isDue = false;
        return file.commit(bytes);
      },
    });
    await sink.start();
    isDue = true;
    await sink.append(lifecycle('between'));
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(path)).toEqual(['between', 'after', 'stopped']);
    expect((await verified(`${path}.1`, path)).isWhole).toBe(true);
  });

  it('[O-32] goes on in a copy of its file, and in no other file', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await copyFile(path, `${path}.old`);
    await sink.append(lifecycle('before'));
    await copyFile(path, `${path}.copy`);
    await rename(`${path}.copy`, path);
    await sink.append(lifecycle('after'));
    await rename(`${path}.old`, path);
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('does not end where');
    expect(await eventsOf(path)).toEqual(['started']);
    await sink.close();
  });

  it('[O-33] what a failed write left behind, and could not be taken back, is recorded', async () => {
    const file = createAuditFile(path);
    const any = await open(join(folder, 'any'), 'w');
    const prototype = Object.getPrototypeOf(any) as FileHandle;
    await any.close();
    const { sink } = makeSink(file);
    await sink.start();
    const cut = vi.spyOn(prototype, 'truncate').mockRejectedValue(new Error('EIO'));
    const { write } = prototype;
    const torn = vi.spyOn(prototype, 'write').mockImplementation(async function (
      this: FileHandle,
      bytes: Buffer,
      ...rest: unknown[]
    ) {
      await Reflect.apply(write, this, [bytes, rest[0], 40]);
      throw new Error('EIO');
    } as unknown as FileHandle['write']);
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('EIO');
    cut.mockRestore();
    torn.mockRestore();
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(path)).toEqual(['started', 'recovered', 'resumed', 'after', 'stopped']);
    expect((await verified(path)).faults).toEqual([]);
  });

  it('[O-32] looks again once a look is no longer good, however busy it is', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await sink.append(lifecycle('before'));
    await rm(path);
    await until(async () => {
      await sink.append(lifecycle('after'));
      const events = await eventsOf(path).catch((): readonly unknown[] => []);
      return events.includes('continued');
    });
    await sink.close();
  });

  it('[O-33] a full disk refuses, and the place recovers by itself when it can be written', async () => {
    const real = createAuditFile(path);
    const full = createAuditFile('/dev/full');
    let isFull = false;
    const { sink, states, results } = makeSink({
      prepare: (known) => (isFull ? full.prepare(known) : real.prepare(known)),
      commit: (bytes) => (isFull ? full.commit(bytes) : real.commit(bytes)),
      abandon: () => (isFull ? full.abandon() : real.abandon()),
      close: () => real.close(),
    });
    await sink.start();
    isFull = true;
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('ENOSPC');
    expect(sink.isWritable).toBe(false);
    sink.enqueue(lifecycle('outcome'), true);
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('ENOSPC');
    isFull = false;
    await until(() => sink.isWritable);
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(states).toContain('ENOSPC');
    expect(results.get('refused')).toBe(2);
    expect(await eventsOf(path)).toEqual(['started', 'resumed', 'outcome', 'after', 'stopped']);
    expect((await verified(path)).isWhole).toBe(true);
  });

  it('[O-33] does not start where nothing can be written', async () => {
    const { sink } = makeSink(createAuditFile('/dev/full'));
    await expect(sink.start()).rejects.toThrow('ENOSPC');
    await sink.close();
    const missing = makeSink(createAuditFile(join(folder, 'no', 'such', 'folder')));
    await expect(missing.sink.start()).rejects.toThrow('ENOENT');
    await missing.sink.close();
  });

  it('[O-33] a place that could not be opened at the start is opened when it can be, without traffic', async () => {
    const later = join(folder, 'later', 'audit.jsonl');
    const { sink } = makeSink(createAuditFile(later));
    await expect(sink.start()).rejects.toThrow('ENOENT');
    await mkdir(join(folder, 'later'));
    await until(() => sink.isWritable);
    await sink.close();
    expect(await eventsOf(later)).toEqual(['started', 'stopped']);
  });

  it('[O-33] recovers when the folder comes back', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await rename(folder, `${folder}-away`);
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('ENOENT');
    await rename(`${folder}-away`, folder);
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(path)).toEqual(['started', 'resumed', 'after', 'stopped']);
    expect((await verified(path)).isWhole).toBe(true);
  });

  it('[O-34] records what a crash tore off, wherever it cut', async () => {
    const { sink } = makeSink(createAuditFile(path));
    await sink.start();
    await sink.append(lifecycle('whole'));
    await sink.close();
    const text = await readFile(path, 'latin1');
    const last = text.lastIndexOf('\n', text.length - 2) + 1;
    for (const cut of [last, last + 1, last + 40, text.length - 2, text.length - 1]) {
      await writeFile(path, text.slice(0, cut), 'latin1');
      const again = makeSink(createAuditFile(path));
      await again.sink.start();
      await again.sink.close();
      const verdict = await verified(path);
      expect(verdict.faults).toEqual([]);
      const isTorn = cut > last && cut < text.length - 1;
      expect((await eventsOf(path)).includes('recovered')).toBe(isTorn);
    }
  });

  it('[O-34] never goes on in a file that is not an audit file', async () => {
    await writeFile(path, 'precious: contents\n');
    const { sink } = makeSink(createAuditFile(path));
    await expect(sink.start()).rejects.toThrow('no audit line');
    await sink.close();
    expect(await readFile(path, 'utf8')).toBe('precious: contents\n');
  });

  it.each([
    ['a line', '{"schema":"sallyport.audit/1","forged":true}\n'],
    ['half a line', '{"schema":"sallyport'],
    ['an empty line', '\n'],
  ])('[O-37] nothing is written behind %s of another process, nor is it cut off', async (_, more) => {
    const { sink, states } = makeSink(createAuditFile(path));
    await sink.start();
    const before = await readFile(path, 'utf8');
    await appendFile(path, more);
    for (const name of ['one', 'two'])
      await expect(sink.append(lifecycle(name))).rejects.toThrow('another process wrote into it');
    expect(sink.isWritable).toBe(false);
    expect(states.at(-1)).toContain('another process');
    expect(await readFile(path, 'utf8')).toBe(before + more);
    await sink.close();
    expect(await readFile(path, 'utf8')).toBe(before + more);
  });
});

describe('createAuditStream', () => {
  it('[O-36] hands lines over in order, as a chain of its own', async () => {
    let text = '';
    const { sink } = makeSink(
      createAuditStream((part) => {
        text += part;
        return Promise.resolve();
      }),
    );
    await sink.start();
    await sink.append(lifecycle('a'));
    await sink.close();
    expect(verifyChain(text.trimEnd().split('\n'))).toMatchObject({ isWhole: true, lines: 4 });
  });
});
