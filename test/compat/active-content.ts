// What becomes of active content, and of what only looks like it, in the results of tools.

import { expect } from 'vitest';
import type { Json, JsonObject } from '../support/json.js';
import { resultOf } from '../support/wire-client.js';
import { type CompatRow, withWorld } from './rig.js';

/** Proves that a client gets the texts of a result as they are given second. */
async function arrives(texts: readonly (readonly [given: string, seen: string])[]): Promise<void> {
  const content = (index: 0 | 1): { type: string; text: string }[] =>
    texts.map((one) => ({ type: 'text', text: one[index] }));
  await withWorld(
    { upstream: ['pinning: {mode: "off"}'], result: () => ({ content: content(0) }) },
    async ({ call }) => {
      expect(resultOf(await call('read_record', { id: 'one' }))['content']).toEqual(content(1));
    },
  );
}

const same = (...texts: string[]): [string, string][] => texts.map((text) => [text, text]);

const svgImage = (inner: string): JsonObject => ({
  type: 'image',
  data: Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg">${inner}</svg>`).toString('base64'),
  mimeType: 'image/svg+xml',
});

/** Proves what a client gets in place of one block. */
async function blockArrives(given: JsonObject, seen: Json): Promise<void> {
  await withWorld({ upstream: ['pinning: {mode: "off"}'], result: () => ({ content: [given] }) }, async ({ call }) => {
    expect(resultOf(await call('read_record', { id: 'one' }))['content']).toEqual([seen]);
  });
}

export const rows: readonly CompatRow[] = [
  {
    id: 'svg-images-that-do-nothing',
    area: 'content',
    source: 'SVG 2 §16, XML 1.0',
    given: 'An image is an SVG drawing with a style sheet, a link and references within itself.',
    verdict: 'accepts',
    sees: 'The client gets the image byte for byte.',
    run: () => {
      const image = svgImage('<style>a{fill:url(#g)}</style><a href="https://docs.example/"><use href="#g"/></a>');
      return blockArrives(image, image);
    },
  },
  {
    id: 'svg-images-that-act',
    area: 'content',
    source: 'SVG 2 §16, XML 1.0',
    given: 'An image is an SVG drawing with a script.',
    verdict: 'changes',
    sees: 'The block is a text that says so and holds the source, in which the tag is escaped.',
    run: () =>
      blockArrives(svgImage('<script>a()</script>'), {
        type: 'text',
        text: expect.stringContaining('>&lt;script>a()</script></svg>') as unknown as string,
      }),
  },
  {
    id: 'svg-icons-as-they-are-written',
    area: 'content',
    source: 'RFC 2397, WHATWG Fetch §6',
    given:
      'A link has icons as data URLs: one of Windows, one with a stray percent sign, one of a charset, one that runs.',
    verdict: 'changes',
    sees: 'The client gets the link with the icons that only draw, byte for byte.',
    run: () => {
      const drawn = (inner: string): string => `<svg xmlns="http://www.w3.org/2000/svg">${inner}</svg>`;
      const rect = drawn('<rect width="100%" height="1" fill="red"/>');
      const encoded = Buffer.from(rect, 'utf16le').toString('base64');
      const kept = [
        { src: 'data:image/x-icon;base64,AAABAA==' },
        { src: `data:image/svg+xml;utf8,${rect}` },
        { src: `data:image/svg+xml;charset=utf-16le;base64,${encoded}` },
      ];
      const link = { type: 'resource_link', uri: 'memo://one', name: 'one' };
      const active = { src: `data:image/svg+xml;utf8,${drawn('<g onload="a()"/>')}100%` };
      return blockArrives({ ...link, icons: [...kept, active] }, { ...link, icons: kept });
    },
  },
  {
    id: 'addresses-that-are-scripts',
    area: 'content',
    source: 'WHATWG URL §4.4, HTML §7.4.2.3.2',
    given: 'A link to a resource leads to a script.',
    verdict: 'changes',
    sees: 'The client gets the link with the colon of the scheme in brackets, so that it leads nowhere.',
    run: () =>
      blockArrives(
        { type: 'resource_link', uri: 'javascript:run(1)', name: 'one' },
        { type: 'resource_link', uri: 'javascript[:]run(1)', name: 'one' },
      ),
  },
  {
    id: 'source-code-is-no-markup',
    area: 'content',
    source: 'CommonMark §6.4, HTML §13.2.5',
    given: 'A result holds an assertion behind an index, a look-behind, generics and usage lines.',
    verdict: 'accepts',
    sees: 'The client gets every character.',
    run: () =>
      arrives(
        same(
          'scope.scopes![0] (?<![A-Z0-9])',
          'Promise<object> Array<link> Map<style, form>',
          'cmd <script> [-o <object>]',
          '<Bar foo={1} onUpdate={() => {}} />',
        ),
      ),
  },
  {
    id: 'relative-targets-load-nothing-from-elsewhere',
    area: 'content',
    source: 'WHATWG URL §4.4',
    given: 'A page has pictures, frames and style sheets with relative targets, and ordinary links.',
    verdict: 'accepts',
    sees: 'The client gets every character.',
    run: () =>
      arrives(
        same(
          '![a](p.png) <img src="/p.png"> <iframe src="a"></iframe> <link rel=stylesheet href=a.css>',
          `[a](https://e.example/?q=${'x'.repeat(90)})`,
        ),
      ),
  },
  {
    id: 'what-loads-is-escaped-where-it-stands',
    area: 'content',
    source: 'CommonMark §2.4, HTML §13.2.5',
    given: 'A result has pictures from elsewhere, scripts, handlers and links to scripts.',
    verdict: 'changes',
    sees: 'One character of each is escaped, so that nothing loads or runs and nothing is lost.',
    run: () =>
      arrives([
        ['![a](https://e.example/p.png)', '!\\[a](https://e.example/p.png)'],
        ['![a](\\\\host\\share)', '!\\[a](\\\\host\\share)'],
        ['<script>a()</script>', '&lt;script>a()</script>'],
        ['<b onClick={a}>', '&lt;b onClick={a}>'],
        ['[a](javascript:b)', '[a](javascript[:]b)'],
      ]),
  },
  {
    id: 'diagrams-that-load-nothing',
    area: 'content',
    source: 'GitHub, creating diagrams',
    given: 'A fence that hosts draw holds a diagram with an ordinary link.',
    verdict: 'accepts',
    sees: 'The client gets every character.',
    run: () => arrives(same('```mermaid\nA --> B\nclick A "https://docs.example/"\n```')),
  },
  {
    id: 'diagrams-that-load',
    area: 'content',
    source: 'Mermaid, image shapes; Vega, data',
    given: 'A fence that hosts draw loads a picture or data from elsewhere.',
    verdict: 'changes',
    sees: 'The address is broken visibly, so that the diagram loads nothing.',
    run: () =>
      arrives([
        ['```mermaid\nA@{ img: "https://e.example/p" }\n```', '```mermaid\nA@{ img: "https[:]//e.example/p" }\n```'],
        ['```vega\n{"url":"https://e.example/d"}\n```', '```vega\n{"url":"https[:]//e.example/d"}\n```'],
      ]),
  },
];
