import { expect, test } from 'vitest';
import { createLiveProgress, MAX_KEPT } from '../../../src/state/session-tables.js';

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
  for (let token = 0; token <= MAX_KEPT; token += 1) begin(token);
  expect(progress.find('session', 0)).toBeUndefined();
  expect(progress.find('session', 1)).toBeDefined();
  expect(progress.find('session', MAX_KEPT)).toBeDefined();
  expect(progress.find('another', 1)).toBeUndefined();
});
