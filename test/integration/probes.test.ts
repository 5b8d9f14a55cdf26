// The ops listener of a running gateway: alive is alive, and ready means that calls can be recorded.

import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { fillDisk } from '../support/full-disk.js';
import { startRig } from '../support/gateway.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('the probes', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 1s}'] });
  afterEach(() => rig.upstream.repent());

  async function probe(path: string): Promise<readonly [number, string]> {
    const answer = await fetch(rig.gateway.opsUrl + path);
    return [answer.status, await answer.text()];
  }

  it('[G-03] say alive and ready, and nothing more', async () => {
    expect(await probe('/livez')).toEqual([200, 'alive\n']);
    expect(await probe('/readyz')).toEqual([200, 'ready\n']);
    expect((await probe('/'))[0]).toBe(404);
    expect((await probe('/readyz?verbose'))[0]).toBe(404);
    expect((await probe('/api/controls'))[0]).toBe(404);
  });

  it('[G-03] are not on the data listener, nor is anything of the admin listener', async () => {
    for (const path of ['/livez', '/readyz', '/metrics', '/api/controls', '/', '/admin']) {
      expect((await fetch(rig.gateway.publicUrl + path)).status).toBe(404);
    }
  });

  it('[G-03] stay ready while an upstream and an issuer are dead', async () => {
    rig.upstream.obey(() => ({ kind: 'destroy' }));
    rig.gateway.issuer.misbehave('down');
    await expect
      .poll(() => rig.gateway.metrics(), { timeout: 10_000, interval: 100 })
      .toContain('sallyport_upstream_up{upstream="target"} 0');
    expect(await probe('/readyz')).toEqual([200, 'ready\n']);
    rig.gateway.issuer.misbehave('none');
  });

  it('[G-03] are not ready while the audit cannot be written, but alive', async () => {
    await expect.poll(async () => (await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
    const makeRoom = await fillDisk();
    onTestFinished(makeRoom);
    await callStateless(rig.access, 'read_record', { id: 'one' });
    await expect.poll(() => probe('/readyz')).toEqual([503, 'not ready\nthe audit log cannot be written\n']);
    expect(await probe('/livez')).toEqual([200, 'alive\n']);
    // A call that came before the sink looked again may still have been written to the file that is gone.
    const refused = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(refused.status).toBe(503);
    await expect
      .poll(() => rig.gateway.metrics())
      .toMatch(/sallyport_audit_events_total\{sink="file",result="(refused|lost)"\} [1-9]/);
    await expect
      .poll(() => rig.gateway.metrics(), { interval: 100 })
      .toContain('sallyport_controls{control="audit",state="degraded"} 1');
    expect(await rig.gateway.metrics()).toMatch(
      /sallyport_audit_write_duration_seconds_count\{sink="file",error_type="[A-Z]+"\} [1-9]/,
    );
    makeRoom();
    await expect.poll(() => probe('/readyz'), { timeout: 5_000 }).toEqual([200, 'ready\n']);
    await expect
      .poll(() => rig.gateway.metrics(), { interval: 100 })
      .toContain('sallyport_controls{control="audit",state="armed"} 1');
  });
});

describe('a gateway whose audit is full from the start', () => {
  it('[G-03] does not start, and says why', async () => {
    const started = startRig({ audit: 'audit: {sinks: [{type: file, path: /dev/full}]}' });
    await expect(started).rejects.toThrow('the audit log cannot be written: file: ENOSPC');
  });
});
