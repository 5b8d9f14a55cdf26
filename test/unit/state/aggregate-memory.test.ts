import { describe, expect, it } from 'vitest';
import { createKeptPages, createListedResources, createLostBackends } from '../../../src/state/aggregate-memory.js';

describe('[MRG-09] parts of sessions that were lost', () => {
  it('are told a few times a minute, for each caller and member apart', () => {
    let now = 0;
    const lost = createLostBackends(() => now);
    const noted = Array.from({ length: 4 }, () => lost.note('ann', 'a'));
    expect(noted).toEqual([true, true, true, false]);
    expect([lost.note('ann', 'b'), lost.note('ben', 'a')]).toEqual([true, true]);
    now = 60_000;
    expect(lost.note('ann', 'a')).toBe(true);
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
