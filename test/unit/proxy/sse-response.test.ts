// The limits of a stream that stands for hours: what waits for the rate of its upstream stops waiting when it ends.

import { describe, expect, it } from 'vitest';
import type { RequestContext } from '../../../src/proxy/request-context.js';
import { longLivedStreamLimits } from '../../../src/proxy/sse-response.js';

describe('[PRF-12] a long-lived stream that waits for the rate of its upstream', () => {
  function waiting() {
    const outgoing = { isClosed: false };
    const controller = new AbortController();
    let isClosed = (): boolean => expect.fail('was not paced');
    const pace = (_upstream: string, _bytes: number, asked: () => boolean): Promise<void> => {
      isClosed = asked;
      return new Promise(() => undefined);
    };
    const limits = longLivedStreamLimits(
      {
        snapshot: { limits: { maxResponseBytes: 1, maxStreamBytesPerMinute: 1 } },
        incoming: { upstream: 'one' },
        outgoing,
        ports: { inspection: { loopScheduler: { pace } } },
      } as unknown as RequestContext<'inspection'>,
      controller.signal,
    );
    void limits.pace?.(1);
    return { outgoing, controller, isClosed };
  }

  it('goes on waiting while it is open', () => {
    expect(waiting().isClosed()).toBe(false);
  });

  it('stops when its access ends', () => {
    const { controller, isClosed } = waiting();
    controller.abort();
    expect(isClosed()).toBe(true);
  });

  it('stops when its client has left', () => {
    const { outgoing, isClosed } = waiting();
    outgoing.isClosed = true;
    expect(isClosed()).toBe(true);
  });
});
