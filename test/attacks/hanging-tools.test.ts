// A caller who makes tools hang must not close an upstream to others, while one that hangs as a whole must not hold
// everybody up for the whole timeout.

import { afterEach, describe, expect, it } from 'vitest';
import { PATIENT } from '../support/timing.js';
import { callStateless, type Reply } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('an upstream', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 1s}'] });
  afterEach(() => rig.upstream.repent());

  const as = async (sub: string): Promise<typeof rig.access> => rig.as(await rig.gateway.token('target', { sub }));
  const call = async (sub: string, tool: string): Promise<Reply> =>
    callStateless(await as(sub), tool, tool === 'read_record' ? { id: 'one' } : { id: 'x', text: 'y' });
  const isHanging = async (): Promise<string | undefined> =>
    /^sallyport_upstream_hanging\{upstream="target"\} (\d)$/m.exec(await rig.gateway.metrics())?.[1];
  const reasons = async (): Promise<readonly string[]> =>
    (await rig.gateway.audit()).flatMap(({ decision }) => decision?.reasons ?? []);

  it('[X-96] whose tools one caller makes hang is open to all others', async () => {
    rig.upstream.obey(({ message }) =>
      JSON.stringify(message).includes('write_record') ? { kind: 'hold' } : undefined,
    );
    for (let round = 0; round < 2; round += 1) {
      const [slow, ...others] = await Promise.all([
        call('mallory', 'write_record'),
        call('ada', 'read_record'),
        call('bob', 'read_record'),
      ]);
      expect([slow?.status, ...others.map(({ status }) => status)]).toEqual([504, 200, 200]);
    }
    // Also after a while in which nobody else has called.
    await call('mallory', 'write_record');
    expect((await call('ada', 'read_record')).status).toBe(200);
    expect(await isHanging()).not.toBe('1');
    expect(await reasons()).not.toContain('upstream-unavailable');
  });

  it('[X-96] that answers with errors is asked on', async () => {
    rig.upstream.obey(({ method }) =>
      method === 'tools/call' ? { kind: 'http', status: 500, headers: {}, body: Buffer.from('no') } : undefined,
    );
    for (let round = 0; round < 3; round += 1) expect((await call('ada', 'read_record')).status).toBe(502);
    rig.upstream.repent();
    expect((await call('ada', 'read_record')).status).toBe(200);
    expect(await isHanging()).not.toBe('1');
  });

  it('[X-96] that hangs as a whole is not waited for, and is served again once it answers', async () => {
    rig.upstream.obey(() => ({ kind: 'hold' }));
    expect((await call('ada', 'read_record')).status).toBe(504);
    await expect.poll(isHanging, PATIENT).toBe('1');
    rig.upstream.forget();
    const refused = await call('bob', 'read_record');
    expect([refused.status, refused.message?.['error']]).toEqual([502, expect.objectContaining({ code: 1502 })]);
    expect(rig.upstream.uses()).toEqual([]);
    await expect
      .poll(rig.gateway.metrics, PATIENT)
      .toContain('sallyport_controls{control="upstream-connection",state="degraded"} 1');
    expect(rig.gateway.log()).toContain('upstream hangs');
    rig.upstream.repent();
    await expect.poll(async () => (await call('bob', 'read_record')).status, PATIENT).toBe(200);
    expect(await isHanging()).toBe('0');
  });
});

describe('an upstream that is listed often', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 1s}', 'limits: {requestTimeout: 1s}'] });

  it('[X-96] and hangs as a whole is known to hang before anybody has waited for it, and holds nobody up', async () => {
    rig.upstream.obey(() => ({ kind: 'hold' }));
    await expect.poll(rig.gateway.metrics, PATIENT).toContain('sallyport_upstream_hanging{upstream="target"} 1');
    rig.upstream.forget();
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBeGreaterThanOrEqual(400);
    expect(rig.upstream.uses()).toEqual([]);
    rig.upstream.repent();
    await expect
      .poll(async () => (await callStateless(rig.access, 'read_record', { id: 'one' })).status, PATIENT)
      .toBe(200);
  });
});
