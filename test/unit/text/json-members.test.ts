import { describe, expect, test } from 'vitest';
import { foldName } from '../../../src/text/json-members.js';

/** Every code point that has a case, as the engine's own Unicode tables say. */
function casedCharacters(): readonly string[] {
  const cased: string[] = [];
  for (let point = 0; point <= 0x1ffff; point++) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    const character = String.fromCodePoint(point);
    if (/[\p{Changes_When_Casemapped}\p{Changes_When_Casefolded}]/u.test(character)) {
      cased.push(character);
    }
  }
  return cased;
}

describe('simple case folding', () => {
  test('[M-02] agrees with the engine on every cased character and every character it maps to', () => {
    const cased = casedCharacters();
    expect(cased.length).toBeGreaterThan(2500);
    const wrong: string[] = [];
    for (const one of cased) {
      for (const other of [one.toLowerCase(), one.toUpperCase(), foldName(one)]) {
        if ([...other].length !== 1) continue;
        const isEqual = foldName(one) === foldName(other);
        const pattern = new RegExp(`^\\u{${one.codePointAt(0)?.toString(16)}}$`, 'iu');
        if (pattern.test(other) !== isEqual) wrong.push(`${one} ${other}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('[M-02] merges exactly the classes that the engine merges', () => {
    const classes = new Map<string, string[]>();
    for (const character of casedCharacters()) {
      const folded = foldName(character);
      classes.set(folded, [...(classes.get(folded) ?? []), character]);
    }
    for (const [folded, members] of classes) {
      const pattern = new RegExp(`^\\u{${folded.codePointAt(0)?.toString(16)}}$`, 'iu');
      expect(members.every((member) => pattern.test(member))).toBe(true);
    }
  });

  test.each([
    ['ſet', 'SET'],
    ['\u212aey', 'key'],
    ['Σ', 'ς'],
    ['ẞ', 'ß'],
    ['𐐀', '𐐨'],
  ])('[M-02] %s and %s are one name', (one, other) => {
    expect(foldName(one)).toBe(foldName(other));
  });

  test.each([
    ['ß', 'ss'],
    ['ı', 'i'],
    ['İ', 'i'],
    ['é', 'e\u0301'],
  ])('[M-02] %s and %s are two names', (one, other) => {
    expect(foldName(one)).not.toBe(foldName(other));
  });
});
