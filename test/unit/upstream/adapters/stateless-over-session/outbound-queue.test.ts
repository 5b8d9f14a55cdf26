// What may be on its way to an upstream of sessions besides calls: by caller, by number and by bytes.

import { describe, expect, it } from 'vitest';
import {
  createOutboundQueue,
  MAX_OUTBOUND_BYTES_PER_CALLER,
  MAX_OUTBOUND_PER_CALLER,
  MAX_OWN_RESPONSES_PER_CALLER,
} from '../../../../../src/upstream/adapters/stateless-over-session/session-pool.js';

const message = (owner: string, bytes = 1, isFromGateway = false) => ({
  owner,
  bytes,
  isFromGateway,
});

/** How many find a place. */
function fill(queue: ReturnType<typeof createOutboundQueue>, one: ReturnType<typeof message>) {
  const leaves: (() => void)[] = [];
  for (let leave = queue.acquireSlot(one); leave !== undefined; leave = queue.acquireSlot(one))
    leaves.push(leave);
  return leaves;
}

describe('[H-05] what is on its way to a server', () => {
  it('is bounded in number for a caller, gives its place back, and leaves room for others', () => {
    const queue = createOutboundQueue();
    const leaves = fill(queue, message('ann'));
    expect(leaves).toHaveLength(MAX_OUTBOUND_PER_CALLER);
    expect(queue.acquireSlot(message('ben'))).toBeDefined();
    leaves[0]?.();
    expect(fill(queue, message('ann'))).toHaveLength(1);
  });

  it('is bounded in bytes, but for one alone', () => {
    const queue = createOutboundQueue();
    const half = MAX_OUTBOUND_BYTES_PER_CALLER / 2;
    expect(fill(queue, message('ann', half))).toHaveLength(2);
    expect(queue.acquireSlot(message('ann'))).toBeUndefined();
    expect(queue.acquireSlot(message('ben', MAX_OUTBOUND_BYTES_PER_CALLER + 1))).toBeDefined();
  });

  it('is little of what the gateway says itself, and leaves room for what clients say', () => {
    const queue = createOutboundQueue();
    expect(fill(queue, message('ann', 1, true))).toHaveLength(MAX_OWN_RESPONSES_PER_CALLER);
    expect(queue.acquireSlot(message('ann'))).toBeDefined();
  });

  it('is bounded over all callers', () => {
    const queue = createOutboundQueue();
    let entered = 0;
    for (let at = 0; at < 100; at += 1) entered += fill(queue, message(`c${at}`)).length;
    expect(entered).toBeLessThan(100 * MAX_OUTBOUND_PER_CALLER);
    expect(queue.acquireSlot(message('late'))).toBeUndefined();
  });
});
