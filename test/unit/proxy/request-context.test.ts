// On whose behalf a request's messages are sent: for the principal that is given, whatever else the request has.

import { expect, it } from 'vitest';
import { openRecord } from '../../../src/policy/record.js';
import type { Incoming } from '../../../src/protocol/transport.js';
import { callerOf } from '../../../src/proxy/request-context.js';
import { principal } from '../policy/samples.js';

it('is one caller for one principal, and counts on for one that was verified again', () => {
  const incoming = { id: 'decision', headers: {} } as Incoming;
  const call = { incoming, record: openRecord(incoming) };
  const [before, after] = [principal(), principal()];
  const caller = callerOf(call, before);
  expect(callerOf(call, before)).toBe(caller);
  caller.assertionCount = 2;
  const again = callerOf(call, after);
  expect(again).toEqual({ ...caller, principal: after });
  expect(again.principal).toBe(after);
});
