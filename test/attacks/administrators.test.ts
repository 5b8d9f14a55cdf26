// Who acted on the admin listener. An administrator whose subject is `break-glass` at an issuer is never recorded as the
// break-glass token, whichever way the request came; guesses at the token are refused by address, on the API and on the
// form, and lock out neither the right token nor an administrator behind the same address.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { formTokenOf, logIn, startConsole, TestBrowser } from '../support/console-rig.js';
import { PATIENT } from '../support/timing.js';
import { bearer } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

/** Logins with the break-glass token that are answered. */
const ATTEMPTS_PER_MINUTE = 30;

const console = shared(() =>
  startConsole({
    user: 'break-glass',
    groups: ['platform'],
    admins: ['test: {audience: "https://console.example.com", roles: {admin: [platform]}}'],
  }),
);

const mint = () =>
  console.rig.gateway.issuer.mint('https://console.example.com', {
    claims: { sub: 'break-glass', groups: ['platform'] },
  });

const ask = (token: string, path = '/api/controls', order?: object) =>
  fetch(console.url + path, {
    headers: { ...bearer(token), ...(order && { 'content-type': 'application/json' }) },
    ...(order && { method: 'POST', body: JSON.stringify(order) }),
  });

const block = { block: { target: 'subject', issuer: 'test', subject: 'nobody' }, note: 'a drill' };

async function actors(action: string): Promise<readonly unknown[]> {
  return (await console.rig.gateway.audit())
    .filter((line) => line['type'] === 'admin.action' && line['detail'].action === action)
    .map((line) => [line['actor'].iss, line['actor'].sub]);
}

describe('an administrator whose subject is break-glass', () => {
  it('is told from the token in the record of each access', async () => {
    expect((await ask(await mint())).status).toBe(200);
    expect((await ask(console.breakGlass)).status).toBe(200);
    const issuer = console.rig.gateway.issuer.issuer;
    await expect
      .poll(() => actors('show-controls'), PATIENT)
      .toEqual([
        [issuer, 'break-glass'],
        [null, 'break-glass'],
      ]);
    const browser = await logIn(console);
    expect((await browser.open(`${console.url}/drift`)).status).toBe(200);
    await expect.poll(() => actors('show-page'), PATIENT).toContainEqual([console.provider.issuer, 'break-glass']);
    expect(await actors('log-in')).toEqual([[console.provider.issuer, 'break-glass']]);
    expect(await actors('show-page')).not.toContainEqual([null, 'break-glass']);
  });

  it('is told from the token in the blocks that were made', async () => {
    const authors = [];
    for (const token of [await mint(), console.breakGlass]) {
      const made = await ask(token, '/api/revocations', block);
      expect(made.status).toBe(201);
      const { revocation } = (await made.json()) as { revocation: { by: string } };
      authors.push(revocation.by);
    }
    expect(authors).toEqual(['break-glass (test)', 'break-glass']);
    const browser = await logIn(console);
    const form = formTokenOf(await browser.open(`${console.url}/blocks`));
    const order = { target: 'upstream', upstream: 'target', note: 'a drill' };
    await browser.submit(`${console.url}/block`, { ...order, form });
    const listed = await ask(console.breakGlass, '/api/revocations');
    const { revocations } = (await listed.json()) as { revocations: { by: string }[] };
    expect(revocations.map(({ by }) => by)).toContain('break-glass (idp)');
  });
});

describe('guesses at the break-glass token', () => {
  const guess = () => randomBytes(32).toString('base64url');

  it('are refused by address, and the right token and administrators are not', async () => {
    const statuses: number[] = [];
    for (let count = 0; count < ATTEMPTS_PER_MINUTE + 5; count += 1)
      statuses.push((await ask(guess(), count % 2 === 0 ? '/api/controls' : '/api/revocations')).status);
    expect(statuses.slice(0, ATTEMPTS_PER_MINUTE)).toEqual(Array(ATTEMPTS_PER_MINUTE).fill(401));
    expect(statuses.slice(-4)).toEqual([429, 429, 429, 429]);
    expect((await ask(console.breakGlass)).status).toBe(200);
    expect((await ask(await mint())).status).toBe(200);
    // A token that has expired says so by 401, so that a client gets another.
    expect((await ask(`${await mint()}x`)).status).toBe(401);
    const browser = new TestBrowser();
    const form = formTokenOf(await browser.open(console.url));
    const log = (token: string) => browser.submit(`${console.url}/login`, { form, token, to: '/' });
    expect((await log(guess())).status).toBe(429);
    expect((await logIn(console)).cookies(console.url).has('sallyport-session')).toBe(true);
    expect((await log(console.breakGlass)).status).toBe(200);
    expect(browser.cookies(console.url).has('sallyport-session')).toBe(true);
  });
});
