// Case 14: an upstream that redirects to the metadata address of a cloud, or to another origin. It is
// never followed, and no credential goes there.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, expectWithheldLines, startRig } from '../support/gateway.js';
import { onMethod, redirectTo } from '../support/hostile-acts.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import { callStateless, errorOf, requestStateless } from '../support/wire-client.js';

describe('a redirect of the upstream', () => {
  const secret = randomBytes(16).toString('hex');
  let rig: AttackRig;
  let elsewhere: HostileUpstream;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-secret-'));
    await writeFile(join(folder, 'credential'), secret);
    elsewhere = await startHostileUpstream();
    rig = await startRig({
      upstream: [
        'pinning: {maxAge: 10m}',
        `credentials: {type: static, header: x-api-key, value: {file: ${JSON.stringify(join(folder, 'credential'))}}}`,
      ],
    });
  });
  afterEach(() => rig.upstream.repent());
  afterAll(async () => {
    await rig.close();
    await elsewhere.close();
    await rm(folder, { recursive: true });
  });

  it.each([300, 301, 302, 303, 304, 305, 307, 308])('[X-14] with status %i is not followed', async (status) => {
    rig.upstream.obey(onMethod('tools/call', () => redirectTo(elsewhere.url, status)));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(502);
    expect(errorOf(reply)).toMatchObject({ code: 1506 });
    expect(reply.text).not.toContain(elsewhere.origin);
    expect(reply.headers.get('location')).toBeNull();
    expect(elsewhere.connections()).toBe(0);
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  });

  it.each(['http://169.254.169.254/latest/meta-data/iam/', 'http://[fd00:ec2::254]/', '//169.254.169.254/', '/mcp/'])(
    '[X-14, MCP-65] to %s is not followed',
    async (target) => {
      rig.upstream.forget();
      rig.upstream.obey(onMethod('tools/call', () => redirectTo(target)));
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(reply.status).toBe(502);
      expect(reply.text).not.toContain('169.254');
      expect(rig.upstream.seen()).toHaveLength(1);
    },
  );

  it('[X-14] of a list, a session and a stream is not followed either', async () => {
    rig.upstream.obey(() => redirectTo(elsewhere.url, 307));
    expect((await requestStateless(rig.access, 'tools/list')).status).toBe(502);
    await expect(rig.openSession()).rejects.toThrow('502');
    expect(elsewhere.connections()).toBe(0);
  });

  it('[X-14] is the only thing that keeps the credential at its upstream', async () => {
    await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(rig.upstream.uses().at(-1)?.headers['x-api-key']).toBe(secret);
    expect(elsewhere.seen()).toEqual([]);
  });
});
