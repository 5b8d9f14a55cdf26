// Cases 52, 56, 82, 83, 85, 87 and 88 for clients and upstreams of each era: what a policy refuses is refused, and what
// it hides is hidden, whoever speaks what. Case 86 in each era: reload-under-load.test.ts.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectIn, ERA_PAIRS, type EraCaller } from '../support/eras.js';
import { decisionOf, expectRefusedLines, linesOf, UPSTREAM } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { errorOf, type Reply, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const NAMES = ['do_plain', 'do_write', 'do_hidden', 'do_denied', 'do_drifted', 'do_own'];
const TOOLS: readonly JsonObject[] = NAMES.map((name) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
}));
/** Looks like other identities under case folding, normalization and trimming. */
const EXACT = 'i\u0131Istanbul-\u00e9';

const HEAD = 'version: 1\npolicy: some\nrules:\n';
const RULES = [
  `  - id: plain
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [do_plain, do_denied, do_drifted], resources: ["memo://open/**"]}
`,
  `  - id: write
    effect: allow
    who: {groups: [Admins]}
    what: {upstreams: [target], tools: [do_write]}
    scopes: ["tools:write", "tools:read"]
`,
  `  - id: own
    effect: allow
    who: {subjects: [${EXACT}]}
    what: {upstreams: [target], tools: [do_own]}
`,
  `  - id: never
    effect: deny
    who: {anyone: true}
    what: {upstreams: [target], tools: [do_denied]}
`,
  `  - id: not-this
    effect: deny
    who: {anyone: true}
    what: {upstreams: [target], tools: ["do_*"]}
    args: {id: {const: forbidden}}
`,
];
const POLICY = `${HEAD}${RULES.join('')}`;

describe.each(ERA_PAIRS)('policies, for a client of %s before an upstream of %s', (client, upstream) => {
  let plain: EraCaller;
  const opened: EraCaller[] = [];

  async function as(claims: Readonly<Record<string, unknown>>): Promise<EraCaller> {
    const caller = await connectIn(client, rig.as(await rig.gateway.token(UPSTREAM, claims)));
    opened.push(caller);
    return caller;
  }
  const call = (caller: EraCaller, name: string, id = 'one') =>
    caller.request('tools/call', { name, arguments: { id } });

  const rig = sharedGateway({
    era: upstream,
    policies: { some: POLICY },
    prepare(server) {
      server.offer(() => TOOLS);
      server.answerCalls((name) => ({ content: [{ type: 'text', text: `${name} was done` }] }));
    },
    upstream: ['pinning: {maxAge: 30s}'],
  });
  beforeAll(async () => {
    rig.upstream.offer(() => TOOLS.map((tool) => (tool['name'] === 'do_drifted' ? { ...tool, title: 'New' } : tool)));
    rig.passTime(30_001);
    plain = await as({ sub: 'plain' });
    await plain.request('tools/list');
    rig.upstream.forget();
  });
  afterAll(async () => {
    for (const { leave } of opened) leave();
  });

  /** All that a caller sees of a refusal, but for what differs from request to request. */
  function shape(reply: Reply, name: string): unknown {
    const {
      date: _date,
      'content-length': _length,
      'sallyport-decision': _id,
      ...headers
    } = Object.fromEntries(reply.headers);
    const { id, ...message } = reply.message ?? {};
    expect(reply.text).not.toContain(name);
    const text = JSON.stringify(message).replaceAll(decisionOf(reply).id, 'ID');
    return { status: reply.status, headers, text };
  }

  it('[X-52] name the scopes that are missing, and reflect nothing', async () => {
    const claims = { sub: 'writer', groups: ['Admins'] };
    for (const scope of ['tools:write-all tools:read', 'TOOLS:WRITE tools:read', '']) {
      const reply = await call(await as({ ...claims, scope }), 'do_write', 'marker');
      expect(reply.status).toBe(403);
      const challenge = reply.headers.get('www-authenticate');
      expect(challenge).toContain('scope="tools:write tools:read", error="insufficient_scope"');
      expect(`${challenge}${reply.text}`).not.toContain('marker');
      const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
      expect(line?.['decision'].reasons).toEqual(['insufficient-scope']);
    }
    expect(rig.upstream.uses()).toEqual([]);
    const good = await call(await as({ ...claims, scope: 'tools:write tools:read' }), 'do_write');
    expect(good.text).toContain('do_write was done');
    rig.upstream.forget();
  });

  it('[X-56] hide what a caller may not know, to the byte', async () => {
    for (const [name, reason] of [
      ['do_hidden', 'no-matching-allow'],
      ['do_write', 'no-matching-allow'],
      ['do_denied', 'denied-by-rule'],
      ['do_drifted', 'tool-changed'],
    ] as const) {
      const reply = await call(plain, name);
      expect(shape(reply, name)).toEqual(shape(await call(plain, 'no_such_tool'), 'no_such'));
      await expectRefusedLines(rig, reply, reason);
    }
    const list = await plain.request('tools/list');
    expect(toolNames(list)).toEqual(['do_plain']);
    for (const name of NAMES.slice(1)) expect(list.text).not.toContain(name);
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-82] show each caller its own list, in whatever order they ask', async () => {
    const admin = await as({ sub: 'root', groups: ['Admins'] });
    for (const [caller, names] of [
      [admin, ['do_plain', 'do_write']],
      [plain, ['do_plain']],
      [admin, ['do_plain', 'do_write']],
      [plain, ['do_plain']],
    ] as const) {
      expect(toolNames(await caller.request('tools/list'))).toEqual(names);
    }
  });

  it('[X-83] compare identities exactly', async () => {
    expect((await call(await as({ sub: EXACT }), 'do_own')).text).toContain('do_own was done');
    rig.upstream.forget();
    for (const sub of [EXACT.toUpperCase(), EXACT.normalize('NFD'), `${EXACT}.`, '*'])
      await expectRefusedLines(rig, await call(await as({ sub }), 'do_own'), 'no-matching-allow');
    for (const group of ['admins', 'Admins.', '*', '\u0410dmins']) {
      const caller = await as({ sub: 'other', groups: [group], scope: 'tools:write tools:read' });
      await expectRefusedLines(rig, await call(caller, 'do_write'), 'no-matching-allow');
    }
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-85] read URIs within their rule alone, and forward them to the byte', async () => {
    for (const uri of [
      'memo://closed/one',
      'memo://open/../closed/one',
      'memo://open/%2e%2e/closed/one',
      'memo://open/..%2fclosed/one',
      'memo://user@open/one',
      'memo://open:1/one',
      'MEMO://closed/one',
      'http://127.0.0.1/',
      'memo://\u00f6pen/one',
      'not a uri',
    ]) {
      const reply = await plain.request('resources/read', { uri });
      expect(errorOf(reply)['code'], uri).toBeLessThan(0);
    }
    expect(rig.upstream.uses()).toEqual([]);
    await plain.request('resources/read', { uri: 'memo://open/a/b%20c' });
    expect(rig.upstream.uses().map(({ name }) => name)).toEqual(['memo://open/a/b%20c']);
    rig.upstream.forget();
  });

  it('[X-88] refuse by a deny, in whatever order it stands', async () => {
    for (const order of [[...RULES].reverse(), RULES]) {
      await rig.gateway.writePolicy('some', `${HEAD}${order.join('')}`);
      expect(await rig.gateway.reload()).toEqual([]);
      rig.upstream.forget();
      const denied = await call(plain, 'do_plain', 'forbidden');
      expect(denied.message?.['result']).toMatchObject({ isError: true });
      await expectRefusedLines(rig, denied, 'denied-by-rule');
      expect(rig.upstream.uses()).toEqual([]);
      expect((await call(plain, 'do_plain', 'other')).text).toContain('do_plain was done');
    }
  });

  it('[G-04] stay as they were when a file is broken', async () => {
    for (const broken of [
      POLICY.replace('effect: deny', 'effect: dney'),
      POLICY.replace('who: {anyone: true}', 'who: {anyone: true, anyone: true}'),
      POLICY.replace('tools: [do_plain, do_denied, do_drifted]', 'tools: ["*"], toolz: [x]'),
      POLICY.replace('version: 1', 'version: &a [*a, *a]'),
    ]) {
      await rig.gateway.writePolicy('some', broken);
      expect((await rig.gateway.reload()).length).toBeGreaterThan(0);
      expect(toolNames(await plain.request('tools/list'))).toEqual(['do_plain']);
    }
  });
});
