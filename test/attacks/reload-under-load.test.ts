// Case 86: a policy is replaced while a thousand calls are in flight. Each call is decided wholly by one
// version, and the audit says by which.

import { beforeAll, describe, expect, it } from 'vitest';
import { connectIn, ERA_PAIRS } from '../support/eras.js';
import { type AttackRig, decisionOf } from '../support/gateway.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, type Reply, requestInSession } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** How many calls are in flight while the policy is replaced so many times. */
type Load = { readonly calls: number; readonly reloads: number };
/** The same before each era, where the number of calls matters less. */
const SMALL: Load = { calls: 60, reloads: 3 };
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

/**
 * Makes the calls, and compares what their callers get with what the audit log says of each. Some of them begin before
 * each reload, which waits for the first of those, and some after the last.
 */
async function expectOneVersionEach(
  rig: AttackRig,
  { calls, reloads }: Load,
  send: (id: string, number: number) => Promise<Reply>,
): Promise<void> {
  rig.upstream.forget();
  const size = Math.ceil(calls / (reloads + 1));
  const sent: Promise<Reply>[] = [];
  for (let number = 0; number <= reloads; number += 1) {
    const begun = Array.from({ length: Math.min(size, calls - sent.length) }, (_, at) => {
      const index = sent.length + at;
      return send(IDS[index % 2] ?? '', index);
    });
    sent.push(...begun);
    await begun[0];
    if (number === reloads) break;
    await rig.gateway.writePolicy('parity', version(number + 1));
    expect(await rig.gateway.reload()).toEqual([]);
  }
  const replies = await Promise.all(sent);

  const linesOf = async (type: string) =>
    (await rig.gateway.audit()).filter((line) => line['type'] === type && line['target'].name === 'read_record');
  // A response on a channel has a record of its own, without a rule.
  const decided = async () => (await linesOf('mcp.decision')).filter((line) => line['decision'].policy === 'parity');
  await expect.poll(async () => (await decided()).length, PATIENT).toBe(calls);
  const lines = await decided();
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
  // The first of the calls before a reload is decided before it.
  expect(versionOf.size).toBe(reloads + 1);

  // What the client got is what the audit says, and the upstream saw what was allowed and no more.
  const allowed = lines.filter((line) => line['decision'].verdict === 'allow');
  expect(rig.upstream.uses()).toHaveLength(allowed.length);
  const refused = replies.filter(({ text }) => text.includes('dev.sallyport/decision'));
  const denied = lines.filter((line) => line['decision'].verdict === 'deny');
  // A response that is still on its way may not go on under a later version that denies it
  // (docs/reference/start-and-reload.md#reload).
  const withheld = async () => (await linesOf('mcp.outcome')).filter((line) => line['decision'].action === 'withheld');
  const ids = async () => [...denied, ...(await withheld())].map((line) => line['decision'].id).sort();
  await expect.poll(ids, PATIENT).toEqual(refused.map((reply) => decisionOf(reply).id).sort());
  for (const line of await withheld()) expect(line['decision'].reasons).toEqual(['denied-by-rule']);
}

const OPTIONS = {
  policies: { parity: version(0) },
  upstream: ['pinning: {maxAge: 10m}', 'limits: {concurrency: 2000, concurrencyPerCaller: 2000}'],
};

describe('a policy that is replaced under load', () => {
  let session: string;
  const rig = sharedGateway(OPTIONS);
  beforeAll(async () => {
    session = (await rig.openSession()).id;
  });

  it('[X-86, P-17] decides each call in flight wholly by one version, and the audit names it', async () => {
    await expectOneVersionEach(rig, { calls: 1000, reloads: 10 }, (id, number) => {
      const args = { name: 'read_record', arguments: { id } };
      return number % 4 < 2
        ? callStateless(rig.access, args.name, args.arguments)
        : requestInSession(rig.access, session, 'tools/call', args);
    });
  });
});

describe.each(ERA_PAIRS)('a policy that is replaced, for a client of %s before %s', (client, upstream) => {
  const rig = sharedGateway({ ...OPTIONS, era: upstream });

  it('[X-86] decides each call in flight wholly by one version', async () => {
    const { request, leave } = await connectIn(client, rig.access);
    await expectOneVersionEach(rig, SMALL, (id) => request('tools/call', { name: 'read_record', arguments: { id } }));
    leave();
  });
});
