// The official SDKs over pairs of transports: clients of v1 and v2 before a server of HTTP+SSE, and the client
// of HTTP+SSE before servers of sessions and of the stateless era.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { connectSdkV2, createTransportV1, grantQuestions } from '../support/sdk-clients.js';
import { startEverything, startSdkV2Server } from '../support/sdk-servers.js';
import { startSseServer } from '../support/sse-server.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const old = shared(() => startSseServer());
const everything = shared(() => startEverything());
const modern = shared(() => startSdkV2Server({ legacy: 'reject' }));
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'old', url: old.url, more: ['transport: http-sse'] },
    { name: 'everything', url: everything.url },
    { name: 'modern', url: modern.url },
  ],
  policies: { open: ALLOW_ALL, questions: grantQuestions() },
}));

async function connectV1(transport: Transport): Promise<Client> {
  const client = new Client({ name: 'v1', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: 'none',
    role: 'assistant',
    content: { type: 'text', text: 'hello' },
  }));
  await client.connect(transport);
  return client;
}

async function connectOld(upstream: string): Promise<Client> {
  const headers = { authorization: `Bearer ${await gateway.token(upstream)}` };
  const url = new URL(`${gateway.url(upstream)}/sse`);
  return connectV1(new SSEClientTransport(url, { requestInit: { headers } }));
}

const textOf = (result: unknown): string =>
  (result as { content: { text: string }[] }).content.map((block) => block.text).join('');

describe('before a server of HTTP+SSE', () => {
  it('[LEG-02] a client of sessions lists, calls, hears progress and is asked', async () => {
    const token = await gateway.token('old');
    const client = await connectV1(createTransportV1(gateway.url('old'), { token }) as Transport);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('echo');
    const result = await client.callTool({ name: 'echo', arguments: { text: 'Grüße' } });
    expect(textOf(result)).toBe('Grüße');
    const steps: number[] = [];
    await client.callTool({ name: 'steps', arguments: {} }, undefined, {
      onprogress: ({ progress }) => void steps.push(progress),
    });
    expect(steps).toEqual([1]);
    expect(textOf(await client.callTool({ name: 'sample', arguments: {} }))).toBe('hello');
    const before = old.cancelled();
    const cancel = new AbortController();
    const options = { signal: cancel.signal };
    const waiting = client.callTool({ name: 'wait', arguments: {} }, undefined, options);
    await expect.poll(() => old.seen().filter(({ body }) => body.includes('"wait"')).length, PATIENT).toBe(1);
    cancel.abort();
    await expect(waiting).rejects.toThrow();
    await expect.poll(() => old.cancelled(), PATIENT).toBe(before + 1);
    await client.close();
  });

  it('[LEG-02] a stateless client lists, calls, hears progress and is asked', async () => {
    const token = await gateway.token('old');
    const { client, close } = await connectSdkV2(
      gateway.url('old'),
      '2026',
      { token },
      { capabilities: { sampling: {} } },
    );
    client.setRequestHandler('sampling/createMessage', () => ({
      model: 'none',
      role: 'assistant',
      content: { type: 'text', text: 'hello' },
    }));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('echo');
    const result = await client.callTool({ name: 'echo', arguments: { text: 'Grüße' } });
    expect(textOf(result)).toBe('Grüße');
    const steps: number[] = [];
    const onprogress = ({ progress }: { progress: number }): void => void steps.push(progress);
    await client.callTool({ name: 'steps', arguments: {} }, { onprogress });
    expect(steps).toEqual([1]);
    expect(textOf(await client.callTool({ name: 'sample', arguments: {} }))).toBe('hello');
    await close();
  });
});

describe('a client of HTTP+SSE', () => {
  it('[LEG-01] uses a server of sessions: tools, resources, prompts, progress, questions', async () => {
    const client = await connectOld('everything');
    const { tools } = await client.listTools();
    expect(tools.length).toBeGreaterThan(3);
    const result = await client.callTool({ name: 'echo', arguments: { message: 'Grüße' } });
    expect(textOf(result)).toContain('Grüße');
    const { resources } = await client.listResources();
    const [resource] = resources;
    expect((await client.readResource({ uri: resource?.uri ?? '' })).contents).toHaveLength(1);
    const { prompts } = await client.listPrompts();
    expect(prompts.length).toBeGreaterThan(0);
    const long = tools.find(({ name }) => /long-?running/i.test(name))?.name ?? '';
    const steps: number[] = [];
    await client.callTool({ name: long, arguments: { duration: 1, steps: 2 } }, undefined, {
      onprogress: ({ progress }) => void steps.push(progress),
    });
    expect(steps.length).toBeGreaterThan(0);
    const ask = tools.find(({ name }) => /sampl/i.test(name))?.name;
    if (ask !== undefined)
      expect(textOf(await client.callTool({ name: ask, arguments: { prompt: 'x', maxTokens: 5 } }))).toContain('hello');
    await client.close();
  });

  it('[LEG-01] uses a stateless server: tools, resources, prompts', async () => {
    const client = await connectOld('modern');
    const result = await client.callTool({ name: 'echo', arguments: { text: 'Grüße' } });
    expect(textOf(result)).toBe('Grüße');
    const slow = await client.callTool({ name: 'slow', arguments: { steps: 3 } });
    expect(textOf(slow)).toBe('done after 3');
    const read = await client.readResource({ uri: 'memo://readme' });
    expect(JSON.stringify(read)).toContain('Read me.');
    const prompt = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
    expect(JSON.stringify(prompt)).toContain('Greet Ada.');
    const region = await client.callTool({ name: 'by_region', arguments: { region: 'eu' } });
    expect(textOf(region)).toBe('served in eu');
    await client.close();
  });
});
