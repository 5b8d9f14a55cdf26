// The marks that stand in place of what was redacted: recognized by their tag, under earlier keys too, and never
// taken for a secret themselves.

import { describe, expect, it } from 'vitest';
import { SECRET_FORMATS } from '../../../src/inspection/detectors/secret-formats.js';
import { findSensitive } from '../../../src/inspection/detectors/text-sanitizer.js';
import { countMarks, type MarkKeys, redactionMark } from '../../../src/inspection/redaction-marks.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { githubToken, noise } from '../../support/seeded-values.js';
import { profile, resultOf } from './samples.js';

const KEYS: MarkKeys = [noise('mark key', 43), noise('earlier key', 43)];
const KINDS = [...new Set(SECRET_FORMATS.map(({ kind }) => kind)), 'secret', 'card', 'sensitive'];

describe('redaction marks', () => {
  it('are recognized by the keys of the gateway, earlier ones too, and by no other', () => {
    for (const kind of KINDS) {
      for (const key of KEYS) expect(countMarks(`a ${redactionMark(kind, [key])}`, KEYS)).toBe(1);
      expect(countMarks(redactionMark(kind), KEYS)).toBe(0);
      expect(countMarks(redactionMark(kind, [noise('foreign', 43)]), KEYS)).toBe(0);
    }
    expect(countMarks(redactionMark('no-such-kind', KEYS), KEYS)).toBe(0);
  });

  it('are no secrets, whatever name stands before them', () => {
    const wanted = { secrets: true, pii: ['card', 'iban', 'ssn'], links: true } as const;
    for (const kind of KINDS) {
      for (let seed = 0; seed < 8; seed++) {
        const mark = redactionMark(kind, [noise(`key ${seed}`, 43)]);
        for (const text of [
          mark,
          `password=${mark}`,
          `API_KEY: "${mark}"`,
          `Authorization: Bearer ${mark}`,
          `postgres://app:${mark}@db/app`,
          `Server=db;Password=${mark};`,
          `https://a.example/?token=${mark}&sig=${mark}`,
          `-----BEGIN ${mark}`,
        ]) {
          expect([text, findSensitive(text, wanted, 'api_key')]).toEqual([text, []]);
        }
      }
    }
  });

  it('stay as they are where a result is inspected again', () => {
    const structuredContent = { password: `x ${githubToken('again')}`, url: githubToken('more') };
    const first = inspectMessage({
      ...resultOf({ content: [], structuredContent }),
      profile,
      marks: KEYS,
    });
    if (first.kind !== 'changed') throw new Error(`expected a change, got ${first.kind}`);
    const redacted = (first.value as { result: { structuredContent: object } }).result;
    const again = inspectMessage({
      ...resultOf({ content: [], structuredContent: redacted.structuredContent as never }),
      profile,
      marks: KEYS,
    });
    expect(again).toMatchObject({ kind: 'clean', findings: [] });
    expect(JSON.stringify(redacted)).toContain(redactionMark('github-token', KEYS));
  });
});
