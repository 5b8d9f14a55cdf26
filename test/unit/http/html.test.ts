import { describe, expect, it } from 'vitest';
import { foreign, foreignName, html } from '../../../src/http/html.js';

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onfocus='alert(1)",
  '</style><script>',
  '&lt;script&gt;',
  'a\u202eb\u200bc\u0000d\u{e0041}e\u00a0f',
];

describe('the template of the pages', () => {
  it.each(HOSTILE)('[O-78] escapes %j in text and in attributes', (text) => {
    const markup = html`<p title="${text}">${text}</p>`.toString();
    expect(markup.match(/<[^>]*>/g)).toHaveLength(2);
    expect(markup).not.toMatch(/<(?!p |\/p>)|"[^>]*"[^>]*"/);
  });

  it('[O-78] joins lists, leaves out what is undefined, and escapes nothing twice', () => {
    const items = ['<', '&amp;'].map((one) => html`<li>${one}</li>`);
    expect(html`<ul>${items}${undefined}${0}</ul>`.toString()).toBe('<ul><li>&lt;</li><li>&amp;amp;</li>0</ul>');
  });

  it('[O-78] shows what is invisible, and shortens', () => {
    expect(foreign('a\u202eb\u200b\u0000\n\u00a0\u{e0041}')).toBe('a\\u{202e}b\\u{200b}\\u{0}\\n\\u{a0}\\u{e0041}');
    expect(foreign('x'.repeat(1000))).toBe(`${'x'.repeat(200)}\u2026 (1000 characters)`);
    expect(foreignName('re\u0430d').toString()).toBe('<code>re\u0430d</code> (<code>re\\u{430}d</code>)');
  });
});
