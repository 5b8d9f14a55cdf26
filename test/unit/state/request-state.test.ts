import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_SESSION_ID } from '../../../src/protocol/admitted-request.js';
import { createKeyRing } from '../../../src/state/keys.js';
import {
  MAX_STATE_CHARS,
  openRequestState,
  type StateBinding,
  sealRequestState,
  sealSession,
} from '../../../src/state/sealed-values.js';

const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
const BINDING: StateBinding = {
  upstream: 'github',
  issuer: 'https://idp.example.com',
  subject: 'ada',
  client: 'editor',
  method: 'tools/call',
  target: 'tool read',
  params: 'digest',
};
const NOW = 1_000_000;

describe('the sealed state of a dialogue', () => {
  test('[T-09] opens to the same bytes, whatever they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 500 }), (state) => {
        const sealed = sealRequestState(ring, BINDING, state, NOW + 1) ?? '';
        expect(openRequestState(ring, BINDING, sealed, NOW)).toBe(state);
      }),
    );
  });

  test('[T-09, MCP-25] does not open late, nor under any other binding', () => {
    const sealed = sealRequestState(ring, BINDING, 'state', NOW + 1) ?? '';
    expect(openRequestState(ring, BINDING, sealed, NOW)).toBe('state');
    expect(openRequestState(ring, BINDING, sealed, NOW + 1)).toBeUndefined();
    for (const name of Object.keys(BINDING)) {
      const other = { ...BINDING, [name]: 'other' };
      expect([name, openRequestState(ring, other, sealed, NOW)]).toEqual([name, undefined]);
    }
  });

  test('[T-09] is no other kind of sealed value, and has a longest length', () => {
    const session = { version: '2025-11-25', target: NO_SESSION_ID, stripped: [] };
    const sealed = sealSession(ring, BINDING, session, NOW + 1);
    expect(openRequestState(ring, BINDING, sealed, NOW)).toBeUndefined();
    const longest = '\u{10000}'.repeat(MAX_STATE_CHARS / 2);
    const kept = sealRequestState(ring, BINDING, longest, NOW + 1) ?? '';
    expect(openRequestState(ring, BINDING, kept, NOW)).toBe(longest);
    expect(sealRequestState(ring, BINDING, `${longest}x`, NOW + 1)).toBeUndefined();
  });
});
