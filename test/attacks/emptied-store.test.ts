// Attacks by whoever waits until the shared store has lost what it knew: it looks like a store in which nobody has
// received or spent anything. The store is one of this process; what a real one does is in test/system.

import { randomBytes } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { createGate } from '../support/changing-rig.js';
import { connectIn, ERAS } from '../support/eras.js';
import { type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import { replace } from '../support/seams.js';
import { createFakeStore } from '../support/state.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, type Reply, requestStateless } from '../support/wire-client.js';
import { shared, withStarted } from '../support/with-gateway.js';

let aheadMs = 0;
const store = createFakeStore(() => Date.now() + aheadMs);
replace('redis', { openRedisLink: () => store.link() });

const HOUR_MS = 3_600_000;
const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {issuers: [test], groups: [eng]}, what: {upstreams: ["*"], tools: ["*"]}}
  - {id: paid, effect: allow, who: {issuers: [test], groups: [paying]}, what: {upstreams: ["*"], tools: [read_record]}, limits: {budget: {name: spend, cost: "1.0", per: subject, within: 20m, max: 2}}}
labels: {${UPSTREAM}/write_record: [egress, trusted]}
flows: [{id: no-leak, from: untrusted, to: egress, within: 10m, effect: deny}]
`;
const WRITE = { id: 'x', text: 'y' };

function startWith(state: string): Promise<AttackRig> {
  return startRig({
    policies: { open: POLICY },
    env: { REDIS_URL: 'redis://127.0.0.1:9', KEY: randomBytes(32).toString('hex') },
    now: () => Date.now() + aheadMs,
    more: `state: {type: redis, url: {env: REDIS_URL}, maxAge: 2s, commandTimeout: 300ms${state}}\nkeys: [{env: KEY}]\n`,
  });
}

/** A store that has been there for longer than any window. */
async function ageStore(): Promise<void> {
  await store.link().poll('old', { mark: 0, readTo: 0, maxMessages: 1 });
  aheadMs += HOUR_MS;
}

const readyStatus = async (rig: AttackRig): Promise<number> => (await fetch(`${rig.gateway.opsUrl}/readyz`)).status;

describe.each([
  ['', true],
  [', afterLoss: degrade', false],
] as const)('a store that loses what it knew, with state: {type: redis%s}', (state, isRefused) => {
  const rig = shared(async () => {
    await ageStore();
    return startWith(state);
  });

  const as = async (sub: string, groups = 'eng') =>
    rig.as(await rig.gateway.token(UPSTREAM, { sub, groups: [groups], ...lifetime() }));
  const read = async (sub: string, groups?: string): Promise<Reply> =>
    callStateless(await as(sub, groups), 'read_record', { id: 'one' });
  const outcomes = async (): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const era of ERAS) {
      const caller = await connectIn(era, await as('ada'));
      const reply = await caller.request('tools/call', { name: 'write_record', arguments: WRITE });
      caller.leave();
      found.push(/tainted-flow|store-unavailable/.exec(reply.text)?.[0] ?? 'delivered');
    }
    return found;
  };
  const all = (outcome: string): readonly string[] => ERAS.map(() => outcome);

  it('lets nobody send on what was received before, or spend again what was spent', async () => {
    expect(await outcomes()).toEqual(all('delivered'));
    expect((await read('ada')).status).toBe(200);
    expect(await outcomes()).toEqual(all('tainted-flow'));
    for (const spent of [false, false, true])
      expect((await read('eve', 'paying')).text.includes('is spent')).toBe(spent);
    store.forget();
    rig.upstream.forget();
    expect(await outcomes()).toEqual(all(isRefused ? 'store-unavailable' : 'delivered'));
    const paid = await read('eve', 'paying');
    if (!isRefused) {
      expect(paid.text).not.toContain('store-unavailable');
      return;
    }
    expect(paid.text).toContain('store-unavailable');
    expect(rig.upstream.uses()).toEqual([]);
    // What needs no history goes on.
    expect((await read('kim')).text).not.toContain('isError":true');
    expect(await readyStatus(rig)).toBe(200);
    const control = async () => (await rig.gateway.metrics()).includes('control="store",state="degraded"} 1');
    await expect.poll(control, PATIENT).toBe(true);
  });
});

it('at a first start says why flows and budgets are refused, until when, and what to do', async () => {
  store.forget();
  await withStarted(
    () => startWith(''),
    async (rig) => {
      const line = rig.gateway
        .log()
        .split('\n')
        .find((one) => one.includes('no history for flows'));
      expect(line).toMatch(/began empty, as it does at the first start .*T[\d:.]+Z on; .*afterLoss: degrade/);
      const token = await rig.gateway.token(UPSTREAM, { sub: 'ada', ...lifetime() });
      const reply = await callStateless(rig.as(token), 'write_record', WRITE);
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(reply.text).toMatch(/began empty .* It will in \d+ seconds/);
    },
  );
});

function lifetime(): { readonly iat: number; readonly exp: number } {
  const now = Math.floor((Date.now() + aheadMs) / 1000);
  return { iat: now - 1, exp: now + 600 };
}

/** Begins a call whose response waits at its server for `release`. */
async function beginCall(rig: AttackRig, token: string, contentType: string) {
  const { passed, open: release } = createGate();
  rig.upstream.forget();
  rig.upstream.obeyOnce(
    onMethod('tools/call', (request) => {
      const result = resultFor(request, textResult('late'));
      const chunks = contentType === 'application/json' ? [JSON.stringify(result)] : [': begun\n\n', sseEvent(result)];
      return { kind: 'chunks', contentType, ending: 'end', gate: passed, chunks };
    }),
  );
  const reply = callStateless(rig.as(token), 'read_record', { id: 'one' });
  await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
  return { reply, release };
}

describe.each([
  ['', 200],
  [', readiness: strict', 503],
] as const)('a store that is away, with state: {type: redis%s}', (state, later) => {
  const rig = shared(async () => {
    store.goDown();
    return startWith(state);
  });
  afterAll(async () => {
    store.comeBack();
  });

  it('is waited for before the gateway is ready; later, what needs it is refused', async () => {
    expect(await readyStatus(rig)).toBe(503);
    store.comeBack();
    await expect.poll(() => readyStatus(rig), PATIENT).toBe(200);
    const token = await rig.gateway.token(UPSTREAM, { sub: 'ada', ...lifetime() });
    const call = () => requestStateless(rig.as(token), 'tools/list');
    const sent = [await beginCall(rig, token, 'application/json'), await beginCall(rig, token, 'text/event-stream')];
    store.goDown();
    await expect.poll(async () => (await call()).status, PATIENT).toBe(503);
    const refused = await call();
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(refused.text).toContain('so it was refused. Try again later.');
    // The server has these, so nobody knows whether they were carried out.
    for (const { reply, release } of sent) {
      release();
      const { text } = await reply;
      expect(text).toContain('"reason":"store-unavailable"');
      expect(text).toContain(
        'had been sent to the server and may have been carried out: find out before you send it again',
      );
      expect(text).not.toContain('ry again later');
    }
    await expect.poll(() => readyStatus(rig), PATIENT).toBe(later);
    store.comeBack();
    await expect.poll(() => readyStatus(rig), PATIENT).toBe(200);
  });
});
