// The open channels of an upstream: bounded by caller and together, ended when they rest, and nothing stays.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChannelSession } from '../../../../src/upstream/bridge/channel-session.js';
import {
  type ChannelTable,
  createChannelTable,
  MAX_CHANNELS,
  MAX_CHANNELS_A_CALLER,
} from '../../../../src/upstream/bridge/channel-table.js';

const REST_MS = 1_000;

let table: ChannelTable;
let closed: string[];

function refuseUse(): never {
  throw new Error('a table has no use for it');
}

function session(id: string, owner: string, state: { isResting: boolean }): ChannelSession {
  return {
    endpoint: '/',
    owner,
    begin: refuseUse,
    cancel: refuseUse,
    drop: refuseUse,
    keep: refuseUse,
    read: refuseUse,
    isUsed: () => !state.isResting,
    get isResting() {
      return state.isResting;
    },
    close: () => void closed.push(id),
  };
}

function enter(id: string, owner: string, isResting = false): { isResting: boolean } {
  const state = { isResting };
  table.enter(id, session(id, owner, state));
  return state;
}

beforeEach(() => {
  vi.useFakeTimers();
  closed = [];
  table = createChannelTable(REST_MS);
});
afterEach(() => {
  table.close();
  vi.useRealTimers();
});

describe('[LEG-06] the channels of an upstream', () => {
  it('are ended when nobody uses them, and no others', async () => {
    const one = enter('one', 'a');
    enter('other', 'a');
    await vi.advanceTimersByTimeAsync(2 * REST_MS);
    expect(closed).toEqual([]);
    one.isResting = true;
    await vi.advanceTimersByTimeAsync(REST_MS);
    expect(closed).toEqual(['one']);
    expect([table.find('one'), table.size]).toEqual([undefined, 1]);
  });

  it('are as many for one caller as it may have; one that rests makes room', () => {
    const states = Array.from({ length: MAX_CHANNELS_A_CALLER }, (_, at) => enter(`${at}`, 'a'));
    expect(table.hasRoom('a')).toBe(false);
    expect(table.hasRoom('b')).toBe(true);
    (states[3] as { isResting: boolean }).isResting = true;
    expect(table.hasRoom('a')).toBe(true);
    expect(closed).toEqual(['3']);
  });

  it('are as many together as there may be, whoever rests', () => {
    for (let at = 0; at < MAX_CHANNELS; at += 1) enter(`${at}`, `owner-${at}`, true);
    expect(table.hasRoom('somebody else')).toBe(false);
    expect(closed).toEqual([]);
    table.close();
    expect([closed.length, table.size]).toEqual([MAX_CHANNELS, 0]);
  });
});
