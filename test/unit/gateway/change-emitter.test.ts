// Who follows is told of every change while it follows, however others come and go meanwhile.

import { describe, expect, it } from 'vitest';
import { createChangeEmitter } from '../../../src/gateway/streams.js';

describe('followers', () => {
  it('are told while they follow, and not after', () => {
    const emitter = createChangeEmitter();
    const notified: string[] = [];
    const leaves = ['a', 'b', 'c'].map((name) => emitter.subscribe(() => void notified.push(name)));
    emitter.emit();
    expect(notified.splice(0).sort()).toEqual(['a', 'b', 'c']);
    leaves[0]?.();
    emitter.emit();
    expect(notified.splice(0).sort()).toEqual(['b', 'c']);
    leaves[0]?.();
    leaves[2]?.();
    emitter.emit();
    expect(notified.splice(0)).toEqual(['b']);
    leaves[1]?.();
    emitter.emit();
    expect(notified).toEqual([]);
  });

  it('that leave while others are told are not told any more; those that come wait for the next', () => {
    const emitter = createChangeEmitter();
    const notified: string[] = [];
    const leaveLate: (() => void)[] = [];
    emitter.subscribe(() => {
      notified.push('first');
      for (const leave of leaveLate.splice(0)) leave();
      emitter.subscribe(() => void notified.push('new'));
    });
    leaveLate.push(emitter.subscribe(() => void notified.push('gone')));
    emitter.emit();
    expect(notified.splice(0)).toEqual(['first']);
    emitter.emit();
    expect(notified.sort()).toEqual(['first', 'new']);
  });

  it('that follow twice are told twice, and leave once each', () => {
    const emitter = createChangeEmitter();
    let count = 0;
    const notified = (): void => {
      count += 1;
    };
    const leave = emitter.subscribe(notified);
    emitter.subscribe(notified);
    leave();
    leave();
    emitter.emit();
    expect(count).toBe(1);
  });
});
