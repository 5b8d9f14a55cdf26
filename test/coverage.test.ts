// Every requirement is cited by a test title, every cited id is a requirement, and there are some.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { requirements } from './requirements.js';
import { listFiles, stripComments } from './support/source-tree.js';

const CITATION = /\[([A-Z]{1,3}-\d{2,3}(?:,\s*[A-Z]{1,3}-\d{2,3})*)\]/g;
const ID = /^[A-Z]{1,3}-\d{2,3}$/;
const SELF = 'coverage.test.ts';
const TEXT = readFileSync(join(import.meta.dirname, 'requirements.md'), 'utf8');

/** Ids that a test file cites outside comments: in titles, or in rows of a table of titles. */
function readCitations(text: string): string[] {
  const code = stripComments(text, true);
  return [...code.matchAll(CITATION)].flatMap((match) => (match[1] ?? '').split(/,\s*/));
}

const files = listFiles(import.meta.dirname, '.test.ts');
const cited = new Map<string, string>();
for (const file of files) {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8');
  for (const id of readCitations(text)) cited.set(id, file);
}

describe('requirements', () => {
  it('[D-11] are well formed, unique and many', () => {
    expect(requirements.length).toBeGreaterThan(0);
    expect(files).toContain(SELF);
    expect(cited.size).toBeGreaterThan(0);
    expect(requirements.filter((one) => !ID.test(one.id)).map((one) => one.id)).toEqual([]);
    expect(new Set(requirements.map((one) => one.id)).size).toBe(requirements.length);
    const empty = requirements.filter((one) => one.source === '' || one.behaviour === '');
    expect(empty).toEqual([]);
    // A line that is no row of three cells would be overlooked.
    expect(requirements).toHaveLength(
      TEXT.split('\n').filter((line) => /^\| \S+-\d/.test(line)).length,
    );
  });

  it('[D-11] are each cited by a test', () => {
    const uncited = requirements.filter((one) => !cited.has(one.id));
    expect(uncited.map((one) => `${one.id} ${one.behaviour}`)).toEqual([]);
  });

  it('[D-11] exist for every id that a test cites', () => {
    const known = new Set(requirements.map((one) => one.id));
    const unknown = [...cited].filter(([id]) => !known.has(id));
    expect(unknown.map(([id, file]) => `${id} in ${file}`)).toEqual([]);
  });
});
