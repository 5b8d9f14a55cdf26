// Consoles of two replicas that share their keys and a store: who logs in at one is known at the other, and what is
// blocked from a page of one holds at both. The store is one of this process; a real one is in test/system.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ConsoleRig, formTokenOf, startConsole, TestBrowser } from '../support/console-rig.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { replace } from '../support/seams.js';
import { createFakeStore } from '../support/state.js';
import { PATIENT, SOON } from '../support/timing.js';
import { callStateless, requestStateless, toolNames } from '../support/wire-client.js';

const store = createFakeStore(Date.now);
replace('redis', { openRedisLink: () => store.link() });

const [FIRST, ...OTHERS] = HONEST_TOOLS;
const DRIFTED = [{ ...FIRST, description: 'Reads any record.' }, ...OTHERS];
const NOTHING = 'Nothing is blocked or revoked.';

let one: ConsoleRig;
let other: ConsoleRig;
/** Logged in at the first replica alone. */
let browser: TestBrowser;
beforeAll(async () => {
  const shared = {
    gatewayKey: randomBytes(32).toString('hex'),
    breakGlass: randomBytes(32).toString('base64url'),
    env: { REDIS_URL: 'redis://127.0.0.1:9' },
    more: 'state: {type: redis, url: {env: REDIS_URL}}\n',
  };
  one = await startConsole(shared);
  other = await startConsole(shared);
  browser = new TestBrowser();
  const form = formTokenOf(await browser.open(one.url));
  await browser.submit(`${one.url}/login`, { form, token: one.breakGlass });
  // A browser sends the same cookies to both behind one address.
  for (const [name, value] of browser.cookies(one.url)) browser.cookies(other.url).set(name, value);
});
afterAll(async () => {
  await one?.close();
  await other?.close();
});

const callAt = async ({ rig }: ConsoleRig): Promise<string> =>
  (await callStateless(rig.access, 'write_record', { id: 'one', text: 'x' })).text;

describe('the consoles of two replicas', () => {
  it('[CON-04] block at both soon from a page of one, and lift from a page of the other', async () => {
    for (const rig of [one, other]) expect(await callAt(rig)).toContain('write_record one');
    const form = formTokenOf(await browser.open(`${one.url}/blocks`));
    const order = { form, target: 'tool', upstream: 'target', name: 'write_record', note: 'stop' };
    expect((await browser.submit(`${one.url}/block`, order)).body).toContain('stop');
    await expect.poll(() => callAt(other), SOON).not.toContain('write_record one');
    expect(await callAt(one)).not.toContain('write_record one');
    const shown = await browser.open(`${other.url}/blocks`);
    expect(shown.body).toContain('stop');
    const id = /name="id" value="([^"]+)"/.exec(shown.body)?.[1] ?? '';
    // The form is of the session, so a page of either replica may send it to either.
    expect((await browser.submit(`${other.url}/lift`, { form, id })).body).toContain(NOTHING);
    await expect.poll(() => callAt(one), SOON).toContain('write_record one');
    await expect.poll(async () => (await browser.open(`${one.url}/blocks`)).body, SOON).toContain(NOTHING);
  });

  it('[CON-04] hold the same blocks where both are sent the same form at the same time', async () => {
    const form = formTokenOf(await browser.open(`${one.url}/blocks`));
    const order = { form, target: 'tool', upstream: 'target', name: 'write_record', note: 'both' };
    const pages = await Promise.all([one, other].map(({ url }) => browser.submit(`${url}/block`, order)));
    expect(pages.map(({ status }) => status)).toEqual([200, 200]);
    const idsAt = async ({ url }: ConsoleRig) =>
      [...(await browser.open(`${url}/blocks`)).body.matchAll(/name="id" value="([^"]+)"/g)]
        .map(([, id]) => id ?? '')
        .sort();
    await vi.waitFor(async () => {
      const ids = await idsAt(one);
      expect(ids.length).toBeGreaterThan(0);
      expect(await idsAt(other)).toEqual(ids);
    }, SOON);
    const ids = await idsAt(one);
    for (const id of ids) await browser.submit(`${one.url}/lift`, { form, id });
    await expect.poll(() => idsAt(other), SOON).toEqual([]);
    // A form that is sent again, for a block that is lifted, changes nothing.
    const again = await browser.submit(`${other.url}/lift`, { form, id: ids[0] ?? '' });
    expect(again.status).toBe(404);
    await expect.poll(() => callAt(other), SOON).toContain('write_record one');
  });

  it('[CON-02] show drift until the approval is in the files of each', async () => {
    for (const { rig } of [one, other]) {
      rig.upstream.offer(() => DRIFTED);
      await vi.waitFor(async () => {
        expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(['write_record']);
      }, PATIENT);
    }
    const drift = async ({ url }: ConsoleRig) => (await browser.open(`${url}/drift`)).body;
    await one.rig.gateway.approvePins();
    await one.rig.gateway.reload();
    await expect.poll(() => drift(one), PATIENT).toContain('Everything is as pinned.');
    expect(await drift(other)).toContain('read_record');
    await other.rig.gateway.approvePins();
    await other.rig.gateway.reload();
    await expect.poll(() => drift(other), PATIENT).toContain('Everything is as pinned.');
  });

  it('[CON-08] end the session at both with a logout at one', async () => {
    const form = formTokenOf(await browser.open(`${other.url}/blocks`));
    const kept = new Map(browser.cookies(one.url));
    await browser.submit(`${other.url}/logout`, { form });
    const stale = new TestBrowser();
    for (const [name, value] of kept) stale.cookies(one.url).set(name, value);
    await expect.poll(async () => (await stale.open(one.url)).status, SOON).toBe(401);
  });
});
