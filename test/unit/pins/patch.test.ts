import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unifiedPatch } from '../../../src/pins/patch.js';

const lines = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}`);
const text = (all: readonly string[]): string => `${all.join('\n')}\n`;
const FORTY = lines(0, 40);
const without = (at: number, count: number, ...put: string[]): string[] =>
  FORTY.toSpliced(at, count, ...put);

describe('a patch of a lock file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-patch-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each<[string, string[] | undefined, string[]]>([
    ['adds lines', FORTY, without(20, 0, 'a', 'b')],
    ['removes lines', FORTY, without(20, 3)],
    ['changes the first line', FORTY, without(0, 1, 'new')],
    ['changes the last line', FORTY, without(39, 1, 'new')],
    ['adds at the end', FORTY, [...FORTY, 'end']],
    ['changes two places that are far apart', FORTY, without(5, 1, 'x').toSpliced(35, 1, 'y')],
    ['changes two places that are near each other', FORTY, without(5, 1, 'x').toSpliced(9, 1, 'y')],
    ['creates a file', undefined, FORTY],
    ['empties a line', FORTY, without(7, 1, '')],
  ])('[CON-12] that %s is what git applies', (_what, before, after) => {
    const file = join(folder, 'a.lock.yaml');
    rmSync(file, { force: true });
    if (before !== undefined) writeFileSync(file, text(before));
    const patch = unifiedPatch('a.lock.yaml', before && text(before), text(after));
    execFileSync('git', ['apply', '-'], { cwd: folder, input: patch });
    expect(readFileSync(file, 'utf8')).toBe(text(after));
  });
});
