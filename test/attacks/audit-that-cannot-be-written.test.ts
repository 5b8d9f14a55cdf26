// Case 89: the audit sink is full, gone or comes back. Nothing passes unrecorded; the gateway refuses,
// says that it is not ready, and recovers without anyone's help. The chain holds over all of it.

import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listFilesOf, newestAuditFile, verifyFolder } from '../support/audit-chain.js';
import { fillDisk } from '../support/full-disk.js';
import { expectNothingForwarded } from '../support/gateway.js';
import { callStateless, errorOf, type OpenSession, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const RECOVERY_MS = 5_000;

describe('an audit that cannot be written', () => {
  let folder: string;
  let file: string;
  let session: OpenSession;
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });
  const rig = sharedGateway(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-audit-'));
    file = join(folder, 'log/audit.jsonl');
    await mkdir(join(folder, 'log'));
    return {
      audit: `audit: {sinks: [{type: file, path: ${JSON.stringify(file)}}]}`,
    };
  });
  beforeAll(async () => {
    session = await rig.openSession();
    rig.upstream.forget();
  });

  async function isReady(): Promise<boolean> {
    return (await fetch(`${rig.gateway.opsUrl}/readyz`)).status === 200;
  }

  async function expectRefusing(): Promise<void> {
    rig.upstream.forget();
    const replies = [
      await callStateless(rig.access, 'read_record', { id: 'one' }),
      await requestStateless(rig.access, 'tools/list'),
      await session.call('read_record', { id: 'one' }),
    ];
    for (const reply of replies) {
      expect(reply.status).toBe(503);
      expect(errorOf(reply)).toMatchObject({ code: 1508 });
      expect(reply.message).toHaveProperty('id');
      expect(reply.headers.get('retry-after')).not.toBeNull();
    }
    expectNothingForwarded(rig);
    expect(await isReady()).toBe(false);
    expect((await fetch(`${rig.gateway.opsUrl}/livez`)).status).toBe(200);
    const metrics = await rig.gateway.metrics();
    expect(metrics).toMatch(/sallyport_audit_events_total\{sink="file",result="refused"\} [1-9]/);
  }

  async function expectRecovered(): Promise<void> {
    await expect.poll(isReady, { timeout: RECOVERY_MS }).toBe(true);
    const reply = await callStateless(rig.access, 'read_record', { id: 'two' });
    expect(reply.status).toBe(200);
    expect(reply.message).toHaveProperty('result');
  }

  async function expectComplete(): Promise<void> {
    const verdict = await verifyFolder(join(folder, 'log'));
    expect([verdict.faults, verdict.unchecked, verdict.twoWriters]).toEqual([[], [], []]);
  }

  it('[X-89] refuses every call while the disk is full, and recovers alone', async () => {
    expect(await isReady()).toBe(true);
    const makeRoom = await fillDisk();
    try {
      await expectRefusing();
    } finally {
      makeRoom();
    }
    await expectRecovered();
    // Nothing was torn, and nothing begun that could not go on.
    expect(await listFilesOf(file)).toHaveLength(1);
    await expectComplete();
  });

  it('[X-89] refuses every call while the folder is gone, and recovers alone', async () => {
    await rename(join(folder, 'log'), join(folder, 'gone'));
    await expectRefusing();
    await mkdir(join(folder, 'log'));
    await expectRecovered();
    await rename(await newestAuditFile(join(folder, 'gone/audit.jsonl')), join(folder, 'log/earlier.jsonl'));
    await expectComplete();
  });

  it('[X-89] goes on in a new file when the old one was moved away or removed', async () => {
    await rename(await newestAuditFile(file), join(folder, 'log/moved.jsonl'));
    await expectRecovered();
    await expectComplete();
    await rm(await newestAuditFile(file));
    await expectRecovered();
  });
});
