// Case 86: a policy is replaced while a thousand calls are in flight. Each call is decided wholly by one
// version, and the audit says by which.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, decisionOf, startRig } from '../support/gateway.js';
import { callStateless, type Reply, requestInSession } from '../support/wire-client.js';

const CALLS = 1000;
const RELOADS = 10;
/** Calls begin within this time, which reloads take longer than. */
const SPREAD_MS = 300;
const IDS = ['even', 'odd'];

/** Each version has rules of its own, and refuses what the one before it allows. */
function version(number: number): string {
  const refused = IDS[number % 2];
  return `version: 1
policy: parity
rules:
  - id: allow-${number}
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record]}
  - id: deny-${number}
    effect: deny
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record]}
    args: {id: {const: ${refused}}}
`;
}

describe('a policy that is replaced under load', () => {
  let rig: AttackRig;
  let session: string;
  beforeAll(async () => {
    rig = await startRig({
      policies: { parity: version(0) },
      upstream: [
        'pinning: {maxAge: 10m}',
        'limits: {concurrency: 2000, concurrencyPerCaller: 2000}',
      ],
    });
    session = (await rig.openSession()).id;
  });
  afterAll(() => rig.close());

  it('[X-86, P-17] decides each call in flight wholly by one version, and the audit names it', async () => {
    async function call(number: number): Promise<{ readonly id: string; readonly reply: Reply }> {
      // Spread over the time of the reloads, and all of them before the last reload has ended.
      await sleep((number * SPREAD_MS) / CALLS);
      const id = IDS[number % 2] ?? '';
      const args = { name: 'read_record', arguments: { id } };
      const reply =
        number % 4 < 2
          ? await callStateless(rig.access, args.name, args.arguments)
          : await requestInSession(rig.access, session, 'tools/call', args);
      return { id, reply };
    }
    async function operator(): Promise<void> {
      for (let number = 1; number <= RELOADS; number += 1) {
        await rig.gateway.writePolicy('parity', version(number));
        expect(await rig.gateway.reload()).toEqual([]);
      }
    }
    rig.upstream.forget();
    const calls = Array.from({ length: CALLS }, (_, number) => call(number));
    const [replies] = await Promise.all([Promise.all(calls), operator()]);

    const linesOf = async (type: string) =>
      (await rig.gateway.audit()).filter(
        (line) => line['type'] === type && line['target'].name === 'read_record',
      );
    await expect.poll(async () => (await linesOf('mcp.decision')).length).toBe(CALLS);
    const lines = await linesOf('mcp.decision');
    const versionOf = new Map<string, string>();
    for (const line of lines) {
      const { rule, verdict } = line['decision'];
      const [effect, number = ''] = rule.split('-');
      expect(verdict).toBe(effect);
      // Under one policy hash only rules of one version decide.
      const { policy } = line['gateway'];
      expect(versionOf.get(policy) ?? number).toBe(number);
      versionOf.set(policy, number);
    }
    expect(new Set(versionOf.values()).size).toBe(versionOf.size);
    expect(versionOf.size).toBeGreaterThan(2);

    // What the client got is what the audit says, and the upstream saw what was allowed and no more.
    const allowed = lines.filter((line) => line['decision'].verdict === 'allow');
    expect(rig.upstream.uses()).toHaveLength(allowed.length);
    const refused = replies.filter(({ reply }) => reply.text.includes('dev.sallyport/decision'));
    expect(refused).toHaveLength(CALLS - allowed.length);
    const byId = new Map(lines.map((line) => [line['decision'].id, line]));
    for (const { reply } of refused)
      expect(byId.get(decisionOf(reply).id)?.['decision']).toMatchObject({ verdict: 'deny' });
  });
});
