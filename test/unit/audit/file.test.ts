import { execFileSync } from 'node:child_process';
import {
  appendFile,
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AuditFileOptions, createAuditFile, createAuditStream } from '../../../src/audit/file.js';
import { listFilesOf } from '../../../src/audit/folder.js';
import { runNameOf } from '../../../src/audit/run-name.js';
import type { ChainWriter } from '../../../src/audit/sink.js';
import { newestAuditFile, readAudit, verifyChain, verifyFolder } from '../../support/audit-chain.js';
import { fillDisk } from '../../support/full-disk.js';
import { until } from './samples.js';
import { eventsOf, lifecycle, linesOf, makeSink, verified } from './sink-rig.js';

let folder = '';
let path = '';
let runs = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-audit-'));
  path = join(folder, 'audit.jsonl');
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** The writer of a run of its own. */
function makeFile(at = path, options: Partial<AuditFileOptions> = {}): ChainWriter {
  runs += 1;
  return createAuditFile(at, { instance: `run${runs}`, ...options });
}

/** A run that writes an event. */
async function run(event: string, options: Partial<AuditFileOptions> = {}): Promise<string> {
  const { sink } = makeSink(makeFile(path, options));
  await sink.start();
  await sink.append(lifecycle(event));
  await sink.close();
  return newestAuditFile(path);
}

async function firstDetail(file: string): Promise<Record<string, unknown>> {
  const [line = ''] = (await readFile(file, 'latin1')).split('\n');
  return JSON.parse(line).detail;
}

const sound = { faults: [], unchecked: [], twoWriters: [] };

/** Lets writes fail after some bytes, and what they left not be taken back. */
async function tearWrites(): Promise<() => void> {
  const any = await open(join(folder, 'any'), 'w');
  const prototype = Object.getPrototypeOf(any) as FileHandle;
  await any.close();
  await rm(join(folder, 'any'));
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
  return () => {
    cut.mockRestore();
    torn.mockRestore();
  };
}

describe('createAuditFile', () => {
  it('[O-30] has the line in the file when append resolves, readable by its owner alone', async () => {
    const { sink } = makeSink(makeFile());
    await sink.start();
    await sink.append(lifecycle('seen'));
    expect(await readAudit(path)).toContain('"event":"seen"');
    expect((await stat(await newestAuditFile(path))).mode & 0o777).toBe(0o600);
    await sink.close();
    expect((await verified(path)).isWhole).toBe(true);
  });

  it('[O-31] writes a file for each run, whose first line names the last line of the one before', async () => {
    const first = await run('one');
    const last = JSON.parse((await readFile(first, 'latin1')).trimEnd().split('\n').at(-1) ?? '');
    const second = await run('two');
    expect(await readdir(folder)).toEqual([first, second].map((file) => basename(file)));
    expect(basename(second)).toMatch(/^audit-\d{8}T\d{9}Z-run\d+\.jsonl$/);
    expect(await firstDetail(first)).toMatchObject({ event: 'started', file: basename(first), after_file: 'none' });
    expect(await firstDetail(second)).toMatchObject({
      ...{ event: 'started', file: basename(second), after_file: basename(first) },
      ...{ after_epoch: last.gateway.epoch, after_seq: last.chain.seq, after_hash: last.chain.hash },
      ...{ key_id: expect.any(String), signature: expect.any(String) },
    });
    expect(await eventsOf(path)).toEqual(['started', 'one', 'stopped', 'started', 'two', 'stopped']);
    expect(await verifyFolder(folder)).toMatchObject({ ...sound, isWhole: true });
  });

  it('[O-31] follows the file of an earlier version, which verifies as before', async () => {
    const earlier = await run('before');
    await rename(earlier, path);
    const file = await run('after');
    expect(await listFilesOf(path)).toEqual([path, file]);
    expect(await firstDetail(file)).toMatchObject({ after_file: 'audit.jsonl' });
    expect(await verifyFolder(folder)).toMatchObject({ ...sound, isWhole: true });
  });

  it.each([
    ['the same millisecond', 0],
    ['a clock that was set back', -3_600_000],
  ])('[O-31] keeps names in the order of starts: %s', async (_, shift) => {
    const at = Date.now();
    const files = [await run('one', { now: () => at }), await run('two', { now: () => at + shift })];
    files.push(await run('three', { now: () => at + 2 * shift }));
    expect((await readdir(folder)).sort()).toEqual(files.map((file) => basename(file)));
    expect(await verifyFolder(folder)).toMatchObject(sound);
  });

  it('[O-38] never opens a file that is there, nor follows a link', async () => {
    const at = Date.now();
    const now = (): number => at;
    const taken = join(folder, runNameOf(path, at, 'own'));
    await symlink(join(folder, 'elsewhere'), taken);
    await writeFile(join(folder, runNameOf(path, at + 1, 'own')), 'precious');
    const file = await run('written', { instance: 'own', now });
    expect(basename(file)).toBe(runNameOf(path, at + 2, 'own'));
    await expect(stat(join(folder, 'elsewhere'))).rejects.toThrow('ENOENT');
    expect(await readFile(join(folder, runNameOf(path, at + 1, 'own')), 'utf8')).toBe('precious');
  });

  it('[O-38] passes over an empty file whose name lies far ahead, names it, and stays linked', async () => {
    const planted = 'audit-99991231T235959999Z-x.jsonl';
    await run('one');
    await writeFile(join(folder, planted), '');
    const file = makeFile();
    const { sink } = makeSink(file);
    await sink.start();
    expect(await file.folder?.findWarnings()).toContainEqual(expect.stringContaining(planted));
    await sink.close();
    await run('three');
    await rm(join(folder, planted));
    expect(await readdir(folder)).toHaveLength(3);
    expect((await verifyFolder(folder)).faults).toEqual([]);
  });

  it('[O-38] begins no file whose name it could not read', async () => {
    const far = Date.parse('9999-12-31T23:59:59.999Z') + 1;
    await expect(makeFile(path, { now: () => far }).prepare(undefined)).rejects.toThrow('no name is left');
    expect(await readdir(folder)).toEqual([]);
  });

  it('[O-33] writes to no device that was put at its path', async () => {
    await symlink('/dev/null', path);
    await expect(makeFile().prepare(undefined)).rejects.toThrow('ELOOP');
    await rm(path);
    await run('one');
    execFileSync('mkfifo', [path]);
    await expect(makeFile().prepare(undefined)).rejects.toThrow('beside files of earlier runs');
  });

  it('[O-33] waits for no reader of a pipe, and promises nothing durable of a device', async () => {
    execFileSync('mkfifo', [path]);
    await expect(makeFile().prepare(undefined)).rejects.toThrow('ENXIO');
    await expect(makeFile('/dev/null', { isSynced: true }).prepare(undefined)).rejects.toThrow('needs a file');
  });

  it.each([
    ['moved away', (file: string) => rename(file, join(folder, 'moved.jsonl'))],
    ['removed', (file: string) => rm(file)],
  ])('[O-37] warns of a file that was %s while it was written', async (_, change) => {
    const file = makeFile();
    const { sink } = makeSink(file);
    await sink.start();
    const first = await newestAuditFile(path);
    await change(first);
    await sink.append(lifecycle('after'));
    expect(await file.folder?.findWarnings()).toEqual([expect.stringContaining(basename(first))]);
    await sink.close();
  });

  it('[O-33] does not lengthen a file that was cut during a write that failed', async () => {
    const file = makeFile();
    await file.prepare(undefined);
    await file.commit(Buffer.from('a line\n'));
    const first = await newestAuditFile(path);
    const any = await open(first);
    const failing = vi.spyOn(Object.getPrototypeOf(any) as FileHandle, 'write').mockImplementation(async () => {
      await truncate(first, 2);
      throw new Error('EIO');
    });
    await any.close();
    await expect(file.commit(Buffer.from('another\n'))).rejects.toThrow('EIO');
    failing.mockRestore();
    await file.abandon();
    expect(await readFile(first, 'utf8')).toBe('a ');
    await file.close();
  });

  it('[O-39] removes nothing once its own file, which says so, has changed', async () => {
    const old = await run('old');
    const file = makeFile();
    const { sink } = makeSink(file);
    await sink.start();
    for await (const _ of file.folder?.findOld(-1e6) ?? []) break;
    await rm(await newestAuditFile(path));
    await file.folder?.remove(basename(old));
    expect((await stat(old)).isFile()).toBe(true);
    await sink.close();
  });

  it.each([
    ['vanished', (file: string) => rm(file)],
    ['vanished', (file: string) => rename(file, join(folder, 'moved.jsonl'))],
    ['resized', (file: string) => truncate(file, 0)],
    ['resized', (file: string) => appendFile(file, '{"schema":"sallyport.audit/1","forged":true}\n')],
    ['resized', (file: string) => appendFile(file, '\n')],
    [
      'replaced',
      async (file: string) => {
        await writeFile(`${file}.new`, await readFile(file));
        await rename(`${file}.new`, file);
      },
    ],
  ])('[O-37] goes on in the next file when its own has %s, and leaves that as it is', async (why, change) => {
    const { sink, states } = makeSink(makeFile());
    await sink.start();
    await sink.append(lifecycle('before'));
    const first = await newestAuditFile(path);
    const [, last = ''] = await linesOf(path);
    await change(first);
    const left = await readFile(first, 'utf8').catch(() => undefined);
    await sink.append(lifecycle('after'));
    const next = await newestAuditFile(path);
    expect(await firstDetail(next)).toMatchObject({
      ...{ event: 'continued', why, after_file: basename(first), after_hash: JSON.parse(last).chain.hash },
    });
    expect(await eventsOf(next)).toEqual(['continued', 'after']);
    expect(await readFile(first, 'utf8').catch(() => undefined)).toBe(left);
    await sink.close();
    expect(states).toEqual([undefined]);
  });

  it('[O-37] goes on in its own file once it can be looked at again', async () => {
    const { sink } = makeSink(makeFile());
    await sink.start();
    const first = await newestAuditFile(path);
    await rename(folder, `${folder}-away`);
    await writeFile(folder, '');
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('ENOTDIR');
    await rm(folder);
    await rename(`${folder}-away`, folder);
    await sink.append(lifecycle('after'));
    expect(await newestAuditFile(path)).toBe(first);
    expect(await eventsOf(first)).toEqual(['started', 'resumed', 'after']);
    await sink.close();
  });

  it('[O-37] warns of a file that somebody else has changed; what is wrong with it shows', async () => {
    const file = makeFile();
    const { sink } = makeSink(file);
    await sink.start();
    await sink.append(lifecycle('cut'));
    const first = await newestAuditFile(path);
    const [line = ''] = await linesOf(path);
    await truncate(first, line.length + 1);
    await sink.append(lifecycle('after'));
    expect(await file.folder?.findWarnings()).toEqual([expect.stringContaining(basename(first))]);
    await sink.close();
    expect((await verifyFolder(folder)).faults).toMatchObject([{ kind: 'missing', line: 1 }]);
  });

  it('[O-32] follows a file that was moved away, and both together are one chain', async () => {
    const { sink } = makeSink(makeFile());
    await sink.start();
    await sink.append(lifecycle('before'));
    await rename(await newestAuditFile(path), join(folder, 'archived.jsonl'));
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await verifyFolder(folder)).toMatchObject({ ...sound, isWhole: true, lines: 6 });
  });

  it.each([
    ['size', { bytes: 1, ageMs: undefined }],
    ['age', { bytes: undefined, ageMs: 0 }],
  ])('[O-32] begins the next file by %s, whoever waits', async (why, rotation) => {
    const { sink } = makeSink(makeFile(path, { rotation }));
    await sink.start();
    for (let round = 0; round < 3; round += 1)
      await Promise.all([sink.append(lifecycle('a')), sink.append(lifecycle('b'))]);
    await sink.close();
    const files = await listFilesOf(path);
    expect(files.length).toBeGreaterThanOrEqual(4);
    for (const file of files.slice(1)) expect(await firstDetail(file)).toMatchObject({ event: 'continued', why });
    expect((await eventsOf(path)).filter((event) => /^[ab]$/.test(event))).toEqual([...'ababab']);
    expect(await verifyFolder(folder)).toMatchObject({ ...sound, isWhole: true });
    // Each file says where the one before it ends, so that none can be taken out.
    await rm(files[1] ?? '');
    expect((await verifyFolder(folder)).faults).toMatchObject([{ kind: 'missing' }]);
  });

  it('[O-32] goes on in a file that is too large while no other can be begun', async () => {
    const { sink } = makeSink(makeFile(path, { rotation: { bytes: 1, ageMs: undefined } }));
    await sink.start();
    const kept = await newestAuditFile(path);
    // The file stays where it is; nothing can be created or listed beside it by this name.
    await rename(folder, `${folder}-away`);
    await mkdir(folder);
    await expect(sink.append(lifecycle('elsewhere'))).resolves.toBeUndefined();
    await rm(folder, { recursive: true });
    await rename(`${folder}-away`, folder);
    await sink.append(lifecycle('back'));
    await sink.close();
    expect(await readFile(kept, 'latin1')).toContain('"event":"started"');
  });

  it('[O-33] what a failed write left behind, and could not be taken back, is named in the next file', async () => {
    const { sink } = makeSink(makeFile());
    await sink.start();
    const mend = await tearWrites();
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('EIO');
    mend();
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(path)).toEqual(['started', 'continued', 'resumed', 'after', 'stopped']);
    expect(await firstDetail(await newestAuditFile(path))).toMatchObject({ why: 'torn', torn_bytes: 40 });
    const verdict = await verifyFolder(folder);
    expect(verdict).toMatchObject(sound);
    expect(verdict.notes.join()).toContain('40 bytes that are no record');
  });

  it('[O-33] a full disk refuses, leaves one file, and the place recovers by itself', async () => {
    const { sink, states, results } = makeSink(makeFile());
    await sink.start();
    const makeRoom = await fillDisk();
    try {
      await expect(sink.append(lifecycle('refused'))).rejects.toThrow('ENOSPC');
      expect(sink.isWritable).toBe(false);
      sink.enqueue(lifecycle('outcome'), true);
      await expect(sink.append(lifecycle('refused'))).rejects.toThrow('ENOSPC');
    } finally {
      makeRoom();
    }
    await until(() => sink.isWritable);
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(states).toContain('ENOSPC');
    expect(results.get('refused')).toBe(2);
    expect(await eventsOf(path)).toEqual(['started', 'resumed', 'outcome', 'after', 'stopped']);
    expect(await readdir(folder)).toHaveLength(1);
    expect((await verified(path)).isWhole).toBe(true);
  });

  it('[O-33] a start on a full disk leaves no file behind', async () => {
    const makeRoom = await fillDisk();
    try {
      const { sink } = makeSink(makeFile());
      await expect(sink.start()).rejects.toThrow('ENOSPC');
      await sink.close();
    } finally {
      makeRoom();
    }
    expect(await readdir(folder)).toEqual([]);
  });

  it('[O-33] does not start where nothing can be written', async () => {
    const { sink } = makeSink(makeFile('/dev/full'));
    await expect(sink.start()).rejects.toThrow('ENOSPC');
    await sink.close();
    const missing = makeSink(makeFile(join(folder, 'no', 'such', 'folder')));
    await expect(missing.sink.start()).rejects.toThrow('ENOENT');
    await missing.sink.close();
  });

  it('[O-33] a place that could not be opened at the start is opened when it can be, without traffic', async () => {
    const later = join(folder, 'later', 'audit.jsonl');
    const { sink } = makeSink(makeFile(later));
    await expect(sink.start()).rejects.toThrow('ENOENT');
    await mkdir(join(folder, 'later'));
    await until(() => sink.isWritable);
    await sink.close();
    expect(await eventsOf(later)).toEqual(['started', 'stopped']);
  });

  it('[O-33] recovers when the folder comes back, in the same file', async () => {
    const { sink } = makeSink(makeFile());
    await sink.start();
    await rename(folder, `${folder}-away`);
    await expect(sink.append(lifecycle('refused'))).rejects.toThrow('ENOENT');
    await rename(`${folder}-away`, folder);
    await sink.append(lifecycle('after'));
    await sink.close();
    expect(await eventsOf(path)).toEqual(['started', 'resumed', 'after', 'stopped']);
    expect((await verified(path)).isWhole).toBe(true);
  });

  it('[O-34] names what a crash tore off, wherever it cut, and repairs nothing', async () => {
    const first = await run('whole');
    const text = await readFile(first, 'latin1');
    const last = text.lastIndexOf('\n', text.length - 2) + 1;
    for (const cut of [last, last + 1, last + 40, text.length - 2, text.length - 1]) {
      await writeFile(first, text.slice(0, cut), 'latin1');
      const next = await run('next');
      expect(await verifyFolder(folder)).toMatchObject(sound);
      const isTorn = cut > last && cut < text.length - 1;
      expect((await firstDetail(next))['torn_bytes']).toBe(isTorn ? cut - last : undefined);
      expect(await readFile(first, 'latin1')).toBe(text.slice(0, cut));
      await rm(next);
    }
  });

  it.each([
    ['nothing', ''],
    ['half a line', '{"schema":"sallyport'],
  ])('[O-34] passes over a file in which a start left %s, and names it', async (_, left) => {
    const at = Date.now();
    const first = await run('one', { now: () => at });
    const cut = runNameOf(path, at + 1, 'gone');
    await writeFile(join(folder, cut), left);
    const next = await run('two');
    expect(await firstDetail(next)).toMatchObject({ after_file: basename(first), skipped: cut });
    const verdict = await verifyFolder(folder);
    expect(verdict).toMatchObject(sound);
    expect(verdict.notes.join('\n')).toContain(cut);
  });

  it('[O-34] never writes to a file that is not its own', async () => {
    await writeFile(path, 'precious: contents\n');
    await run('written');
    expect(await readFile(path, 'utf8')).toBe('precious: contents\n');
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
    expect(verifyChain(text.trimEnd().split('\n'))).toMatchObject({ isWhole: true, lines: 5 });
  });
});
