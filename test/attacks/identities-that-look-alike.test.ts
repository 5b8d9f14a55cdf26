// Case 83: identities that look like others. Subjects, clients and groups are compared exactly.

import { describe, expect, it } from 'vitest';
import { expectRefusedLines } from '../support/gateway.js';
import { callStateless, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICIES = {
  exact: `version: 1
policy: exact
rules:
  - id: one-subject
    effect: allow
    who: {issuers: [test], subjects: [i\u0131Istanbul-\u00e9]}
    what: {upstreams: [target], tools: [read_record]}
  - id: one-group
    effect: allow
    who: {issuers: [test], groups: [Admins]}
    what: {upstreams: [target], tools: [write_record]}
`,
};

describe('an identity that looks like another', () => {
  const rig = sharedGateway({ policies: POLICIES });

  it('[X-83] is not that identity', async () => {
    const exact = 'i\u0131Istanbul-\u00e9';
    const own = rig.as(await rig.gateway.token('target', { sub: exact }));
    expect(toolNames(await requestStateless(own, 'tools/list'))).toEqual(['read_record']);
    rig.upstream.forget();
    const others = [
      exact.toLowerCase(),
      exact.toUpperCase(),
      exact.normalize('NFD'),
      exact.replace('\u0131', 'i'),
      `${exact}.`,
      `${exact} `,
      `${exact}\u200b`,
      '*',
    ];
    for (const sub of others) {
      const access = rig.as(await rig.gateway.token('target', { sub }));
      const reply = await callStateless(access, 'read_record', { id: 'one' });
      if (reply.status === 200) await expectRefusedLines(rig, reply, 'no-matching-allow');
      else expect(reply.status).toBe(401);
    }
    for (const group of ['admins', 'ADMINS', 'Admins ', 'Admins.', 'Admin', '*', '\u0410dmins']) {
      const access = rig.as(await rig.gateway.token('target', { groups: [group] }));
      const reply = await callStateless(access, 'write_record', { id: 'one', text: 'x' });
      await expectRefusedLines(rig, reply, 'no-matching-allow');
    }
    expect(rig.upstream.uses()).toEqual([]);
  });
});
