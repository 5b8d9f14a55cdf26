// How long a stream is held: it ends with its client, also where the client left before anybody listened.

import { describe, expect, it } from 'vitest';
import type { RequestContext } from '../../../src/proxy/request-context.js';
import { keepStreamOpen } from '../../../src/proxy/stream-lifetime.js';
import { principal } from '../policy/samples.js';

/** A stream of a client whose disconnect is told by the signal, and what was done with it. */
function streamOf(signal: AbortSignal) {
  const done: string[] = [];
  const call = {
    changesAtStart: 1,
    incoming: { upstream: 'github', signal },
    record: {},
    outgoing: {
      open: () => undefined,
      write: () => undefined,
      disconnect: () => done.push('cut'),
      end: () => done.push('end'),
    },
    ports: {
      countChanges: () => 1,
      enterLease: () => () => undefined,
    },
    stream: { open: () => undefined, release: () => done.push('released') },
    snapshot: { limits: { keepAliveMs: 60_000 } },
  };
  return { call: call as unknown as RequestContext, done };
}

const TERMS = { principal: principal(), session: undefined, announce: () => undefined };

describe('a stream that is held', () => {
  it('[H-04] has ended when its client left before it was opened', async () => {
    const client = new AbortController();
    client.abort();
    const { call, done } = streamOf(client.signal);
    let hasLeft: boolean | undefined;
    await keepStreamOpen(call, TERMS, async (leave) => {
      hasLeft = leave.aborted;
    });
    expect(hasLeft).toBe(true);
    expect(done).toEqual(['released', 'end']);
  });

  it('[H-04] ends when its client leaves', async () => {
    const client = new AbortController();
    const { call, done } = streamOf(client.signal);
    await keepStreamOpen(call, TERMS, async (leave) => {
      expect(leave.aborted).toBe(false);
      client.abort();
      expect(leave.aborted).toBe(true);
    });
    expect(done).toEqual(['released', 'end']);
  });
});
