// What a reload changes of an issuer: its scopes while its keys stay, and the secret of the client that
// asks it, which stands in no hash.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type AttackRig, expectCallPasses, startRig } from '../support/gateway.js';
import { makeSecret } from '../support/secrets.js';
import { callStateless } from '../support/wire-client.js';

const POLICY = `version: 1
policy: scopes
rules:
  - {id: read, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}, scopes: [read]}
`;

describe('an issuer that a reload changes', () => {
  let rig: AttackRig;
  afterEach(() => rig.close());

  async function rewrite(change: (text: string) => string): Promise<void> {
    const file = join(rig.gateway.folder, 'gateway.yaml');
    await writeFile(file, change(await readFile(file, 'utf8')));
    expect(await rig.gateway.reload()).toEqual([]);
  }

  it('[TOK-11, TOK-13] keeps the keys that it has, though it cannot be reached', async () => {
    rig = await startRig({ policies: { scopes: POLICY } });
    const token = await rig.gateway.token('target', { scope: 'all' });
    expect((await callStateless(rig.as(token), 'read_record', { id: 'one' })).status).toBe(403);
    rig.gateway.issuer.misbehave('down');
    await rewrite((text) => text.replace('[ES256, RS256]}', '[ES256, RS256], scopeHierarchy: {all: [read]}}'));
    await expectCallPasses(rig, token);
    await rewrite((text) => text.replace('{all: [read]}', '{all: [write]}'));
    expect((await callStateless(rig.as(token), 'read_record', { id: 'one' })).status).toBe(403);
  });

  it('[TOK-04] is asked with the secret that its file holds now', async () => {
    const [first, second] = [makeSecret(), makeSecret()];
    const token = makeSecret();
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-secret-'));
    const path = join(folder, 'client');
    await writeFile(path, first);
    rig = await startRig({
      issuer: [`introspection: {clientId: gw, clientSecret: {file: ${path}}, cacheTtl: 1ms}`],
    });
    let shown: string | undefined;
    rig.gateway.issuer.answerAbout((_token, { authorization }) => {
      shown = Buffer.from(authorization?.slice('Basic '.length) ?? '', 'base64').toString();
      const exp = Math.floor(Date.now() / 1000) + 60;
      return { active: true, sub: 'alice', client_id: 'ide', aud: rig.access.url, exp };
    });
    const secretShown = (): string => decodeURIComponent(shown?.split(':')[1] ?? '');
    await expect.poll(async () => (await callStateless(rig.as(token), 'read_record', { id: 'one' })).status).toBe(200);
    expect(secretShown()).toBe(first);
    await writeFile(path, second);
    await rig.gateway.reload();
    await expect.poll(async () => (await callStateless(rig.as(token), 'read_record', { id: 'one' })).status).toBe(200);
    expect(secretShown()).toBe(second);
    await rm(folder, { recursive: true });
  });
});
