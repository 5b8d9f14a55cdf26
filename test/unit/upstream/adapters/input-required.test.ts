import { afterEach, describe, expect, it } from 'vitest';
import {
  createSuspendedCalls,
  MAX_SUSPENDED_CALLS,
  MAX_SUSPENDED_CALLS_PER_CALLER,
  type SuspendedCall,
} from '../../../../src/upstream/adapters/input-required.js';

const suspended = { call: { cancel: () => undefined } } as unknown as SuspendedCall;
const caller = (subject: string) => ({ issuerUrl: 'https://idp.example', subject, client: 'app' });

describe('[Y-05] calls that wait for their client', () => {
  const calls = createSuspendedCalls({ self: 'here' });
  afterEach(() => calls.close());

  it('are taken once, by their handle', () => {
    const handle = calls.add(suspended, caller('alice')) ?? '';
    expect(handle).toMatch(/^here\./);
    expect(calls.remove(handle)).toBe(suspended);
    expect(calls.remove(handle)).toBeUndefined();
  });

  it('of one caller leave room for those of others, and give their own back', () => {
    const handles = Array.from({ length: MAX_SUSPENDED_CALLS_PER_CALLER }, () => calls.add(suspended, caller('alice')));
    expect(handles).not.toContain(undefined);
    expect(calls.add(suspended, caller('alice'))).toBeUndefined();
    expect(calls.add(suspended, caller('bob'))).toBeDefined();
    calls.remove(handles[0] ?? '');
    expect(calls.add(suspended, caller('alice'))).toBeDefined();
  });

  it('are bounded over all callers', () => {
    const entered = Array.from({ length: MAX_SUSPENDED_CALLS + 1 }, (_, index) =>
      calls.add(suspended, caller(`caller-${index}`)),
    );
    expect(entered.filter((handle) => handle !== undefined)).toHaveLength(MAX_SUSPENDED_CALLS);
  });
});
