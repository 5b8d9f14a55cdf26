// Addresses in diagrams that a host draws, written so that only the drawing reads them: escaped twice, or put together
// by an expression of a chart.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../src/inspection/responses.js';
import { profile, textResult } from '../unit/inspection/samples.js';

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
  [
    'a list of expressions',
    'vega',
    `{"url":[{"test":"true","signal":"'htt'+'ps:/'+'/e.example'"}]}`,
  ],
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
