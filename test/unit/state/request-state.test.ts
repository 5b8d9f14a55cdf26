import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_SESSION_ID } from '../../../src/protocol/admitted-request.js';
import { createKeyRing } from '../../../src/state/keys.js';
import { MAX_STATE_CHARS, REQUEST_STATE, SESSION_ID } from '../../../src/state/sealed-token.js';

const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
const BINDING = [
  ...['github', 'https://idp.example.com', 'ada', 'editor'],
  ...['tools/call', 'tool read', 'digest'],
];
const NOW = 1_000_000;

describe('the sealed state of a dialogue', () => {
  test('[T-09] opens to the same bytes, whatever they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 500 }), (state) => {
        const sealed = REQUEST_STATE.seal(ring, BINDING, state, NOW + 1) ?? '';
        expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW)).toBe(state);
      }),
    );
  });

  test('[T-09, MCP-25] does not open late, nor under any other binding', () => {
    const sealed = REQUEST_STATE.seal(ring, BINDING, 'state', NOW + 1) ?? '';
    expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW)).toBe('state');
    expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW + 1)).toBeUndefined();
    for (const at of BINDING.keys())
      expect(REQUEST_STATE.open(ring, BINDING.with(at, 'other'), sealed, NOW)).toBeUndefined();
  });

  test('[T-09] is no other kind of sealed value, and has a longest length', () => {
    const session = { version: '2025-11-25', target: NO_SESSION_ID, stripped: [] };
    const sealed = SESSION_ID.seal(ring, BINDING, session, NOW + 1);
    expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW)).toBeUndefined();
    for (const character of ['\u{10000}', 'x', '\u0001', '\ud800']) {
      const longest = character.repeat(MAX_STATE_CHARS / character.length);
      const kept = REQUEST_STATE.seal(ring, BINDING, longest, NOW + 1) ?? '';
      expect(REQUEST_STATE.open(ring, BINDING, kept, NOW)).toBe(longest);
      expect(REQUEST_STATE.seal(ring, BINDING, `${longest}x`, NOW + 1)).toBeUndefined();
    }
  });
});
