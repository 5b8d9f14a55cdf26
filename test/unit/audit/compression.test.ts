import { appendFile, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAudit } from '../../../src/audit/audit.js';
import { compressFile } from '../../../src/audit/compression.js';
import { createAuditFile } from '../../../src/audit/file.js';
import { MAX_LINE_BYTES, readLines } from '../../../src/audit/reader.js';
import { listFilesOf, verifyFolder } from '../../support/audit-chain.js';
import { runAudit } from '../../support/audit-streams.js';
import { countingMeters, ring, sampleRecord, until, versions } from './samples.js';
import { lifecycle, makeSink } from './sink-rig.js';

const publicKeys = [ring.publicKeys()[0]?.publicKey ?? ''];
const never = new AbortController().signal;

let folder = '';
let path = '';
let runs = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-compression-'));
  path = join(folder, 'audit.jsonl');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A run of some lines; resolves with the path of its file. */
async function run(): Promise<string> {
  runs += 1;
  const { sink } = makeSink(createAuditFile(path, { instance: `run${runs}` }));
  await sink.start();
  for (let index = 0; index < 20; index += 1) await sink.append(lifecycle('work'));
  await sink.close();
  return (await listFilesOf(path)).at(-1) ?? '';
}

const names = async (): Promise<readonly string[]> => (await readdir(folder)).sort();

describe('a compressed audit file', () => {
  it('[O-95] is read by verify and query, has the time of its lines, and is followed by the next run', async () => {
    const files = [await run(), await run()];
    const texts = await Promise.all(files.map((file) => readFile(file, 'latin1')));
    const old = new Date(Date.UTC(2030, 0, 1));
    for (const file of files) {
      await utimes(file, old, old);
      await compressFile(file, folder, never);
      expect((await stat(`${file}.gz`)).mtimeMs).toBe(old.getTime());
      expect((await stat(`${file}.gz`)).mode & 0o777).toBe(0o600);
    }
    expect(await names()).toEqual(files.map((file) => `${basename(file)}.gz`));
    expect(gunzipSync(await readFile(`${files[0]}.gz`)).toString('latin1')).toBe(texts[0]);
    const last = await run();
    expect(await verifyFolder(folder, { publicKeys })).toMatchObject({ isWhole: true, unsigned: { lines: 0 } });
    const contents = { 'a.jsonl.gz': await readFile(`${files[0]}.gz`), 'b.jsonl': await readFile(last) };
    const binary = Object.fromEntries(
      Object.entries(contents).map(([name, bytes]) => [name, bytes.toString('latin1')]),
    );
    const found = await runAudit(['query', 'FOLDER', '--json'], binary);
    expect(found.stdout.trimEnd().split('\n').length).toBeGreaterThan(40);
  });

  it('[O-95] has its lines over any number of pieces, and one that is too long in parts', async () => {
    const lines = ['a'.repeat(100_000), '', 'b'.repeat(MAX_LINE_BYTES - 1), 'c'];
    const file = join(folder, 'long.jsonl.gz');
    await writeFile(file, gzipSync(`${lines.join('\n')}\n${'d'.repeat(MAX_LINE_BYTES + 100_000)}\ne`));
    const found: string[] = [];
    for await (const line of readLines(file)) found.push(line);
    expect(found.slice(0, 4).map((line, at) => line === lines[at])).toEqual([true, true, true, true]);
    expect(found.slice(4).join('')).toBe(`${'d'.repeat(MAX_LINE_BYTES + 100_000)}e`);
    expect(found.at(-1)).toBe('e');
  });

  it('[O-95] that was changed or cut is found', async () => {
    const [first, second] = [await run(), await run()];
    const text = await readFile(first, 'latin1');
    await writeFile(`${first}.gz`, gzipSync(Buffer.from(text.replace('"work"', '"play"'), 'latin1')));
    await rm(first);
    expect((await verifyFolder(folder)).faults.map(({ kind }) => kind)).toContain('edited');
    await writeFile(`${first}.gz`, gzipSync(Buffer.from(text, 'latin1')).subarray(0, 200));
    await expect(verifyFolder(folder)).rejects.toThrow('unexpected end of file');
    expect(basename(second)).not.toBe(basename(first));
  });

  it.each<[string, (file: string) => Promise<unknown>]>([
    [
      'half a compressed file under its other name',
      (file) => writeFile(file.replace('.jsonl', '.compressing'), 'half'),
    ],
    ['a compressed file beside the original', (file) => writeFile(`${file}.gz`, gzipSync('half'))],
    [
      'a compressed file that is cut, beside the original',
      (file) => writeFile(`${file}.gz`, gzipSync('x').subarray(0, 9)),
    ],
  ])('[O-95] after a crash that left %s has each line once', async (_, leave) => {
    const files = [await run(), await run()];
    await leave(files[0] ?? '');
    expect(await listFilesOf(path)).toEqual(files);
    const before = await verifyFolder(folder, { publicKeys });
    expect(before).toMatchObject({ isWhole: true, faults: [] });
    await compressFile(files[0] ?? '', folder, never);
    expect(await names()).toEqual([`${basename(files[0] ?? '')}.gz`, basename(files[1] ?? '')]);
    expect(await verifyFolder(folder, { publicKeys })).toMatchObject({ isWhole: true, lines: before.lines });
  });

  it('[O-95] does not replace what is written meanwhile, nor after an end of the process', async () => {
    const file = await run();
    const text = await readFile(file, 'latin1');
    const compressing = compressFile(file, folder, never);
    await until(async () => (await names()).length > 1);
    await appendFile(file, 'more');
    await expect(compressing).rejects.toThrow('it changed');
    await expect(compressFile(file, folder, AbortSignal.abort())).rejects.toThrow();
    expect(await names()).toEqual([basename(file)]);
    expect(await readFile(file, 'latin1')).toBe(`${text}more`);
  });
});

describe('the files of earlier runs', () => {
  async function openAudit(more: { readonly isUndelivered?: (file: string) => Promise<boolean> } = {}) {
    const warnings = new Set<string>();
    const spaces: number[] = [];
    const day = 86_400_000;
    const audit = createAudit({
      settings: {
        ...{ sinks: [{ type: 'file', path }], deliveries: [], durability: 'written', onFailure: 'block' },
        ...{ checkpointEveryMs: day, rotate: { size: 1e9, ageMs: day, compress: 'gzip' }, retainMs: 30 * day },
      },
      replica: { instance: 'host-1:8080', host: 'host-1', run: 'current' },
      ...{ version: '0.1.0', versions, signer: ring, meters: countingMeters() },
      now: Date.now,
      onWarning: (warning) => void (warning === undefined ? undefined : warnings.add(warning)),
      onSpace: (_, { freeBytes }) => void spaces.push(freeBytes),
      newWriter: () => createAuditFile(path, { instance: 'current', quietMs: 1_000 }),
      ...more,
    });
    await audit.start();
    await audit.decision(sampleRecord());
    return { audit, warnings, spaces };
  }

  /** Files of runs, all of them quiet, and the first also older than files are kept. */
  async function makeOld(): Promise<readonly string[]> {
    const files = [await run(), await run()];
    for (const [index, days] of [60, 1].entries()) {
      const at = new Date(Date.now() - days * 86_400_000);
      await utimes(files[index] ?? '', at, at);
    }
    return files;
  }

  it('[O-95] are compressed, all but that of this run, and the space of their volume is known', async () => {
    const files = await makeOld();
    const { audit, spaces } = await openAudit();
    // The compressed file is there a moment before the other goes.
    await until(async () => (await listFilesOf(path)).filter((name) => name.endsWith('.gz')).length === 2);
    await audit.close();
    expect((await listFilesOf(path)).slice(0, 2)).toEqual(files.map((file) => `${file}.gz`));
    expect(await verifyFolder(folder, { publicKeys })).toMatchObject({ isWhole: true });
    expect(spaces[0]).toBeGreaterThan(0);
  });

  it('[O-95] are neither compressed nor removed while a receiver does not have them', async () => {
    const files = await makeOld();
    const asked = new Set<string>();
    const isUndelivered = async (file: string): Promise<boolean> => {
      asked.add(basename(file));
      return file === files[0];
    };
    const { audit } = await openAudit({ isUndelivered });
    await until(async () => (await names()).includes(`${basename(files[1] ?? '')}.gz`));
    await audit.close();
    expect(await names()).toContain(basename(files[0] ?? ''));
    expect(asked).toContain(basename(files[0] ?? ''));
  });
});
