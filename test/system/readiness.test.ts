// Readiness and a real store: away for all, away for one of two behind a balancer, and not to be had because of a wrong
// password when a new replica starts.

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { startDeployment, startForwarder } from '../support/replicas.js';
import { PATIENT } from '../support/timing.js';
import { callStateless } from '../support/wire-client.js';
import { shared, untilTestEnds } from '../support/with-gateway.js';

const upstream = shared(() => startHostileUpstream());
const deployment = shared(() => startDeployment(upstream.url));
/** Processes start slowly on a busy machine. */
const STARTED = { timeout: 60_000, interval: 100 } as const;
const WITHIN_THREE_SECONDS = { timeout: 3_000, interval: 20 };

async function call(): Promise<{ readonly status: number; readonly retryAfter: string | null }> {
  const { status, headers } = await callStateless(await deployment.access('ada'), 'read_record', { id: 'one' });
  return { status, retryAfter: headers.get('retry-after') };
}
const statusOfCall = async (): Promise<number> => (await call()).status;

describe('[G-15] with a shared store', () => {
  it('that is away for all, replicas stay ready, refuse calls, and serve again within three seconds', async () => {
    const replicas = [await deployment.start(), await deployment.start()];
    const probes = () => Promise.all(replicas.map((one) => one.readyz()));
    deployment.balance(...replicas);
    await expect.poll(probes, STARTED).toEqual([
      [200, 'ready\n'],
      [200, 'ready\n'],
    ]);
    await expect.poll(() => deployment.inUse().length, PATIENT).toBe(2);
    expect(await statusOfCall()).toBe(200);
    await deployment.redis.stop();
    await expect.poll(statusOfCall, PATIENT).toBe(503);
    await expect
      .poll(async () => (await probes()).map(([, text]) => text.split('\n')[0]), PATIENT)
      .toEqual(['ready, degraded', 'ready, degraded']);
    expect(await call()).toEqual({ status: 503, retryAfter: expect.stringMatching(/^[1-9]\d*$/) });
    expect((await probes()).map(([status]) => status)).toEqual([200, 200]);
    await deployment.redis.start();
    for (const _ of replicas) await expect.poll(statusOfCall, WITHIN_THREE_SECONDS).toBe(200);
    await expect.poll(probes, WITHIN_THREE_SECONDS).toEqual([
      [200, 'ready\n'],
      [200, 'ready\n'],
    ]);
    for (const replica of replicas) expect(await replica.end('SIGKILL').catch(() => 'was running')).toBe('was running');
  });

  it('that is away for one of two, a strict replica leaves the balancer before it refuses a call', async () => {
    const network = await untilTestEnds(startForwarder(() => Number(new URL(deployment.redis.url).port)));
    const state = 'maxAge: 3s, readiness: strict';
    const one = await deployment.start({ state });
    const cutOff = await deployment.start({ state, redisPort: network.port });
    deployment.balance(one, cutOff);
    await expect.poll(() => deployment.inUse().length, STARTED).toBe(2);
    const statuses: number[] = [];
    let isOver = false;
    const calling = (async () => {
      while (!isOver) {
        statuses.push(await statusOfCall());
        await sleep(20);
      }
    })();
    network.freeze();
    await expect.poll(() => deployment.inUse(), PATIENT).toEqual([one]);
    await expect
      .poll(cutOff.readyz, PATIENT)
      .toEqual([
        503,
        expect.stringMatching(/^not ready\nthe shared store: callers are refused because .*no answer in time/),
      ]);
    isOver = true;
    await calling;
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect((await fetch(`${cutOff.opsUrl}/livez`)).status).toBe(200);
    network.thaw();
    await expect.poll(() => deployment.inUse().length, PATIENT).toBe(2);
    expect(await statusOfCall()).toBe(200);
    await Promise.allSettled([one.end('SIGKILL'), cutOff.end('SIGKILL')]);
  });

  it('that refuses the password of a new replica, it never becomes ready, says why, and does once it is accepted', async () => {
    const password = randomBytes(12).toString('hex');
    const replica = await deployment.start({ password, more: 'startup: {wait: 0s}' });
    const why = 'the user or the password in state.url (WRONGPASS)';
    await expect.poll(replica.readyz, STARTED).toEqual([503, expect.stringContaining(why)]);
    await expect.poll(replica.served.stderr, PATIENT).toContain('gateway started');
    await sleep(1_000);
    expect(await replica.readyz()).toEqual([503, expect.stringContaining(why)]);
    const line = replica.served
      .stderr()
      .split('\n')
      .findLast((one) => one.includes('gateway is not ready'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 'warn', detail: expect.stringContaining(why) });
    expect(replica.served.stderr()).not.toContain(password);
    await deployment.redis.command('ACL', 'SETUSER', 'gateway', `>${password}`);
    await expect.poll(replica.readyz, PATIENT).toEqual([200, 'ready\n']);
    await replica.end('SIGKILL').catch(() => undefined);
  });
});
