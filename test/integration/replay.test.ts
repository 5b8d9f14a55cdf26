// The commands that read decisions again, on what a running gateway has recorded: which would be others under other
// policies, which rule decided one of them, and the policy that a group would need.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readAudit } from '../support/audit-chain.js';
import { runCommand } from '../support/commands.js';
import { decisionOf } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const TOOLS: readonly JsonObject[] = ['read_item', 'drop_item', 'never_used'].map((name) => ({
  name,
  description: 'Does something.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
}));
const POLICY = `version: 1
policy: base
rules:
  - id: engineers
    effect: allow
    who: {groups: [eng]}
    what: {upstreams: [target], tools: [read_item, drop_item, never_used]}
  - {id: traced, effect: require, who: {anyone: true}, what: {tools: [drop_item]}, audit: {capture: [/id]}}
`;
const NEXT = `${POLICY}  - {id: keep-one, effect: deny, who: {anyone: true}, what: {tools: [drop_item]}, args: {id: {const: one}}}
  - {id: not-two, effect: deny, who: {anyone: true}, what: {tools: [read_item]}, args: {id: {const: two}}}
`;

let folder: string;
const rig = sharedGateway({
  policies: { base: POLICY },
  prepare(upstream) {
    upstream.offer(() => TOOLS);
    upstream.answerCalls(() => ({ content: [{ type: 'text', text: 'done' }] }));
  },
});
beforeAll(async () => {
  folder = rig.gateway.folder;
  await mkdir(join(folder, 'next'));
  await writeFile(join(folder, 'next/base.policy.yaml'), NEXT);
});

async function call(name: string, id: string, groups: readonly string[] = ['eng']) {
  const token = await rig.gateway.token('target', { sub: `of-${groups.join('-')}`, groups });
  return callStateless(rig.as(token), name, { id });
}

const run = (...argv: readonly string[]) => runCommand([...argv, '-c', 'gateway.yaml'], { cwd: folder });

function replay(...options: readonly string[]) {
  return run('replay', ...(options.includes('--log') ? [] : ['--log', 'audit.jsonl']), ...options);
}

describe('[POL-07] replay', () => {
  it('names the decisions that would change, counts what is not known, and leaves the rest', async () => {
    await call('drop_item', 'one');
    await call('drop_item', 'one');
    await call('drop_item', 'two');
    await call('read_item', 'two');
    await call('read_item', 'three', ['ops']);
    await expect.poll(async () => (await rig.gateway.audit()).length).toBeGreaterThan(9);
    expect(await replay()).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('5 decisions: 5 unchanged, 0 would change, 0 not known;'),
    });
    const { code, stdout: out, stderr: err } = await replay('--policies', 'next');
    expect(code).toBe(1);
    expect(out).toContain('would change: 2 × of-eng (');
    expect(out).toContain('target tool drop_item: allow by base/engineers -> deny: denied-by-rule by base/keep-one  (');
    expect(out).toMatch(/not known: 1 × of-eng \(.*\) target tool read_item: .*depends on the argument \/id {2}\(/);
    expect(out).toContain('audit: {capture: [/id]}');
    // No rule that could allow it has changed, whatever groups the caller has.
    expect(out).not.toContain('of-ops');
    expect(err).toContain('5 decisions: 2 unchanged, 2 would change, 1 not known;');
  });

  it('suggests the rules that keep what a group was allowed, and names what it never used', async () => {
    const { code, stdout: out } = await replay('--suggest', '--group', 'eng', '--days', '30');
    expect(code).toBe(0);
    expect(out).toContain('tools:\n        - "drop_item"\n        - "read_item"\n');
    expect(out).toContain('# granted by base/engineers and never used: target/never_used\n');
    await mkdir(join(folder, 'suggested'));
    await writeFile(join(folder, 'suggested/eng.policy.yaml'), out);
    const again = await replay('--policies', 'suggested', '--group', 'eng');
    expect(again).toMatchObject({ code: 0, stdout: '' });
  });

  it('concludes nothing from files that were altered', async () => {
    const text = await readAudit(join(folder, 'audit.jsonl'));
    await writeFile(join(folder, 'altered.jsonl'), text.replace('"verdict":"allow"', '"verdict":"deny"'));
    const { code, stdout: out, stderr: err } = await replay('--log', 'altered.jsonl');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('error: the audit files are damaged, so nothing is concluded from them');
  });

  it('explains one decision: what was recorded, and what follows from the rules as they are', async () => {
    const { id } = decisionOf(await call('read_item', 'four', ['ops']));
    await expect.poll(async () => (await rig.gateway.audit()).length).toBeGreaterThan(11);
    const explain = (decision: string) => run('explain', 'decision', decision);
    const { code, stdout } = await explain(id);
    expect(code).toBe(0);
    expect(stdout).toContain('recorded: deny: no-matching-allow\n');
    expect(stdout).toContain('under these policies: not known, because the record does not give');
    expect(stdout).toContain('who.groups: not known: the groups of the caller are not recorded');
    expect((await explain('00000000-0000-0000-0000-000000000000')).code).toBe(1);
  });
});
