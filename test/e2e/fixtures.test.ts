// The real servers and clients that the gateway is proved with, proved against each other first:
// what fails here is no fault of the gateway.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { startEverything, startSdkV2Server } from '../support/sdk-servers.js';
import { shared, untilTestEnds } from '../support/with-gateway.js';

type Block = { readonly type: string; readonly text?: string };

function firstText(result: object): string {
  const { content = [] } = result as { readonly content?: readonly Block[] };
  return content[0]?.text ?? '';
}

describe('server-everything', () => {
  const server = shared(() => startEverything());

  it('[D-01] answers SDK v1 in a session: list, call, progress', async () => {
    const { client, transport, close } = await connectSdkV1(server.url);
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain('echo');
    const echoed = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
    expect(firstText(echoed)).toContain('hello');
    expect(transport.sessionId).toMatch(/^[!-~]+$/);
    await close();
  });

  it('[D-01] answers SDK v2 held to the session era', async () => {
    const { client, close } = await connectSdkV2(server.url, '2025');
    expect(client.getServerVersion()?.name).toBeTruthy();
    const { tools } = await client.listTools();
    expect(tools.length).toBeGreaterThan(5);
    await close();
  });
});

describe('SDK v2 server', () => {
  const secret = randomBytes(12).toString('hex');
  const server = shared(() => startSdkV2Server({ secret }));

  for (const era of ['2025', '2026'] as const) {
    it(`[D-02] answers SDK v2 in era ${era}: tools, structured result, prompt, resource`, async () => {
      const { client, close } = await connectSdkV2(server.url, era);
      const { tools } = await client.listTools();
      expect(tools.map((tool) => tool.name).sort()).toEqual(['add', 'by_region', 'echo', 'get_secret', 'slow'].sort());
      const sum = await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } });
      expect(sum.structuredContent).toEqual({ sum: 5 });
      expect(firstText(await client.callTool({ name: 'get_secret', arguments: {} }))).toContain(secret);
      const prompt = await client.getPrompt({ name: 'greet', arguments: { name: 'desk' } });
      expect(prompt.messages).toHaveLength(1);
      const note = await client.readResource({ uri: 'memo://notes/7' });
      expect(JSON.stringify(note.contents)).toContain('Note 7.');
      await close();
    });
  }

  it('[D-02] tells progress and mirrors a parameter in era 2026', async () => {
    const { client, close } = await connectSdkV2(server.url, '2026');
    await client.listTools();
    const received: number[] = [];
    const options = { onprogress: (step: { progress: number }) => received.push(step.progress) };
    const slow = await client.callTool({ name: 'slow', arguments: { steps: 3 } }, options);
    expect(firstText(slow)).toBe('done after 3');
    expect(received).toEqual([1, 2, 3]);
    await client.callTool({ name: 'by_region', arguments: { region: 'north' } });
    expect(server.seen().at(-1)?.headers['mcp-param-region']).toBe('north');
    await close();
  });

  it('[D-02] refuses the session era where it is told to', async () => {
    const strict = await untilTestEnds(startSdkV2Server({ legacy: 'reject' }));
    await expect(connectSdkV2(strict.url, '2025')).rejects.toThrow();
  });
});

describe('demo upstream', () => {
  const desk = shared(() => startDemoUpstream({ seed: 'fixtures' }));

  it('[D-03] answers SDK v1 in a session, over two pages, and tells progress', async () => {
    const { client, close } = await connectSdkV1(desk.url);
    const first = await client.listTools();
    expect(first.tools).toHaveLength(4);
    const second = await client.listTools({ cursor: first.nextCursor });
    expect(second.tools).toHaveLength(3);
    expect(second.nextCursor).toBeUndefined();
    const received: (string | undefined)[] = [];
    const options = {
      onprogress: (step: { message?: string | undefined }) => received.push(step.message),
    };
    await client.callTool({ name: 'export_all', arguments: {} }, undefined, options);
    expect(received).toHaveLength(5);
    await close();
  });

  it('[D-03] announces a drift on the stream of a session of SDK v1', async () => {
    const streams = () => desk.seen().filter((request) => request.httpMethod === 'GET').length;
    const streamsBefore = streams();
    const { client, close } = await connectSdkV1(desk.url);
    const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const announced = new Promise<void>((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
    });
    await expect.poll(streams).toBeGreaterThan(streamsBefore);
    desk.misbehave({ drift: 'new-tool' });
    await announced;
    desk.behave();
    await close();
  });

  for (const era of ['2025', '2026'] as const) {
    it(`[D-03] answers SDK v2 in era ${era}: tools, prompt, resource, template`, async () => {
      const { client, close } = await connectSdkV2(desk.url, era);
      await client.listTools();
      const args = { project: 'web', id: 'T-101' };
      const ticket = await client.callTool({ name: 'get_ticket', arguments: args });
      expect(ticket.structuredContent).toMatchObject({ id: 'T-101', project: 'web' });
      const prompt = await client.getPrompt({ name: 'triage_ticket', arguments: { id: 'T-101' } });
      expect(prompt.messages).toHaveLength(1);
      const page = await client.readResource({ uri: 'desk://handbook/returns' });
      expect(JSON.stringify(page.contents)).toContain('30 days');
      const { resourceTemplates } = await client.listResourceTemplates();
      expect(resourceTemplates).toHaveLength(1);
      await close();
    });
  }
});
