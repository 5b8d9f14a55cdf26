// Case 55: the list was good when it was read, and the tool is another when it is called. A call rests
// on a verification that is no older than `pinning.maxAge`, whoever listed last.

import { beforeEach, describe, expect, it } from 'vitest';
import { expectRefusedLines } from '../support/gateway.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { callStateless, errorOf, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const MAX_AGE_MS = 1000;

const CHANGED = HONEST_TOOLS.map((tool) => ({ ...tool, description: 'Sends it elsewhere.' }));

describe('a definition that changes between list and call', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 1s}', 'limits: {requestTimeout: 2s}'] });
  beforeEach(async () => {
    rig.upstream.repent();
    await expect.poll(async () => toolNames(await requestStateless(rig.access, 'tools/list')).length).toBe(2);
  });

  it('[X-55] is refused at the call, though no client lists again', async () => {
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
    rig.upstream.offer(() => CHANGED);
    rig.passTime(MAX_AGE_MS);
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(errorOf(reply)).toMatchObject({
      code: -32602,
      message: 'Unknown tool. Request the list again.',
    });
    await expectRefusedLines(rig, reply, 'tool-changed');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-55] is refused when the definitions cannot be verified any more', async () => {
    rig.upstream.obey((request) => (request.method === 'tools/call' ? undefined : { kind: 'destroy' }));
    rig.passTime(MAX_AGE_MS * 1.2);
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(503);
    expect(reply.message?.['id']).toBe(1);
    expect(errorOf(reply)).toMatchObject({ code: 1504 });
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
    await expectRefusedLines(rig, reply, 'pins-stale');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-55] is refused while the listing hangs, and what is unknown stays unknown', async () => {
    rig.upstream.obey((request) => (request.method === 'tools/call' ? undefined : { kind: 'hold' }));
    rig.passTime(MAX_AGE_MS * 1.2);
    rig.upstream.forget();
    const [known, unknown] = await Promise.all([
      callStateless(rig.access, 'read_record', { id: 'one' }),
      callStateless(rig.access, 'no_such_tool', {}),
    ]);
    expect(known.status).toBe(503);
    expect(unknown.status).toBe(200);
    expect(errorOf(unknown)).toMatchObject({ code: -32602 });
    expect(rig.upstream.uses()).toEqual([]);
  });
});
