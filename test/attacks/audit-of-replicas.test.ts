// Case 95: somebody who can change the stream of audit lines that replicas write to standard output, or the file in which a
// receiver stores what replicas deliver. Each way of hiding or inventing lines is named, and what cannot be told from the
// lines alone is told by a head that is kept elsewhere.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Audited, asCri, asDocker, interleave, newKeys, runAudit, writeRun } from '../support/audit-streams.js';

const START = Date.UTC(2030, 0, 1);
const MINUTE = 60_000;
const keys = newKeys();
const key = keys.publicKeys()[0]?.publicKey ?? '';

let a1: string[];
let a2: string[];
let b1: string[];
/** A run of the first instance that was killed: two calls after its last checkpoint. */
let killed: string[];

beforeAll(async () => {
  const one = { keys, instance: 'gw-a:8080' };
  a1 = await writeRun({ ...one, startMs: START });
  a2 = await writeRun({ ...one, startMs: START + MINUTE });
  killed = await writeRun({ ...one, startMs: START, killedAfter: 2 });
  b1 = await writeRun({ keys, instance: 'gw-b:8080', startMs: START, calls: 8 });
});

async function verify(lines: readonly string[], ...more: readonly string[]): Promise<Audited> {
  return runAudit(['verify', 'stream.log', ...more], { 'stream.log': `${lines.join('\n')}\n` });
}

/** The first run, with the line of a place changed, and the second. */
const changed = (at: number, change: (line: string) => string): string[] => [
  ...a1.map((line, index) => (index === at ? change(line) : line)),
  ...a2,
];

/** The end of a run under which something is written by somebody who has no key. */
async function forgedEnd(instance: string): Promise<string[]> {
  const own = await writeRun({ keys: newKeys(), instance, startMs: START });
  const { gateway } = JSON.parse(killed[0] ?? '') as { gateway: { epoch: string } };
  return own.slice(-2).map((line) => line.replace(/"epoch":"[^"]*"/, `"epoch":"${gateway.epoch}"`));
}

describe('a stream of several replicas', () => {
  it('[O-92] verifies as it was written, over a restart, by itself and with the key', async () => {
    const stream = interleave([...a1, ...a2], b1);
    for (const more of [[], ['--key', key]]) {
      const found = await verify(stream, ...more);
      expect(found.stdout).toMatch(/^unsigned: 0 lines/);
      expect(found.stdout).toContain('instance gw-a:8080: 2 runs, ');
      expect(found.stdout).toContain('instance gw-b:8080: 1 run, ');
      expect(found.code).toBe(0);
    }
    // Each in a file of its own, the newest first, or all in a folder.
    const files = { '0.log': a2.join('\n'), '0.log.1': `${a1.join('\n')}\n`, 'b.log': b1.join('\n') };
    for (const names of [Object.keys(files), ['FOLDER']])
      expect(await runAudit(['verify', ...names, '--key', key], files)).toMatchObject({ code: 0 });
  });

  it.each<[string, () => string[] | Promise<string[]>, number, RegExp]>([
    ['cut off behind the last line of a run', () => [...a1.slice(0, -1), ...a2], 1, /unsigned: the run ended here/],
    ['cut off before it', () => [...a1.slice(0, -2), ...a2], 2, /run \S+ of gw-a:8080, .* has no signed end/],
    [
      'cut off, and its last line moved behind the start of the next',
      () => [...a1.slice(0, -5), a2[0] ?? '', a1.at(-5) ?? '', ...a2.slice(1)],
      2,
      /run \S+ of gw-a:8080, .* has no signed end, and .* began after it/,
    ],
    [
      'the beginning of a run taken out, and the end of the one before moved into it',
      () => [...a1.slice(0, -1), a2[3] ?? '', a1.at(-1) ?? '', ...a2.slice(4)],
      1,
      /missing: the lines 0 to 2 of the run/,
    ],
    ['cut off behind a killed run', () => [...killed.slice(0, -1), ...a2], 2, /2 lines at its end are unsigned, from/],
    ['a line taken out', () => [...a1.toSpliced(4, 1), ...a2], 1, /missing: 1 missing before this line/],
    ['two lines exchanged', () => [...a1.toSpliced(3, 2, a1[4] ?? '', a1[3] ?? ''), ...a2], 1, /missing: 1/],
    ['runs exchanged', () => [...a2, ...a1], 2, /says that it began before .* they were moved, or the clock/],
    ['the beginning of a run taken out', () => [...a1, ...a2.slice(3)], 1, /missing: the lines 0 to 2 of the run/],
    ['the beginning of the stream taken out', () => a1.slice(3), 2, /give --key or the older file/],
    ['another host', () => changed(0, (line) => line.replace('gw-a"', 'gw-x"')), 1, /edited: the line was changed/],
    ['another name', () => changed(0, (line) => line.replace('gw-a:', 'gw-x:')), 1, /edited: the line was changed/],
    ['another subject', () => changed(2, (line) => line.replace('alice', 'mallory')), 1, /edited/],
    ['another chain', () => changed(2, (line) => line.replace('stream-', 'stream-x')), 1, /edited: .*\n.*missing: 1/],
    ['a file chain', () => changed(2, (line) => line.replace('"epoch":"stream-', '"epoch":"')), 1, /edited/],
    ['half a record', () => [...a1, (a1[2] ?? '').slice(0, 90), ...a2], 2, /bytes of a record without its end/],
    [
      'a record behind half a one',
      () => [...a1, `${a1[2]?.slice(0, 90)}${a2[0]}`, ...a2.slice(1)],
      2,
      /without its end/,
    ],
    ['an end signed by another key', async () => [...killed, ...(await forgedEnd('gw-a:8080')), ...a2], 1, /edited/],
  ])('[O-93] names what was done: %s', async (_, make, code, text) => {
    const found = await verify(interleave(await make(), b1));
    expect(found.stdout).toMatch(text);
    expect(found.code).toBe(code);
    expect(found.stdout.includes('complete: ')).toBe(false);
  });

  it('[O-92] counts lines once that a collector wrote again', async () => {
    const found = await verify([...interleave([...a1.toSpliced(4, 0, a1[3] ?? ''), ...a2], b1), ...a1], '--key', key);
    expect(found.stderr).toContain(`note: ${a1.length + 1} lines stand here again, byte for byte`);
    expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(/^unsigned: 0 lines/) });
  });

  it('[O-93] names a run that was killed, with the number of its unsigned lines, whether another follows or not', async () => {
    const followed = await verify([...killed, ...a2], '--key', key);
    expect(followed.stdout).toMatch(/^unsigned: 3 lines, from sequence number \d+ on, could have been rewritten/);
    expect(followed.stdout).toMatch(/not checked: the run .* killed.*; 3 lines at its end are unsigned/);
    expect(followed.code).toBe(2);
    const last = await verify(killed, '--key', key);
    expect(last.stdout).toMatch(/^unsigned: 3 lines/);
    expect(last.stderr).toMatch(/has no signed end: it goes on, or was killed, or its end was cut off; 3 lines/);
    expect(last.code).toBe(0);
  });

  it('[O-93] names a run that somebody else signed, and two gateways of one name', async () => {
    const stranger = newKeys();
    const forged = await writeRun({ keys: stranger, instance: 'gw-a:8080', startMs: START + MINUTE });
    const found = await verify([...a1, ...forged], '--key', key);
    expect(found.stdout).toMatch(/signature: no checkpoint of this chain|give --key or the older file: .*not given/);
    expect(found.code).not.toBe(0);
    const twin = await writeRun({ keys, instance: 'gw-a:8080', startMs: START + 50 });
    const both = await verify(interleave(a1, twin), '--key', key);
    expect(both.stdout).toMatch(/two gateways of one name: the run .* began before the run .* had ended/);
    expect(both.code).toBe(0);
  });

  it('[O-93] finds a run that was taken out by a head that is kept elsewhere', async () => {
    const stream = interleave([...a1, ...a2], b1);
    const heads = stream.filter((line) => line.includes('"type":"checkpoint"')).join('\n');
    const verifyWith = (lines: readonly string[]) =>
      runAudit(['verify', 'stream.log', '--head', 'heads'], { 'stream.log': lines.join('\n'), heads });
    expect(await verifyWith(stream)).toMatchObject({ code: 0 });
    for (const without of [interleave(a2, b1), interleave(a1, b1), interleave(a1, a2)]) {
      const found = await verifyWith(without);
      expect(found.stdout).toMatch(/give the file of the chain stream-|truncated: the checkpoint is of another chain/);
      expect(found.code).not.toBe(0);
    }
    expect((await verifyWith(interleave([...a1, ...a2.slice(0, 4)], b1))).stdout).toMatch(/truncated: cut off/);
  });

  it('[O-94] passes over lines of the process log, and says how many', async () => {
    const log = '{"level":"info","time":"now","event":"data listening on http://127.0.0.1:8080"}';
    const found = await verify([log, ...a1, log, 'not started: x', ...a2, log], '--key', key);
    expect(found.stderr).toMatch(
      /stream.log:1: this and further lines that are no records \(4 in all\) were passed over/,
    );
    expect(found.code).toBe(0);
  });

  it.each([
    ['CRI', asCri],
    ['Docker', asDocker],
  ])('[O-94] reads the wrapper of %s, and finds in it what was done', async (_, wrap) => {
    const log = wrap(['{"level":"info","event":"x"}', (b1[3] ?? '').slice(0, 50)], 'stderr');
    const both = (...runs: readonly (readonly string[])[]) => [
      log[0] ?? '',
      ...wrap(runs.flat(), 'stdout', 700),
      log[1] ?? '',
    ];
    expect(await verify(both(a1, a2), '--key', key)).toMatchObject({ code: 0 });
    expect((await verify(both(a1.toSpliced(4, 1), a2))).stdout).toMatch(/missing: 1 missing/);
    // Said to be of standard error, a line is no audit line.
    const hidden = wrap(a1).map((line, at) => (at === 4 ? line.replace('stdout', 'stderr') : line));
    expect((await verify([...hidden, ...wrap(a2)])).stdout).toMatch(/missing: 1 missing/);
  });

  it('[O-94] reads what an escape of Docker stands for, and not a byte of it', async () => {
    // U+0161 has the byte of `a` at its end.
    const lines = asDocker([...a1, ...a2]).map((line, at) => (at === 2 ? line.replace('alice', '\\u0161lice') : line));
    expect(lines[2]).toContain('\\u0161lice');
    expect(await verify(lines)).toMatchObject({ code: 1, stdout: expect.stringContaining('edited') });
  });

  it('[O-92] query and show name the instance of each event', async () => {
    const files = { 'all.log': interleave([...a1, ...a2], b1).join('\n') };
    const rows = (await runAudit(['query', 'all.log', '--type', 'mcp.outcome'], files)).stdout.trimEnd().split('\n');
    expect(rows.filter((row) => row.startsWith('instance '))).toEqual(['instance gw-a:8080', 'instance gw-b:8080']);
    expect(rows).toHaveLength(2 + 3 + 3 + 8);
    const one = await runAudit(['query', 'all.log', '--instance', 'gw-b:8080', '--json'], files);
    const events = one.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events).toHaveLength(b1.length);
    expect(new Set(events.map(({ gateway }) => `${gateway.host} ${gateway.run}`)).size).toBe(1);
    const { decision } = JSON.parse(b1[2] ?? '') as { decision: { id: string } };
    const shown = await runAudit(['show', decision.id, 'all.log'], files);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('"instance": "gw-b:8080"') });
  });
});

describe('a file in which a receiver stored the lines of several gateways', () => {
  const folders: string[] = [];
  afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

  /** Runs of one gateway, one after the other in a folder of its own. */
  async function writeRuns(instance: string, ...calls: readonly number[]): Promise<string[][]> {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-collected-'));
    folders.push(folder);
    const runs: string[][] = [];
    for (const [index, count] of calls.entries())
      runs.push(await writeRun({ keys, instance, folder, startMs: START + index * MINUTE, calls: count }));
    return runs;
  }

  let a: string[][];
  let b: string[][];
  beforeAll(async () => {
    a = await writeRuns('gw-a:8080', 3, 3);
    b = await writeRuns('gw-b:8080', 5, 2);
  });
  /** What replica A has delivered over its restart, with a change, between the lines of B. */
  const stored = (change: (lines: string[]) => string[]): string[] => interleave(change(a.flat()), b.flat());

  it('[O-92] verifies as it was stored, over a restart of each, and is read by instance', async () => {
    const lines = stored((all) => all);
    for (const more of [[], ['--key', key]]) {
      const found = await verify(lines, ...more);
      expect(found.stdout).toMatch(/^unsigned: 0 lines/);
      expect(found.stdout).toContain('complete: the chain of ');
      expect(found.stdout).toContain('instance gw-a:8080: 2 runs, ');
      expect(found.stdout).toContain('instance gw-b:8080: 2 runs, ');
      expect(found.stdout).not.toMatch(/two writers|two gateways/);
      expect(found.code).toBe(0);
    }
    const files = { 'stream.log': lines.join('\n') };
    const rows = (await runAudit(['query', 'stream.log', '--type', 'mcp.outcome'], files)).stdout.trimEnd().split('\n');
    expect(rows.filter((row) => row.startsWith('instance '))).toEqual(['instance gw-a:8080', 'instance gw-b:8080']);
    expect(rows).toHaveLength(2 + 6 + 7);
  });

  it('[O-92] counts lines that were delivered twice once, and prints them once', async () => {
    const lines = interleave(
      // A batch again, and much later, behind the restart, the first line of the first run alone.
      [...a.flat().slice(0, 9), ...a.flat().slice(4, 9), ...a.flat().slice(9), a.flat()[0] ?? ''],
      // All of the first run again, in two parts of which the first was cut off.
      [...(b[0] ?? []), ...(b[0] ?? []).slice(0, 5), ...(b[0] ?? []).slice(3), ...(b[1] ?? [])],
    );
    const repeated = lines.length - a.flat().length - b.flat().length;
    const found = await verify(lines, '--key', key);
    expect(found.stderr).toContain(`note: ${repeated} lines stand here again, byte for byte`);
    expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(/^unsigned: 0 lines/) });
    const files = { 'stream.log': lines.join('\n') };
    const query = await runAudit(['query', 'stream.log', '--json'], files);
    expect(query.stdout.trimEnd().split('\n')).toHaveLength(lines.length - repeated);
    expect(query.stderr).toContain(`${repeated} lines`);
    const { decision } = JSON.parse(b[0]?.[4] ?? '') as { decision: { id: string } };
    expect(
      (await runAudit(['show', decision.id, 'stream.log', '--json'], files)).stdout.trim().split('\n'),
    ).toHaveLength(2);
  });

  it.each<[string, () => string[] | Promise<string[]>, number, RegExp]>([
    ['a line taken out', () => stored((lines) => lines.toSpliced(4, 1)), 1, /missing: 1 missing before this line/],
    [
      'a line changed',
      () => stored((lines) => lines.with(2, (lines[2] ?? '').replace('alice', 'mallory'))),
      1,
      /edited/,
    ],
    [
      'two lines exchanged',
      () => stored((lines) => lines.toSpliced(3, 2, lines[4] ?? '', lines[3] ?? '')),
      1,
      /missing: 1 .*\n.*reordered: moved or repeated/,
    ],
    [
      'a line moved to the end',
      () => stored((lines) => [...lines.toSpliced(4, 1), lines[4] ?? '']),
      1,
      /missing: 1 .*\n(?:.*\n)*.*reordered: moved or repeated/,
    ],
    [
      'a line moved into the other chain',
      () => stored((lines) => lines.with(4, (b[0]?.[4] ?? '').replace(/"seq":\d+/, '"seq":4'))),
      1,
      /edited|missing/,
    ],
    [
      'the end of a run taken out',
      () => stored(() => [...(a[0] ?? []).slice(0, -2), ...(a[1] ?? [])]),
      1,
      /missing: 2 missing after this line: .* knows/,
    ],
    ['a run taken out of three', () => threeWithout(1), 1, /missing: follows audit-.*, which is missing/],
    [
      'the beginning of a run taken out behind another of its instance',
      () => stored(() => [...(a[0] ?? []), ...(a[1] ?? []).slice(2)]),
      1,
      /missing: the lines 0 to 1 of the run/,
    ],
    ['the beginning taken out', () => stored((lines) => lines.slice(3)), 2, /give --key or the older file/],
    [
      'a line of another name',
      () => stored((lines) => lines.with(0, (lines[0] ?? '').replace('gw-a:', 'gw-b:'))),
      1,
      /edited: the line was changed/,
    ],
    [
      'half a record',
      () => stored((lines) => lines.toSpliced(6, 0, (lines[6] ?? '').slice(0, 90))),
      2,
      /bytes of a record without its end/,
    ],
  ])('[O-93] names what was done: %s', async (_, make, code, text) => {
    const found = await verify(await make());
    expect(found.stdout).toMatch(text);
    expect(found.code).toBe(code);
    expect(found.stdout.includes('complete: ')).toBe(false);
  });

  async function threeWithout(index: number): Promise<string[]> {
    const runs = await writeRuns('gw-a:8080', 2, 2, 2);
    return interleave(runs.toSpliced(index, 1).flat(), b.flat());
  }

  it('[O-92] verifies where a run was killed, whose end the next one has signed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-collected-'));
    folders.push(folder);
    const one = { keys, instance: 'gw-a:8080', folder };
    const first = await writeRun({ ...one, startMs: START, killedAfter: 2 });
    const second = await writeRun({ ...one, startMs: START + MINUTE });
    const found = await verify(interleave([...first, ...second], b.flat()), '--key', key);
    expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(/^unsigned: 0 lines/) });
    const cut = await verify(interleave([...first.slice(0, -1), ...second], b.flat()), '--key', key);
    expect(cut).toMatchObject({ code: 1, stdout: expect.stringMatching(/missing: 1 missing after this line/) });
  });

  it('[O-93] names a forged chain that claims to be of an instance', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-collected-'));
    folders.push(folder);
    const one = { keys: newKeys(), instance: 'gw-a:8080', folder };
    const forged = await writeRun({ ...one, startMs: START + 50 });
    const lines = interleave(a.flat(), b.flat(), forged);
    expect((await verify(lines)).stdout).toMatch(/two gateways of one name: the run \S+ of gw-a:8080/);
    const found = await verify(lines, '--key', key);
    expect(found.stdout).toMatch(/signature: no checkpoint of this chain|not checked: give --key .*not given/);
    expect(found.code).not.toBe(0);
    // Put between the runs of the gateway, it would have to sign the end that the next run has signed.
    const between = [...(a[0] ?? []), ...forged, ...(a[1] ?? [])];
    expect((await verify(interleave(between, b.flat()), '--key', key)).code).not.toBe(0);
  });

  it('[O-93] in the file of a run finds another chain, and a line repeated', async () => {
    const name = /"file":"([^"]*)"/.exec(a[0]?.[0] ?? '')?.[1] ?? '';
    const [run = [], other = []] = [a[0], b[0]];
    for (const [lines, text] of [
      [[...run.slice(0, 5), other[2] ?? '', ...run.slice(5)], /second-chain: another chain begins here/],
      [run.toSpliced(4, 0, run[3] ?? ''), /reordered: moved or repeated/],
      [run.slice(2), /no-beginning: 2 is not the beginning of a chain/],
    ] as const) {
      const found = await runAudit(['verify', name], { [name]: lines.join('\n') });
      expect(found).toMatchObject({ code: 1, stdout: expect.stringMatching(text) });
    }
  });
});
