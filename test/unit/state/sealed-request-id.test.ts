import { describe, expect, it } from 'vitest';
import type { SentRequestFacts } from '../../../src/protocol/admitted-request.js';
import { createKeyRing } from '../../../src/state/keys.js';
import { LEGACY_REQUEST_ID, SERVER_REQUEST_ID } from '../../../src/state/sealed-token.js';

const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
const PLACE = ['old', 'https://issuer.example', 'alice', 'app', 'hash-of-one'];
const SENT: SentRequestFacts = {
  id: 1,
  method: 'tools/call',
  target: { kind: 'tool', name: 'echo' },
  maxResultBytes: 1000,
  profiles: ['strict'],
  allowedServerRequests: ['sampling'],
  sentAt: 1234,
};
const LATER = 10_000;

describe('the id of a request to a server of HTTP+SSE', () => {
  it('[V-12] holds the plan of its answer, whole', () => {
    for (const sent of [
      SENT,
      { ...SENT, id: '1', maxResultBytes: undefined, profiles: [] },
      { ...SENT, method: 'resources/read', target: { kind: 'resource', uri: 'a://b' } as const },
      {
        ...SENT,
        method: 'tools/list',
        target: { kind: 'none' } as const,
        allowedServerRequests: [],
      },
    ]) {
      const sealed = LEGACY_REQUEST_ID.seal(ring, PLACE, sent, LATER) ?? '';
      expect(LEGACY_REQUEST_ID.open(ring, PLACE, sealed, 0)).toEqual(sent);
    }
  });

  it('[V-13] opens for its caller, upstream and session alone, in its time, for its purpose', () => {
    const sealed = LEGACY_REQUEST_ID.seal(ring, PLACE, SENT, LATER) ?? '';
    for (const at of PLACE.keys())
      expect(LEGACY_REQUEST_ID.open(ring, PLACE.with(at, 'other'), sealed, 0)).toBeUndefined();
    expect(LEGACY_REQUEST_ID.open(ring, PLACE, sealed, LATER + 1)).toBeUndefined();
    expect(LEGACY_REQUEST_ID.open(ring, PLACE, `${sealed}A`, 0)).toBeUndefined();
    expect(SERVER_REQUEST_ID.open(ring, PLACE, sealed, 0)).toBeUndefined();
  });

  it('[V-12] opens whenever it is made, whatever its characters', () => {
    for (const length of [2_000, 5_000, 7_900]) {
      const sealed = LEGACY_REQUEST_ID.seal(
        ring,
        PLACE,
        { ...SENT, id: '語'.repeat(length) },
        LATER,
      );
      const opened = sealed && LEGACY_REQUEST_ID.open(ring, PLACE, sealed, 0);
      expect([length, sealed === undefined]).toEqual([length, opened === undefined]);
    }
  });

  it('[V-12] is not made where it would grow too long', () => {
    expect(
      LEGACY_REQUEST_ID.seal(ring, PLACE, { ...SENT, id: 'x'.repeat(10_000) }, LATER),
    ).toBeUndefined();
  });
});
