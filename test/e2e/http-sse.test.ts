// HTTP+SSE of 2024-11-05 through the running gateway: the official client and server of SDK v1 on both sides,
// with every control between them.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { startSseServer } from '../support/sse-server.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: sse
rules:
  - id: tools
    effect: allow
    who: {anyone: true}
    what: {upstreams: [old], tools: [echo, secret, sample, steps, wait]}
  - id: sampling
    effect: allow
    who: {issuers: [test], subjects: [asked]}
    what: {upstreams: [old], sampling: true}
  - id: short
    effect: deny
    who: {anyone: true}
    what: {upstreams: [old], tools: [echo]}
    args: {text: {const: forbidden}}
    reason: Not this word.
`;

/** Of a form that is redacted, made up here. */
const SECRET = `ghp_${'Ab3dEf6hIj'.repeat(4).slice(0, 36)}`;

const server = shared(() => startSseServer(SECRET));
const gateway = sharedGateway(() => ({
  upstreams: [{ name: 'old', url: server.url, more: ['transport: http-sse'] }],
  policies: { sse: POLICY },
}));

async function connect(claims: Readonly<Record<string, unknown>> = {}, path = '/sse'): Promise<Client> {
  const token = await gateway.token('old', claims);
  const client = new Client({ name: 'old-client', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: 'none',
    role: 'assistant',
    content: { type: 'text', text: 'hello' },
  }));
  const headers = { authorization: `Bearer ${token}` };
  await client.connect(new SSEClientTransport(new URL(gateway.url('old') + path), { requestInit: { headers } }));
  return client;
}

const textOf = (result: unknown): string =>
  (result as { content: { text: string }[] }).content.map((block) => block.text).join('');

describe('HTTP+SSE through the gateway', () => {
  it.each(['/sse', ''])('[V-01] connects, lists what is allowed, and calls: at <path>%s', async (path) => {
    const client = await connect({}, path);
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name).sort()).toEqual(['echo', 'sample', 'secret', 'steps', 'wait']);
    const result = await client.callTool({ name: 'echo', arguments: { text: 'Grüße' } });
    expect(textOf(result)).toBe('Grüße');
    await client.close();
  });

  it('[V-02] redacts results and refuses on the stream, under the ids of the client', async () => {
    const client = await connect();
    const result = await client.callTool({ name: 'secret', arguments: {} });
    expect(JSON.stringify(result)).not.toContain(SECRET);
    expect(textOf(result)).toContain('[redacted:');
    await expect(client.callTool({ name: 'hidden', arguments: {} })).rejects.toMatchObject({
      code: -32602,
    });
    const denied = await client.callTool({ name: 'echo', arguments: { text: 'forbidden' } });
    expect(denied).toMatchObject({ isError: true });
    const invalid = await client.callTool({ name: 'echo', arguments: {} });
    expect(invalid).toMatchObject({ isError: true });
    await client.close();
  });

  it('[V-03] carries progress, and cancels by the id that the server knows', async () => {
    const client = await connect();
    const steps: number[] = [];
    await client.callTool({ name: 'steps', arguments: {} }, undefined, {
      onprogress: ({ progress }) => void steps.push(progress),
    });
    expect(steps).toEqual([1]);
    const before = server.cancelled();
    const cancel = new AbortController();
    const waiting = client.callTool({ name: 'wait', arguments: {} }, undefined, {
      signal: cancel.signal,
    });
    await expect.poll(() => server.seen().filter(({ body }) => body.includes('"wait"')).length, PATIENT).toBe(1);
    cancel.abort();
    await expect(waiting).rejects.toThrow();
    await expect.poll(() => server.cancelled(), PATIENT).toBe(before + 1);
    await client.close();
  });

  it('[V-04] passes a question where it is granted, and answers for the client where not', async () => {
    const asked = await connect({ sub: 'asked' });
    expect(textOf(await asked.callTool({ name: 'sample', arguments: {} }))).toBe('hello');
    await asked.close();
    const other = await connect({ sub: 'other' });
    expect(textOf(await other.callTool({ name: 'sample', arguments: {} }))).toBe('refused');
    await other.close();
  });

  it('[V-05] records streams, messages and answers in the era 2024', async () => {
    const client = await connect({ sub: 'recorded' });
    await client.callTool({ name: 'echo', arguments: { text: 'recorded' } });
    await client.close();
    const linesOf = async (): Promise<readonly unknown[][]> =>
      (await gateway.audit())
        .filter((line) => line['actor']?.sub === 'recorded' && line['type'] === 'mcp.outcome')
        .map((line) => [line['target'].method, line['client'].era, line['decision'].action, line['result'].http]);
    await expect.poll(linesOf, PATIENT).toEqual(
      expect.arrayContaining([
        ['initialize', '2024', 'forwarded', 202],
        ['initialize', '2024', 'forwarded', 200],
        ['tools/call', '2024', 'forwarded', 202],
        ['tools/call', '2024', 'forwarded', 200],
      ]),
    );
  });

  it('[V-06] frees the stream of the server when the client leaves', async () => {
    const client = await connect();
    await expect.poll(() => server.streams(), PATIENT).toBeGreaterThanOrEqual(2);
    await client.close();
    // The gateway's own channel stays.
    await expect.poll(() => server.streams(), PATIENT).toBe(1);
  });
});
