// What this replica remembers of open channels and of requests under way: by session, and gone with its cause.

import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { anonymousPrincipal } from '../../../src/auth/principal.js';
import {
  CANCEL_GRACE_MS,
  createKeptPages,
  createListedResources,
  createLiveProgress,
  createLostBackends,
  createOpenedSessions,
  createOpenLegacyStreams,
  createRunningBackends,
  createRunningStreams,
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

describe('last pages', () => {
  const MINUTE = 60_000;
  const KIB = 1024;

  describe('[MRG-27] the pages that callers were shown last', () => {
    it('are each for their caller and their list, and for as long as the definitions count', () => {
      let nowMs = 0;
      const pages = createKeptPages(() => nowMs);
      pages.keep('ann', 'tools', 'old');
      nowMs = MINUTE;
      pages.keep('ann', 'prompts', 'prompts of ann');
      pages.keep('ann', 'tools', 'tools of ann');
      expect(pages.recall('bob', 'tools', MINUTE)).toBeUndefined();
      expect(pages.recall('ann', 'resources', MINUTE)).toBeUndefined();
      nowMs = 2 * MINUTE;
      expect(pages.recall('ann', 'tools', MINUTE)).toBe('tools of ann');
      expect(pages.recall('ann', 'prompts', MINUTE)).toBe('prompts of ann');
      nowMs += 1;
      expect(pages.recall('ann', 'tools', MINUTE)).toBeUndefined();
    });

    it('[H-09] are bounded: a caller forgets its own first, and a page that is too long is not kept', () => {
      const pages = createKeptPages(() => 0);
      const page = 'x'.repeat(200 * KIB);
      pages.keep('modest', 'tools', page);
      for (let index = 0; index < 200; index += 1) pages.keep('greedy', `list ${index}`, page);
      expect(pages.recall('modest', 'tools', MINUTE)).toBe(page);
      expect(pages.recall('greedy', 'list 0', MINUTE)).toBeUndefined();
      expect(pages.recall('greedy', 'list 199', MINUTE)).toBe(page);
      // A page that is too long replaces the older one all the same: that one is no longer the last.
      pages.keep('modest', 'tools', 'x'.repeat(300 * KIB));
      expect(pages.recall('modest', 'tools', MINUTE)).toBeUndefined();
      for (let index = 0; index < 100; index += 1) pages.keep(`one of many ${index}`, 'tools', page);
      expect(pages.recall('greedy', 'list 199', MINUTE)).toBeUndefined();
      expect(pages.recall('one of many 99', 'tools', MINUTE)).toBe(page);
    });
  });
});

describe('listed resources', () => {
  const BOTH = ['left', 'right'];
  const page = (upstream: string, uris: readonly string[], nextCursor?: string, cursor?: string) => ({
    ...{ upstream, uris, cursor, nextCursor },
  });

  describe('[MRG-05] what was listed', () => {
    it('tells whose a resource is once every member has shown its whole list', () => {
      const listed = createListedResources();
      listed.note('caller', page('right', ['a://1']));
      expect(listed.recall('caller', 'a://1', BOTH)).toEqual([]);
      listed.note('caller', page('left', ['a://2'], 'two'));
      expect(listed.recall('caller', 'a://1', BOTH)).toEqual([]);
      listed.note('caller', page('left', ['a://3'], undefined, 'two'));
      expect(listed.recall('caller', 'a://1', BOTH)).toEqual(['right']);
      expect(listed.recall('caller', 'a://3', BOTH)).toEqual(['left']);
      expect(listed.recall('caller', 'a://4', BOTH)).toEqual([]);
      expect(listed.recall('another', 'a://1', BOTH)).toEqual([]);
      listed.note('caller', page('left', ['a://1']));
      expect(listed.recall('caller', 'a://1', BOTH)).toEqual(BOTH);
    });

    it('is forgotten as a whole, so that no list crowds out that of another member', () => {
      const listed = createListedResources({ maxUrisPerCaller: 2 });
      listed.note('caller', page('left', ['a://1']));
      listed.note('caller', page('right', ['a://2', 'a://3']));
      expect(listed.recall('caller', 'a://2', BOTH)).toEqual([]);
      expect(listed.recall('caller', 'a://2', ['right'])).toEqual(['right']);
      listed.note('caller', page('right', ['a://4', 'a://5', 'a://6']));
      expect(listed.recall('caller', 'a://4', ['right'])).toEqual([]);
    });

    it('is forgotten with too many callers too, though their lists be empty', () => {
      const listed = createListedResources({ maxUris: 3 });
      listed.note('first', page('left', ['a://1']));
      listed.note('second', page('left', []));
      expect(listed.recall('first', 'a://1', ['left'])).toEqual(['left']);
      listed.note('third', page('left', []));
      expect(listed.recall('first', 'a://1', ['left'])).toEqual([]);
    });

    it('[H-09] is not forgotten for another caller who lists too much', () => {
      const listed = createListedResources();
      listed.note('first', page('left', ['a://1']));
      const uris = Array.from({ length: 60_000 }, (_, at) => `b://${at}`);
      for (let at = 0; at < uris.length; at += 500)
        listed.note('other', page('left', uris.slice(at, at + 500), `c${at}`));
      listed.note('third', page('left', uris));
      expect(listed.recall('first', 'a://1', ['left'])).toEqual(['left']);
    });

    it('[H-09] is forgotten of the caller who asked least lately, where all together are too many', () => {
      const listed = createListedResources({ maxUris: 6 });
      for (const key of ['one', 'two', 'three']) listed.note(key, page('left', ['a://1']));
      listed.note('one', page('right', []));
      listed.note('four', page('left', ['a://1']));
      const known = ['one', 'two', 'three', 'four'].map((key) => listed.recall(key, 'a://1', ['left']));
      expect(known).toEqual([['left'], [], ['left'], ['left']]);
    });

    it('stays where it is listed again', () => {
      const listed = createListedResources({ maxUrisPerCaller: 3 });
      listed.note('caller', page('right', ['a://1']));
      for (let at = 0; at < 3; at += 1) listed.note('caller', page('left', ['a://2', 'a://3']));
      expect(listed.recall('caller', 'a://1', BOTH)).toEqual(['right']);
    });

    it('tells nothing of a list with a gap: another may own what was not seen here', () => {
      const listed = createListedResources({ maxUrisPerCaller: 4 });
      // A page that another replica saw.
      listed.note('one', page('left', ['a://1'], 'two'));
      listed.note('one', page('left', ['a://3'], undefined, 'three'));
      expect(listed.recall('one', 'a://1', ['left'])).toEqual([]);
      // A first page that was forgotten for what another member listed.
      listed.note('two', page('left', ['a://1'], 'two'));
      listed.note('two', page('right', ['a://1', 'a://2', 'a://3', 'a://4']));
      listed.note('two', page('right', ['a://1', 'a://5', 'a://6', 'a://7']));
      listed.note('two', page('left', [], undefined, 'two'));
      expect(listed.recall('two', 'a://1', BOTH)).toEqual([]);
      // A URI too long to be kept, on a page before the last.
      listed.note('three', page('left', [`a://${'x'.repeat(4096)}`], 'two'));
      listed.note('three', page('left', ['a://1'], undefined, 'two'));
      expect(listed.recall('three', 'a://1', ['left'])).toEqual([]);
    });
  });
});

describe('opened sessions', () => {
  const anna = anonymousPrincipal({ resource: 'http://127.0.0.1/a' });
  const ben = anonymousPrincipal({ resource: 'http://127.0.0.1/b' });
  const session = {
    ...{ version: '2025-11-25', target: { kind: 'upstream', id: 'one' } as const },
    ...{ hash: 'h', hashes: ['h'], backendSessionHashes: [] },
  };

  describe('sessions opened a moment ago', () => {
    it('[S-20] are opened once a minute for their owner, and never found for another', () => {
      let nowMs = 0;
      let opened = 0;
      const open = createOpenedSessions(
        (sealed, _upstream, principal) => {
          opened += 1;
          return sealed === 'good' && principal === anna ? session : undefined;
        },
        () => nowMs,
      );
      expect(open('good', 'up', anna)).toBe(session);
      expect(open('good', 'up', anna)).toBe(session);
      expect(opened).toBe(1);
      expect(open('good', 'up', ben)).toBeUndefined();
      expect(open('good', 'up', ben)).toBeUndefined();
      expect(open('good', 'other', anna)).toBe(session);
      expect(opened).toBe(4);
      nowMs = 60_000;
      open('good', 'up', anna);
      expect(opened).toBe(5);
    });

    it('[S-20] keeps few for each caller', () => {
      let opened = 0;
      const open = createOpenedSessions(
        () => {
          opened += 1;
          return session;
        },
        () => 0,
      );
      for (let id = 0; id < 33; id += 1) open(`id-${id}`, 'up', anna);
      open('id-0', 'up', anna);
      expect(opened).toBe(34);
    });
  });
});

describe('running backends', () => {
  it('[MRG-25] knows who works on a request of a session, as long as it runs', () => {
    const parts = createRunningBackends();
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
    const parts = createRunningBackends();
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
    const parts = createRunningBackends();
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
      const running = createRunningStreams();
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
      const running = createRunningStreams();
      const end = vi.fn();
      running.register('session', 1, { end });
      running.cancel('other', 1);
      running.cancel('session', '1');
      vi.advanceTimersByTime(CANCEL_GRACE_MS);
      expect(end).not.toHaveBeenCalled();
    });

    it('[E-04] that ended by themselves, or gave their id to another, are left alone', () => {
      const running = createRunningStreams();
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
      const running = createRunningStreams();
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
