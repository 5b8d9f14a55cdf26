// What this replica remembers of open channels and of requests under way: by session, and gone with its cause.

import { describe, expect, it, test } from 'vitest';
import {
  createLiveProgress,
  createLostBackends,
  createOpenLegacyStreams,
  MAX_KEPT_PROGRESS,
} from '../../../src/state/replica-tables.js';

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

test('[TSK-09] the progress of a task is known after its call was answered, within a bound', () => {
  const progress = createLiveProgress();
  const begin = (token: number): void => {
    const leave = progress.register('session', token, { last: 0 });
    progress.keep('session', token);
    leave();
  };
  const leave = progress.register('session', 'plain', { last: 0 });
  leave();
  expect(progress.find('session', 'plain')).toBeUndefined();
  for (let token = 0; token <= MAX_KEPT_PROGRESS; token += 1) begin(token);
  expect(progress.find('session', 0)).toBeUndefined();
  expect(progress.find('session', 1)).toBeDefined();
  expect(progress.find('session', MAX_KEPT_PROGRESS)).toBeDefined();
  expect(progress.find('another', 1)).toBeUndefined();
});

describe('[MRG-09] parts of sessions that were lost', () => {
  it('are told a few times a minute, for each caller and member apart', () => {
    let now = 0;
    const lost = createLostBackends(() => now);
    for (let reported = 0; reported < 3; reported += 1) {
      expect(lost.isFrequent('a')).toBe(false);
      lost.note('a');
    }
    expect([lost.isFrequent('a'), lost.isFrequent('b')]).toEqual([true, false]);
    now = 60_000;
    expect(lost.isFrequent('a')).toBe(false);
  });
});
