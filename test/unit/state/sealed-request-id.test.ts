import { describe, expect, it } from 'vitest';
import type { SentRequestFacts } from '../../../src/protocol/admitted-request.js';
import { createKeyRing } from '../../../src/state/keys.js';
import { openRequest, openServerRequest, sealRequest } from '../../../src/state/sealed-values.js';

const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
const PLACE = {
  upstream: 'old',
  issuer: 'https://issuer.example',
  subject: 'alice',
  client: 'app',
  session: 'hash-of-one',
};
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
      const sealed = sealRequest(ring, PLACE, sent, LATER) ?? '';
      expect(openRequest(ring, PLACE, sealed, 0)).toEqual(sent);
    }
  });

  it('[V-13] opens for its caller, upstream and session alone, in its time, for its purpose', () => {
    const sealed = sealRequest(ring, PLACE, SENT, LATER) ?? '';
    for (const member of Object.keys(PLACE) as (keyof typeof PLACE)[])
      expect(openRequest(ring, { ...PLACE, [member]: 'other' }, sealed, 0)).toBeUndefined();
    expect(openRequest(ring, PLACE, sealed, LATER + 1)).toBeUndefined();
    expect(openRequest(ring, PLACE, `${sealed}A`, 0)).toBeUndefined();
    expect(openServerRequest(ring, PLACE, sealed, 0)).toBeUndefined();
  });

  it('[V-12] is not made where it would grow too long', () => {
    expect(sealRequest(ring, PLACE, { ...SENT, id: 'x'.repeat(10_000) }, LATER)).toBeUndefined();
  });
});
