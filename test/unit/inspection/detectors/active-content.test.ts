// Active Markdown and HTML: what runs or loads from elsewhere is made inert by the smallest edit, which loses nothing of
// it; everything else stays byte for byte.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findActiveContent, neutralize } from '../../../../src/inspection/detectors/active-content.js';
import { findMarkdownCode } from '../../../../src/inspection/detectors/markdown-code.js';
import { isElsewhere, scriptColon } from '../../../../src/inspection/detectors/targets.js';

const NO_CODE = (): [] => [];
const inert = (text: string): string => neutralize(text, findMarkdownCode).text;

/** The edits by their own rules, undone. */
const undone = (text: string): string =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('!\\[', '![')
    .replace(/\[(:|&colon;|\/|\\|[ui@])\]/g, '$1');

const EDITS: readonly (readonly [what: string, text: string, edited: string])[] = [
  ['an image', 'see ![a](https://e.example/p.png) x', 'see !\\[a](https://e.example/p.png) x'],
  ['an image of the same scheme', '![a](//e.example/p.png)', '!\\[a](//e.example/p.png)'],
  ['an image of a share', '![a](\\\\host\\share)', '!\\[a](\\\\host\\share)'],
  ['an image behind a slash and a backslash', '![a](/\\e.example/p)', '!\\[a](/\\e.example/p)'],
  ['an image behind a tab', '![a](/\t/e.example/p)', '!\\[a](/\t/e.example/p)'],
  ['an image in references', '![a](https&colon;//e.example)', '!\\[a](https&colon;//e.example)'],
  ['a scheme without slashes', '![a](https:e.example/p)', '!\\[a](https:e.example/p)'],
  ['an image in brackets', '![a](<https://e.example/p q>)', '!\\[a](<https://e.example/p q>)'],
  ['an image around a link', '![a [b](c) d](//e.example/p)', '!\\[a [b](c) d](//e.example/p)'],
  [
    'an image in a link',
    '[![a](https://e.example/p)](https://e.example/)',
    '[!\\[a](https://e.example/p)](https://e.example/)',
  ],
  ['an image by reference', '![a][1]\n\n[1]: //e.example/p', '!\\[a][1]\n\n[1]: //e.example/p'],
  ['a short reference', '![a]\n\n[A]: //e.example/p', '!\\[a]\n\n[A]: //e.example/p'],
  ['an empty reference', '![a][]\n\n[a]: //e.example/p', '!\\[a][]\n\n[a]: //e.example/p'],
  ['a script link', '[x](javascript:a)', '[x](javascript[:]a)'],
  ['a script link with a tab', '[x](java\tscript:a)', '[x](java\tscript[:]a)'],
  ['a script link in references', '[x](&#106;avascript&colon;a)', '[x](&#106;avascript[&colon;]a)'],
  ['a script link in capitals', '[x](JaVaScRiPt:a)', '[x](JaVaScRiPt[:]a)'],
  ['a document as data', '[x](data:text/html;base64,PHN)', '[x](data[:]text/html;base64,PHN)'],
  ['an image as a link', '[x](data:image/svg+xml,a)', '[x](data[:]image/svg+xml,a)'],
  ['a definition of a script', '[a]\n\n[a]:\n  vbscript:x', '[a]\n\n[a]:\n  vbscript[:]x'],
  ['a script in an autolink', '<javascript:a>', '<javascript[:]a>'],
  ['a handler', '<img src=x onerror=a>', '&lt;img src=x onerror=a>'],
  ['a handler in braces', '<b onClick={a}>', '&lt;b onClick={a}>'],
  ['a handler in capitals behind a slash', '<svg/ONLOAD=a>', '&lt;svg/ONLOAD=a>'],
  ['an image in HTML', '<IMG SRC="https://e.example/p">', '&lt;IMG SRC="https://e.example/p">'],
  ['the name that means img', '<image src=//e.example/p>', '&lt;image src=//e.example/p>'],
  ['an image without an end', '<img src="https://e.example', '&lt;img src="https://e.example'],
  ['one of several', '<img srcset="a.png, //e.example/b 2x">', '&lt;img srcset="a.png, //e.example/b 2x">'],
  ['a poster', '<video poster=//e.example/p>', '&lt;video poster=//e.example/p>'],
  ['a script', '<script>a()</script>', '&lt;script>a()</script>'],
  ['a relative script', '<script src=a.js></script>', '&lt;script src=a.js></script>'],
  ['a script without an end', '<script>alert(1)', '&lt;script>alert(1)'],
  ['a script from elsewhere', '<script src=//e.example/x>', '&lt;script src=//e.example/x>'],
  ['a frame', '<iframe src=https://e.example>', '&lt;iframe src=https://e.example>'],
  ['a frame that holds a document', '<iframe srcdoc="<b>">', '&lt;iframe srcdoc="<b>">'],
  ['a frame of data', '<embed src="data:text/html,x">', '&lt;embed src="data:text/html,x">'],
  ['an object', '<object data=//e.example/x>', '&lt;object data=//e.example/x>'],
  ['a link in HTML', '<a href="javascript:x">a</a>', '&lt;a href="javascript[:]x">a</a>'],
  ['a hidden scheme', '<a href=" java&Tab;script:x">', '&lt;a href=" java&Tab;script:x">'],
  ['a link in MathML', '<math xlink:href=javascript:x>', '&lt;math xlink:href=javascript[:]x>'],
  ['a form that posts', '<form METHOD="post">', '&lt;form METHOD="post">'],
  ['a form for elsewhere', '<form action=//e.example>', '&lt;form action=//e.example>'],
  ['a button for elsewhere', '<button formaction=//e.example>', '&lt;button formaction=//e.example>'],
  ['a picture as a button', '<input type=image src=//e.example/p>', '&lt;input type=image src=//e.example/p>'],
  ['a ping', '<a href=/ ping=//e.example>', '&lt;a href=/ ping=//e.example>'],
  ['a redirection', '<meta http-equiv=Refresh content="0;url=/x">', '&lt;meta http-equiv=Refresh content="0;url=/x">'],
  ['a base', '<base href="//e.example">', '&lt;base href="//e.example">'],
  ['a style sheet', '<link rel=stylesheet href=//e.example>', '&lt;link rel=stylesheet href=//e.example>'],
  ['a name to resolve', '<link rel=dns-prefetch href=//e.example>', '&lt;link rel=dns-prefetch href=//e.example>'],
  ['a style that loads', '<p style="a:url(//e.example)">', '&lt;p style="a:url(//e.example)">'],
  ['a style in escapes', '<p style="a:\\75rl(//e.example)">', '&lt;p style="a:\\75rl(//e.example)">'],
  ['an imported style', "<style>@import '//e.example'</style>", "&lt;style>@import '//e.example'</style>"],
  ['a style in SVG', '<svg><style>u<b/>rl(//e.example)</style>', '<svg>&lt;style>u<b/>rl(//e.example)</style>'],
  ['a background', '<table background=//e.example>', '&lt;table background=//e.example>'],
  ['an image in SVG', '<svg><image href=//e.example></svg>', '<svg>&lt;image href=//e.example></svg>'],
  ['paint from elsewhere', '<rect fill="url(//e.example#a)"/>', '&lt;rect fill="url(//e.example#a)"/>'],
  ['an animated link', '<set attributeName=href to=javascript:x>', '&lt;set attributeName=href to=javascript:x>'],
  ['a tag in a quote', '> <b\n> onclick=a>x</b>', '> &lt;b\n> onclick=a>x</b>'],
  [
    'a value that the next paragraph continues',
    '<div title="\n\n[l](<onclick=a//>)',
    '&lt;div title="\n\n[l](<onclick=a//>)',
  ],
  ['a tag in a comment that is none', '\\<!-- <img src=//e.example> -->', '\\<!-- &lt;img src=//e.example> -->'],
];

const KEPT: readonly string[] = [
  'scope.scopes![0] and a![b](c) and (?<![A-Z0-9])[a-z](?!x)',
  '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
  'Promise<object>, Array<link>, Map<style, form>, Set<script>, List<base>, Box<img>',
  'usage: cmd <script> [-o <object>] <source> <input...>',
  '![a](p.png) ![b](/p.png) ![c](../p.png?x=1#y) ![d](#e) ![e](data:image/png;base64,AAAA)',
  '![a][b]\n\n[b]: p.png\n[c]: https://docs.example/',
  '![svg](data:image/svg+xml;base64,AAAA) ![a](attachment:a.png)',
  `[a](https://e.example/p?q=${'x'.repeat(90)}#y) https://user@e.example/ hxxps://e.example www.e.example/?a=b`,
  '[a](mailto:a@b.example) [b](tel:1) [c](ftp://e.example) <https://e.example/> <a@b.example>',
  'if (url.startsWith("javascript:")) { /* data: text/html */ }',
  '<Bar foo={1} onUpdate={() => {}} /> <Foo.Bar onChangeValue={x} /> <Avatar src="https://e.example/a.png" />',
  '<div :onclick="a" @click="b" v-on:click="c" (click)="d" on:click="e" data-src="//e.example">',
  '<template><slot/><img :src="a" src="./b.png"><video src="c.mp4"></video></template>',
  '<svg viewBox="0 0 1 1"><path d="M0 0"/><use href="#a"/><style>path{fill:url(#b)}</style></svg>',
  '<style>a{color:red;background:url(b.png)}</style><p style="color:red">',
  '<form action="/x"><input name=a><button>b</button></form><iframe src="/x"></iframe><object data="a.pdf">',
  '<link rel="canonical" href="https://e.example/"><link rel=stylesheet href=a.css><base href="/">',
  '<link rel="icon" href="data:image/svg+xml,<svg/>"><meta name=a content="https://e.example">',
  '<script type="application/ld+json">{"a": 1}</script><script type="text/x-template"><b></script>',
  'a <!-- <img src=//e.example> --> b',
  '<!--\n<script src="//e.example"></script>\n-->\n\n<!-- a -->\n\n```html\n<img src=//e.example>\n```\n',
  'Use `<img src=//e.example>` and `![a](https://e.example/p.png)` in it.',
  '1. Do:\n\n   ```html\n   <script>a()</script>\n   ```\n\n~~~\n![a](https://e.example/p.png)\n~~~',
  '```mermaid\ngraph TD\n  A["<b>a</b>"] --> B\n  click A "https://docs.example/" "tip"\n```',
  '```vega-lite\n{"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "data": {"url": "data/a.csv"}}\n```',
];

const DRAWN: readonly (readonly [string, string, string])[] = [
  ['a picture of Mermaid', 'A@{ img: "https://e.example/p" }', 'A@{ img: "https[:]//e.example/p" }'],
  ['a script of Mermaid', 'click A "javascript:a()"', 'click A "javascript[:]a()"'],
  ['a label of Mermaid', 'A["<img src=\'//e.example\'>"]', 'A["&lt;img src=\'[/]/e.example\'>"]'],
  ['a style of Mermaid', 'style A fill:url(https://e.example)', 'style A fill:url(https[:]//e.example)'],
];

describe('active content', () => {
  it.each(EDITS)('[I-09, I-11] %s becomes inert, and the edit can be undone', (_what, text, edited) => {
    expect(inert(text)).toBe(edited);
    expect(inert(edited)).toBe(edited);
    expect(undone(edited)).toBe(text);
  });

  it.each(KEPT)('[I-10, I-12] what acts in no way stays byte for byte: %s', (text) => {
    expect(findActiveContent(text, findMarkdownCode(text)).found).toEqual([]);
  });

  it.each(DRAWN)('[I-12] %s becomes inert in a fence that is drawn', (_what, line, edited) => {
    for (const [open, close] of [
      ['```mermaid', '```'],
      ['- ~~~ {.mermaid}', '  ~~~'],
      ['````mer&#109;aid x', '````'],
    ]) {
      expect(inert(`${open}\n${line}\n${close}\n`)).toBe(`${open}\n${edited}\n${close}\n`);
    }
    expect(inert(`\`\`\`md\n${line}\n\`\`\`\n`)).toBe(`\`\`\`md\n${line}\n\`\`\`\n`);
  });

  it.each([
    ['data', '{"data":{"url":"https://e.example/a"}}', '{"data":{"url":"https[:]//e.example/a"}}'],
    ['escapes', '{"url":"\\u0068ttps:\\/\\/e.example"}', '{"url":"\\u0068ttps[:]\\/\\/e.example"}'],
    ['values', '{"values":[{"a":"//e.example/p"}]}', '{"values":[{"a":"[/]/e.example/p"}]}'],
    ['a computed address', '{"url":{"signal":"a+b"}}', '{"url"[:]{"signal":"a+b"}}'],
  ])('[I-12] a chart loads nothing by %s', (_what, chart, edited) => {
    for (const language of ['vega', 'vega-lite', 'echarts']) {
      expect(inert(`\`\`\`${language}\n${chart}\n\`\`\``)).toBe(`\`\`\`${language}\n${edited}\n\`\`\``);
    }
  });

  it('[I-11] comments and hidden elements stay and are counted', () => {
    const text = '<!-- a --><p hidden>b</p><p style="display: none">c</p><p style="color:red">d</p>';
    expect(neutralize(text, NO_CODE)).toMatchObject({ text, comments: 1, hiddenElements: 2 });
  });

  it('[I-12] nothing is code in structured values: nobody knows how they are rendered', () => {
    expect(neutralize('`<img src=//e.example>`', NO_CODE).text).toBe('`&lt;img src=//e.example>`');
  });
});

describe('targets', () => {
  it.each([
    ...['https://e.example', 'HTTP:e.example', '//e.example', '\\\\host\\share', '/\\host', '\\/host'],
    ...[' \t//e.example', '/\n/e.example', '\u0001https://e.example', 'h\tttps://e.example', 'file:///a'],
    ...['https:foo', '&#47;&#47;e.example', 'https&colon;//e', '&sol;/e', '\\//e.example', '//[', 'c:\\a.png'],
  ])('[I-09] lead elsewhere: %j', (target) => {
    expect(isElsewhere(target)).toBe(true);
  });

  it.each([
    ...['a', './a', '../a', '/a', '?a=//b', '#//a', 'a//b', 'a/b:c', '', 'a\\b', '/a\\b', '{a}//b', '`https://a`'],
    ...['data:image/png,x', 'about:blank', 'a&amp;b', '&copy', '%2f%2fe.example', '/%5ce.example'],
  ])('[I-10] are relative or lead nowhere: %j', (target) => {
    expect(isElsewhere(target)).toBe(false);
  });

  it('[I-10] are relative where every base of a page and a file keeps its host', () => {
    const unit = fc.constantFrom(...'/\\:.?#@ \t\n'.split(''), 'http', 'https', 'file', 'a', 'e.example', 'c|');
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 6 }), (units) => {
        const target = units.join('');
        fc.pre(URL.canParse(target, 'https://page.example') && URL.canParse(target, 'file:///a'));
        const page = new URL(target, 'https://page.example');
        const file = new URL(target, 'file:///a');
        const isRelative = page.origin === 'https://page.example' && file.protocol === 'file:' && file.host === '';
        // A backslash may also be the escape of a Markdown target.
        if (isRelative) fc.pre(!target.includes('\\'));
        expect(isElsewhere(target)).toBe(!isRelative);
      }),
      { numRuns: 2000 },
    );
  });

  it('[I-09] are scripts by their scheme, wherever its colon is', () => {
    expect(scriptColon(' javascript\\:x')).toEqual({ start: 11, end: 13 });
    expect(scriptColon('data:application/xhtml+xml,x')).toEqual({ start: 4, end: 5 });
    for (const target of ['javascripts:x', 'data:image/png,x', 'a/javascript:x', 'java script:x']) {
      expect(scriptColon(target)).toBeUndefined();
    }
  });
});

describe('code', () => {
  it.each([
    ['an escaped backtick', '\\`![a](https://e.example/p.png)`'],
    ['a backtick of the line before', 'one `\n` ![a](https://e.example/p.png) `'],
    ['a table cell', '| ` | ![a](https://e.example/p.png) | ` |'],
    ['a backtick in an attribute', '<b title="`"> ![a](https://e.example/p.png) <b title="`">'],
    ['a fence in a list', '- ```\n  x\n  ```\n![a](https://e.example/p.png)\n```'],
    ['a fence that a list ends', '- ```\n![a](https://e.example/p.png)\n  ```'],
    ['a fence in an HTML block', '<div>\n```\n<img src=//e.example>\n```\n</div>'],
    ['a fence in a comment', '<!--\n\n```\n-->\n![a](https://e.example/p.png)\n```'],
    ['a fence in preformatted text', '<pre>\n\n```\n<img src=//e.example>\n```\n</pre>'],
    ['a closed fence', '```\nx\n```\n![a](https://e.example/p.png)'],
    ['an indented tag before a fence', '\t</b>\n~~~\n\n~~~\n![a](https://e.example/p.png)'],
  ])('[I-12] that only looks like code is read: %s', (_what, text) => {
    expect(inert(text)).not.toMatch(/!\[|<img/);
  });
});

describe('the work of neutralizing', () => {
  it.each([
    ['targets', '](//e)'],
    ['references', '][e]'],
  ])('[PRF-07] grows with the text where images nest in the %s of images', (_what, closing) => {
    const count = 20_000;
    const text = `${'!['.repeat(count)}${closing.repeat(count)}\n\n[e]: //e\n`;
    const { text: left, found } = neutralize(text, findMarkdownCode);
    expect(found).toHaveLength(count);
    expect(left.startsWith('!\\[!\\['.repeat(count / 2))).toBe(true);
  });
});

describe('laws of neutralizing', () => {
  const piece = fc.constantFrom(
    ...['![', '[', '](', ']', '(', ')', '<', '>', '<img ', '<script>', '</script>', '<b ', 'onclick='],
    ...['href=', 'src=', '"', "'", '`', '``', '```', '\n```\n', '\n', '\n\n', 'javascript:', 'data:text/html,'],
    ...['//e.example/', 'http://e.example/', '?q=', ' ', 'a', '\\', '<!--', '-->', '[a]:', '&#106;', 'mermaid\n'],
    ...['|', '\t', '~~~', '- ', '> ', '<a ', '</a>', '<javascript:x>', '<style>', 'url(', '\r\n'],
  );
  const text = fc.array(piece, { maxLength: 16 }).map((pieces) => pieces.join(''));

  it('[I-13] twice is once, nothing active is left, and no character is lost', () => {
    fc.assert(
      fc.property(text, fc.constantFrom(findMarkdownCode, NO_CODE), (input, findCode) => {
        const once = neutralize(input, findCode).text;
        expect(findActiveContent(once, findCode(once)).found).toEqual([]);
        expect(neutralize(once, findCode).text).toBe(once);
        let at = 0;
        for (const unit of once.replaceAll('&lt;', '<')) if (unit === input[at]) at++;
        expect(at).toBe(input.length);
      }),
      { numRuns: 3000 },
    );
  });

  it('[I-13] letters and digits of a text without markup are never touched', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\w .,;:?\u00e9\u4e2d-]{0,80}$/), (input) => {
        expect(inert(input)).toBe(input);
      }),
    );
  });
});
