// The function for paths: every trick that makes a path leave its folder, by name.

import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileExpression } from '../../../src/policy/cel.js';
import { isPathUnder } from '../../../src/policy/cel-language.js';
import { PATH_READERS } from '../../support/lenient-readers.js';

describe('[P-46] path.under', () => {
  it.each([
    'reports/a',
    'reports',
    'reports/',
    './reports/x',
    'reports/a/../b',
    'x/../reports/b',
    'reports/50% off.txt',
    'reports/100%',
    'reports/a%20b',
    'reports/what?.txt',
    'reports/C# notes/a',
    'reports/a;v=1/b',
    'reports/.hidden',
    'reports/..data/a',
    'reports/zürich/例',
  ])('holds for %s', (path) => expect(isPathUnder(path, 'reports/')).toBe(true));

  it.each([
    ['climbing', 'reports/../secret'],
    ['climbing out', '../reports/a'],
    ['another name', 'reports2/a'],
    ['another case', 'Reports/a'],
    ['absolute', '/reports/a'],
    ['a drive', 'C:reports/a'],
    ['a server', '//host/reports/a'],
    ['home', '~/reports/a'],
    ['a URL', 'https://example.com/reports/a'],
    ['nothing', ''],
  ])('does not hold for %s', (_what, path) => {
    expect(isPathUnder(path, 'reports/')).toBe(false);
  });

  it.each([
    ['encoded dots', 'reports/%2e%2e/secret'],
    ['encoded slash', 'reports%2f..%2fsecret'],
    ['encoded twice', 'reports/%252e%252e/secret'],
    ['encoded six times', 'reports/%252525252525' + '2e%2e/secret'],
    ['encoded without end', `reports/%${'25'.repeat(40)}2e./secret`],
    ['overlong UTF-8', 'reports/%c0%ae%c0%ae/secret'],
    ['backslashes', 'reports\\..\\secret'],
    ['encoded backslash', 'reports/%5c..%5csecret/..'],
    ['NUL', 'reports/a\0/../../secret'],
    ['encoded NUL', 'reports/a%00'],
    ['a line end', 'reports/a\n'],
    ['three dots', 'reports/.../secret'],
    ['dots and a blank', 'reports/.. /secret'],
    ['dots and parameters', 'reports/..;/secret'],
    ['parameters of an empty name', 'reports/;/..'],
    ['full-width dots', 'reports/\uff0e\uff0e/secret'],
    ['a full-width slash', 'reports/a\uff0f..\uff0f..\uff0fsecret'],
    ['a full-width escape', 'reports/\uff052e\uff052e/secret'],
    ['a slash that only some decode', 'reports/a%2fb/../../secret'],
    ['a slash that few decode', 'reports/a%252fb/../../secret'],
    ['an escape that only some decode', 'reports/a%5cb/../../secret'],
    ['a backslash that is a letter to some', 'reports/a\\b/../../secret'],
    ['a full-width slash and an encoded one', 'reports/a%2fb\uff0f..\uff0f..\uff0fsecret'],
    ['an empty name that counts for some', 'x//../reports/a'],
    ['dots with an invisible character', 'reports/.\u200b./secret'],
    ['dots before an invisible character', 'reports/..\ufeff/secret'],
    ['a dot with a soft hyphen', 'reports/\u00ad../secret'],
    ['a folder that only some fold', '\uff52eports/a'],
    ['a URL of a file', 'file:///srv/reports/a'],
    ['a URL of a file without a slash', 'file:reports/a'],
    ['an encoded URL of a file', 'file%3a///reports/a'],
    ['a URL of a file in another', 'jar:File:/reports/a'],
    ['encoded dots into the folder', 'x/%2e%2e/reports/a'],
    // Readers of URLs end the path at these signs.
    ['a query behind dots', 'reports/..?/a'],
    ['a fragment behind dots', 'reports/..#/a'],
    ['a query behind dots at the end', 'reports/a/../..?x'],
    ['an encoded query behind dots', 'reports/..%3f/a'],
    ['a query before dots', 'reports?/../../reports/a'],
    ['a fragment before the folder', 'x#/../reports/a'],
    ['a query before the folder', '?/../reports/a'],
    ['an encoded fragment before the folder', 'x%23/../reports/a'],
    // Separators that only some readers see.
    ['an encoded slash behind the folder', 'reports%2fa'],
    ['an encoded slash in a name', 'reports/a%2fb'],
    ['a slash encoded twice', 'reports/a%252fb'],
    ['an encoded backslash in a name', 'reports/a%5cb'],
    ['a backslash', 'reports/a\\b'],
    ['a server by backslashes', '\\\\host\\reports'],
    ['a full-width slash in a name', 'reports/a\uff0fb'],
    ['an encoded letter of the folder', '%72eports/a'],
    ['a malformed escape around dots', 'reports/%%32e%%32e/secret'],
  ])('has no answer for %s', (_what, path) => {
    expect(isPathUnder(path, 'reports/')).toBeUndefined();
  });

  it('compares absolute paths with absolute folders, and anything relative with an empty one', () => {
    expect(isPathUnder('/srv/a', '/srv')).toBe(true);
    expect(isPathUnder('/srv/../etc', '/srv')).toBe(false);
    expect(isPathUnder('srv/a', '/srv')).toBe(false);
    expect(isPathUnder('/etc', '/')).toBe(true);
    expect(isPathUnder('a/b', '')).toBe(true);
    expect(isPathUnder('../a', '')).toBe(false);
    expect(isPathUnder('notes: today/a', 'notes: today')).toBe(true);
    expect(isPathUnder('../../a', '')).toBe(false);
    expect(isPathUnder('C:/../a', '')).toBe(false);
  });

  it('reads backslashes where the folder is written with them', () => {
    expect(isPathUnder('reports\\2024\\a', 'reports\\2024')).toBe(true);
    expect(isPathUnder('reports/2024/a', 'reports\\2024')).toBe(true);
    expect(isPathUnder('reports\\2025\\a', 'reports\\2024')).toBe(false);
    expect(isPathUnder('reports\\2024\\..\\a', 'reports\\2024')).toBeUndefined();
  });

  it('holds in no path that one of many readers finds elsewhere', () => {
    const part = fc.oneof(
      fc.constantFrom('..', '.', '/', '\\', '%2f', '%5c', '%2e', '%252e', '%25', '%', '?', '#', ';'),
      fc.constantFrom('reports', 'a', 'x;y', ' ', '\u200b', '\uff0e', '\uff0f', '%3f', '%23', '%c3%bc'),
    );
    const paths = fc.array(part, { maxLength: 9 }).map((parts) => `reports/${parts.join('')}`);
    let held = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          paths,
          fc.array(part, { maxLength: 9 }).map((parts) => parts.join('')),
        ),
        (path) => {
          if (isPathUnder(path, 'reports') !== true) return;
          held += 1;
          for (const [reader, read] of Object.entries(PATH_READERS)) {
            const found = posix.normalize(`/srv/${read(path)}`);
            const isBelow = found === '/srv/reports' || found.startsWith('/srv/reports/');
            expect({ reader, path, isBelow }).toEqual({ reader, path, isBelow: true });
          }
        },
      ),
      { numRuns: 20_000 },
    );
    expect(held).toBeGreaterThan(500);
  });

  it('has no answer for an absolute path that only some readers find in the folder', () => {
    expect(isPathUnder('//srv/reports/a', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('\\\\srv\\reports', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('/../srv/reports/a', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('/a/../../srv/reports', '/srv/reports')).toBeUndefined();
    expect(isPathUnder('//other/reports/a', '/srv/reports')).toBe(false);
  });

  it.each(['..', '../a', 'https://example.com/a', 'file:a', 'C:/a', '~/a', '//host/a', 'a/..;b'])(
    'has no answer for a folder that is none: %s',
    (folder) => expect(isPathUnder('a', folder)).toBeUndefined(),
  );

  it('is an error of the policy with such a folder', () => {
    const folder = (text: string) => compileExpression(`path.under(args.p, "${text}")`);
    expect(folder('https://example.com/a')).toMatchObject({
      ok: false,
      why: 'path.under() takes a folder such as "reports/" or "/srv/reports"',
    });
    expect(folder('/srv/reports').ok).toBe(true);
  });
});
