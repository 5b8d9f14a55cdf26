// How tests read audit files while they grow.

import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { followAudit, readAudit, readAuditSync } from '../../support/audit-chain.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-follow-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('reads each complete line once, of every file of a path, and all anew where one shrinks or changes', async () => {
  const path = join(folder, 'audit.jsonl');
  const runs = ['20260101', '20260102'].map((day) => join(folder, `audit-${day}T000000000Z-01234567.jsonl`));
  const [first = '', second = ''] = runs;
  const read: string[] = [];
  const follow = followAudit(path, () => (line) => {
    read.push(line);
    return line;
  });
  const expectLines = async (...lines: readonly string[]) => {
    expect(follow()).toEqual(lines);
    expect(follow()).toEqual(lines);
    expect(readAuditSync(path)).toBe(await readAudit(path));
  };
  await expectLines();
  appendFileSync(first, 'a\nb');
  await expectLines('a');
  appendFileSync(first, 'c\n');
  appendFileSync(second, 'd\n');
  await expectLines('a', 'bc', 'd');
  appendFileSync(second, 'e\n');
  await expectLines('a', 'bc', 'd', 'e');
  expect(read.splice(0)).toEqual(['a', 'bc', 'd', 'e']);
  appendFileSync(first, 'f\n');
  await expectLines('a', 'bc', 'f', 'd', 'e');
  writeFileSync(second, 'g\n');
  await expectLines('a', 'bc', 'f', 'g');
  writeFileSync(path, 'of an earlier version\n');
  await expectLines('of an earlier version', 'a', 'bc', 'f', 'g');
  expect(read).toHaveLength(14);
});
