// What this replica remembers of open channels and of requests under way: by session, and gone with its cause.

import { describe, expect, it } from 'vitest';
import { createLiveProgress, createOpenLegacyStreams } from '../../../src/state/session-tables.js';

describe('[LEG-06] the open channels', () => {
  it('are found by their session, and forgotten when they end', () => {
    const channels = createOpenLegacyStreams<unknown>();
    const end = {
      isClosed: false,
      isLagging: false,
      write: () => undefined,
      signal: new AbortController().signal,
    };
    const leave = channels.register('one', end);
    expect(channels.find('one')).toBe(end);
    expect(channels.find('other')).toBeUndefined();
    leave();
    expect(channels.find('one')).toBeUndefined();
  });
});

describe('[LEG-13] the requests that told a token', () => {
  it('are found by session and token, and forgotten when they end', () => {
    const live = createLiveProgress();
    const count = { last: 0 };
    const leave = live.register('one', 1, count);
    expect(live.find('one', 1)).toBe(count);
    expect([live.find('one', '1'), live.find('two', 1)]).toEqual([undefined, undefined]);
    leave();
    expect(live.find('one', 1)).toBeUndefined();
  });

  it('are not forgotten with an older one of the same token', () => {
    const live = createLiveProgress();
    const leaveFirst = live.register('one', 1, { last: 0 });
    const second = { last: 0 };
    live.register('one', 1, second);
    leaveFirst();
    expect(live.find('one', 1)).toBe(second);
  });
});
