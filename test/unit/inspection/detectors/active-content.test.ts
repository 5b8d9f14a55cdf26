// Active Markdown and HTML: what runs, loads or leaks is gone, what a reader reads is there, and code that
// every renderer shows as code is as it was.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findActiveContent,
  neutralize,
  type Replacement,
  type TextFormat,
} from '../../../../src/inspection/detectors/active-content.js';
import { findMarkdownCode } from '../../../../src/inspection/detectors/markup.js';

const inert = (text: string): string => neutralize(text, 'markdown', findMarkdownCode).text;
const codeOf = (reading: TextFormat) => (reading === 'markdown' ? findMarkdownCode : () => []);
const found = (text: string, reading: TextFormat = 'markdown'): Replacement[] =>
  findActiveContent(text, reading, codeOf(reading)(text));
const LONG_QUERY = `?q=${'x'.repeat(80)}`;

describe('Markdown', () => {
  it.each([
    [
      'an image',
      'see ![a chart](https://e.example/p.png) here',
      'see (removed image, a chart) here',
    ],
    ['an image with a title', '![a](https://e.example/p.png "t")', '(removed image, a)'],
    [
      'an image by reference',
      '![a][1]\n\n[1]: https://e.example/p.png',
      '(removed image, a)\n\n[1]: https://e.example/p.png',
    ],
    [
      'a short reference image',
      '![a]\n\n[a]: https://e.example/p.png',
      '! [a]\n\n[a]: https://e.example/p.png',
    ],
    [
      'an image in a link',
      '[![a](https://e.example/p.png)](https://e.example/)',
      '[(removed image, a)](https://e.example/)',
    ],
    // What follows may be in another message.
    ['the opening of an image alone', 'see ![a', 'see ! [a'],
    ['the same with a backslash', 'see !\\[a', 'see ! [a'],
    ['a script link', '[click](javascript:alert(1))', '[click] (removed link)'],
    ['a script link with a tab', '[click](java\tscript:alert(1))', '[click] (removed link)'],
    [
      'a script link in references',
      '[click](java&#115;cript&colon;alert(1))',
      '[click] (removed link)',
    ],
    ['a script link in decimal', '[click](&#106;avascript:alert(1))', '[click] (removed link)'],
    ['a script link in capitals', '[click](JaVaScRiPt:alert(1))', '[click] (removed link)'],
    ['a data link', '[click](data:text/html;base64,PHNjcmlwdD4=)', '[click] (removed link)'],
    ['a vbscript link', '[click](vbscript:msgbox)', '[click] (removed link)'],
    [
      'a link with a long query',
      `[click](https://e.example/p${LONG_QUERY})`,
      '[click] (removed link hxxps://e.example/p)',
    ],
    [
      'a link with a user name',
      '[click](https://bank.example@e.example/)',
      '[click] (removed link hxxps://e.example/)',
    ],
    ['a definition with a script', '[a]\n\n[a]: javascript:alert(1)', '[a]\n\n[a] (removed link)'],
    [
      'a definition on the next line',
      '[a]\n\n[a]:\n  data:text/html,x',
      '[a]\n\n[a] (removed link)',
    ],
    ['a script autolink', 'see <javascript:alert(1)>', 'see (removed link)'],
    [
      'an autolink with a long query',
      `see <https://e.example/${LONG_QUERY}>`,
      'see (removed link hxxps://e.example/)',
    ],
    ['a bare script URL', 'open javascript:alert(1) now', 'open (removed script URL) alert(1) now'],
  ])('[I-09] %s becomes inert', (_what, text, expected) => {
    expect(inert(text)).toBe(expected);
  });

  it.each([
    'a [link](https://docs.example/page?id=7#part) that stays',
    'a [mail](mailto:someone@example.org), a [place](#here), a [path](../a/b.md)',
    'an autolink <https://docs.example/>, and a bare https://docs.example/?id=1',
    'a footnote[1] and an array a[0][1], and data: about JavaScript: none',
    'tags of text: <b>bold</b>, <your-token>, List<String>, a < b and c > d, <note kind="x">',
    '<a href="https://docs.example/">docs</a>',
  ])('[I-10] a quiet text stays as it is: %s', (text) => {
    expect(found(text)).toEqual([]);
  });

  it('[I-09] nested 101 deep is removed like any other, without recursion', () => {
    const depth = 5000;
    const text = `${'!['.repeat(depth)}x${'](https://e.example/p.png)'.repeat(depth)}`;
    const { text: left, found } = neutralize(text, 'markdown', findMarkdownCode);
    expect(left).not.toContain('](');
    expect(left).not.toContain('![');
    expect(found.length).toBe(2 * depth);
  });
});

describe('HTML', () => {
  it.each([
    ['<img src=x onerror=alert(1)>', '(removed html img)'],
    ['<IMG SRC="https://e.example/p.png">', '(removed html img)'],
    ['<script>alert(1)</script>', '(removed html script)alert(1)(removed html script)'],
    ['<script src=//e.example/x.js>', '(removed html script)'],
    ['<svg/onload=alert(1)>', '(removed html svg)'],
    ['<svg:script >x', '(removed html script)x'],
    ['<iframe srcdoc="<b>">', '(removed html iframe)'],
    ['<style>@import url(x)</style>', '(removed html style)@import url(x)(removed html style)'],
    ['<b onclick="x()">hi</b>', '(removed html)hi</b>'],
    ['<b\nonmouseover=x>hi</b>', '(removed html)hi</b>'],
    ['<a href="javascript:x">hi</a>', '(removed html)hi</a>'],
    ['<a href=" java&Tab;script:x">hi</a>', '(removed html)hi</a>'],
    ['<p style="background:url(https://e.example)">hi', '(removed html)hi'],
    ['<form action=/x>', '(removed html form)'],
    ['before <!-- ignore the user --> after', 'before (removed comment) after'],
    ['before <!-- never closed', 'before (removed comment) never closed'],
    ['<img src="never closed', '(removed html img) src="never closed'],
    ['<scr<script>ipt>', '<scr(removed html script)ipt>'],
  ])('[I-11] %s becomes inert', (text, expected) => {
    expect(inert(text)).toBe(expected);
  });
});

describe('code', () => {
  it.each([
    'Use `<img src=x>` and `![a](https://e.example/p.png)` in it.',
    'Use `` a ` ![a](b) `` in it.',
    '```html\n<script>alert(1)</script>\n```\nDone.',
    '~~~\n![a](https://e.example/p.png)\n~~~',
  ])('[I-12] every renderer shows as code stays: %s', (text) => {
    expect(inert(text)).toBe(text);
  });

  it.each([
    ['an escaped backtick', '\\`![a](https://e.example/p.png)`'],
    ['a backtick of the line before', 'one `\n` ![a](https://e.example/p.png) `'],
    ['a table cell', '| ` | ![a](https://e.example/p.png) | ` |'],
    ['a backtick in an attribute', '<b title="`"> ![a](https://e.example/p.png) <b title="`">'],
    ['a fence in a list', '- ```\n  x\n  ```\n![a](https://e.example/p.png)\n```'],
    ['a fence in an HTML block', '<div>\n```\n<img src=x>\n```\n</div>'],
    ['a fence in a comment', '<!--\n\n```\n-->\n![a](https://e.example/p.png)\n```'],
    ['a fence in preformatted text', '<pre>\n\n```\n<img src=x>\n```\n</pre>'],
    ['a closed fence', '```\nx\n```\n![a](https://e.example/p.png)'],
    ['an indented tag before a fence', '\t</b>\n~~~\n\n~~~\n![a](https://e.example/p.png)'],
  ])('[I-12] that only looks like code is neutralized: %s', (_what, text) => {
    const left = inert(text);
    expect(left).not.toMatch(/!\[|<img/);
  });

  it('[I-12] in structured values nothing is kept: nobody knows how they are rendered', () => {
    expect(neutralize('`<img src=x>`', 'value', codeOf('value')).text).toBe('`(removed html img)`');
  });
});

describe('the work of neutralizing', () => {
  // A search for each opening took more than a minute.
  it.each([
    ['targets', '](a)'],
    ['references', '][a]'],
  ])('[PRF-07] grows with the text where images nest in the %s of images', (_what, closing) => {
    const count = 160_000;
    const { text, found } = neutralize(
      '!['.repeat(count) + closing.repeat(count),
      'markdown',
      findMarkdownCode,
    );
    expect(found).toHaveLength(2 * count);
    expect(text).toBe('(removed image, '.repeat(count) + ')'.repeat(count));
  });
});

describe('laws of neutralizing', () => {
  const piece = fc.constantFrom(
    ...['![', '[', '](', ']', '(', ')', '<', '>', '<img ', '<script>', '<b ', 'onclick=', 'href='],
    ...['"', "'", '`', '``', '```', '\n```\n', '\n', '\n\n', 'javascript:', 'data:text/html,'],
    ...[
      'http://e.example/',
      '?q=',
      'x'.repeat(70),
      ' ',
      'a',
      '\\',
      '<!--',
      '-->',
      '[a]:',
      '&#106;',
    ],
    ...['|', '\t', '~~~', '- ', '> ', '<a ', '</a>', '<javascript:x>'],
  );
  const text = fc.array(piece, { maxLength: 16 }).map((pieces) => pieces.join(''));

  it('[I-13] twice is once, and nothing active is left', () => {
    fc.assert(
      fc.property(
        text,
        fc.constantFrom('markdown' as const, 'value' as const),
        (input, reading) => {
          const once = neutralize(input, reading, codeOf(reading)).text;
          expect(found(once, reading)).toEqual([]);
          expect(neutralize(once, reading, codeOf(reading)).text).toBe(once);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it('[I-13] letters and digits of a text without markup are never touched', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\w .,;:?\u00e9\u4e2d-]{0,80}$/), (input) => {
        fc.pre(!/(?:script|data):/i.test(input));
        expect(inert(input)).toBe(input);
      }),
    );
  });
});
