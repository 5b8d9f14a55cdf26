// Addresses in diagrams that a host draws, written so that only the drawing reads them: escaped twice, or put together
// by an expression of a chart.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { profile, textResult } from './samples.js';

function inspected(language: string, body: string): string {
  const fence = `\`\`\`${language}\n${body}\n\`\`\``;
  const outcome = inspectMessage({ ...textResult(fence), profile });
  return outcome.kind === 'changed' ? outcome.text : outcome.kind;
}

const LOADS: readonly (readonly [string, string, string])[] = [
  [
    'a style sheet escaped in a string',
    'mermaid',
    String.raw`%%{init: {"themeCSS": "*{background:u\\72l(//e.example/)}"}}%%`,
  ],
  [
    'a style sheet in the escapes of JSON',
    'mermaid',
    String.raw`%%{init: {"themeCSS": "*{background:\u0075rl(//e.example/)}"}}%%`,
  ],
  [
    'an import escaped in a string',
    'mermaid',
    String.raw`%%{init: {"themeVariables": {"fontFamily": "x;} @im\\port '//e.example/a.css'"}}}%%`,
  ],
  ['a list of expressions', 'vega', `{"url":[{"test":"true","signal":"'htt'+'ps:/'+'/e.example'"}]}`],
  [
    'a computed column',
    'vega',
    `{"transform":[{"type":"formula","as":"u","expr":"'htt'+'ps:/'+'/e.example'"}],"url":{"field":"u"}}`,
  ],
];

describe('a diagram with an address that only the drawing reads', () => {
  it.each(LOADS)('is broken: %s', (_title, language, body) => {
    expect(inspected(language, body)).toMatch(/\[(?:\\\\|:|[ua])\]/);
  });

  it('passes where its column is given, and nothing is computed', () => {
    const chart = '{"data":{"values":[{"u":"a.png"}]},"url":{"field":"u"}}';
    expect(inspected('vega', chart)).toBe('clean');
  });
});

const IMAGE = 'A@{ img: "https://e.example/x.png" }';

describe('a diagram that no closed fence holds', () => {
  it.each([
    ['a container', `::: mermaid\n${IMAGE}\n:::`],
    ['a container that stays open', `:::mermaid\n${IMAGE}`],
    ['a container with attributes', `:::{.mermaid}\n${IMAGE}\n:::\n`],
    ['an element', `<pre class="mermaid">\n${IMAGE}\n</pre>`],
    ['an element with another in it', `<div class="box mermaid"><div>a</div>\n${IMAGE}\n</div>`],
    ['code in an element', `<pre><code class="language-mermaid">${IMAGE}</code></pre>`],
    ['a fence that stays open', `\`\`\`mermaid\n${IMAGE}`],
    ['a fence in lines of the Macintosh', `~~~mermaid\r${IMAGE}\r~~~\r`],
    ['such a fence that stays open', `text\r~~~ mermaid\r${IMAGE}\r`],
    ['a style sheet of Graphviz', '```dot\ngraph { stylesheet="https://e.example/a.css" }\n```'],
    ['a file of shapes', '```graphviz\na [shapefile="//e.example/a.svg"]\n```'],
    ['a theme of PlantUML', '```plantuml\n!theme x from https://e.example/a\n```'],
    ['data of PlantUML', '```puml\n!$a = %load_json("https://e.example/a.json")\n```'],
    ['a picture of a mind map', '```markmap\n# ![a](https://e.example/a.png)\n```'],
  ])('is broken: %s', (_title, text) => {
    const outcome = inspectMessage({ ...textResult(text), profile });
    const shown = outcome.kind === 'changed' ? outcome.text : outcome.kind;
    expect(shown).toMatch(/(?:https)?\[(?:\/|:)\]/);
  });

  it.each([
    ['a container of a page', `:::note\n${IMAGE}\n:::`],
    ['an element of a page', `<div class="chart">\n${IMAGE}\n</div>`],
    ['what is behind the element', `<pre class="mermaid">A-->B</pre>\n${IMAGE}`],
    ['an element that is shown as code', `\`<pre class="mermaid">\` ${IMAGE}`],
    ['a diagram', `::: mermaid\ngraph TD; A[see https://e.example]-->B\n:::`],
  ])('passes: %s', (_title, text) => {
    expect(inspectMessage({ ...textResult(text), profile }).kind).toBe('clean');
  });
});
