// How long a stream is held: it ends with its client, also where the client left before anybody listened.

import { describe, expect, it } from 'vitest';
import { openRecord } from '../../../src/policy/record.js';
import { DisconnectController } from '../../../src/protocol/transport.js';
import type { LeasePorts } from '../../../src/proxy/access-lease.js';
import type { RequestContext } from '../../../src/proxy/request-context.js';
import type { ResponsePlan } from '../../../src/proxy/response-context.js';
import { keepStreamOpen, notifyCancelled } from '../../../src/proxy/stream-lifetime.js';
import { principal } from '../policy/samples.js';

/** A stream of a client whose disconnect is told by the signal, and what was done with it. */
function streamOf(signal: DisconnectController) {
  const done: string[] = [];
  const call = {
    changesAtStart: 1,
    incoming: { upstream: 'github', signal },
    record: openRecord({
      ...{ id: 'one', receivedAt: 0, startedMs: 0, upstream: 'one', httpMethod: 'GET', remoteAddress: '127.0.0.1' },
    }),
    outgoing: {
      open: () => undefined,
      write: () => undefined,
      disconnect: () => done.push('cut'),
      end: () => done.push('end'),
    },
    ports: { leases: { countChanges: () => 1, register: () => () => undefined } },
    stream: { open: () => undefined, release: () => done.push('released') },
    snapshot: { limits: { keepAliveMs: 60_000 } },
  };
  return { call: call as unknown as RequestContext<LeasePorts>, done };
}

const TERMS = { principal: principal(), session: undefined, announce: () => undefined };

describe('a stream that is held', () => {
  it('[H-04] has ended when its client left before it was opened', async () => {
    const signal = new DisconnectController();
    signal.abort();
    const { call, done } = streamOf(signal);
    let hasLeft: boolean | undefined;
    await keepStreamOpen(call, TERMS, async (leave) => {
      hasLeft = leave.aborted;
    });
    expect(hasLeft).toBe(true);
    expect(done).toEqual(['released', 'end']);
  });

  it('[H-04] ends when its client leaves', async () => {
    const signal = new DisconnectController();
    const { call, done } = streamOf(signal);
    await keepStreamOpen(call, TERMS, async (leave) => {
      expect(leave.aborted).toBe(false);
      signal.abort();
      expect(leave.aborted).toBe(true);
    });
    expect(done).toEqual(['released', 'end']);
  });
});

describe('a request that is given up', () => {
  const REQUEST = { kind: 'request', id: 7, method: 'tools/call', params: {} };
  const PLAN = {
    message: REQUEST,
    session: { version: '2025-11-25', target: { kind: 'upstream', id: 's' } },
    rule: { method: 'tools/call' },
    mayBecomeTask: false,
  };

  it.each<[string, object, readonly unknown[]]>([
    ['is cancelled at the server of its session', {}, [7]],
    ['has nothing to cancel without a session', { session: undefined }, []],
    ['is none where it was a notification', { message: { ...REQUEST, kind: 'notification' } }, []],
    ['is not cancelled where it opens a session', { rule: { method: 'initialize' } }, []],
    ['is not cancelled so where it runs as a task', { mayBecomeTask: true }, []],
  ])('[LEG-10] %s', (_what, changed, expected) => {
    const cancelled: unknown[] = [];
    const call = {
      record: {},
      incoming: { upstream: 'github', headers: {} },
      ports: {
        upstreams: { cancelAtServer: (_at: string, { id }: { id: unknown }) => cancelled.push(id) },
      },
    };
    const plan = { principal, admitted: { ...PLAN, ...changed } };
    notifyCancelled(call as unknown as RequestContext<'upstreams'>, plan as unknown as ResponsePlan);
    expect(cancelled).toEqual(expected);
  });
});
