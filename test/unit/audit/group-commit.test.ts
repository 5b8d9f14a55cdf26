import { describe, expect, it } from 'vitest';
import {
  BUSY_WAITERS,
  createGroupPace,
  MIN_GROUP_INTERVAL_MS,
} from '../../../src/audit/group-commit.js';

describe('createGroupPace', () => {
  it('lets groups begin at once while few wait', () => {
    const pace = createGroupPace(() => 0);
    for (let group = 0; group < 3; group += 1) {
      expect(pace.untilDue()).toBeUndefined();
      pace.begin();
      pace.join();
    }
  });

  it('holds the group behind a crowded one for a moment, and only that one', async () => {
    let now = 0;
    const pace = createGroupPace(() => now);
    for (let waiter = 0; waiter < BUSY_WAITERS; waiter += 1) pace.join();
    expect(pace.untilDue()).toBeUndefined();
    pace.begin();
    pace.join();
    await expect(pace.untilDue()).resolves.toBeUndefined();
    now = MIN_GROUP_INTERVAL_MS;
    expect(pace.untilDue()).toBeUndefined();
    now = 0;
    pace.begin();
    expect(pace.untilDue()).toBeUndefined();
  });
});
