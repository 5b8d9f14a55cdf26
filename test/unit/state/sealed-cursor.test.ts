import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyRing } from '../../../src/state/keys.js';
import { openCursor, sealCursor } from '../../../src/state/sealed-values.js';

const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
const BINDING = { upstream: 'all', issuer: 'i', subject: 's', client: 'c', method: 'tools/list' };

describe('[MRG-13] a cursor over members', () => {
  it('opens to what was sealed, the empty text too', () => {
    const cursors = fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 16 });
    fc.assert(
      fc.property(cursors, (entries) => {
        const given = new Map(entries);
        const sealed = sealCursor(ring, BINDING, given, 100);
        expect(openCursor(ring, BINDING, sealed, 99)).toEqual(given);
      }),
    );
  });

  it('opens for nobody else, nowhere else and not for ever', () => {
    const sealed = sealCursor(ring, BINDING, new Map([['a', '']]), 100);
    for (const change of ['upstream', 'issuer', 'subject', 'client', 'method'] as const)
      expect(openCursor(ring, { ...BINDING, [change]: 'x' }, sealed, 1)).toBeUndefined();
    expect(openCursor(ring, BINDING, sealed, 100)).toBeUndefined();
    expect(openCursor(ring, BINDING, `${sealed}A`, 1)).toBeUndefined();
    expect(openCursor(ring, BINDING, '', 1)).toBeUndefined();
  });
});
