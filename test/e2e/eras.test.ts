// What happens where client and upstream speak different eras: the era's own error, naming what is
// carried, and nothing executed. Source: MCP 2026-07-28, versioning; transports, backward compatibility.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Everything, startEverything } from '../support/everything.js';
import { EVERYTHING_TEMPLATES, writeOpenPolicy } from '../support/open-policy.js';
import { postRaw, postStateless } from '../support/raw-mcp.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { type SdkV2Server, startSdkV2Server } from '../support/sdk-v2-server.js';
import { type RunningGateway, startTestGateway } from '../support/start-gateway.js';

let everything: Everything;
let dual: SdkV2Server;
let modern: SdkV2Server;
let gateway: RunningGateway;

async function tokenFor(upstream: string): Promise<{ readonly token: string }> {
  return { token: await gateway.token(upstream) };
}

beforeAll(async () => {
  everything = await startEverything();
  dual = await startSdkV2Server();
  modern = await startSdkV2Server({ legacy: 'reject' });
  gateway = await startTestGateway({
    upstreams: [
      { name: 'sessions', url: everything.url },
      { name: 'dual', url: dual.url },
      { name: 'modern', url: modern.url },
    ],
    policies: { open: writeOpenPolicy([...EVERYTHING_TEMPLATES, 'memo://notes/{id}']) },
  });
});
afterAll(async () => {
  await gateway?.close();
  await modern?.close();
  await dual?.close();
  await everything?.close();
});

describe('a stateless client before an upstream of sessions', () => {
  it('[E-16] gets 400 and -32022 with what is carried', async () => {
    const url = gateway.url('sessions');
    for (const method of ['server/discover', 'tools/list']) {
      const answer = await postStateless(url, method, {}, await tokenFor('sessions'));
      expect(answer.status).toBe(400);
      const { id, error } = answer.messages[0];
      expect([id, error.code]).toEqual([1, -32022]);
      expect(error.data.requested).toBe('2026-07-28');
      expect(error.data.supported).toContain('2025-11-25');
      expect(error.data.supported).not.toContain('2026-07-28');
    }
  });

  it('[E-16] is refused by the SDK with an error that names versions, never by silence', async () => {
    const refused = connectSdkV2(gateway.url('sessions'), '2026', await tokenFor('sessions'));
    await expect(refused).rejects.toThrow(/version|2026-07-28/i);
  });
});

describe('a client of sessions before a stateless upstream', () => {
  it('[E-17] gets 400 and -32602 naming the versions', async () => {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'late', version: '1' },
    };
    const body = { jsonrpc: '2.0', id: 7, method: 'initialize', params };
    const answer = await postRaw(gateway.url('modern'), body, await tokenFor('modern'));
    expect(answer.status).toBe(400);
    const { id, error } = answer.messages[0];
    expect([id, error.code]).toEqual([7, -32602]);
    expect(error.message).toContain('2026-07-28');
    expect(modern.seen().filter((one) => one.body.includes('"late"'))).toEqual([]);
  });

  it('[E-17] is refused by SDK v1 with an error that names the version', async () => {
    const refused = connectSdkV1(gateway.url('modern'), await tokenFor('modern'));
    await expect(refused).rejects.toThrow(/2026-07-28/);
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
    const told = { jsonrpc: '2.0', method: 'notifications/initialized' };
    expect((await postRaw(url, told, { token, headers })).status).toBe(202);
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
    ['sessions', '2025-11-25', 'echo', { message: 'found' }],
    ['dual', '2026-07-28', 'echo', { text: 'found' }],
    ['modern', '2026-07-28', 'echo', { text: 'found' }],
  ])('[E-18] ends usable before %s, in %s', async (upstream, version, name, args) => {
    const client = new Client(
      { name: 'sallyport-auto', version: '1.0.0' },
      { versionNegotiation: { mode: 'auto' } },
    );
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
