import { expect, it } from 'vitest';
import { createSessionCount } from '../../../src/state/opened-sessions.js';

it('[G-01] sessions that were used lately count once, those inside another not at all', () => {
  let nowMs = 0;
  const sessions = createSessionCount(() => nowMs);
  sessions.note('part', '2025-11-25', []);
  sessions.note('whole', '2025-11-25', ['part']);
  sessions.note('part', '2025-11-25', []);
  sessions.note('legacy', '2024-11-05', []);
  expect([...sessions.count()]).toEqual([
    ['2025-11-25', 1],
    ['2024-11-05', 1],
  ]);
  sessions.forget('legacy');
  nowMs = 4 * 60_000;
  expect([...sessions.count()]).toEqual([['2025-11-25', 1]]);
  nowMs = 5 * 60_000;
  expect([...sessions.count()]).toEqual([]);
});
