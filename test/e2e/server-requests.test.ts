// What a server asks of a client, and what of that reaches one: nothing. The capabilities that would let
// it ask are gone from what it saw, and a request that comes all the same is answered by the gateway.
// Source: MCP 2025-11-25, sampling, elicitation, roots; MCP 2026-07-28, receiving messages.

import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, it } from 'vitest';
import { resultFor, textResult } from '../support/hostile-acts.js';
import { type HostileRequest, startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { createTransportV1, createTransportV2 } from '../support/sdk-clients.js';
import { startEverything } from '../support/sdk-servers.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const IDENTITY = { name: 'asked', version: '1.0.0' };
const CAPABILITIES = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
const REQUEST_METHODS = ['sampling/createMessage', 'elicitation/create', 'roots/list'];
const CALL = { name: 'read_record', arguments: { id: 'one' } };

function eventOf(message: JsonObject): string {
  return `data: ${JSON.stringify(message)}\n\n`;
}

function questions(): string[] {
  return REQUEST_METHODS.map((method) => eventOf({ jsonrpc: '2.0', id: `ask-${method}`, method, params: {} }));
}

/** Before it answers a call, the server asks for everything, and pings. */
function askFirst(request: HostileRequest) {
  if (request.method !== 'tools/call') return undefined;
  const ping = eventOf({ jsonrpc: '2.0', id: 'ask-ping', method: 'ping' });
  const answer = eventOf(resultFor(request, textResult('answered')));
  const chunks = [...questions(), ping, answer];
  return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'end' } as const;
}

/** What came back for a server's own request: the messages without a method. */
function answersOf(seen: readonly HostileRequest[]): ReadonlyMap<unknown, JsonObject> {
  return new Map(
    seen.flatMap(({ message, method }) =>
      message !== undefined && method === undefined ? [[message['id'], message] as const] : [],
    ),
  );
}

async function openV1(upstream: string): Promise<{ client: ClientV1; asked: string[] }> {
  const asked: string[] = [];
  const client = new ClientV1(IDENTITY, { capabilities: CAPABILITIES });
  client.setRequestHandler(CreateMessageRequestSchema, ({ method }) => {
    asked.push(method);
    return { model: 'm', role: 'assistant', content: { type: 'text', text: 'told' } };
  });
  client.setRequestHandler(ElicitRequestSchema, ({ method }) => {
    asked.push(method);
    return { action: 'decline' };
  });
  client.setRequestHandler(ListRootsRequestSchema, ({ method }) => {
    asked.push(method);
    return { roots: [] };
  });
  const token = await gateway.token(upstream);
  await client.connect(createTransportV1(gateway.url(upstream), { token }) as Transport);
  return { client, asked };
}

const requester = shared(() => startHostileUpstream());
const everything = shared(() => startEverything());
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'asking', url: requester.url },
    { name: 'everything', url: everything.url },
  ],
}));
afterEach(() => {
  requester.repent();
  requester.forget();
});

describe('capabilities of a client', () => {
  it('[E-08] that would let a server ask are gone from what it saw in a session', async () => {
    const { client } = await openV1('asking');
    const seen = requester.seen().filter((one) => one.body.includes('"asked"'));
    expect(seen.map((one) => one.method)).toEqual(['initialize']);
    const params = seen[0]?.message?.['params'] as JsonObject;
    expect(params['capabilities']).toEqual({});
    await client.close();
  });

  it('[E-08] leave the reference server without the tools that need them', async () => {
    const { client } = await openV1('everything');
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    expect(names).toContain('echo');
    expect(names.filter((name) => /roots|sampling|elicitation/.test(name))).toEqual([]);
    await client.close();
  });

  it('[E-08] are gone from every stateless request', async () => {
    const client = new ClientV2(IDENTITY, {
      capabilities: CAPABILITIES,
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    });
    const token = await gateway.token('asking');
    await client.connect(createTransportV2(gateway.url('asking'), { token }));
    await client.callTool(CALL);
    const seen = requester.seen().filter((one) => one.body.includes('"asked"'));
    expect(seen.map((one) => one.method)).toEqual(['server/discover', 'tools/call']);
    for (const { message } of seen) {
      expect(message).toMatchObject({
        params: { _meta: { 'io.modelcontextprotocol/clientCapabilities': {} } },
      });
      expect(JSON.stringify(message)).not.toMatch(/sampling|elicitation|roots/);
    }
    await client.close();
  });
});

describe('a request of a server', () => {
  it('[E-09] in a streamed answer is refused by the gateway; the answer arrives, a ping is answered', async () => {
    requester.obey(askFirst);
    const { client, asked } = await openV1('asking');
    const result = await client.callTool(CALL);
    expect(result.content).toEqual([{ type: 'text', text: 'answered' }]);
    await expect.poll(() => answersOf(requester.seen()).size, PATIENT).toBe(4);
    const answers = answersOf(requester.seen());
    for (const method of REQUEST_METHODS) {
      expect(answers.get(`ask-${method}`)).toMatchObject({ error: { code: -32601 } });
    }
    expect(answers.get('ask-ping')).toMatchObject({ result: {} });
    expect(asked).toEqual([]);
    await client.close();
  });

  it('[E-09] on the stream of a session is refused by the gateway too', async () => {
    requester.obey((request) =>
      request.httpMethod === 'GET'
        ? {
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: questions(),
            ending: 'hold',
          }
        : undefined,
    );
    const { client, asked } = await openV1('asking');
    await expect.poll(() => answersOf(requester.seen()).size, PATIENT).toBe(3);
    for (const method of REQUEST_METHODS) {
      expect(answersOf(requester.seen()).get(`ask-${method}`)).toMatchObject({
        error: { code: -32601 },
      });
    }
    expect(asked).toEqual([]);
    await client.close();
  });

  it('[E-09, MCP-18] in a stateless answer is dropped, for that era has none', async () => {
    requester.obey(askFirst);
    const client = new ClientV2(IDENTITY, {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    });
    const token = await gateway.token('asking');
    await client.connect(createTransportV2(gateway.url('asking'), { token }));
    const result = await client.callTool(CALL);
    expect(result.content).toEqual([{ type: 'text', text: 'answered' }]);
    await client.close();
    expect(answersOf(requester.seen()).size).toBe(0);
  });

  it('[E-09] is on record as a finding of its exchange', async () => {
    requester.obey(askFirst);
    const { client } = await openV1('asking');
    await client.callTool(CALL);
    await client.close();
    const line = (await gateway.audit()).findLast(
      (one) => one['type'] === 'mcp.outcome' && one['target']?.method === 'tools/call',
    );
    expect(JSON.stringify(line?.['findings'])).toMatch(/server|request|sampling/);
  });
});
