import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyRing } from '../../../src/state/keys.js';
import { LIST_CURSOR } from '../../../src/state/sealed-token.js';

const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
const BINDING = ['all', 'i', 's', 'c', 'tools/list'];

describe('[MRG-13] a cursor over members', () => {
  it('opens to what was sealed, the empty text too', () => {
    const cursors = fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 16 });
    fc.assert(
      fc.property(cursors, (entries) => {
        const given = new Map(entries);
        const sealed = LIST_CURSOR.seal(ring, BINDING, given, 100);
        expect(LIST_CURSOR.open(ring, BINDING, sealed, 99)).toEqual(given);
      }),
    );
  });

  it('opens for nobody else, nowhere else and not for ever', () => {
    const sealed = LIST_CURSOR.seal(ring, BINDING, new Map([['a', '']]), 100);
    for (const at of BINDING.keys())
      expect(LIST_CURSOR.open(ring, BINDING.with(at, 'x'), sealed, 1)).toBeUndefined();
    expect(LIST_CURSOR.open(ring, BINDING, sealed, 100)).toBeUndefined();
    expect(LIST_CURSOR.open(ring, BINDING, `${sealed}A`, 1)).toBeUndefined();
    expect(LIST_CURSOR.open(ring, BINDING, '', 1)).toBeUndefined();
  });
});
