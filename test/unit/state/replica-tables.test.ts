// What this replica remembers of what runs and of what happened a moment ago: by session, and gone with its cause.

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import type { RequestId } from '../../../src/protocol/jsonrpc.js';
import {
  CANCEL_GRACE_MS,
  createLiveProgress,
  createNumbersInFlight,
  createRecentTable,
  createRunningResponses,
  createRunningTable,
  MAX_KEPT_PROGRESS,
} from '../../../src/state/replica-tables.js';

describe('[LEG-06] what runs in a session', () => {
  it('is found by its session, with or without an id, and forgotten when it ends', () => {
    const table = createRunningTable<string>();
    const leave = table.enter('one', undefined, 'stream');
    table.enter('one', 1, 'request');
    expect(table.find('one', undefined)).toEqual(['stream']);
    expect([table.of('one'), table.of('other')]).toEqual([['stream', 'request'], []]);
    leave();
    expect([table.find('one', undefined), table.of('one')]).toEqual([[], ['request']]);
  });

  it('law: is what was entered and not yet left, whatever the order', () => {
    const step = fc.record({
      session: fc.constantFrom('s', 't'),
      id: fc.constantFrom(1, '1', undefined),
      leaves: fc.nat({ max: 8 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const table = createRunningTable<number>();
        const entered: { session: string; id: RequestId | undefined; value: number; leave: () => void }[] = [];
        const idle: string[] = [];
        for (const [value, { session, id, leaves }] of steps.entries()) {
          entered.push({ session, id, value, leave: table.enter(session, id, value) });
          table.whenIdle(session, () => idle.push(session));
          const [left] = entered.splice(leaves, 1);
          left?.leave();
          left?.leave();
          for (const at of ['s', 't']) {
            const own = entered.filter((one) => one.session === at);
            expect([...table.of(at)].sort()).toEqual(own.map((one) => one.value).sort());
            for (const key of [1, '1', undefined])
              expect(table.find(at, key)).toEqual(own.filter((one) => one.id === key).map((one) => one.value));
          }
        }
        for (const { leave } of entered) leave();
        expect(new Set(idle)).toEqual(new Set(steps.map(({ session }) => session)));
      }),
    );
  });
});

test('[Q-17] what happened recently is found by owner and id, by type too, and the oldest is forgotten', () => {
  const recent = createRecentTable<string>({ max: 3, maxPerOwner: 2 });
  recent.set('s', 1, 'one');
  expect([recent.find('s', 1), recent.find('s', '1'), recent.find('t', 1)]).toEqual(['one', undefined, undefined]);
  recent.set('s', '1', 'two');
  recent.set('s', 2, 'three');
  expect([recent.find('s', 1), recent.find('s', '1'), recent.find('s', 2)]).toEqual([undefined, 'two', 'three']);
  recent.set('t', 1, 'four');
  recent.set('u', 1, 'five');
  expect([recent.find('s', '1'), recent.find('s', 2), recent.find('u', 1)]).toEqual([undefined, 'three', 'five']);
  recent.delete('s', 2);
  expect(recent.find('s', 2)).toBeUndefined();
});

test('a number is in flight in one spelling at a time, for each owner', () => {
  const claim = createNumbersInFlight();
  const releases = [claim('ann', 1, '1'), claim('ann', 1, '1')];
  expect([claim('ann', 1, '1.0'), typeof claim('ben', 1, '1.0')]).toEqual([undefined, 'function']);
  releases[0]?.();
  expect(claim('ann', 1, '1.0')).toBeUndefined();
  releases[1]?.();
  expect(claim('ann', 1, '1.0')).toBeDefined();
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

describe('running backends', () => {
  it('[MRG-25] knows who works on a request of a session, as long as it runs', () => {
    const parts = createRunningTable<string>();
    const leaveLeft = parts.enter('s', 1, 'left');
    const leaveRight = parts.enter('s', 1, 'right');
    expect(parts.find('s', 1)).toEqual(['left', 'right']);
    for (const [session, id] of [
      ['s', '1'],
      ['s', 2],
      ['other', 1],
    ] as const)
      expect(parts.find(session, id)).toEqual([]);
    leaveLeft();
    expect(parts.find('s', 1)).toEqual(['right']);
    leaveRight();
    expect(parts.find('s', 1)).toEqual([]);
  });

  it('[MRG-25] keeps two requests apart that a client sent under one id', () => {
    const parts = createRunningTable<string>();
    const leaveFirst = parts.enter('s', 1, 'left');
    const leaveSecond = parts.enter('s', 1, 'left');
    leaveFirst();
    leaveFirst();
    expect(parts.find('s', 1)).toEqual(['left']);
    leaveSecond();
    const leaveThird = parts.enter('s', 1, 'right');
    leaveSecond();
    expect(parts.find('s', 1)).toEqual(['right']);
    leaveThird();
  });

  it('[MRG-09] knows when nobody works on a request of a session any more', () => {
    const parts = createRunningTable<string>();
    const idle: string[] = [];
    parts.whenIdle('s', () => idle.push('unused'));
    const leaves = [parts.enter('s', 1, 'left'), parts.enter('s', 2, 'right')];
    parts.enter('s2', 1, 'left');
    parts.whenIdle('s', () => idle.push('first'));
    parts.whenIdle('s', () => idle.push('second'));
    leaves[0]?.();
    expect(idle).toEqual(['unused']);
    leaves[1]?.();
    parts.enter('s', 3, 'left')();
    expect(idle).toEqual(['unused', 'first']);
  });
});

// A cancellation ends the stream that it names: that session's, that id's, and only while it runs.
describe('running streams', () => {
  describe('streams that run', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    it('[E-04] end after the grace when they are cancelled', () => {
      const running = createRunningResponses();
      const [end, note] = [vi.fn(), vi.fn()];
      running.register('session', 1, { end, note });
      running.cancel('session', 1);
      expect(note).toHaveBeenCalledOnce();
      vi.advanceTimersByTime(CANCEL_GRACE_MS - 1);
      expect(end).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(end).toHaveBeenCalledOnce();
    });

    it('[E-04] are not reached from another session, or under an id of another type', () => {
      const running = createRunningResponses();
      const end = vi.fn();
      running.register('session', 1, { end });
      running.cancel('other', 1);
      running.cancel('session', '1');
      vi.advanceTimersByTime(CANCEL_GRACE_MS);
      expect(end).not.toHaveBeenCalled();
    });

    it('[E-04] that ended by themselves, or gave their id to another, are left alone', () => {
      const running = createRunningResponses();
      const [first, second] = [vi.fn(), vi.fn()];
      const leave = running.register('session', 1, { end: first });
      running.cancel('session', 1);
      leave();
      const leaveSecond = running.register('session', 1, { end: second });
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
      const running = createRunningResponses();
      const [first, second, later] = [vi.fn(), vi.fn(), vi.fn()];
      running.register('session', 1, { end: first });
      const leaveSecond = running.register('session', 1, { end: second });
      running.cancel('session', 1);
      running.register('session', 1, { end: later });
      leaveSecond();
      vi.advanceTimersByTime(CANCEL_GRACE_MS);
      expect([first, second, later].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 0]);
    });
  });
});
