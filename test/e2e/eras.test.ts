// Official clients where client and upstream speak different eras: each uses the other as its own.
// Source: MCP 2026-07-28, versioning; transports, backward compatibility.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { EVERYTHING_TEMPLATES, writeOpenPolicy } from '../support/gateway.js';
import { postRaw } from '../support/raw-mcp.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { startEverything, startSdkV2Server } from '../support/sdk-servers.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

async function tokenFor(upstream: string): Promise<{ readonly token: string }> {
  return { token: await gateway.token(upstream) };
}

const everything = shared(() => startEverything());
const dual = shared(() => startSdkV2Server());
const modern = shared(() => startSdkV2Server({ legacy: 'reject' }));
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'sessions', url: everything.url },
    { name: 'dual', url: dual.url },
    { name: 'modern', url: modern.url },
  ],
  policies: { open: writeOpenPolicy([...EVERYTHING_TEMPLATES, 'memo://notes/{id}']) },
}));

describe('a stateless client before an upstream of sessions', () => {
  it('[E-16] discovers, lists, calls, reads and gets prompts', async () => {
    const { client, close } = await connectSdkV2(gateway.url('sessions'), '2026', await tokenFor('sessions'));
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('echo');
    const echoed = await client.callTool({ name: 'echo', arguments: { message: 'grüße' } });
    expect(JSON.stringify(echoed.content)).toContain('Echo: grüße');
    const { prompts } = await client.listPrompts();
    expect(prompts.length).toBeGreaterThan(0);
    const [first] = (await client.listResources()).resources;
    expect((await client.readResource({ uri: first?.uri ?? '' })).contents).toHaveLength(1);
    await close();
  });

  it('[E-16] hears the progress of its own call', async () => {
    const { client, close } = await connectSdkV2(gateway.url('sessions'), '2026', await tokenFor('sessions'));
    const received: number[] = [];
    const call = { name: 'trigger-long-running-operation', arguments: { duration: 1, steps: 3 } };
    const done = await client.callTool(call, {
      onprogress: ({ progress }) => received.push(progress),
    });
    expect(JSON.stringify(done.content)).toContain('completed');
    expect(received).toEqual([1, 2, 3]);
    await close();
  });
});

describe('a client of sessions before a stateless upstream', () => {
  it.each([
    ['SDK v1', async () => connectSdkV1(gateway.url('modern'), await tokenFor('modern'))],
    ['SDK v2', async () => connectSdkV2(gateway.url('modern'), '2025', await tokenFor('modern'))],
  ] as const)('[E-17] lists, calls, reads and gets prompts: %s', async (_name, connect) => {
    const { client, close } = await connect();
    expect(client.getInstructions()).toBe('A server of the stateless era.');
    await client.ping();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('by_region');
    const sum = await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } });
    expect(sum.structuredContent).toEqual({ sum: 5 });
    const mirrored = await client.callTool({ name: 'by_region', arguments: { region: 'Zürich' } });
    expect(JSON.stringify(mirrored.content)).toContain('served in Zürich');
    const prompt = await client.getPrompt({ name: 'greet', arguments: { name: 'desk' } });
    expect(JSON.stringify(prompt.messages)).toContain('Greet desk.');
    const note = await client.readResource({ uri: 'memo://notes/7' });
    expect(JSON.stringify(note.contents)).toContain('Note 7.');
    await close();
  });

  it('[E-17] hears the progress of its own call', async () => {
    const { client, close } = await connectSdkV1(gateway.url('modern'), await tokenFor('modern'));
    const received: (string | undefined)[] = [];
    const slow = await client.callTool({ name: 'slow', arguments: { steps: 3 } }, undefined, {
      onprogress: ({ message }) => received.push(message),
    });
    expect(JSON.stringify(slow.content)).toContain('done after 3');
    expect(received).toEqual(['step 1', 'step 2', 'step 3']);
    await close();
  });
});

describe('a session of an older or unknown revision', () => {
  it.each([
    ['2025-03-26', '2025-03-26'],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
    // What is not carried is answered with what is (MCP 2025-11-25, version negotiation).
    ['2024-11-05', '2025-11-25'],
    ['1999-01-01', '2025-11-25'],
  ])('[E-18] that asks for %s gets %s and works', async (asked, given) => {
    const url = gateway.url('sessions');
    const { token } = await tokenFor('sessions');
    const params = {
      protocolVersion: asked,
      capabilities: {},
      clientInfo: { name: 'old', version: '1' },
    };
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const opened = await postRaw(url, body, { token });
    expect(opened.messages.at(-1).result.protocolVersion).toBe(given);
    const headers = {
      'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
      // The first revision knows no such header.
      ...(given === '2025-03-26' ? {} : { 'mcp-protocol-version': given }),
    };
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
    expect((await postRaw(url, notification, { token, headers })).status).toBe(202);
    const call = {
      jsonrpc: '2.0',
      id: 2,
      method: 'tools/call',
      params: { name: 'echo', arguments: { message: 'old' } },
    };
    const answer = await postRaw(url, call, { token, headers });
    expect(answer.messages.at(-1).result.content[0].text).toBe('Echo: old');
  });
});

describe('SDK v2 that finds the era by itself', () => {
  it.each([
    ['sessions', '2026-07-28', 'echo', { message: 'found' }],
    ['dual', '2026-07-28', 'echo', { text: 'found' }],
    ['modern', '2026-07-28', 'echo', { text: 'found' }],
  ])('[E-18] ends usable before %s, in %s', async (upstream, version, name, args) => {
    const client = new Client({ name: 'sallyport-auto', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
    const { token } = await tokenFor(upstream);
    const headers = { authorization: `Bearer ${token}` };
    const transport = new StreamableHTTPClientTransport(new URL(gateway.url(upstream)), {
      requestInit: { headers },
    });
    await client.connect(transport);
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    await client.listTools();
    expect(JSON.stringify(await client.callTool({ name, arguments: args }))).toContain('found');
    await client.close();
  });
});
