// Pages that are told again: exactly as they would be told anew, and only where the very bytes came again.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinPieces } from '../../../../src/protocol/transport.js';
import {
  createTranslatedPages,
  type TranslatedPage,
} from '../../../../src/upstream/adapters/list-pages.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const heardAs = (id: string | number, tools: readonly string[]): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { tools } });

function tellingOf(heard: string, id: string | number): TranslatedPage {
  const { result } = JSON.parse(heard);
  return {
    source: heard,
    translated: JSON.stringify({ jsonrpc: '2.0', id, result: { ...result, ttlMs: 0 } }),
  };
}

describe('pages that were told before', () => {
  it('[PRF-02] are told again without being read', async () => {
    const pages = createTranslatedPages();
    let readings = 0;
    for (const [heard, told] of [
      [1, 'a'],
      [2, 'b'],
      [3, 40],
      [4, 'another-id'],
    ] as const) {
      const text = heardAs(heard, ['one', 'zwei', '\u4e09']);
      const bytes = await pages.translate(
        'tools/list',
        encode(text),
        { source: heard, translated: told },
        async () => {
          readings += 1;
          return tellingOf(text, told);
        },
      );
      expect(decode(joinPieces(bytes))).toBe(tellingOf(text, told).translated);
    }
    expect(readings).toBe(1);
  });

  it('[PRF-02] law: what is told is what telling anew would say, whatever came before', async () => {
    const pages = createTranslatedPages();
    const id = fc.oneof(fc.nat({ max: 30 }), fc.string({ maxLength: 3 }));
    const tools = fc.array(fc.constantFrom('a', 'b', '\u4e00', '"', '1'), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(id, id, tools, fc.boolean(), async (heard, told, names, isList) => {
        const text = heardAs(heard, names);
        const method = isList ? 'tools/list' : 'tools/call';
        const bytes = await pages.translate(
          method,
          encode(text),
          { source: heard, translated: told },
          async () => tellingOf(text, told),
        );
        expect(decode(joinPieces(bytes))).toBe(tellingOf(text, told).translated);
      }),
      { numRuns: 2000 },
    );
  });

  it('[PRF-02] never for an answer that comes once: a call is read each time', async () => {
    const pages = createTranslatedPages();
    let readings = 0;
    for (let round = 0; round < 2; round += 1) {
      const text = heardAs(1, []);
      await pages.translate('tools/call', encode(text), { source: 1, translated: 1 }, async () => {
        readings += 1;
        return tellingOf(text, 1);
      });
    }
    expect(readings).toBe(2);
  });

  it('[PRF-02] what cannot be told passes as it came', async () => {
    const bytes = encode('{"no":"message"}');
    const told = await createTranslatedPages().translate(
      'tools/list',
      bytes,
      { source: 1, translated: 2 },
      async () => undefined,
    );
    expect(told).toBe(bytes);
  });
});
