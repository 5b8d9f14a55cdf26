// A token that the running gateway must refuse: what its caller gets, what the audit says, and that the
// upstream saw nothing.

import { expect } from 'vitest';
import { AUTH_FAILURES_PER_SECOND } from '../../src/audit/audit.js';
import type { Reason } from '../../src/policy/reasons.js';
import { type AttackRig, expectLoginLine, expectNothingForwarded } from './attack-rig.js';
import { callStateless, type Reply } from './wire-client.js';

const WRITTEN_EVERY_MS = 1000 / AUTH_FAILURES_PER_SECOND;

/** A call with this token is a 401 for one of these reasons. */
export async function expectLoginRefused(
  rig: AttackRig,
  token: string,
  ...reasons: readonly Reason[]
): Promise<Reply> {
  rig.upstream.forget();
  // Refused logins past a rate are counted and not written; each of these must be seen written.
  rig.passTime(WRITTEN_EVERY_MS);
  const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
  expect(reply.status).toBe(401);
  expect(reply.headers.get('www-authenticate')).toContain('error="invalid_token"');
  await expectLoginLine(rig, reply, ...reasons);
  expectNothingForwarded(rig);
  return reply;
}

/** A call with this token passes, and reaches the upstream. */
export async function expectCallPasses(rig: AttackRig, token: string): Promise<Reply> {
  rig.upstream.forget();
  const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
  expect(reply.status).toBe(200);
  expect(reply.message).toHaveProperty('result');
  expect(rig.upstream.seen().length).toBeGreaterThan(0);
  return reply;
}
