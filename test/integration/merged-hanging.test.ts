// A member of an endpoint that hangs: the lists of the others come, and of the member what the same caller was shown
// last, where it would be shown it now.

import { describe, expect, it } from 'vitest';
import { ENDPOINT, startMergedRig } from '../support/deployments.js';
import { onMethod } from '../support/hostile-acts.js';
import type { Json, JsonObject } from '../support/json.js';
import { type Access, requestStateless, resultOf, toolNames } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const LEFT = ['l_read_record', 'l_write_record'];
const RIGHT = ['right_read_record', 'right_write_record'];
const POLICY = `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [read_record]}
  - id: writers
    effect: allow
    who: {issuers: [test], groups: [writers]}
    what: {upstreams: ["*"], tools: [write_record]}
`;
const NO_WRITES = `${POLICY}  - id: no-writes
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [write_record]}
`;

describe('[MRG-27] a member that hangs', () => {
  const rig = shared(() =>
    startMergedRig({
      policies: { open: POLICY },
      upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 2s}'],
    }),
  );

  async function list(access: Access): Promise<{ readonly names: readonly Json[]; ttlMs: Json }> {
    const reply = await requestStateless(access, 'tools/list');
    return { names: toolNames(reply), ttlMs: resultOf(reply)['ttlMs'] ?? null };
  }

  it('is shown to each caller as that caller saw it last, under the rules of now, until it answers', async () => {
    const accessOf = async (claims: JsonObject): Promise<Access> => ({
      ...rig.access,
      token: await rig.gateway.token(ENDPOINT, claims),
    });
    const writer = await accessOf({ groups: ['writers'] });
    expect((await list(writer)).names).toEqual([...LEFT, ...RIGHT]);
    rig.left.obey(onMethod('tools/list', () => ({ kind: 'hold' })));
    for (let times = 0; times < 3; times += 1)
      expect(await list(writer)).toEqual({ names: [...LEFT, ...RIGHT], ttlMs: 0 });
    const another = await accessOf({ sub: 'bob', groups: ['writers'] });
    expect(await list(another)).toEqual({ names: RIGHT, ttlMs: 0 });
    // The same caller, who may see less by now: none of the page is shown.
    const reader = await accessOf({ groups: [] });
    expect(await list(reader)).toEqual({ names: RIGHT.slice(0, 1), ttlMs: 0 });

    await rig.gateway.writePolicy('open', NO_WRITES);
    await rig.gateway.reload();
    expect(await list(writer)).toEqual({ names: RIGHT.slice(0, 1), ttlMs: 0 });
    rig.left.repent();
    expect((await list(writer)).names).toEqual([...LEFT.slice(0, 1), ...RIGHT.slice(0, 1)]);
  }, 30_000);
});
