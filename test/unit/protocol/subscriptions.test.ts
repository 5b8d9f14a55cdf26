import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  LIST_FILTERS,
  matchesExactly,
  readFilter,
  type SubscriptionFilter,
  writeFilter,
} from '../../../src/protocol/subscriptions.js';

const filters: fc.Arbitrary<SubscriptionFilter> = fc.record({
  lists: fc.subarray([...LIST_FILTERS]),
  uris: fc.array(fc.string({ minLength: 1 }), { maxLength: 5 }),
  tasks: fc.array(fc.string({ minLength: 1 }), { maxLength: 5 }),
});

describe('a filter', () => {
  test('[T-01] reads back as it was written', () => {
    fc.assert(
      fc.property(filters, (filter) => {
        expect(readFilter(writeFilter(filter))).toEqual(filter);
        expect(matchesExactly(writeFilter(filter), filter)).toBe(true);
      }),
    );
  });

  test('[T-01] says no more than what is read of it', () => {
    const filter: SubscriptionFilter = { lists: ['toolsListChanged'], uris: [], tasks: [] };
    expect(matchesExactly({ toolsListChanged: true, promptsListChanged: false }, filter)).toBe(true);
    expect(matchesExactly({ toolsListChanged: true, taskIds: ['t'] }, filter)).toBe(false);
    expect(matchesExactly({ toolsListChanged: true, ToolsListChanged: true }, filter)).toBe(false);
    expect(matchesExactly({ promptsListChanged: true }, filter)).toBe(false);
  });

  test('[T-01] has the shape of the specification, and bounds', () => {
    for (const wrong of [
      undefined,
      null,
      [],
      'all',
      { toolsListChanged: 1 },
      { resourceSubscriptions: 'memo://one' },
      { resourceSubscriptions: [''] },
      { taskIds: [1] },
      { resourceSubscriptions: Array.from({ length: 513 }, (_, i) => `memo://${i}`) },
      {
        resourceSubscriptions: Array.from({ length: 65 }, (_, i) => `memo://${i}/`.padEnd(1_024, 'a/')),
      },
    ])
      expect(readFilter(wrong as never)).toBeUndefined();
    const uris = Array.from({ length: 512 }, (_, i) => `memo://${i}`.padEnd(128, 'a'));
    expect(readFilter({ resourceSubscriptions: uris })).toMatchObject({ uris });
    expect(readFilter({})).toEqual({ lists: [], uris: [], tasks: [] });
  });
});
