import { describe, expect, it } from 'vitest';
import { createKeptPages } from '../../../src/state/replica-tables.js';

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
