// The rows of every family of detection: each matches what it must match, by its own interpreter, and passes what it
// must pass. docs/reference/detectors.md lists them.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DETECTOR_FAMILIES, withDetectorRows } from '../../../scripts/reference/detectors.js';
import { FOREIGN_ROWS } from '../../../src/inspection/definitions/rows/foreign-vocabulary.js';
import { MARKER_ROWS } from '../../../src/inspection/definitions/rows/markers.js';
import { PARAMETER_ROWS } from '../../../src/inspection/definitions/rows/parameter-names.js';
import { scanDefinitions } from '../../../src/inspection/definitions/scan.js';
import { createFinder, type RuleRow } from '../../../src/inspection/definitions/sentence-patterns.js';
import { RULE_ROWS } from '../../../src/inspection/definitions/sentence-rules.js';
import { sentencesOf } from '../../../src/inspection/definitions/sentences.js';
import type { DetectorRow } from '../../../src/inspection/detector-row.js';
import { INJECTION_ROWS } from '../../../src/inspection/detectors/injection-phrases.js';
import { NAME_ROWS } from '../../../src/inspection/detectors/known-names.js';
import { SECRET_FORMAT_ROWS, type SecretFormat } from '../../../src/inspection/detectors/secret-formats.js';
import { findFormats } from '../../../src/inspection/detectors/secrets.js';
import { WORDING_ROWS } from '../../../src/inspection/elicitation/form-wording.js';
import { cuesIn, formatsIn } from '../../../src/inspection/prefilter/anchors.js';
import { randomValues } from '../../support/secrets.js';
import { noise } from '../../support/seeded-values.js';

/** Runs the examples of one family. `matches` says whether a row matches a text. */
function checkExamples<Row extends DetectorRow>(
  family: string,
  rows: readonly Row[],
  matches: (row: Row, text: string) => boolean,
): void {
  it.each(rows.map((row) => [row.id, row] as const))(`${family}: %s`, (_id, row) => {
    expect(row.matches.length * row.passes.length).toBeGreaterThan(0);
    expect(row.matches.filter((text) => !matches(row, text))).toEqual([]);
    expect(row.passes.filter((text) => matches(row, text))).toEqual([]);
  });
}

/** A text that the pattern of a format takes: of random characters, or of the last of each class. */
function exampleOf({ id, kind, pattern, check }: SecretFormat, isRandom: boolean): string {
  // The three letters that begin its parts are no word, so that only one that is cut is no token.
  if (id === 'secret-jwt' && !isRandom) return 'eyJzzzz.eyJzzzz.zzzz';
  let at = 0;
  const digits = noise(kind, 4_000, '0123456789');
  const pick = (bound: number): number => {
    at += 3;
    return isRandom ? Number(digits.slice(at, at + 3)) % bound : bound - 1;
  };
  const value = randomValues(COMPLETE[id] ?? pattern, pick)();
  if (check === 'pem') return isRandom ? `${value}\n${noise(kind, 64)}\n${noise(`${kind}2`, 64)}` : value;
  if (check !== 'basic') return value;
  const pair = `app:${isRandom ? noise(kind, 16) : 'password'}`;
  return value.replace(/[A-Za-z0-9+/_-]{8,}=*$/, Buffer.from(pair).toString('base64'));
}

/** What a pattern takes only behind something else. */
const COMPLETE: { readonly [id: string]: RegExp } = {
  'secret-jwt': /eyJ[A-Za-z0-9_-]{10,16}\.eyJ[A-Za-z0-9_-]{10,14}\.[A-Za-z0-9_-]{20,24}/,
  'secret-terraform-token': /[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}/,
  'secret-url-credentials': /db:\/\/[a-z]{4}:[A-Za-z0-9]{12,16}@h/,
  'secret-netrc-password': /machine [a-z]{4} login [a-z]{4} password [A-Za-z0-9]{12,16}/,
  'secret-netrc-default': /default login [a-z]{4} password [A-Za-z0-9]{12,16}/,
  'secret-pgpass-password': /h:5432:[a-z]{4}:[a-z]{4}:[A-Za-z0-9]{12,16}/,
  'secret-connection-password': /;password=[A-Za-z0-9]{12,16}/,
};

/** Whether what the row finds is more than a note, and found in one definition alone. */
function isAlarm(row: RuleRow): boolean {
  return row.isOff !== true && row.tier !== 'note' && row.id !== 'praise-preferred-tool';
}

describe('the rows of detection', () => {
  checkExamples('a cue', INJECTION_ROWS.phrases, (row, text) => {
    const lower = text.toLowerCase();
    const isPrefiltered = row.isOff === true || cuesIn(lower).includes(row);
    return isPrefiltered && row.phrase.test(lower.replace(/[^a-z0-9]+/g, ' '));
  });
  checkExamples('a structure', INJECTION_ROWS.structures, ({ pattern }, text) => pattern.test(text));

  const nobody = { name: '', parameters: new Set<string>() };
  checkExamples('a rule', RULE_ROWS, ({ isOff: _, ...row }, text) => {
    const find = createFinder([row]);
    // Not the first sentence of a description, which says what the tool does.
    return sentencesOf(text, nobody, 1).some((sentence) => find(sentence).length > 0);
  });
  it.each(RULE_ROWS.filter(isAlarm).map((row) => [row.id, row] as const))('the scan reads %s', (_id, row) => {
    for (const text of row.matches) {
      const definition = { name: 'lookup', description: `Looks up a value. ${text}` };
      const found = scanDefinitions([{ kind: 'tool', name: 'lookup', definition }]);
      expect(found.map(({ reason }) => reason)).toContain(row.reason);
    }
  });
  checkExamples('a marker', MARKER_ROWS, ({ pattern }, text) => text.search(pattern) >= 0);
  checkExamples('the words of a language', FOREIGN_ROWS, (_row, text) => {
    const definition = { name: 'lookup', description: `Looks up a value. ${text}` };
    return scanDefinitions([{ kind: 'tool', name: 'lookup', definition }]).some(({ tier }) => tier !== 'note');
  });
  // What a row reads begins or ends with a blank where a word or the secret stands beside it.
  checkExamples('wording of forms', WORDING_ROWS, ({ isIn }, text) =>
    [text, ` ${text}`, `${text} `, ` ${text} `].some(isIn),
  );
  checkExamples('a name of a value', NAME_ROWS, ({ pattern }, name) => name.search(pattern) >= 0);
  checkExamples('a name of a parameter', PARAMETER_ROWS, ({ pattern }, name) => pattern.test(name));

  it.each(SECRET_FORMAT_ROWS.map((row) => [row.id, row] as const))('a format: %s', (_id, row) => {
    const [random, sample] = [exampleOf(row, true), exampleOf(row, false)];
    expect(formatsIn(random)).toContain(row);
    expect(findFormats(random, [row]).map(({ kind }) => kind)).toEqual([row.kind]);
    expect(findFormats(sample, [row])).toEqual([]);
  });

  it('have ids of their own', () => {
    const ids = DETECTOR_FAMILIES.flatMap(({ rows }) => rows.map(({ id }) => id));
    expect(ids.length).toBeGreaterThan(250);
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
    expect(ids.filter((id) => !/^[a-z0-9]+(?:-[a-z0-9]+)+$/.test(id))).toEqual([]);
  });

  it('stand in the reference', async () => {
    const file = join(import.meta.dirname, '../../../docs/reference/detectors.md');
    const page = await readFile(file, 'utf8');
    const listed = withDetectorRows(page);
    if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(file, listed);
    else expect(page).toBe(listed);
  });
});
