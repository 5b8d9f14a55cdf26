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
/** Cited by a test that is more than one of a unit or of the tree. */
const exercised = new Set<string>();
for (const file of files) {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8');
  const isOfUnit = file.startsWith('unit/') || !file.includes('/');
  for (const id of readCitations(text)) {
    cited.set(id, file);
    if (!isOfUnit) exercised.add(id);
  }
}

/** The ranges of requirements.md that unit tests alone exercise, each with its reason. */
const RANGE = /^- ([A-Z]{1,3})-(\d{2,3})(?: to \1-(\d{2,3}))?: \S/gm;
const ranges = [...TEXT.matchAll(RANGE)].map(([line, area = '', first = '', last = first]) => {
  const holds = (id: string): boolean => {
    const [ofArea, number] = id.split('-');
    return ofArea === area && Number(number) >= Number(first) && Number(number) <= Number(last);
  };
  return { line, holds };
});

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
    expect(requirements).toHaveLength(TEXT.split('\n').filter((line) => /^\| \S+-\d/.test(line)).length);
  });

  it('[D-11] are each cited by a test', () => {
    const uncited = requirements.filter((one) => !cited.has(one.id));
    expect(uncited.map((one) => `${one.id} ${one.behaviour}`)).toEqual([]);
  });

  it('[D-11] are exercised beyond unit tests, or it is said why that is enough', () => {
    const alone = requirements.map(({ id }) => id).filter((id) => !exercised.has(id));
    expect(alone.filter((id) => !ranges.some((range) => range.holds(id)))).toEqual([]);
    // A range of which nothing is left has no reason to stay.
    expect(ranges.length).toBeGreaterThan(0);
    expect(ranges.filter((range) => !alone.some(range.holds)).map(({ line }) => line)).toEqual([]);
  });

  it('[D-11] exist for every id that a test cites', () => {
    const known = new Set(requirements.map((one) => one.id));
    const unknown = [...cited].filter(([id]) => !known.has(id));
    expect(unknown.map(([id, file]) => `${id} in ${file}`)).toEqual([]);
  });
});
