// Two replicas with a real store are restarted one after the other under twelve clients on the SDKs, in both eras: none
// of them sees an error if it repeats a request once whose connection was closed.

import { setTimeout as sleep } from 'node:timers/promises';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, it } from 'vitest';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { startDeployment } from '../support/replicas.js';
import { bearer } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const CLIENTS = 12;
const STARTED = { timeout: 60_000, interval: 50 } as const;
/** One call takes longer than the delay, so that it is in progress when nothing more is accepted. */
const LONG_MS = 1_500;
const MORE = { more: 'shutdown: {delay: 1s, drain: 20s}' };
const IDENTITY = { name: 'rolling', version: '1.0.0' } as const;

const upstream = shared(() => startHostileUpstream());
const deployment = shared(() => startDeployment(upstream.url));
let retries = 0;

/** What a client does that repeats a request once where its connection broke off before the response. */
const retrying: typeof fetch = async (input, init) => {
  try {
    return await fetch(input, init);
  } catch (error) {
    if (init?.signal?.aborted === true) throw error;
    retries += 1;
    return fetch(input, init);
  }
};

type Caller = { call(name: string, args: Record<string, unknown>): Promise<unknown>; close(): Promise<void> };

async function connect(index: number): Promise<Caller> {
  const { url, token } = await deployment.access(`caller-${index}`);
  const options = { requestInit: { headers: bearer(token) }, fetch: retrying };
  if (index % 2 === 0) {
    const client = new ClientV1(IDENTITY);
    await client.connect(new TransportV1(new URL(url), options) as Transport);
    return { call: (name, args) => client.callTool({ name, arguments: args }), close: () => client.close() };
  }
  const client = new ClientV2(IDENTITY, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new TransportV2(new URL(url), options));
  return { call: (name, args) => client.callTool({ name, arguments: args }), close: () => client.close() };
}

it('[G-16] a rolling restart is seen by no client that repeats a request once', async () => {
  // Those that take their places run already, because starting takes long on a busy machine.
  const [one, other] = [await deployment.start(MORE), await deployment.start(MORE)];
  const [first, second] = [await deployment.start(MORE), await deployment.start(MORE)];
  deployment.balance(one, other, first, second);
  await expect.poll(() => deployment.inUse().length, STARTED).toBe(4);
  deployment.balance(one, other);
  await expect.poll(() => deployment.inUse().length, STARTED).toBe(2);
  upstream.obey(({ message }) =>
    JSON.stringify(message ?? '').includes('write_record') ? { kind: 'honest', after: sleep(LONG_MS) } : undefined,
  );
  const callers = await Promise.all(Array.from({ length: CLIENTS }, (_, index) => connect(index)));
  const failures: unknown[] = [];
  let answered = 0;
  let isOver = false;
  const working = callers.map(async ({ call }, index) => {
    while (!isOver) {
      const calling = index < 2 ? call('write_record', { id: 'x', text: 'y' }) : call('read_record', { id: 'one' });
      await calling.then(
        () => {
          answered += 1;
        },
        (error: unknown) => failures.push(error),
      );
      await sleep(50);
    }
  });
  for (const [old, next, staying] of [
    [one, first, other],
    [other, second, first],
  ] as const) {
    deployment.balance(old, staying, next);
    await expect.poll(() => deployment.inUse().includes(next), STARTED).toBe(true);
    const before = answered;
    await expect.poll(() => answered, STARTED).toBeGreaterThan(before + CLIENTS);
    expect(await old.end('SIGTERM')).toBe(143);
  }
  const before = answered;
  await expect.poll(() => answered, STARTED).toBeGreaterThan(before + CLIENTS);
  isOver = true;
  await Promise.all(working);
  await Promise.allSettled(callers.map(({ close }) => close()));
  expect(failures).toEqual([]);
  expect(retries).toBeLessThan(CLIENTS * 4);
  const lines = [...(await one.audit()), ...(await other.audit())];
  const calls = lines.filter(({ target }) => target?.method === 'tools/call');
  expect(calls.flatMap(({ decision }) => decision?.reasons ?? [])).toEqual([]);
});
