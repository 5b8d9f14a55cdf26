// Spellings of a URI in combination: whatever a server may read as a resource that a rule restricts is restricted, and
// nothing else is.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Pattern } from '../../../src/policy/patterns.js';
import { readUri, restrictionsOfUri, restrictsUri, type UriReadings } from '../../../src/policy/uris.js';
import { combinedSpellings } from '../../support/uri-spellings.js';

const DENIED = 'memo://vault/keys/root';

/** A text that is no URI is refused, and so is one with more spellings than are looked at. */
function isRefused(patterns: readonly Pattern[], readings: UriReadings | undefined): boolean {
  if (readings === undefined) return true;
  try {
    return restrictsUri(patterns, readings);
  } catch (error) {
    expect(error).toMatchObject({ message: 'the URI has too many spellings' });
    return true;
  }
}

describe('spellings in combination', () => {
  it.each([DENIED, 'memo://vault/keys', 'memo://vault/keys/root?id=7'])(
    'a restriction of %s holds for all of them',
    async (uri) => {
      const patterns = restrictionsOfUri(uri);
      await fc.assert(
        fc.asyncProperty(combinedSpellings(uri), (spelt) => {
          const readings = readUri(spelt);
          expect([spelt, isRefused(patterns, readings)]).toEqual([spelt, true]);
          return Promise.resolve();
        }),
        { numRuns: 3000 },
      );
    },
  );

  it.each([
    ['memo://vault/my%20key', 'memo://vault/my+key'],
    ['memo://vault/my+key', 'memo://vault/my%20key'],
    ['memo://vault/caf%C3%A9', 'memo://vault/cafe%CC%81'],
    ['memo://vault/cafe%CC%81', 'memo://vault/caf%C3%A9'],
    ['memo://vault/fix', 'memo://vault/%EF%AC%81x'],
    ['memo://vault/key%3Fx', 'memo://vault/key%3Fx%20'],
    ['file:///C:/keys/root', 'file:///c:/keys/root'],
    ['file:///C:/keys/root', 'file:///C:/../keys/root'],
    ['file:///C:/keys/root', 'file:///c%7C/keys/root'],
    ['file:///keys/root', 'file://host/keys/root'],
    ['memo://vault/x?id=7', 'memo://vault/x?ID=7'],
    ['memo://vault/x?id=7', 'memo://vault/x?a=1;id=7'],
    ['memo://vault/x?id=7', 'memo://vault/x??id=7'],
    ['memo://vault/x?id=7', 'memo://vault/x?id=7%20'],
  ])('a restriction of %s holds for %s', (denied, uri) => {
    expect(isRefused(restrictionsOfUri(denied), readUri(uri))).toBe(true);
  });

  it.each([
    `https://a.example/${'%E6%97%A5%E6%9C%AC'.repeat(400)}`,
    `https://a.example/search/${'a+b%20c/'.repeat(500)}?q=${'x;y&'.repeat(200)}#z`,
    `file:///C:/Users/me/${'Caf%C3%A9%20Noir/'.repeat(200)}a..b/c.`,
    `db://host:5432/${'t;v=1/'.repeat(400)}row.`,
    `https://a.example:8443/authorize/?to=https%3A%2F%2Fb.example%2F%3Fx%3D1%2526y%253D2&scope=a+b&state=${'Ab3_'.repeat(1900)}#z`,
    `https://s3.a.example/b/My%20Docs/Caf%C3%A9+Menu%20%282024%29.pdf?Signature=${'ab12'.repeat(1900)}`,
    'https://user@host.a.example:8443/a;b=1/c%2Fd/e//f/?q=%E6%97%A5+x%20y#z',
    `data:text/plain;base64,${'QUJD+/'.repeat(1350)}`,
  ])('no restriction of another one holds for a long URI (row %#)', (uri) => {
    const readings = readUri(uri);
    expect(readings && restrictsUri(restrictionsOfUri(DENIED), readings)).toBe(false);
  });

  it.each([
    ['memo://vault/', 'e%CC%81+%20;v/'],
    ['file://h/C:/', '+%20./'],
    ['memo://u@vault:80/', '%20./'],
    ['memo://vault/', '%EF%B7%BA'],
    ['memo://vault/', '%2525252e%2525252e/'],
    ['file://u@H:8/C:/', 'e%CC%81+%20;v=%252e./..//'],
    ['https://u@a.example/x?', '%25252525'],
    ['memo://vault/', '::$DATA'],
  ])('reading a hostile URI is little work: %s%s…', (start, unit) => {
    const uri = (start + unit.repeat(8192)).slice(0, 8190).replace(/%.?$/, '');
    const readings = readUri(uri);
    let read: readonly string[] = [];
    try {
      read = readings?.cores().withHost ?? [];
    } catch (error) {
      expect(error).toMatchObject({ message: 'the URI has too many spellings' });
    }
    expect(read.join('').length).toBeLessThan(40 * uri.length);
  });

  it('a restriction of a resource holds for no other one', () => {
    const others = ['memo://vault/keys/root2', 'memo://vault/keys', 'memo://vault/keys/root/x'];
    const patterns = restrictionsOfUri(DENIED);
    for (const other of [
      ...others,
      'memo://vault/key',
      'note://vault/keys/root',
      'memo://keys/root',
      'memo://vault/keys/..root',
      'memo://vault/keys/root...x',
      'memo://vault/keys/root:DATA',
    ]) {
      const readings = readUri(other);
      expect([other, readings && restrictsUri(patterns, readings)]).toEqual([other, false]);
    }
    const file = readUri('file:///srv/keys/root');
    expect(file && restrictsUri(restrictionsOfUri('file:///keys/root'), file)).toBe(false);
    const parameter = restrictionsOfUri('memo://vault/x?id=7');
    for (const [other, isHeld] of [
      ['memo://vault/x', false],
      ['memo://vault/x?id=8', false],
      ['memo://vault/x?a=1&id=%37', true],
    ] as const) {
      const readings = readUri(other);
      expect([other, readings && restrictsUri(parameter, readings)]).toEqual([other, isHeld]);
    }
  });
});
