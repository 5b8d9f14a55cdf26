// What a refusal says once the gateway ends what still runs.

import { describe, expect, it } from 'vitest';
import { refuseWith } from '../../../src/policy/decision.js';
import { unlessStopping } from '../../../src/proxy/refusals.js';
import type { RequestContext } from '../../../src/proxy/request-context.js';

describe('[E-43] what an upstream does not answer while the gateway stops', () => {
  it.each([
    ['refused', true],
    ['forwarded', false],
    ['withheld', false],
  ] as const)('is recorded of a call that was %s as one that reached no server: %s', (action, isUnsent) => {
    const call = { incoming: { shutdown: { isCut: true } }, record: { decision: { action } } };
    const { deny } = unlessStopping(call as unknown as RequestContext, refuseWith('upstream-protocol'));
    expect([deny.reason, deny.isUnsent]).toEqual(['gateway-stopping', isUnsent]);
  });
});
