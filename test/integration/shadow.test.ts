// Policies that are not enforced, from the file to what is recorded of them: what they would have decided, in the audit
// log, the metrics and the controls, while they decide nothing.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { decisionOf, linesOf } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, requestStateless, resultOf, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const TOOLS: readonly JsonObject[] = ['read_item', 'drop_item', 'other_item'].map((name) => ({
  name,
  description: 'Does something.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
}));

const ENFORCED = `version: 1
policy: base
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: [target], tools: [read_item, drop_item]}}
  - {id: traced, effect: require, who: {anyone: true}, what: {tools: [drop_item]}, audit: {capture: [/id]}}
`;
const SHADOWED = `version: 1
policy: next
mode: shadow
rules:
  - {id: no-drops, effect: deny, who: {anyone: true}, what: {tools: [drop_item]}}
  - {id: others, effect: allow, who: {anyone: true}, what: {upstreams: [target], tools: [other_item]}}
`;

const rig = sharedGateway({
  policies: { base: ENFORCED, next: SHADOWED },
  prepare(upstream) {
    upstream.offer(() => TOOLS);
    upstream.answerCalls(() => ({ content: [{ type: 'text', text: 'done' }] }));
  },
});

async function call(name: string, args: JsonObject = { id: 'one' }) {
  const access = rig.as(await rig.gateway.token('target'));
  const reply = await callStateless(access, name, args);
  const isDone = resultOf(reply)?.['isError'] !== true && reply.text.includes('done');
  // What was forwarded was recorded before, while a refusal does not wait for its line.
  const lines = isDone
    ? (await rig.gateway.audit()).filter(({ type }) => type === 'mcp.decision').slice(-1)
    : await linesOf(rig.gateway, decisionOf(reply).id, 2);
  const [decided] = lines;
  return { reply, isDone, decision: decided?.['decision'] };
}

describe('[POL-05] a policy with mode: shadow', () => {
  it('refuses nothing, and the record says that it would have', async () => {
    const { isDone, decision } = await call('drop_item');
    expect(isDone).toBe(true);
    expect(decision).toMatchObject({ verdict: 'allow', rule: 'all', mode: 'enforce' });
    expect(decision.shadow).toEqual([
      { verdict: 'deny', policy: 'next', rule: 'next/no-drops', reason: 'denied-by-rule' },
    ]);
  });

  it('grants and lists nothing, and the record says that it would have', async () => {
    const access = rig.as(await rig.gateway.token('target'));
    const names = [...toolNames(await requestStateless(access, 'tools/list'))].sort();
    expect(names).toEqual(['drop_item', 'read_item']);
    const { isDone, decision } = await call('other_item');
    expect(isDone).toBe(false);
    expect(decision.reasons).toEqual(['no-matching-allow']);
    expect(decision.shadow).toEqual([{ verdict: 'allow', policy: 'next', rule: 'next/others' }]);
  });

  it('leaves no trace where it would have changed nothing', async () => {
    expect((await call('read_item')).decision.shadow).toEqual([]);
  });

  it('is counted apart, and makes the control of the policies degraded', async () => {
    const metrics = await rig.gateway.metrics();
    const labels = 'upstream="target",mcp_method_name="tools/call"';
    expect(metrics).toContain(`sallyport_decisions_total{${labels},verdict="deny",mode="shadow"} 1`);
    expect(metrics).toContain(
      'sallyport_denials_total{upstream="target",stage="decide",reason="denied-by-rule",mode="shadow"} 1',
    );
    expect(metrics).toContain('sallyport_controls{control="policy",state="degraded"} 1');
    expect(rig.gateway.log()).toContain('mode: shadow, not enforced: next');
  });
});

describe('[POL-06] policies.mode: observe', () => {
  beforeAll(async () => {
    const file = join(rig.gateway.folder, 'gateway.yaml');
    const text = await readFile(file, 'utf8');
    const observing = '{dir: ./policies, mode: observe, acceptUnenforced: true}';
    await writeFile(file, text.replace('policies: {dir: ./policies}', `policies: ${observing}`));
    const found = await rig.gateway.reload();
    expect(found.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  it('lets pass what the rules refuse, and records what they would have decided', async () => {
    const { isDone, decision } = await call('other_item');
    expect(isDone).toBe(true);
    expect(decision).toMatchObject({
      ...{ verdict: 'allow', mode: 'observe', policy: 'builtin', rule: 'observe' },
      shadow: [
        { verdict: 'deny', reason: 'no-matching-allow' },
        { verdict: 'allow', policy: 'next', rule: 'next/others' },
      ],
    });
    const access = rig.as(await rig.gateway.token('target'));
    const names = [...toolNames(await requestStateless(access, 'tools/list'))].sort();
    expect(names).toEqual(['drop_item', 'other_item', 'read_item']);
  });

  it('captures what the rules would have captured', async () => {
    const { isDone, decision } = await call('drop_item', { id: 'seven' });
    expect(isDone).toBe(true);
    expect(decision.shadow[0]).toEqual({ verdict: 'allow', rule: 'base/all' });
    const lines = await linesOf(rig.gateway, decision.id, 2);
    expect(lines[0]?.['args'].captured).toEqual({ '/id': 'seven' });
  });

  it('still demands a token, a pin and arguments that the pinned schema admits', async () => {
    const anonymous = await callStateless(rig.as(undefined), 'read_item', { id: 'one' });
    expect(anonymous.status).toBe(401);
    const unknown = await call('never_pinned');
    expect(unknown.decision.reasons).toEqual(['tool-unpinned']);
    const invalid = await call('read_item', { id: 7 });
    expect(decisionOf(invalid.reply).reason).toBe('arguments-invalid');
  });

  it('turns the control of the policies off, with the reason', async () => {
    const metrics = await rig.gateway.metrics();
    expect(metrics).toContain('sallyport_controls{control="policy",state="off"} 1');
    expect(rig.gateway.log()).toContain('policies.mode: observe: no rule and no flow refuses');
    expect(metrics).toMatch(/sallyport_decisions_total\{[^}]*verdict="allow",mode="observe"\} [1-9]/);
  });
});
