// What the audit takes: a write that does not come back refuses whoever would have to wait for it, and refusals
// that anybody can cause are written at a bounded rate and counted always.

import { describe, expect, it } from 'vitest';
import { type AttackRig, type AuditLine, expectNothingForwarded } from '../support/gateway.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { passTimeOfSinks } from '../support/seams.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, errorOf, post, type Reply, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** Refusals of each kind that are written; the others are only counted. */
const AUTH_FAILURES_PER_SECOND = 50;
const EDGE_REFUSALS_PER_SECOND = 50;
/** Events about the definitions of one upstream that are written at once. */
const DEFINITION_BURST = 1_000;

describe('a write of the audit that does not come back', () => {
  let written = 0;
  let held: Promise<void> | undefined;
  const rig = sharedGateway({
    audit: 'audit: {sinks: [{type: stdout, durability: handed-over}]}',
    async writeStdout() {
      written += 1;
      await held;
    },
  });

  const call = (): Promise<Reply> => callStateless(rig.access, 'read_record', { id: 'one' });
  const isReady = async (): Promise<boolean> => (await fetch(`${rig.gateway.opsUrl}/readyz`)).status === 200;

  it('[O-24] refuses those who wait and those who come, until it does', async () => {
    expect((await call()).status).toBe(200);
    rig.upstream.forget();
    let release: () => void = () => undefined;
    held = new Promise((resolve) => {
      release = resolve;
    });
    const before = written;
    const waiting = [call()];
    await expect.poll(() => written, PATIENT).toBeGreaterThan(before);
    waiting.push(call());
    passTimeOfSinks(60_000);
    for (const reply of [...(await Promise.all(waiting)), await call()]) {
      expect(reply.status).toBe(503);
      expect(errorOf(reply)).toMatchObject({ code: 1508 });
    }
    expect(await isReady()).toBe(false);
    expectNothingForwarded(rig);
    held = undefined;
    release();
    await expect.poll(isReady, PATIENT).toBe(true);
    expect((await call()).status).toBe(200);
    expect(rig.upstream.uses()).toHaveLength(1);
  });
});

/** How often a metric counted what has all these labels. */
async function countOf(rig: AttackRig, name: string, ...labels: readonly string[]): Promise<number> {
  const lines = (await rig.gateway.metrics()).split('\n').filter((line) => line.startsWith(name));
  const found = lines.filter((line) => labels.every((label) => line.includes(label)));
  return found.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('refusals that anybody can cause', () => {
  const SUPPRESSED = 10;
  const clock = { nowMs: Date.now() };
  const rig = sharedGateway({ now: () => clock.nowMs });

  const linesOf = async (isMeant: (line: AuditLine) => boolean): Promise<readonly AuditLine[]> =>
    (await rig.gateway.audit()).filter(isMeant);
  it('[O-82] failed logins past a rate are counted, and the next that is written says how many', async () => {
    const isFailure = (line: AuditLine): boolean => line['type'] === 'auth.failure';
    const fail = async (): Promise<number> => (await callStateless(rig.as('x'), 'x')).status;
    const all = AUTH_FAILURES_PER_SECOND + SUPPRESSED;
    const statuses = await Promise.all(Array.from({ length: all }, fail));
    expect(new Set(statuses)).toEqual(new Set([401]));
    clock.nowMs += 1_000;
    expect(await fail()).toBe(401);
    await expect
      .poll(async () => (await linesOf(isFailure)).at(-1)?.['detail'], PATIENT)
      .toMatchObject({ suppressed: SUPPRESSED });
    // It is written behind all others: what is not there now does not come.
    expect(await linesOf(isFailure)).toHaveLength(AUTH_FAILURES_PER_SECOND + 1);
    expect(await countOf(rig, 'sallyport_auth_failures_total', 'token-malformed')).toBe(all + 1);
    expect(await countOf(rig, 'sallyport_audit_events_total', '"suppressed"')).toBe(SUPPRESSED);
    // The process log has the same bound.
    const logged = rig.gateway
      .log()
      .split('\n')
      .filter((line) => line.includes('token-malformed'));
    expect(logged).toHaveLength(AUTH_FAILURES_PER_SECOND + 1);
    expect(JSON.parse(logged.at(-1) ?? '')).toMatchObject({ suppressed: SUPPRESSED });
  });

  it('[G-81] refusals of the edge past a rate are counted, and the next that is written says how many', async () => {
    const suppressed = (): Promise<number> => countOf(rig, 'sallyport_audit_events_total', '"suppressed"');
    const before = await suppressed();
    const { headers, body } = statelessParts('tools/list');
    const refuse = async (): Promise<string> => {
      const foreign = { ...headers, origin: 'https://evil.example' };
      const reply = await post(rig.access, JSON.stringify(body), foreign);
      expect(reply.status).toBe(403);
      return reply.headers.get('sallyport-decision') ?? '';
    };
    const isRefusal = (line: AuditLine): boolean => line['decision']?.reasons?.includes('origin-forbidden');
    clock.nowMs += 1_000;
    const all = EDGE_REFUSALS_PER_SECOND + SUPPRESSED;
    const ids = new Set(await Promise.all(Array.from({ length: all }, refuse)));
    expect(ids.size).toBe(all);
    clock.nowMs += 1_000;
    const last = await refuse();
    const ofLast = (line: AuditLine): boolean => line['decision']?.id === last;
    // A decision and an outcome each.
    await expect.poll(async () => (await linesOf(ofLast)).length, PATIENT).toBe(2);
    const [first, ...others] = await linesOf(isRefusal);
    expect(others).toHaveLength(2 * EDGE_REFUSALS_PER_SECOND + 1);
    expect(first).not.toHaveProperty('detail');
    expect((await linesOf(ofLast)).map(({ detail }) => detail)).toEqual([{ suppressed: SUPPRESSED }, undefined]);
    expect((await suppressed()) - before).toBe(2 * SUPPRESSED);
    expect(await countOf(rig, 'sallyport_denials_total', 'origin-forbidden')).toBe(all + 1);
  });
});

describe('definitions that an upstream changes as often as it can', () => {
  const INVENTED = 700;
  const ROUNDS = 3;
  let round = 0;
  const clock = { nowMs: Date.now() };
  const rig = sharedGateway({ now: () => clock.nowMs, upstream: ['pinning: {verify: before-call}'] });

  /** Tools with names that are new in each round, and are read before those that are pinned. */
  function inventNames(pinned: readonly JsonObject[]): readonly JsonObject[] {
    const invented = Array.from({ length: INVENTED }, (_, index) => ({
      name: `a_${round}_${index}`,
      inputSchema: { type: 'object' },
    }));
    return [...invented, ...pinned];
  }

  it('[O-85] are counted past a rate, and the first drift of one that is pinned is written', async () => {
    const drifts = async (): Promise<readonly AuditLine[]> =>
      (await rig.gateway.audit()).filter((line) => line['type'] === 'pin.drift');
    const call = async (name: string): Promise<unknown> => {
      // Later than the listing before, which a clock that stands still would take for a new one.
      clock.nowMs += 1;
      return (await callStateless(rig.access, name, { id: 'one' })).message;
    };
    const seen = (): Promise<number> => countOf(rig, 'sallyport_tool_drift_total');
    const burst = DEFINITION_BURST;
    rig.upstream.offer(() => inventNames(HONEST_TOOLS));
    for (round = 1; round <= ROUNDS; round += 1) {
      await call('write_record');
      await expect.poll(seen, PATIENT).toBe(round * INVENTED);
    }
    await expect.poll(async () => (await drifts()).length, PATIENT).toBe(burst);
    const [first, ...others] = HONEST_TOOLS;
    const changed = { ...first, description: 'Reads a record, and more.' };
    rig.upstream.offer(() => inventNames([changed, ...others]));
    await call('read_record');
    const suppressed = (ROUNDS + 1) * INVENTED - burst;
    const last = async (): Promise<AuditLine | undefined> => (await drifts()).at(-1);
    await expect.poll(last, PATIENT).toMatchObject({
      target: { upstream: 'target', kind: 'tool', name: 'read_record' },
      detail: { change: 'description', suppressed },
    });
    expect(await drifts()).toHaveLength(burst + 1);
    const logged = rig.gateway.log().split('\n');
    expect(logged.filter((line) => line.includes('definition has no pin'))).toHaveLength(burst);
    const [warning = ''] = logged.filter((line) => line.includes('differs from its pin'));
    expect(JSON.parse(warning)).toMatchObject({ name: 'read_record', suppressed });
    expect(await countOf(rig, 'sallyport_audit_events_total', '"suppressed"')).toBe(suppressed);
  });
});
