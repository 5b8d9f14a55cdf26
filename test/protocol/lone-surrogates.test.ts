// Results with half of a surrogate pair over the wire, in both eras and both forms of a response.

import { describe, expect, it } from 'vitest';
import { type World, withWorld } from '../compat/rig.js';
import { decisionOf, linesOf } from '../support/gateway.js';
import { body, jsonBody, onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { errorOf, type Reply, resultOf, toolNames } from '../support/wire-client.js';

const HALF = '\ud83d';

/** The line of the record that says what was mended. */
async function mendedLine({ gateway }: World): Promise<JsonObject> {
  const find = async (): Promise<JsonObject | undefined> =>
    (await gateway.audit()).find((line) => JSON.stringify(line).includes('lone-surrogate'));
  await expect.poll(find).toBeDefined();
  return (await find()) ?? {};
}

const FORMS: readonly (readonly [string, (message: JsonObject) => Act])[] = [
  ['a JSON body', (message) => jsonBody(message)],
  ['a stream', (message) => body(sseEvent(message), 'text/event-stream')],
];
const ERAS: readonly (readonly [string, (world: World) => Promise<Reply>])[] = [
  ['a session', async (world) => (await world.openSession()).call('read_record', { id: 'one' })],
  ['the stateless era', (world) => world.call('read_record', { id: 'one' })],
];
const CASES = FORMS.flatMap(([form, act]) => ERAS.map(([era, call]) => [form, era, act, call] as const));

describe.each(CASES)('in %s of %s', (_form, _era, act, call) => {
  async function callWith(result: JsonObject): Promise<{ reply: Reply; line: JsonObject }> {
    const order = onMethod('tools/call', (request) => act(resultFor(request, result)));
    let seen: { reply: Reply; line: JsonObject } | undefined;
    await withWorld({ order }, async (world) => {
      const reply = await call(world);
      seen = { reply, line: await mendedLine(world) };
    });
    if (seen === undefined) throw new Error('no reply');
    return seen;
  }

  it('mends texts and structured content, and says so', async () => {
    const { reply, line } = await callWith({
      content: [{ type: 'text', text: `cut ${HALF}` }],
      structuredContent: { note: `cut ${HALF}`, list: [1, HALF] },
    });
    const { content, structuredContent, _meta } = resultOf(reply);
    expect(content).toEqual([{ type: 'text', text: 'cut \ufffd' }]);
    expect(structuredContent).toEqual({ note: 'cut \ufffd', list: [1, '\ufffd'] });
    const finding = {
      detector: 'lone-surrogate',
      path: '/result/content/0/text',
      count: 1,
      action: 'strip',
    };
    expect(_meta).toMatchObject({ 'dev.sallyport/findings': expect.arrayContaining([finding]) });
    expect(line).toMatchObject({
      findings: expect.arrayContaining([expect.objectContaining(finding)]),
    });
  });

  it('leaves out a block whose URI has it, and names it', async () => {
    const { reply, line } = await callWith({
      content: [
        { type: 'resource_link', uri: `file:///${HALF}`, name: 'a' },
        { type: 'text', text: 'ok' },
      ],
    });
    expect(resultOf(reply)['content']).toEqual([{ type: 'text', text: 'ok' }]);
    const finding = { detector: 'lone-surrogate', path: '/result/content/0', action: 'drop' };
    expect(line).toMatchObject({ findings: [expect.objectContaining(finding)] });
  });

  it('inspects what the halves hid', async () => {
    const { reply } = await callWith(textResult(`![a${HALF}](https://elsewhere.example/p.png)`));
    expect(JSON.stringify(resultOf(reply)['content'])).not.toContain('![');
  });
});

describe('a list', () => {
  const tool = (name: string, more: JsonObject = {}): JsonObject => ({
    name,
    description: 'Runs.',
    inputSchema: { type: 'object' },
    ...more,
  });

  it.each([
    ['pinned', ['pinning: {maxAge: 10m}']],
    ['not pinned', ['pinning: {mode: "off"}']],
  ])(
    'that is %s keeps a tool with half of a pair in its text, and loses one with it in a name',
    async (_, upstream) => {
      const tools = [
        tool('good'),
        tool('cut', { description: `Runs ${HALF}` }),
        tool(`bad${HALF}`),
        tool('worse', { inputSchema: { type: 'object', properties: { [HALF]: {} } } }),
      ];
      await withWorld({ tools, upstream, result: () => textResult('ok') }, async (world) => {
        const reply = await world.request('tools/list');
        expect(toolNames(reply)).toEqual(['good', 'cut']);
        expect(reply.text).toContain('Runs \\ufffd');
        expect(errorOf(await world.call('cut'))).toEqual({});
        const line = await mendedLine(world);
        expect(line).toMatchObject({
          decision: {
            detail: expect.stringContaining('tools/2: half of a surrogate pair in a name'),
          },
        });
      });
    },
  );
});

describe('a message that cannot be mended', () => {
  it('is refused, and the record says why', async () => {
    const act = (request: HostileRequest): Act => jsonBody({ ...resultFor(request, textResult('ok')), id: HALF });
    await withWorld({ order: onMethod('tools/call', act) }, async (world) => {
      const reply = await world.call('read_record', { id: 'one' });
      expect(reply.status).toBe(502);
      const lines = await linesOf(world.gateway, decisionOf(reply).id, 2);
      expect(JSON.stringify(lines)).toContain('half of a surrogate pair in its id');
    });
  });
});
