// Who follows is told of every change while it follows, however others come and go meanwhile.

import { describe, expect, it } from 'vitest';
import { createFollowers } from '../../../src/gateway/followers.js';

describe('followers', () => {
  it('are told while they follow, and not after', () => {
    const followers = createFollowers();
    const told: string[] = [];
    const leaves = ['a', 'b', 'c'].map((name) => followers.follow(() => void told.push(name)));
    followers.tell();
    expect(told.splice(0).sort()).toEqual(['a', 'b', 'c']);
    leaves[0]?.();
    followers.tell();
    expect(told.splice(0).sort()).toEqual(['b', 'c']);
    leaves[0]?.();
    leaves[2]?.();
    followers.tell();
    expect(told.splice(0)).toEqual(['b']);
    leaves[1]?.();
    followers.tell();
    expect(told).toEqual([]);
  });

  it('that leave while others are told are not told any more; those that come wait for the next', () => {
    const followers = createFollowers();
    const told: string[] = [];
    const leaveLate: (() => void)[] = [];
    followers.follow(() => {
      told.push('first');
      for (const leave of leaveLate.splice(0)) leave();
      followers.follow(() => void told.push('new'));
    });
    leaveLate.push(followers.follow(() => void told.push('gone')));
    followers.tell();
    expect(told.splice(0)).toEqual(['first']);
    followers.tell();
    expect(told.sort()).toEqual(['first', 'new']);
  });

  it('that follow twice are told twice, and leave once each', () => {
    const followers = createFollowers();
    let count = 0;
    const told = (): void => {
      count += 1;
    };
    const leave = followers.follow(told);
    followers.follow(told);
    leave();
    leave();
    followers.tell();
    expect(count).toBe(1);
  });
});
