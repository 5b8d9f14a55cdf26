// Servers on the official SDKs that offer apps to hosts alone, and hosts on the official SDKs, in both eras and
// between them: as the extension's own guide has servers do it.
// Source: MCP Apps extension (SEP-1865), capability negotiation.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer as ServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { McpServer as ServerV2 } from '@modelcontextprotocol/server';
import { fromJsonSchema } from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { APP_CONTENTS, APP_TYPE, APP_URI, APPS, HOST } from '../support/mcp-servers.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { startSdkV2Server } from '../support/sdk-servers.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const SHOWN = {
  title: 'Clock',
  description: 'Draws the time.',
  _meta: { ui: { resourceUri: APP_URI } },
};
const PLAIN = { title: 'Clock', description: 'Tells the time.' };
const DRAWN = { content: [{ type: 'text' as const, text: 'drawn' }] };
const PLAIN_RESULT = { content: [{ type: 'text' as const, text: 'told' }] };
const CONTENTS = { contents: APP_CONTENTS.map((one) => ({ ...one })) as never };

/** Registers what a client that declared this is offered. */
function offer(server: ServerV1, isShown: boolean): void {
  server.registerTool('clock', isShown ? SHOWN : PLAIN, () => (isShown ? DRAWN : PLAIN_RESULT));
  if (isShown) server.registerResource('view', APP_URI, { mimeType: APP_TYPE }, () => CONTENTS);
}

/** A server of sessions, whose client says at the handshake what it shows. */
async function startSessionServer(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  async function open(): Promise<StreamableHTTPServerTransport> {
    const server = new ServerV1({ name: 'apps-v1', version: '1.0.0' });
    server.registerTool('always', { description: 'There for everyone.' }, () => PLAIN_RESULT);
    server.registerResource('always', 'memo://always', {}, () => ({ contents: [] }));
    server.server.oninitialized = () => {
      const declared = server.server.getClientCapabilities()?.extensions ?? {};
      offer(server, APPS in declared);
    };
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
    });
    await server.connect(transport as never);
    return transport;
  }
  const http = createServer((request, response) => {
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? transports.get(id) : undefined;
    void (async () => (known ?? (await open())).handleRequest(request, response))();
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    async close() {
      for (const transport of transports.values()) await transport.close();
      http.closeAllConnections();
      await new Promise<void>((resolve) => http.close(() => resolve()));
    },
  };
}

function offerStateless(server: ServerV2, body: string): void {
  const isShown = body.includes(APPS);
  const inputSchema = fromJsonSchema({ type: 'object' } as never);
  server.registerTool('clock', { ...(isShown ? SHOWN : PLAIN), inputSchema }, () => (isShown ? DRAWN : PLAIN_RESULT));
  if (isShown) server.registerResource('view', APP_URI, { mimeType: APP_TYPE }, () => CONTENTS);
}

const sessions = shared(() => startSessionServer());
const modern = shared(() => startSdkV2Server({ legacy: 'reject', extend: offerStateless }));
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'sessions', url: sessions.url, more: ['apps: true'] },
    { name: 'stateless', url: modern.url, more: ['apps: true'] },
  ],
  policies: { open: ALLOW_ALL },
}));

describe.each(['2025', '2026'] as const)('a host of %s', (era) => {
  it.each(['sessions', 'stateless'])('[APP-05] uses the apps of a server of %s', async (name) => {
    const access = { token: await gateway.token(name) };
    const capabilities = { capabilities: HOST } as never;
    const host = await connectSdkV2(gateway.url(name), era, access, capabilities);
    const shown = (await host.client.listTools()).tools.find((tool) => tool.name === 'clock');
    expect(shown).toMatchObject(SHOWN);
    const read = await host.client.readResource({ uri: APP_URI });
    expect(read.contents).toEqual(APP_CONTENTS);
    expect((await host.client.callTool({ name: 'clock', arguments: {} })).content).toEqual(DRAWN.content);
    await host.close();

    const other = await connectSdkV2(gateway.url(name), era, access);
    const plain = (await other.client.listTools()).tools.find((tool) => tool.name === 'clock');
    expect(plain).toMatchObject(PLAIN);
    expect((await other.client.callTool({ name: 'clock', arguments: {} })).content).toEqual(PLAIN_RESULT.content);
    await expect(other.client.readResource({ uri: APP_URI })).rejects.toThrow();
    await other.close();
    const lines = await gateway.audit();
    expect(lines.filter((line) => line['type'] === 'pin.drift')).toEqual([]);
  });
});

describe('a host on SDK v1', () => {
  it.each(['sessions', 'stateless'])('[APP-05] uses the apps of a server of %s', async (name) => {
    const access = { token: await gateway.token(name) };
    const host = await connectSdkV1(gateway.url(name), access, { capabilities: HOST as never });
    const shown = (await host.client.listTools()).tools.find((tool) => tool.name === 'clock');
    expect(shown).toMatchObject(SHOWN);
    expect((await host.client.readResource({ uri: APP_URI })).contents).toEqual(APP_CONTENTS);
    const drawn = await host.client.callTool({ name: 'clock', arguments: {} });
    expect(drawn.content).toEqual(DRAWN.content);
    await host.close();

    const other = await connectSdkV1(gateway.url(name), access);
    const plain = (await other.client.listTools()).tools.find((tool) => tool.name === 'clock');
    expect(plain).toMatchObject(PLAIN);
    await other.close();
  });
});
