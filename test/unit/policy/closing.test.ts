import { describe, expect, it } from 'vitest';
import type { ApprovalRequirement } from '../../../src/policy/approval-terms.js';
import { createCloser } from '../../../src/policy/compile/closing.js';

function flow(by: 'reviewer' | 'caller', text = 'new'): ApprovalRequirement {
  return { rule: 'a/flow', text, terms: { by } } as unknown as ApprovalRequirement;
}

describe('[G-18] a flow that asks', () => {
  it.each([
    ['reviewers that nobody can be yet', { reviewers: true, sharedState: false }, [true, false]],
    ['while what is asked is about to be shared', { reviewers: false, sharedState: true }, [true, true]],
  ])('is closed if it asks %s', (_what, lacking, expected) => {
    const closer = createCloser({ ...lacking, open: new Map([['a/flow', 'old']]) });
    expect([closer.isFlowClosed(flow('reviewer')), closer.isFlowClosed(flow('caller'))]).toEqual(expected);
    expect(closer.closed).toHaveLength(expected.filter(Boolean).length);
    expect(closer.isFlowClosed(flow('caller', 'old'))).toBe(false);
  });
});
