// The admin listener of a running gateway: the state of every control, for those who may see it.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENT } from '../support/timing.js';
import { bearer } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const AUDIENCE = 'https://mcp.example.com/admin';

describe('the admin listener', () => {
  const secret = randomBytes(32).toString('hex');
  let folder: string;
  let adminUrl: string;
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });
  const rig = sharedGateway(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-admin-'));
    await writeFile(join(folder, 'break-glass'), secret);
    return {
      more: `admin:
  issuers: {test: {audience: "${AUDIENCE}", roles: {viewer: [sec], reviewer: [leads], admin: [platform]}}}
  breakGlass: {token: {file: ${JSON.stringify(join(folder, 'break-glass'))}}}
`,
    };
  });
  beforeAll(async () => {
    const admin = rig.gateway.gateway.listening.find(({ listener }) => listener === 'admin');
    adminUrl = `http://127.0.0.1:${admin?.port}`;
  });

  async function controls(token: string | undefined): Promise<Response> {
    return fetch(`${adminUrl}/api/controls`, { headers: bearer(token) });
  }

  it('[BND-03] takes no token that is bound: nothing here could prove it', async () => {
    const admin = { aud: AUDIENCE, groups: ['sec'] };
    const mint = (claims: object) => rig.gateway.token('target', { ...admin, ...claims });
    expect((await controls(await mint({}))).status).toBe(200);
    const print = 'A'.repeat(43);
    for (const cnf of [{ jkt: print }, { 'x5t#S256': print }])
      expect((await controls(await mint({ cnf }))).status).toBe(401);
  });

  it('[G-08] shows every control to the break-glass token, and records who looked', async () => {
    const answer = await controls(secret);
    expect(answer.status).toBe(200);
    const body = (await answer.json()) as {
      controls: { control: string; state: string; reason: string; since: string }[];
    };
    const states = new Map(body.controls.map(({ control, state }) => [control, state]));
    for (const name of ['policy', 'audit', 'edge', 'metrics', 'admin', 'authn:test', 'pins:target'])
      expect([name, states.get(name)]).toEqual([name, 'armed']);
    expect(states.get('inspection:default')).toBe('armed');
    for (const { since } of body.controls) expect(since).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const actions = async () => (await rig.gateway.audit()).filter((line) => line['type'] === 'admin.action');
    // The other tests look too, and a line is written after its response.
    await expect.poll(actions).toContainEqual(
      expect.objectContaining({
        actor: expect.objectContaining({ sub: 'break-glass' }),
        detail: expect.objectContaining({ action: 'show-controls', status: 200 }),
      }),
    );
    expect(JSON.stringify(await rig.gateway.audit())).not.toContain(secret);
    expect(rig.gateway.log()).not.toContain(secret);
  });

  it('[G-08] shows nothing without a credential, with a wrong one, or with one for callers', async () => {
    for (const token of [undefined, 'x', `${secret}x`, secret.slice(1), rig.access.token]) {
      const answer = await controls(token);
      expect(answer.status).toBe(401);
      expect(await answer.text()).not.toContain('armed');
    }
  });

  it('[G-08] lets in who holds a role, by a token for this audience', async () => {
    const mint = (groups: readonly string[]) => rig.gateway.issuer.mint(AUDIENCE, { claims: { groups } });
    expect((await controls(await mint(['sec']))).status).toBe(200);
    expect((await controls(await mint(['platform']))).status).toBe(200);
    expect((await controls(await mint(['eng']))).status).toBe(403);
  });

  it('[G-08] is not on the data or the ops listener', async () => {
    for (const base of [rig.gateway.publicUrl, rig.gateway.opsUrl]) {
      const answer = await fetch(`${base}/api/controls`, { headers: bearer(secret) });
      expect(answer.status).toBe(404);
    }
  });
});

describe('the admin listener, whose issuer cannot be reached', () => {
  const rig = sharedGateway({
    issuer: ['algorithms: [ES256]', 'keysMaxAge: 2s'],
    more: `admin: {issuers: {test: {audience: "${AUDIENCE}", roles: {viewer: [sec], reviewer: [leads], admin: [platform]}}}}`,
  });

  it('[G-08] says that the token cannot be verified now, and does not ask for another', async () => {
    const admin = rig.gateway.gateway.listening.find(({ listener }) => listener === 'admin');
    const token = await rig.gateway.issuer.mint(AUDIENCE, { claims: { groups: ['sec'] } });
    const look = (): Promise<Response> =>
      fetch(`http://127.0.0.1:${admin?.port}/api/controls`, { headers: bearer(token) });
    expect((await look()).status).toBe(200);
    rig.gateway.issuer.misbehave('down');
    await expect.poll(async () => (await look()).status, PATIENT).not.toBe(200);
    const refused = await look();
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(refused.headers.get('www-authenticate')).toBeNull();
    expect(await refused.text()).not.toContain('armed');
    rig.gateway.issuer.misbehave('none');
    await expect.poll(async () => (await look()).status, { timeout: 15_000, interval: 100 }).toBe(200);
  });
});

describe('a gateway without admin in its configuration', () => {
  const rig = sharedGateway();

  it('[G-08] opens no admin listener, and says that the control is off', async () => {
    const listeners = rig.gateway.gateway.listening.map(({ listener }) => listener);
    expect(listeners).toEqual(['data', 'ops']);
    expect(await rig.gateway.metrics()).toContain('sallyport_controls{control="admin",state="off"} 1');
  });
});
