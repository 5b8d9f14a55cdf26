// A definition that drifts under a running gateway: seen though nobody lists, told to those who listen,
// hidden and refused, and gone for the whole upstream where the configuration says so.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/commands.js';
import { ALLOW_ALL, expectRefusedLines, expectWithheldLines } from '../support/gateway.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { Json, JsonObject } from '../support/json.js';
import { parseLock } from '../support/lock-files.js';
import {
  bearer,
  callStateless,
  readUntil,
  requestStateless,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const [FIRST, ...OTHERS] = HONEST_TOOLS;
const SOON = { timeout: 10_000, interval: 20 };
const DRIFTED = [{ ...FIRST, description: 'Reads a record, and more.' }, ...OTHERS];

describe('a drift that no client asked for', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 2s}'] });

  it('[G-06] is announced on an open stream, recorded, hidden and refused', async () => {
    const session = await rig.openSession();
    const stream = await fetch(rig.access.url, {
      headers: {
        ...bearer(rig.access.token),
        ...sessionHeaders(session.id),
        accept: 'text/event-stream',
      },
    });
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    rig.upstream.offer(() => DRIFTED);
    const received = await readUntil(stream, 'tools/list_changed');
    expect(received).toContain('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(['write_record']);
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    await expectRefusedLines(rig, reply, 'tool-changed');
    expect(rig.upstream.uses()).toEqual([]);
    const drift = (await rig.gateway.audit()).filter((line) => line['type'] === 'pin.drift');
    expect(drift).toHaveLength(1);
    expect(drift[0]).toMatchObject({
      target: { upstream: 'target', kind: 'tool', name: 'read_record' },
      detail: { change: 'description' },
    });
    const logged = rig.gateway.log().split('\n');
    const [warning = ''] = logged.filter((line) => line.includes('definition differs from its pin'));
    expect(JSON.parse(warning)).toMatchObject({ kind: 'tool', name: 'read_record' });
    await expect.poll(() => rig.gateway.log(), SOON).toContain('not as pinned: tool');
    const [control = ''] = rig.gateway
      .log()
      .split('\n')
      .filter((line) => line.includes('not as pinned'));
    expect(JSON.parse(control)).toMatchObject({
      ...{ control: 'pins:target', state: 'degraded' },
      detail: 'not as pinned: tool "read_record"',
    });
  });

  it('[G-06] declares list changes though the upstream does not', async () => {
    const session = await rig.openSession();
    expect(session.reply.message?.['result']).toMatchObject({
      capabilities: { tools: { listChanged: true } },
    });
  });

  it('[G-06] is over when the new definition is approved in the lock file', async () => {
    await rig.gateway.approvePins();
    await expect
      .poll(async () => toolNames(await requestStateless(rig.access, 'tools/list')), {
        timeout: 4_000,
        interval: 50,
      })
      .toEqual(['read_record', 'write_record']);
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.message).toHaveProperty('result');
  });

  it('[L-75] is recorded when it is approved, and when it is blocked, with who and which digest', async () => {
    const decided = async (type: string) => (await rig.gateway.audit()).filter((line) => line['type'] === type);
    const file = join(rig.gateway.folder, 'policies/pins/target.lock.yaml');
    const approvedText = await readFile(file, 'utf8');
    const { tool } = parseLock(approvedText).pins;
    // What was approved before the start is no change; the one that drifted since is.
    const expected = (sub: string, note: string, name: string, definition: string) => ({
      actor: { sub },
      target: { upstream: 'target', kind: 'tool', name, definition, pin: null },
      detail: { note },
    });
    await expect.poll(() => decided('pin.approval')).toHaveLength(1);
    expect((await decided('pin.approval'))[0]).toMatchObject(
      expected('test', 'test', 'read_record', tool.get('read_record')?.sha256 ?? ''),
    );
    const order = ['pin', 'block', 'target', 'write_record', '--by', 'pat', '--note', 'leak', '-c', 'gateway.yaml'];
    expect((await runCommand(order, { cwd: rig.gateway.folder })).code).toBe(0);
    await expect.poll(() => decided('pin.block')).toHaveLength(1);
    const digest = tool.get('write_record')?.sha256 ?? '';
    expect((await decided('pin.block'))[0]).toMatchObject(expected('pat', 'leak', 'write_record', digest));
    await writeFile(file, approvedText);
    await expect.poll(() => decided('pin.approval')).toHaveLength(2);
    const policy = `${ALLOW_ALL}# A reload of other files records nothing.\n`;
    await rig.gateway.writePolicy('open', policy);
    await rig.gateway.reload();
    expect(await decided('pin.block')).toHaveLength(1);
    expect(await decided('pin.approval')).toHaveLength(2);
  });

  it('[G-06] of a new tool leaves it unlisted and uncallable', async () => {
    rig.upstream.offer(() => [...DRIFTED, { name: 'read_all', inputSchema: { type: 'object' } }]);
    const listed = await requestStateless(rig.access, 'tools/list');
    expect(toolNames(listed)).toEqual(['read_record', 'write_record']);
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'read_all');
    await expectRefusedLines(rig, reply, 'tool-unpinned');
    expect(rig.upstream.uses()).toEqual([]);
    const logged = rig.gateway.log().split('\n');
    const [first = ''] = logged.filter((line) => line.includes('"detail":"new-tool"'));
    expect(JSON.parse(first)).toMatchObject({ event: 'definition has no pin', name: 'read_all' });
  });
});

describe('a drift under onDrift: stop-upstream', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 2s, onDrift: stop-upstream}'] });

  it('[G-06] stops every tool of the upstream', async () => {
    expect((await callStateless(rig.access, 'write_record', { id: 'a', text: 'b' })).text).toContain('write_record a');
    rig.upstream.offer(() => DRIFTED);
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual([]);
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'write_record', { id: 'a', text: 'b' });
    await expectRefusedLines(rig, reply, 'tool-changed');
    expect(rig.upstream.uses()).toEqual([]);
  });
});

describe('without pinning', () => {
  const RENAMED: JsonObject = {
    name: 'read_record',
    inputSchema: {
      type: 'object',
      properties: { key: { type: 'string' }, headers: { type: 'object' } },
      required: ['key'],
    },
    outputSchema: { type: 'object', properties: { count: { type: 'integer' } } },
  };
  const READS = `version: 1
policy: reads
rules:
  - id: no-root
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
    when: has(args.key) && args.key == "root"
`;
  const rig = sharedGateway({
    upstream: ['pinning: {mode: off, maxAge: 2s}'],
    policies: { open: ALLOW_ALL, reads: READS },
  });
  beforeAll(async () => {
    rig.upstream.offer(() => [RENAMED]);
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(['read_record']);
    rig.upstream.forget();
  });

  it('[L-53] arguments are held to what was listed last, in spite of the lock file', async () => {
    for (const args of [{ id: 'one' }, { key: 7 }]) {
      const reply = await callStateless(rig.access, 'read_record', args);
      await expectRefusedLines(rig, reply, 'arguments-invalid');
    }
    expect(rig.upstream.uses()).toEqual([]);
    const reply = await callStateless(rig.access, 'read_record', { key: 'one' });
    expect(reply.message).toHaveProperty('result');
  });

  it('[L-53] [P-10] a rule reads what was listed, and nothing that was not', async () => {
    rig.upstream.forget();
    const root = await callStateless(rig.access, 'read_record', { key: 'root' });
    await expectRefusedLines(rig, root, 'denied-by-rule');
    const twice = await callStateless(rig.access, 'read_record', { key: 'one', Key_: 'root' });
    await expectRefusedLines(rig, twice, 'arguments-invalid');
    expect(rig.upstream.uses()).toEqual([]);
    const open = await callStateless(rig.access, 'read_record', {
      key: 'one',
      headers: { a: 'b' },
    });
    expect(open.message).toHaveProperty('result');
  });

  it('[L-53] results are held to what was listed last', async () => {
    const answers = (count: Json) => rig.upstream.answerCalls(() => ({ content: [], structuredContent: { count } }));
    answers('many');
    const reply = await callStateless(rig.access, 'read_record', { key: 'one' });
    await expectWithheldLines(rig, reply, 'result-invalid');
    answers(3);
    const good = await callStateless(rig.access, 'read_record', { key: 'one' });
    expect(good.message).toHaveProperty('result.structuredContent.count', 3);
  });

  it('[L-53] nothing drifts: no event, no metric, no line of the log', async () => {
    rig.upstream.forget();
    rig.upstream.offer(() => [RENAMED, { name: 'more', inputSchema: { type: 'object' } }]);
    await requestStateless(rig.access, 'tools/list');
    await expect.poll(() => rig.upstream.seen().length, { timeout: 5_000 }).toBeGreaterThan(2);
    await rig.gateway.reload();
    const types = (await rig.gateway.audit()).map((line) => line['type']);
    expect(types).toContain('mcp.decision');
    expect(types).not.toContain('pin.drift');
    expect(rig.gateway.log()).not.toContain('differs from its pin');
    expect(await rig.gateway.metrics()).not.toMatch(/^sallyport_tool_drift_total\{[^}]*\} [1-9]/m);
  });
});
