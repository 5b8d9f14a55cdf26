// Clients of both SDKs in the session era, through the running gateway with every control armed, to the
// reference server "everything". Source: MCP 2025-11-25.

import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { EVERYTHING_TEMPLATES, writeOpenPolicy } from '../support/gateway.js';
import { openRawSession } from '../support/raw-mcp.js';
import { type ConnectedV1, type ConnectedV2, connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { startEverything } from '../support/sdk-servers.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const opened: (ConnectedV1 | ConnectedV2)[] = [];

async function openV1(upstream = 'everything'): Promise<ConnectedV1> {
  const token = await gateway.token(upstream);
  const connected = await connectSdkV1(gateway.url(upstream), { token });
  opened.push(connected);
  return connected;
}

async function openV2(): Promise<ConnectedV2> {
  const token = await gateway.token('everything');
  const connected = await connectSdkV2(gateway.url('everything'), '2025', { token });
  opened.push(connected);
  return connected;
}

async function gauge(name: string, upstream: string): Promise<number> {
  const line = new RegExp(`^${name}\\{upstream="${upstream}"\\} (\\d+)$`, 'm');
  return Number(line.exec(await gateway.metrics())?.[1] ?? 0);
}

const openStreams = (upstream: string): Promise<number> => gauge('sallyport_open_streams', upstream);
const inflight = (): Promise<number> => gauge('sallyport_inflight_requests', 'everything');

/** A server speaks unasked only where someone listens: both SDKs open their stream after connecting. */
async function untilListening(upstream: string): Promise<void> {
  await expect.poll(() => openStreams(upstream), PATIENT).toBe(1);
}

const everything = shared(() => startEverything());
const desk = shared(() => startDemoUpstream({ seed: 'sessions' }));
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'everything', url: everything.url },
    { name: 'desk', url: desk.url },
  ],
  policies: { open: writeOpenPolicy([...EVERYTHING_TEMPLATES, 'desk://handbook/{page}']) },
}));
afterEach(async () => {
  for (const { close } of opened.splice(0)) await close();
  await expect.poll(() => openStreams('everything'), PATIENT).toBe(0);
  await expect.poll(() => openStreams('desk'), PATIENT).toBe(0);
});

describe('handshake', () => {
  const CARRIED = {
    logging: {},
    completions: {},
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    tools: { listChanged: true },
    tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
  };

  it('[E-01] gives SDK v1 a sealed session, what is carried, and the approved instructions', async () => {
    const { client, transport } = await openV1();
    expect(client.getServerVersion()?.name).toBe('mcp-servers/everything');
    expect(client.getServerCapabilities()).toEqual(CARRIED);
    expect(client.getInstructions()).toContain('Everything Server');
    // The upstream issues UUIDs; ours is sealed text that any replica opens.
    expect(transport.sessionId).toMatch(/^[!-~]{60,}$/);
    await client.ping();
  });

  it('[E-01] gives SDK v2 the same in the session era', async () => {
    const { client } = await openV2();
    expect(client.getServerCapabilities()).toEqual(CARRIED);
    expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
    await client.ping();
  });
});

describe('tools', () => {
  it('[E-02] are listed and called by SDK v1: text, structured content, image', async () => {
    const { client } = await openV1();
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain('get-structured-content');
    const echoed = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
    expect(echoed.content).toEqual([{ type: 'text', text: 'Echo: hello' }]);
    const weather = { name: 'get-structured-content', arguments: { location: 'Chicago' } };
    const { structuredContent } = await client.callTool(weather);
    expect(structuredContent).toEqual({
      temperature: 36,
      conditions: 'Light rain / drizzle',
      humidity: 82,
    });
    const image = await client.callTool({ name: 'get-tiny-image', arguments: {} });
    const blocks = image.content as { type: string; data?: string }[];
    const data = blocks.find((block) => block.type === 'image')?.data ?? '';
    expect(Buffer.from(data, 'base64').subarray(1, 4).toString()).toBe('PNG');
  });

  it('[E-02] are listed and called by SDK v2', async () => {
    const { client } = await openV2();
    const { tools } = await client.listTools();
    expect(tools.length).toBeGreaterThan(10);
    const sum = await client.callTool({ name: 'get-sum', arguments: { a: 2, b: 3 } });
    expect(JSON.stringify(sum.content)).toContain('5');
  });

  it('[E-02] are listed over all pages of an upstream', async () => {
    const { client } = await openV1('desk');
    const names: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await client.listTools(cursor === undefined ? {} : { cursor });
      names.push(...page.tools.map((tool) => tool.name));
      cursor = page.nextCursor;
      pages += 1;
    } while (cursor !== undefined);
    expect(pages).toBe(2);
    expect(names).toHaveLength(7);
  });

  it('[E-03] tell progress in a streamed answer, to both SDKs', async () => {
    const call = { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 4 } };
    const one: number[] = [];
    const { client: v1 } = await openV1();
    const answer = await v1.callTool(call, undefined, { onprogress: (p) => one.push(p.progress) });
    expect(one).toEqual([1, 2, 3, 4]);
    expect(JSON.stringify(answer.content)).toContain('completed');
    const two: number[] = [];
    const { client: v2 } = await openV2();
    await v2.callTool(call, { onprogress: (p) => two.push(p.progress) });
    expect(two).toEqual([1, 2, 3, 4]);
  });

  it('[E-04] are cancelled by a notification that reaches the upstream', async () => {
    const { client } = await openV1();
    await untilListening('everything');
    const stop = new AbortController();
    const call = { name: 'trigger-long-running-operation', arguments: { duration: 1, steps: 20 } };
    const running = client.callTool(call, undefined, {
      signal: stop.signal,
      onprogress: () => stop.abort('enough'),
    });
    await expect(running).rejects.toThrow(/enough|[Aa]bort/);
    expect(await inflight()).toBeGreaterThanOrEqual(2);
    const cancellations = async (): Promise<number> =>
      (await gateway.audit()).filter(
        (line) =>
          line['type'] === 'mcp.outcome' &&
          line['target']?.method === 'notifications/cancelled' &&
          line['result']?.http === 202,
      ).length;
    await expect.poll(cancellations, PATIENT).toBe(1);
    // The reference server leaves the stream of what was cancelled open; here it is ended soon, so that
    // it takes no place of the upstream's concurrency. What remains is the stream of the session.
    await expect.poll(inflight, PATIENT).toBe(1);
    // The session is as good as before.
    await client.ping();
  });
});

describe('prompts, resources, completion', () => {
  it('[E-05] are listed, got, read and completed by SDK v1', async () => {
    const { client } = await openV1();
    const { prompts } = await client.listPrompts();
    expect(prompts.map((prompt) => prompt.name).sort()).toEqual([
      'args-prompt',
      'completable-prompt',
      'resource-prompt',
      'simple-prompt',
    ]);
    const prompt = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Oslo' } });
    expect(JSON.stringify(prompt.messages)).toContain('Oslo');
    const { resources } = await client.listResources();
    expect(resources).toHaveLength(7);
    const { contents } = await client.readResource({ uri: resources[0]?.uri ?? '' });
    expect(contents).toHaveLength(1);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map((template) => template.uriTemplate)).toEqual(EVERYTHING_TEMPLATES);
    const dynamic = await client.readResource({ uri: 'demo://resource/dynamic/text/7' });
    expect(JSON.stringify(dynamic.contents)).toContain('Resource 7');
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'department', value: 'E' },
    });
    expect(completion.values).toContain('Engineering');
  });

  it('[E-05] are listed, got, read and completed by SDK v2', async () => {
    const { client } = await openV2();
    const prompt = await client.getPrompt({ name: 'simple-prompt' });
    expect(prompt.messages).toHaveLength(1);
    expect((await client.listResources()).resources).toHaveLength(7);
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(2);
    const blob = await client.readResource({ uri: 'demo://resource/dynamic/blob/3' });
    const [content] = blob.contents as { blob?: string }[];
    const bytes = Buffer.from(content?.blob ?? '', 'base64').toString();
    expect(bytes).toMatch(/^Resource 3: This is a base64 blob/);
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: EVERYTHING_TEMPLATES[0] ?? '' },
      argument: { name: 'resourceId', value: '12' },
    });
    expect(completion.values).toEqual(['12']);
  });
});

describe('what a server says unasked', () => {
  const uri = 'demo://resource/static/document/features.md';

  it('[E-06] reaches SDK v1 on its stream: log messages at the level it set, updates it asked for', async () => {
    const { client } = await openV1();
    const logged: unknown[] = [];
    const updated: string[] = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      logged.push(params.data);
    });
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      updated.push(params.uri);
    });
    await untilListening('everything');
    await client.setLoggingLevel('debug');
    await client.subscribeResource({ uri });
    await expect.poll(() => JSON.stringify(logged), PATIENT).toContain(uri);
    await client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
    await expect.poll(() => updated, PATIENT).toContain(uri);
    await client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
    await client.unsubscribeResource({ uri });
  });

  it('[E-06] reaches SDK v2 on its stream', async () => {
    const { client } = await openV2();
    const logged: unknown[] = [];
    client.setNotificationHandler('notifications/message', ({ params }) => {
      logged.push(params.data);
    });
    await untilListening('everything');
    await client.setLoggingLevel('debug');
    await client.subscribeResource({ uri });
    await expect.poll(() => JSON.stringify(logged), PATIENT).toContain(uri);
    await client.unsubscribeResource({ uri });
  });
});

describe('a session', () => {
  it('[E-07] ends by DELETE, and is unknown afterwards', async () => {
    const { client, transport } = await openV1();
    const id = transport.sessionId ?? '';
    await transport.terminateSession();
    const token = await gateway.token('everything');
    const late = await fetch(gateway.url('everything'), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        'mcp-session-id': id,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'ping' }),
    });
    expect(late.status).toBe(404);
    expect(((await late.json()) as { id: unknown }).id).toBe(9);
    await client.close();
  });

  it('[E-07] lives on under a new token of the same caller', async () => {
    const url = gateway.url('everything');
    const session = await openRawSession(url, { token: await gateway.token('everything') });
    const fresh = await gateway.token('everything');
    const renewed = { ...session.headers, authorization: `Bearer ${fresh}` };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...renewed,
    };
    const answer = await fetch(url, { method: 'POST', headers, body });
    expect(answer.status).toBe(200);
    await answer.body?.cancel();
    const other = await gateway.token('everything', { sub: 'mallory' });
    const stolen = await fetch(url, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${other}` },
      body,
    });
    expect(stolen.status).toBe(404);
  });
});
