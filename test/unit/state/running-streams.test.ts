// A cancellation ends the stream that it names: that session's, that id's, and only while it runs.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CANCEL_GRACE_MS, createRunningStreams } from '../../../src/state/replica-tables.js';

describe('streams that run', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('[E-04] end after the grace when they are cancelled', () => {
    const running = createRunningStreams();
    const end = vi.fn();
    running.register('session', 1, end);
    running.cancel('session', 1);
    vi.advanceTimersByTime(CANCEL_GRACE_MS - 1);
    expect(end).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(end).toHaveBeenCalledOnce();
  });

  it('[E-04] are not reached from another session, or under an id of another type', () => {
    const running = createRunningStreams();
    const end = vi.fn();
    running.register('session', 1, end);
    running.cancel('other', 1);
    running.cancel('session', '1');
    vi.advanceTimersByTime(CANCEL_GRACE_MS);
    expect(end).not.toHaveBeenCalled();
  });

  it('[E-04] that ended by themselves, or gave their id to another, are left alone', () => {
    const running = createRunningStreams();
    const [first, second] = [vi.fn(), vi.fn()];
    const leave = running.register('session', 1, first);
    running.cancel('session', 1);
    leave();
    const leaveSecond = running.register('session', 1, second);
    leave();
    vi.advanceTimersByTime(CANCEL_GRACE_MS);
    expect(first).not.toHaveBeenCalled();
    expect(second).not.toHaveBeenCalled();
    running.cancel('session', 1);
    vi.advanceTimersByTime(CANCEL_GRACE_MS);
    expect(second).toHaveBeenCalledOnce();
    leaveSecond();
  });

  it('[E-04] end together where several run under the id that is cancelled', () => {
    const running = createRunningStreams();
    const [first, second, later] = [vi.fn(), vi.fn(), vi.fn()];
    running.register('session', 1, first);
    const leaveSecond = running.register('session', 1, second);
    running.cancel('session', 1);
    running.register('session', 1, later);
    leaveSecond();
    vi.advanceTimersByTime(CANCEL_GRACE_MS);
    expect([first, second, later].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 0]);
  });
});
