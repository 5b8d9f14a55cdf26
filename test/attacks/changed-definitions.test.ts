// Case 54: a definition that changes in one byte, or only in a member that no one looks at. It is
// hidden and refused for everyone, recorded, counted, and back when it is what was approved.

import { beforeAll, describe, expect, it } from 'vitest';
import { expectRefusedLines } from '../support/gateway.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, errorOf, type OpenSession, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const MAX_AGE_MS = 10_000;

const RICH_TOOL: JsonObject = {
  name: 'rich_tool',
  title: 'Rich tool',
  description: 'Does one thing.',
  inputSchema: {
    type: 'object',
    properties: { id: { type: 'string', default: 'a', enum: ['a', 'b'] } },
    required: ['id'],
  },
  outputSchema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
  annotations: { readOnlyHint: true },
  icons: [{ src: 'data:image/png;base64,AAAA' }],
  _meta: { 'example.com/team': 'one' },
};

function withId(id: JsonObject): JsonObject {
  return { inputSchema: { type: 'object', properties: { id }, required: ['id'] } };
}

const CHANGES: readonly (readonly [string, JsonObject])[] = [
  ['one byte of the description', { description: 'Does one thing!' }],
  ['one invisible character of the description', { description: 'Does one\u200b thing.' }],
  ['the title', { title: 'Rich Tool' }],
  ['annotations', { annotations: { readOnlyHint: false } }],
  ['the output schema', { outputSchema: { type: 'object' } }],
  ['icons', { icons: [{ src: 'data:image/png;base64,AAAB' }] }],
  ['_meta', { _meta: { 'example.com/team': 'two' } }],
  ['a default', withId({ type: 'string', default: 'b', enum: ['a', 'b'] })],
  ['an enum', withId({ type: 'string', default: 'a', enum: ['a', 'b', 'c'] })],
  ['a parameter description', withId({ type: 'string', default: 'a', enum: ['a', 'b'], description: 'x' })],
  ['a required argument', { inputSchema: { type: 'object', properties: { id: {} } } }],
  ['a member that nobody knows', { 'x-own': true }],
  ['execution', { execution: { taskSupport: 'optional' } }],
];

const HONEST_NAMES = HONEST_TOOLS.map((tool) => tool['name']);

/** One tool for each change, so that all of them happen at once. */
function nameFor(index: number): string {
  return `rich_tool_${index}`;
}

function offerFor(change: (index: number) => JsonObject): readonly JsonObject[] {
  const rich = CHANGES.map((_, index) => ({
    ...RICH_TOOL,
    name: nameFor(index),
    ...change(index),
  }));
  return [...HONEST_TOOLS, ...rich];
}

describe('a definition that changes', () => {
  let session: OpenSession;
  const rig = sharedGateway({
    upstream: [`pinning: {maxAge: ${MAX_AGE_MS}ms}`],
    prepare: (upstream) => upstream.offer(() => offerFor(() => ({}))),
  });
  beforeAll(async () => {
    rig.upstream.answerCalls(() => ({ content: [], structuredContent: { ok: true } }));
    session = await rig.openSession();
  });

  it('[X-54] is listed while it is what was approved', async () => {
    const listed = await requestStateless(rig.access, 'tools/list');
    expect(toolNames(listed)).toHaveLength(HONEST_TOOLS.length + CHANGES.length);
    const reply = await callStateless(rig.access, nameFor(0), { id: 'a' });
    expect(reply.message?.['result']).toMatchObject({ structuredContent: { ok: true } });
  });

  it('[X-54] is hidden at once, for everyone, by the first list that shows it', async () => {
    rig.upstream.offer(() => offerFor((index) => CHANGES[index]?.[1] ?? {}));
    const listed = await requestStateless(rig.access, 'tools/list');
    expect(toolNames(listed)).toEqual(HONEST_NAMES);
    expect(toolNames(await session.request('tools/list'))).toEqual(HONEST_NAMES);
    expect(listed.text).not.toContain('rich_tool');
  });

  it.each(CHANGES.map(([what], index) => [what, nameFor(index)] as const))(
    '[X-54] is refused as unknown: %s',
    async (_what, name) => {
      rig.upstream.forget();
      const reply = await callStateless(rig.access, name, { id: 'a' });
      expect(reply.status).toBe(200);
      expect(errorOf(reply)).toMatchObject({
        code: -32602,
        message: 'Unknown tool. Request the list again.',
      });
      const [line] = await expectRefusedLines(rig, reply, 'tool-changed');
      expect(line?.['target'].definition).not.toBe(line?.['target'].pin);
      await expectRefusedLines(rig, await session.call(name, { id: 'a' }), 'tool-changed');
      expect(rig.upstream.uses()).toEqual([]);
    },
  );

  it('[X-54] is recorded and counted, once for each change', async () => {
    await requestStateless(rig.access, 'tools/list');
    const drifts = async () => (await rig.gateway.audit()).filter((line) => line['type'] === 'pin.drift');
    await expect.poll(async () => (await drifts()).length).toBe(CHANGES.length);
    for (const line of await drifts()) {
      expect(line['target']).toMatchObject({ upstream: 'target', kind: 'tool' });
      expect(line['target'].definition).toMatch(/^[0-9a-f]{64}$/);
      expect(line['target'].definition).not.toBe(line['target'].pin);
    }
    const changes = new Set((await drifts()).map((line) => line['detail'].change));
    for (const change of ['annotations', 'description', 'output', 'input-widened']) expect(changes).toContain(change);
    expect(await rig.gateway.metrics()).toMatch(
      /sallyport_tool_drift_total\{upstream="target",change="description"\} [1-9]/,
    );
    expect(await rig.gateway.metrics()).toContain(
      `sallyport_tools{upstream="target",state="changed"} ${CHANGES.length}`,
    );
  });

  it('[X-54] is back once the gateway has listed what was approved, in any order of members', async () => {
    rig.upstream.offer(() =>
      offerFor(() => ({})).map((tool) => Object.fromEntries(Object.entries(tool).toReversed()) as JsonObject),
    );
    rig.passTime(MAX_AGE_MS);
    const names = async () => {
      // A call has the gateway list where its own listing has become too old.
      await callStateless(rig.access, nameFor(0), { id: 'a' });
      return toolNames(await requestStateless(rig.access, 'tools/list'));
    };
    await expect.poll(async () => (await names()).length).toBe(HONEST_TOOLS.length + CHANGES.length);
    expect((await callStateless(rig.access, nameFor(3), { id: 'a' })).message).toHaveProperty('result');
  });
});
