// The session of an aggregate: what it seals of the sessions of its backends, and that those which it does not hold end.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AdmittedMessage, SessionFacts } from '../../../../src/protocol/admitted-request.js';
import type { Incoming, Outgoing } from '../../../../src/protocol/transport.js';
import type { VerifiedRequest } from '../../../../src/proxy/aggregate/backend-requests.js';
import { joinHandshakes } from '../../../../src/proxy/aggregate/lists.js';
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
    const verified = { context, principal: principal() } as unknown as Parameters<typeof sealSessions>[0];
    expect(sealSessions(verified, '2025-11-25', sessions)).toBe('sealed');
    expect(sealed).toMatchObject([{ allowedServerRequests: ['sampling', 'roots'], tasks: ['list'] }]);
  });
});

describe('[MRG-09] an `initialize` of an aggregate', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const VERSION = '2025-11-25';
  const LATE_MS = 20_000;
  const HELLO = {
    rule: { method: 'initialize' },
    message: { kind: 'request', id: 1 },
  } as unknown as AdmittedMessage;

  /** Backends that answer after these times, in milliseconds; `sealedChars` is the length of the joint session id. */
  function createRig(answersAfterMs: Record<string, number>, sealedChars = 10) {
    const ended: string[] = [];
    let slots = 0;
    async function run(incoming: Incoming, outgoing: Outgoing): Promise<void> {
      const { upstream, httpMethod, headers } = incoming;
      if (httpMethod === 'DELETE') {
        ended.push(`${headers['mcp-session-id']} at ${upstream}`);
        // The client's request is over: a slot that was taken now would never be given back.
        if (!incoming.acquireSlot('caller')) throw new Error('no slot');
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, answersAfterMs[upstream]));
      const answer = { jsonrpc: '2.0', id: 1, result: { protocolVersion: VERSION } };
      const own = { 'content-type': 'application/json', 'mcp-session-id': `session-${upstream}` };
      outgoing.send(200, own, JSON.stringify(answer));
    }
    const sent: number[] = [];
    const outgoing = { isClosed: false, send: (status: number) => void sent.push(status) };
    const context = {
      ...{ run, aggregate: { name: 'all', backends: backends(), server: {} } },
      record: {},
      incoming: {
        ...{ headers: {}, httpMethod: 'POST' },
        acquireSlot: () => {
          slots += 1;
          return 'regular';
        },
      },
      outgoing,
      ports: {
        audit: { newDecisionId: () => 'id' },
        sessions: {
          open: () => ({ version: VERSION }),
          seal: () => 'x'.repeat(sealedChars),
        },
      },
    };
    const verified = { context, principal: principal() } as unknown as VerifiedRequest;
    return { ended, sent, outgoing, slots: () => slots, verified };
  }
  const backends = () => BACKENDS.map(([upstream]) => ({ upstream, prefix: `${upstream}_` }));

  it('ends the session of a backend that answers too late to be part of it, and no other', async () => {
    const rig = createRig({ left: 0, right: LATE_MS });
    const joined = joinHandshakes(rig.verified, HELLO);
    await vi.advanceTimersByTimeAsync(LATE_MS - 1);
    expect(await joined).toBeUndefined();
    expect([rig.sent, rig.ended]).toEqual([[200], []]);
    await vi.advanceTimersByTimeAsync(1);
    expect(rig.ended).toEqual(['session-right at right']);
    expect(rig.slots()).toBe(0);
  });

  it('ends the sessions of all backends where no joint session can be given', async () => {
    const rig = createRig({ left: 0, right: 0 }, 9_000);
    const joined = joinHandshakes(rig.verified, HELLO);
    await vi.advanceTimersByTimeAsync(0);
    expect((await joined)?.deny.reason).toBe('upstream-protocol');
    expect(rig.ended).toEqual(['session-left at left', 'session-right at right']);
  });

  it('ends the sessions of all backends where the client has left', async () => {
    const rig = createRig({ left: 0, right: 0 });
    rig.outgoing.isClosed = true;
    const joined = joinHandshakes(rig.verified, HELLO);
    await vi.advanceTimersByTimeAsync(0);
    await joined;
    expect(rig.ended).toEqual(['session-left at left', 'session-right at right']);
  });

  it('ends none that the client holds', async () => {
    const rig = createRig({ left: 0, right: 5 });
    const joined = joinHandshakes(rig.verified, HELLO);
    await vi.advanceTimersByTimeAsync(LATE_MS);
    await joined;
    expect([rig.sent, rig.ended]).toEqual([[200], []]);
  });
});
