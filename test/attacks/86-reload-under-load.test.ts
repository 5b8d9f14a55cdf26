// Case 86: a policy is replaced while a thousand calls are in flight. Each call is decided wholly by one
// version, and the audit says by which.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, decisionOf, startRig } from '../support/gateway.js';
import { callStateless, type Reply } from '../support/wire-client.js';

const CALLS = 1000;
const AT_ONCE = 50;
const RELOADS = 8;

/** Two versions that disagree about everything: who is allowed, by which rule, with which arguments. */
function version(name: 'even' | 'odd'): string {
  const other = name === 'even' ? 'odd' : 'even';
  return `version: 1
policy: parity
rules:
  - id: allow-${name}
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record]}
  - id: deny-${other}
    effect: deny
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record]}
    args: {id: {const: ${other}}}
`;
}

describe('a policy that is replaced under load', () => {
  let rig: AttackRig;
  beforeAll(async () => {
    rig = await startRig({ policies: { parity: version('even') } });
  });
  afterAll(() => rig.close());

  it('[X-86] decides each call wholly by one version, and the audit names it', async () => {
    const replies: { readonly id: string; readonly reply: Reply }[] = [];
    let next = 0;
    async function caller(): Promise<void> {
      while (next < CALLS) {
        next += 1;
        const id = next % 2 === 0 ? 'even' : 'odd';
        replies.push({ id, reply: await callStateless(rig.access, 'read_record', { id }) });
      }
    }
    async function operator(): Promise<void> {
      for (let i = 1; i <= RELOADS; i += 1) {
        await rig.gateway.writePolicy('parity', version(i % 2 === 0 ? 'even' : 'odd'));
        expect(await rig.gateway.reload()).toEqual([]);
        await sleep(20);
      }
    }
    rig.upstream.forget();
    await Promise.all([operator(), ...Array.from({ length: AT_ONCE }, caller)]);
    expect(replies).toHaveLength(CALLS);

    const decisions = async () =>
      (await rig.gateway.audit()).filter(
        (line) => line['type'] === 'mcp.decision' && line['target'].name === 'read_record',
      );
    await expect.poll(async () => (await decisions()).length).toBe(CALLS);
    const lines = await decisions();
    const rules = new Map<string, Set<string>>();
    for (const line of lines) {
      const { rule, verdict } = line['decision'];
      expect(verdict).toBe(rule.startsWith('allow-') ? 'allow' : 'deny');
      const known = rules.get(line['gateway'].policy) ?? new Set();
      rules.set(line['gateway'].policy, known.add(rule));
    }
    // Two versions, and under each only the rules of that version.
    expect(rules.size).toBe(2);
    const sets = [...rules.values()].map((set) => [...set].toSorted());
    expect(sets.toSorted()).toEqual([
      ['allow-even', 'deny-odd'],
      ['allow-odd', 'deny-even'],
    ]);

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
