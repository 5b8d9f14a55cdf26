import { afterEach, describe, expect, it } from 'vitest';
import {
  createSuspendedCalls,
  MAX_SUSPENDED_CALLS,
  MAX_SUSPENDED_CALLS_PER_CALLER,
  type SuspendedCall,
} from '../../../../../src/upstream/adapters/stateless-over-session/input-required.js';

const parked = { call: { cancel: () => undefined } } as unknown as SuspendedCall;
const caller = (subject: string) => ({ issuerUrl: 'https://idp.example', subject, client: 'app' });

describe('[Y-05] calls that wait for their client', () => {
  const parking = createSuspendedCalls({ self: 'here' });
  afterEach(() => parking.close());

  it('are taken once, by their handle', () => {
    const handle = parking.enter(parked, caller('alice')) ?? '';
    expect(handle).toMatch(/^here\./);
    expect(parking.leave(handle)).toBe(parked);
    expect(parking.leave(handle)).toBeUndefined();
  });

  it('of one caller leave room for those of others, and give their own back', () => {
    const handles = Array.from({ length: MAX_SUSPENDED_CALLS_PER_CALLER }, () =>
      parking.enter(parked, caller('alice')),
    );
    expect(handles).not.toContain(undefined);
    expect(parking.enter(parked, caller('alice'))).toBeUndefined();
    expect(parking.enter(parked, caller('bob'))).toBeDefined();
    parking.leave(handles[0] ?? '');
    expect(parking.enter(parked, caller('alice'))).toBeDefined();
  });

  it('are bounded over all callers', () => {
    const entered = Array.from({ length: MAX_SUSPENDED_CALLS + 1 }, (_, index) =>
      parking.enter(parked, caller(`caller-${index}`)),
    );
    expect(entered.filter((handle) => handle !== undefined)).toHaveLength(MAX_SUSPENDED_CALLS);
  });
});
