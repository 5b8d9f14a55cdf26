// A server that calls itself otherwise under a running gateway: told, recorded and counted, and nothing hidden.

import { describe, expect, it } from 'vitest';
import { callStateless, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const SOON = { timeout: 10_000, interval: 20 };

describe('a server that calls itself otherwise', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 1s}'] });

  async function drifts() {
    return (await rig.gateway.audit()).filter((line) => line['type'] === 'pin.drift');
  }

  it('[CRD-12] with another version is told in the log alone', async () => {
    rig.upstream.introduce({ name: 'hostile', version: '1.0.1' });
    await expect.poll(() => rig.gateway.log(), SOON).toContain('upstream reports another version of its server');
    expect(await drifts()).toEqual([]);
  });

  it('[CRD-12] with another name is drift that hides nothing', async () => {
    rig.upstream.introduce({ name: 'somebody\u001b[2J else', version: '1.0.1' });
    await expect.poll(drifts, SOON).toHaveLength(1);
    expect((await drifts())[0]).toMatchObject({
      target: { upstream: 'target', kind: 'server', name: 'server' },
      detail: { change: 'server' },
    });
    expect(rig.gateway.log()).toContain('upstream reports another name of its server');
    expect(rig.gateway.log()).not.toContain('somebody');
    expect(await rig.gateway.metrics()).toContain('sallyport_tool_drift_total{upstream="target",change="server"} 1');
    const listed = toolNames(await requestStateless(rig.access, 'tools/list'));
    expect(listed).toEqual(['read_record', 'write_record']);
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
  });

  it('[CRD-12] is remembered anew by an approval', async () => {
    await rig.gateway.approvePins();
    await rig.gateway.reload();
    rig.upstream.introduce({ name: 'hostile', version: '1.0.1' });
    await expect.poll(drifts, SOON).toHaveLength(2);
  });
});
