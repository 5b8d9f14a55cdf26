import { describe, expect, it } from 'vitest';
import { anonymousPrincipal } from '../../../src/auth/principal.js';
import { createOpenedSessions } from '../../../src/state/opened-sessions.js';

describe('opened sessions', () => {
  const anna = anonymousPrincipal({ resource: 'http://127.0.0.1/a' });
  const ben = anonymousPrincipal({ resource: 'http://127.0.0.1/b' });
  const session = {
    ...{ version: '2025-11-25', target: { kind: 'upstream', id: 'one' } as const },
    ...{ hash: 'h', hashes: ['h'], backendSessionHashes: [] },
  };

  describe('sessions opened a moment ago', () => {
    it('[S-20] are opened once a minute for their owner, and never found for another', () => {
      let nowMs = 0;
      let opened = 0;
      const open = createOpenedSessions(
        (sealed, _upstream, principal) => {
          opened += 1;
          return sealed === 'good' && principal === anna ? session : undefined;
        },
        () => nowMs,
      );
      expect(open('good', 'up', anna)).toBe(session);
      expect(open('good', 'up', anna)).toBe(session);
      expect(opened).toBe(1);
      expect(open('good', 'up', ben)).toBeUndefined();
      expect(open('good', 'up', ben)).toBeUndefined();
      expect(open('good', 'other', anna)).toBe(session);
      expect(opened).toBe(4);
      nowMs = 60_000;
      open('good', 'up', anna);
      expect(opened).toBe(5);
    });

    it('[S-20] keeps few for each caller', () => {
      let opened = 0;
      const open = createOpenedSessions(
        () => {
          opened += 1;
          return session;
        },
        () => 0,
      );
      for (let id = 0; id < 33; id += 1) open(`id-${id}`, 'up', anna);
      open('id-0', 'up', anna);
      expect(opened).toBe(34);
    });
  });
});
