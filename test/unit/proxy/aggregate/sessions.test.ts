// The session of an aggregate: what it seals of the sessions of its backends.

import { describe, expect, it } from 'vitest';
import type { SessionFacts } from '../../../../src/protocol/admitted-request.js';

import { sealSessions } from '../../../../src/proxy/aggregate/sessions.js';
import { principal } from '../../policy/samples.js';

const BACKENDS: readonly [string, Partial<SessionFacts>][] = [
  ['left', { allowedServerRequests: ['sampling'], tasks: [] }],
  ['right', { allowedServerRequests: ['sampling', 'roots'], tasks: ['list'] }],
];

describe('a session of an aggregate', () => {
  it('[MRG-09] allows the server requests and tasks that any of its backends allows', () => {
    const sealed: unknown[] = [];
    const opened = new Map<string, Partial<SessionFacts>>(BACKENDS);
    const context = {
      aggregate: { name: 'all' },
      ports: {
        sessions: {
          open: (_sealed: string, upstream: string) => opened.get(upstream),
          seal(facts: unknown) {
            sealed.push(facts);
            return 'sealed';
          },
        },
      },
    };
    const sessions = BACKENDS.map(([upstream]) => ({
      backend: { upstream, prefix: `${upstream}_` },
      sealed: `session of ${upstream}`,
    }));
    const verified = { context, principal: principal() } as unknown as Parameters<
      typeof sealSessions
    >[0];
    expect(sealSessions(verified, '2025-11-25', sessions)).toBe('sealed');
    expect(sealed).toMatchObject([
      { allowedServerRequests: ['sampling', 'roots'], tasks: ['list'] },
    ]);
  });
});
