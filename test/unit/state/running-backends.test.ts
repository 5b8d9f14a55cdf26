import { expect, it } from 'vitest';
import { createRunningBackends } from '../../../src/state/replica-tables.js';

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
