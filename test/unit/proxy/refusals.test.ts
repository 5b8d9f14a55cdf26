// What a refusal says of a call that was sent, and once the gateway ends what still runs.

import { describe, expect, it } from 'vitest';
import { refuseWith } from '../../../src/policy/decision.js';
import { REASONS, type Reason, textOf } from '../../../src/policy/reasons.js';
import { completeRefusal } from '../../../src/proxy/refusals.js';
import type { RequestContext } from '../../../src/proxy/request-context.js';

describe('[E-43] what an upstream does not answer while the gateway stops', () => {
  it.each([
    ['refused', true],
    ['forwarded', false],
    ['withheld', false],
  ] as const)('is recorded of a call that was %s as one that reached no server: %s', (action, isUnsent) => {
    const call = { incoming: { shutdown: { isCut: true } }, record: { decision: { action } } };
    const { deny } = completeRefusal(call as unknown as RequestContext, refuseWith('upstream-protocol'));
    expect([deny.reason, deny.isUnsent]).toEqual(['gateway-stopping', isUnsent]);
  });
});

describe('a call that ends after it was sent', () => {
  const refused = (method: string, action: string, isUnsent?: boolean) => {
    const call = { incoming: {}, record: { decision: { action } }, admitted: { rule: { method } } };
    return completeRefusal(call as unknown as RequestContext, refuseWith('store-unavailable', { isUnsent })).deny;
  };

  it.each([
    ['tools/call', 'forwarded', undefined, false],
    ['tools/call', 'refused', undefined, undefined],
    ['tools/call', 'forwarded', true, true],
    ['resources/read', 'forwarded', undefined, undefined],
  ] as const)('is known by method and record: %s, %s, unsent: %s', (method, action, isUnsent, expected) => {
    expect(refused(method, action, isUnsent).isUnsent).toBe(expected);
  });

  // What comes before the gateway has started is never sent.
  it.each((Object.keys(REASONS) as Reason[]).filter((reason) => reason !== 'gateway-starting'))(
    '%s does not invite to repeat it',
    (reason) => {
      const text = textOf(reason, false);
      expect(text).not.toMatch(/ry again|again later/);
      const saysEnough = REASONS[reason].stage === 'inspect' || reason === 'upstream-credentials';
      if (!saysEnough) expect(text).toMatch(/may have been carried out: find out before you send it again\.$/);
      expect(textOf(reason, true)).not.toContain('may have been carried out');
      expect(textOf(reason)).toBe(REASONS[reason].text);
    },
  );
});
