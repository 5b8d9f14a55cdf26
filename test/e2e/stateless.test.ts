// A client of SDK v2 held to the stateless era, through the running gateway with every control armed, to
// a server on SDK v2 and to one that can be told to wait. Source: MCP 2026-07-28.

import { afterEach, describe, expect, it } from 'vitest';
import { writeOpenPolicy } from '../support/gateway.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { postRaw, postStateless } from '../support/raw-mcp.js';
import { type ConnectedV2, connectSdkV2 } from '../support/sdk-clients.js';
import { startSdkV2Server } from '../support/sdk-servers.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const opened: ConnectedV2[] = [];

async function open(upstream = 'modern', era: '2025' | '2026' = '2026'): Promise<ConnectedV2> {
  const token = await gateway.token(upstream);
  const connected = await connectSdkV2(gateway.url(upstream), era, { token });
  opened.push(connected);
  return connected;
}

const server = shared(() => startSdkV2Server());
const waiting = shared(() => startHostileUpstream());
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'modern', url: server.url },
    { name: 'waiting', url: waiting.url },
  ],
  policies: { open: writeOpenPolicy(['memo://notes/{id}']) },
}));
afterEach(async () => {
  for (const { close } of opened.splice(0)) await close();
  waiting.repent();
});

describe('SDK v2 in the stateless era', () => {
  it('[E-10] discovers what is carried, with approved instructions and no session', async () => {
    const { client, transport } = await open();
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    expect(client.getDiscoverResult()?.supportedVersions).toContain('2026-07-28');
    expect(client.getServerCapabilities()).toEqual({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true },
    });
    expect(client.getInstructions()).toBe('A server of the stateless era.');
    expect(transport.sessionId).toBeUndefined();
  });

  it('[E-11] lists and calls: structured content that fits the approved schema', async () => {
    const { client } = await open();
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name).sort()).toEqual(['add', 'by_region', 'echo', 'get_secret', 'slow'].sort());
    expect(tools.find((tool) => tool.name === 'add')?.outputSchema).toBeDefined();
    const sum = await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } });
    expect(sum.structuredContent).toEqual({ sum: 5 });
    const echoed = await client.callTool({ name: 'echo', arguments: { text: 'grüße' } });
    expect(echoed.content).toEqual([{ type: 'text', text: 'grüße' }]);
  });

  it('[E-11] mirrors a parameter in a header, compared here and carried on', async () => {
    const { client } = await open();
    await client.listTools();
    const call = { name: 'by_region', arguments: { region: 'north' } };
    expect(JSON.stringify(await client.callTool(call))).toContain('served in north');
    const mirrored = server.seen().findLast((one) => one.body.includes('tools/call'));
    expect(mirrored?.headers['mcp-param-region']).toBe('north');
    const token = await gateway.token('modern');
    const lied = await postStateless(gateway.url('modern'), 'tools/call', call, {
      token,
      headers: { 'mcp-param-region': 'south' },
    });
    expect([lied.status, lied.messages[0].error.code]).toEqual([400, -32020]);
    const reached = server.seen().map((one) => one.headers['mcp-param-region']);
    expect(reached).not.toContain('south');
  });

  it('[E-12] hears progress in a streamed answer', async () => {
    const { client } = await open();
    const received: (string | undefined)[] = [];
    const options = {
      onprogress: (step: { message?: string | undefined }) => received.push(step.message),
    };
    const slow = await client.callTool({ name: 'slow', arguments: { steps: 3 } }, options);
    expect(JSON.stringify(slow.content)).toContain('done after 3');
    expect(received).toEqual(['step 1', 'step 2', 'step 3']);
  });

  it('[E-11] gets prompts, reads resources and templates', async () => {
    const { client } = await open();
    expect((await client.listPrompts()).prompts.map((prompt) => prompt.name)).toEqual(['greet']);
    const prompt = await client.getPrompt({ name: 'greet', arguments: { name: 'desk' } });
    expect(JSON.stringify(prompt.messages)).toContain('Greet desk.');
    expect((await client.listResources()).resources.map((one) => one.uri)).toEqual(['memo://readme']);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map((one) => one.uriTemplate)).toEqual(['memo://notes/{id}']);
    const note = await client.readResource({ uri: 'memo://notes/7' });
    expect(JSON.stringify(note.contents)).toContain('Note 7.');
  });

  it('[E-13] gets lists that are private, and live no longer than the gateway says', async () => {
    const token = await gateway.token('modern');
    for (const method of [
      'server/discover',
      'tools/list',
      'prompts/list',
      'resources/list',
      'resources/templates/list',
    ]) {
      const { status, messages } = await postStateless(gateway.url('modern'), method, {}, { token });
      expect([method, status]).toEqual([method, 200]);
      const { result } = messages.at(-1);
      expect([method, result.cacheScope]).toEqual([method, 'private']);
      expect(result.ttlMs).toBeLessThanOrEqual(30_000);
      expect(result.resultType).toBe('complete');
    }
  });

  it('[E-14] cancels the request of the upstream by leaving', async () => {
    waiting.obey((request) => (request.method === 'tools/call' ? { kind: 'hold' } : undefined));
    const { client } = await open('waiting');
    const stop = new AbortController();
    const call = { name: 'read_record', arguments: { id: 'one' } };
    const running = client.callTool(call, { signal: stop.signal });
    await expect.poll(() => waiting.uses().length, PATIENT).toBe(1);
    expect(waiting.uses()[0]?.isAborted).toBe(false);
    stop.abort();
    await expect(running).rejects.toThrow();
    await expect.poll(() => waiting.uses()[0]?.isAborted, PATIENT).toBe(true);
  });

  it('[E-15] speaks sessions to the same server when it is held to them', async () => {
    const { client } = await open('modern', '2025');
    expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
    const { tools } = await client.listTools();
    expect(tools).toHaveLength(5);
    const sum = await client.callTool({ name: 'add', arguments: { a: 4, b: 5 } });
    expect(sum.structuredContent).toEqual({ sum: 9 });
    const note = await client.readResource({ uri: 'memo://notes/8' });
    expect(JSON.stringify(note.contents)).toContain('Note 8.');
  });

  it('[E-15] ends a session of its own where the server has none', async () => {
    const { transport } = await open('modern', '2025');
    const id = transport.sessionId ?? '';
    expect(id).toMatch(/^[!-~]{60,}$/);
    await transport.terminateSession();
    const headers = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' };
    const token = await gateway.token('modern');
    const body = { jsonrpc: '2.0', id: 3, method: 'ping' };
    const late = await postRaw(gateway.url('modern'), body, { token, headers });
    expect(late.status).toBe(404);
  });
});
