// Rules and flows that ask, at the running gateway: what they put to a person, what they refuse all the same, and what
// passes without. Nobody is there to say yes.

import { afterEach, describe, expect, it } from 'vitest';
import { decisionOf, UPSTREAM } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { makeSecret } from '../support/secrets.js';
import { callStateless, openSession, type Reply, requestStateless } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const READ = { id: 'one' };
const WRITE = { id: 'x', text: 'y' };
const FOR = 'approval: {by: reviewer}';
const POLICY = `version: 1
policy: ask
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"], prompts: ["*"], resources: ["**"]}}
  - {id: by-name, effect: require, who: {subjects: [ada, ann]}, what: {upstreams: ["*"], tools: [write_record], resources: ["**"], prompts: ["*"]}, ${FOR}}
  - {id: destroys, effect: require, who: {subjects: [bob]}, what: {upstreams: ["*"], tools: ["*"]}, when: tool.annotations.destructiveHint, ${FOR}}
  - {id: secrets, effect: require, who: {subjects: [carl]}, what: {upstreams: ["*"], tools: ["*"]}, when: size(findings) > 0, ${FOR}}
  - id: often
    effect: require
    who: {subjects: [hana]}
    what: {upstreams: ["*"], tools: [read_record]}
    limits: {rate: 2/h, budget: {name: reads, cost: '1.0', max: 9}}
    approval: {by: reviewer, asks: beyond-limits}
`;
const FLOWS = `version: 1
policy: flows
labels: {${UPSTREAM}/write_record: [egress, trusted]}
rules: []
flows:
  - {id: ask, from: untrusted, to: egress, within: 10m, effect: approve, ${FOR}}
`;

/** What inspection finds in arguments is flagged, and does not refuse. */
const FLAGGING = 'inspection: {profiles: {default: {request: {secrets: flag}}}}\n';

const rig = sharedGateway({ policies: { ask: POLICY, flows: FLOWS }, more: FLAGGING });
afterEach(() => rig.upstream.repent());

const as = async (sub: string) => rig.as(await rig.gateway.token(UPSTREAM, { sub }));
const call = async (sub: string, tool: string, args: JsonObject) => callStateless(await as(sub), tool, args);

/** Why a request was refused; undefined if it was not. */
function reasonOf(reply: Reply): unknown {
  return reply.text.includes('dev.sallyport/decision') ? decisionOf(reply).reason : undefined;
}

describe('a call that a rule asks about', () => {
  it('[AR-02] is not forwarded, and others are', async () => {
    rig.upstream.forget();
    expect(reasonOf(await call('ada', 'write_record', WRITE))).toBe('approval-required');
    expect(rig.upstream.uses()).toEqual([]);
    expect(reasonOf(await call('ada', 'read_record', READ))).toBeUndefined();
    const session = await openSession(await as('ann'));
    expect(reasonOf(await session.call('write_record', WRITE))).toBe('approval-required');
  });

  it('[AR-02] is one that reads a resource, and neither subscribes to it nor completes its template', async () => {
    const session = await openSession(await as('ann'));
    const uri = 'memo://one';
    const ref = { type: 'ref/resource', uri: 'memo://{id}' };
    const outcomes = [];
    for (const [method, params] of [
      ['resources/read', { uri }],
      ['resources/subscribe', { uri }],
      ['completion/complete', { ref, argument: { name: 'id', value: 'o' } }],
    ] as const)
      outcomes.push(`${method} ${reasonOf(await session.request(method, params))}`);
    expect(outcomes).toEqual([
      'resources/read approval-required',
      'resources/subscribe undefined',
      'completion/complete undefined',
    ]);
  });

  it('[AR-03] is one of a tool whose pinned hints say so', async () => {
    expect(reasonOf(await call('bob', 'write_record', WRITE))).toBe('approval-required');
    expect(reasonOf(await call('bob', 'read_record', READ))).toBeUndefined();
  });

  it('[AR-02] is one in whose arguments inspection finds something', async () => {
    expect(reasonOf(await call('carl', 'write_record', WRITE))).toBeUndefined();
    const secret = `ghp_${makeSecret()
      .replace(/[^A-Za-z0-9]/g, 'x')
      .slice(0, 36)}`;
    expect(reasonOf(await call('carl', 'write_record', { ...WRITE, text: secret }))).toBe('approval-required');
  });
});

describe('a rule that asks beyond its limits', () => {
  it('[AR-02] counts what is within them, and asks about the rest', async () => {
    rig.upstream.forget();
    const outcomes = [];
    for (let count = 0; count < 4; count += 1) outcomes.push(reasonOf(await call('hana', 'read_record', READ)));
    expect(outcomes).toEqual([undefined, undefined, 'approval-required', 'approval-required']);
    expect(rig.upstream.uses()).toHaveLength(2);
  });
});

describe('a flow that asks', () => {
  it('[AR-04] puts a call to a person that it would refuse, and no other', async () => {
    expect(reasonOf(await call('dora', 'write_record', WRITE))).toBeUndefined();
    expect(reasonOf(await call('dora', 'read_record', READ))).toBeUndefined();
    rig.upstream.forget();
    expect(reasonOf(await call('dora', 'write_record', WRITE))).toBe('approval-required');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[AR-04] refuses what carries more than a person is shown', async () => {
    await call('emil', 'read_record', READ);
    const params = { name: 'write_record', arguments: WRITE };
    const answer = { action: 'accept', content: { note: 'from the record' } };
    const outcomes = [];
    for (const more of [{ inputResponses: { note: answer } }, { _meta: { 'com.example/note': 'from the record' } }])
      outcomes.push(reasonOf(await requestStateless(await as('emil'), 'tools/call', { ...params, ...more })));
    // What stands in `_meta` is cut out, so that what a person approves is all that leaves.
    expect(outcomes).toEqual(['tainted-flow', 'approval-required']);
  });

  it('[AR-04] lifts no other flow: with one that refuses, the call is refused', () =>
    withGateway(
      {
        policies: {
          ask: POLICY,
          flows: `${FLOWS}  - {id: never, from: untrusted, to: egress, within: 5m, effect: deny}\n`,
        },
      },
      async (other) => {
        const at = other.as(await other.gateway.token(UPSTREAM, { sub: 'finn' }));
        await callStateless(at, 'read_record', READ);
        expect(reasonOf(await callStateless(at, 'write_record', WRITE))).toBe('tainted-flow');
      },
    ));

  it('[AR-04] refuses subscriptions and completions to where it leads', () =>
    withGateway(
      { policies: { ask: POLICY, flows: FLOWS.replace('/write_record: [egress, trusted]', ': [egress]') } },
      async (other) => {
        const at = other.as(await other.gateway.token(UPSTREAM, { sub: 'gina' }));
        const session = await openSession(at);
        await session.call('read_record', READ);
        const uri = 'memo://one';
        expect(reasonOf(await session.request('resources/subscribe', { uri }))).toBe('tainted-flow');
        expect(reasonOf(await session.request('resources/read', { uri }))).toBe('approval-required');
      },
    ));
});
