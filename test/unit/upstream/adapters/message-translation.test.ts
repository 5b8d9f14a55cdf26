// Pages that are told again: exactly as they would be told anew, and only where the very bytes came again.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinPieces } from '../../../../src/protocol/transport.js';
import { createTranslatedPages, type TranslatedPage } from '../../../../src/upstream/adapters/message-translation.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const responseText = (id: string | number, tools: readonly string[]): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { tools } });

function tellingOf(source: string, id: string | number): TranslatedPage {
  const { result } = JSON.parse(source);
  return {
    source,
    translated: JSON.stringify({ jsonrpc: '2.0', id, result: { ...result, ttlMs: 0 } }),
  };
}

describe('pages that were told before', () => {
  it('[PRF-02] are told again without being read', async () => {
    const pages = createTranslatedPages();
    let readings = 0;
    for (const [source, target] of [
      [1, 'a'],
      [2, 'b'],
      [3, 40],
      [4, 'another-id'],
    ] as const) {
      const text = responseText(source, ['one', 'zwei', '\u4e09']);
      const bytes = await pages.translate('tools/list', encode(text), { source, translated: target }, async () => {
        readings += 1;
        return tellingOf(text, target);
      });
      expect(decode(joinPieces(bytes))).toBe(tellingOf(text, target).translated);
    }
    expect(readings).toBe(1);
  });

  it('[PRF-02] law: what is told is what telling anew would say, whatever came before', async () => {
    const pages = createTranslatedPages();
    const id = fc.oneof(fc.nat({ max: 30 }), fc.string({ maxLength: 3 }));
    const tools = fc.array(fc.constantFrom('a', 'b', '\u4e00', '"', '1'), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(id, id, tools, fc.boolean(), async (source, target, names, isList) => {
        const text = responseText(source, names);
        const method = isList ? 'tools/list' : 'tools/call';
        const bytes = await pages.translate(method, encode(text), { source, translated: target }, async () =>
          tellingOf(text, target),
        );
        expect(decode(joinPieces(bytes))).toBe(tellingOf(text, target).translated);
      }),
      { numRuns: 2000 },
    );
  });

  it('[PRF-02] never for an answer that comes once: a call is read each time', async () => {
    const pages = createTranslatedPages();
    let readings = 0;
    for (let round = 0; round < 2; round += 1) {
      const text = responseText(1, []);
      await pages.translate('tools/call', encode(text), { source: 1, translated: 1 }, async () => {
        readings += 1;
        return tellingOf(text, 1);
      });
    }
    expect(readings).toBe(2);
  });

  it('[PRF-02] what cannot be told passes as it came', async () => {
    const bytes = encode('{"no":"message"}');
    const translated = await createTranslatedPages().translate(
      'tools/list',
      bytes,
      { source: 1, translated: 2 },
      async () => undefined,
    );
    expect(translated).toBe(bytes);
  });
});
