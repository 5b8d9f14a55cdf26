// Who follows is told of every change while it follows, however others come and go meanwhile.

import { describe, expect, it } from 'vitest';
import { createChangeEmitter } from '../../../src/gateway/streams.js';

describe('followers', () => {
  it('are told while they follow, and not after', () => {
    const followers = createChangeEmitter();
    const notified: string[] = [];
    const leaves = ['a', 'b', 'c'].map((name) =>
      followers.subscribe(() => void notified.push(name)),
    );
    followers.emit();
    expect(notified.splice(0).sort()).toEqual(['a', 'b', 'c']);
    leaves[0]?.();
    followers.emit();
    expect(notified.splice(0).sort()).toEqual(['b', 'c']);
    leaves[0]?.();
    leaves[2]?.();
    followers.emit();
    expect(notified.splice(0)).toEqual(['b']);
    leaves[1]?.();
    followers.emit();
    expect(notified).toEqual([]);
  });

  it('that leave while others are told are not told any more; those that come wait for the next', () => {
    const followers = createChangeEmitter();
    const notified: string[] = [];
    const leaveLate: (() => void)[] = [];
    followers.subscribe(() => {
      notified.push('first');
      for (const leave of leaveLate.splice(0)) leave();
      followers.subscribe(() => void notified.push('new'));
    });
    leaveLate.push(followers.subscribe(() => void notified.push('gone')));
    followers.emit();
    expect(notified.splice(0)).toEqual(['first']);
    followers.emit();
    expect(notified.sort()).toEqual(['first', 'new']);
  });

  it('that follow twice are told twice, and leave once each', () => {
    const followers = createChangeEmitter();
    let count = 0;
    const notified = (): void => {
      count += 1;
    };
    const leave = followers.subscribe(notified);
    followers.subscribe(notified);
    leave();
    leave();
    followers.emit();
    expect(count).toBe(1);
  });
});
