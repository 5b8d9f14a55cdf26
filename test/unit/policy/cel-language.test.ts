// The function for paths: every trick that makes a path leave its folder, by name.

import { describe, expect, it } from 'vitest';
import { compileExpression } from '../../../src/policy/cel.js';
import { isPathUnder } from '../../../src/policy/cel-language.js';

describe('[P-46] path.under', () => {
  it.each([
    'reports/a',
    'reports',
    'reports/',
    './reports/x',
    'reports/a/../b',
    'x/../reports/b',
    'reports%2fa',
  ])('holds for %s', (path) => expect(isPathUnder(path, 'reports/')).toBe(true));

  it.each([
    ['climbing', 'reports/../secret'],
    ['climbing out', '../reports/a'],
    ['another name', 'reports2/a'],
    ['another case', 'Reports/a'],
    ['absolute', '/reports/a'],
    ['a drive', 'C:reports/a'],
    ['a server', '//host/reports/a'],
    ['a server by backslashes', '\\\\host\\reports'],
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
    ['malformed escape', 'reports/%zz'],
    ['overlong UTF-8', 'reports/%c0%ae%c0%ae/secret'],
    ['backslashes', 'reports\\..\\secret'],
    ['encoded backslash', 'reports/%5c..%5csecret/..'],
    ['NUL', 'reports/a\0/../../secret'],
    ['encoded NUL', 'reports/a%00'],
    ['a line end', 'reports/a\n'],
    ['three dots', 'reports/.../secret'],
    ['dots and a blank', 'reports/.. /secret'],
    ['dots and parameters', 'reports/..;/secret'],
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
