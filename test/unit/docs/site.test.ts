// What fails the build of the documentation site. The site itself is built by .ci/run.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { siteProblems } from '../../../docs/site/checks.mjs';
import { navigationProblems, readNavigation, relativeLink, sitePath } from '../../../docs/site/navigation.mjs';

const LINKS = '<h2 id="a">A</h2><a href="b.html#x">B</a><a href="#a">A</a><a href="https://example.com/">away</a>';

function problemsOf(page: string, more: Readonly<Record<string, string>> = {}): readonly string[] {
  return siteProblems(new Map(Object.entries({ 'in/a.html': page, 'in/b.html': '<h2 id="x">X</h2>', ...more })));
}

describe('the documentation site', () => {
  it('[GU-10] has no link that leads nowhere', () => {
    expect(problemsOf(LINKS)).toEqual([]);
    for (const link of ['c.html', 'b.html#y', '#b', '../in/c.html'])
      expect(problemsOf(`<h2 id="a">A</h2><a href="${link}">x</a>`)).toEqual([expect.stringContaining(link)]);
    expect(problemsOf('<p>&lt;a href="c.html"&gt;</p>')).toEqual([]);
  });

  it('[GU-10] fetches nothing from elsewhere', () => {
    for (const tag of ['img src', 'script src', 'link href', 'source srcset', 'iframe src'])
      for (const url of ['https://cdn.example/x', '//cdn.example/x', '/x'])
        expect(problemsOf(`<${tag}="${url}">`)).toEqual([expect.stringContaining('absolute URL')]);
    for (const [file, text] of [
      ['a.css', '@import "x.css";'],
      ['b.css', 'p { background: url(https://cdn.example/x) }'],
      ['c.svg', '<svg><style>@font-face { src: url("x.woff") }</style></svg>'],
      ['d.js', "fetch('https://cdn.example/x')"],
    ] as const)
      expect(problemsOf('', { [file]: text })).toEqual([expect.stringContaining(`${file} fetches`)]);
    expect(problemsOf('', { 'e.svg': '<path marker-end="url(#tip)"/>', 'e.js': 'fetch(base)' })).toEqual([]);
  });

  it('[GU-10] has every page in its navigation, once', () => {
    const sections = readNavigation('# Home\n\n## Try\n\n- [One](guides/flows.md)\n\n### More\n\n- [Two](../TWO.md)\n');
    expect(sections.map(({ title, depth }) => [title, depth])).toEqual([
      ['Try', 2],
      ['More', 3],
    ]);
    expect(navigationProblems(sections, ['docs/README.md', 'docs/guides/flows.md'])).toEqual([]);
    expect(navigationProblems(sections, ['docs/guides/content.md'])).toEqual([expect.stringContaining('content.md')]);
    expect(navigationProblems([...sections, ...sections], [])).toHaveLength(2);
  });

  it('[GU-10] has a place for every file, from which every other is reached by a relative link', () => {
    expect(sitePath('docs/README.md')).toBe('index.html');
    expect(sitePath('docs/guides/flows.md')).toBe('guides/flows.html');
    expect(sitePath('docs/reference/gateway.schema.json')).toBe('reference/gateway.schema.json');
    expect(sitePath('SECURITY.md')).toBe('repository/SECURITY.html');
    expect(sitePath('config/gateway.yaml')).toBe('repository/config/gateway.yaml.html');
    expect(sitePath('test/golden', true)).toBe('repository/test/golden/index.html');
    expect(relativeLink('guides/flows.html', 'reference/flows.html')).toBe('../reference/flows.html');
  });

  it('[GU-10] brings nothing into the package, and its lock file names no registry and no script', () => {
    const root = join(import.meta.dirname, '../../..');
    const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] };
    expect(files.indexOf('!docs/site')).toBeGreaterThan(files.indexOf('docs'));
    const lock = readFileSync(join(root, 'docs/site/package-lock.json'), 'utf8');
    expect(lock).not.toMatch(/"resolved"|"hasInstallScript"/);
  });
});
