// Clients of SDK v2 in the stateless era whom a server on SDK v2 asks for input, and who listen to what it
// offers, with the whole gateway between them. Source: MCP 2026-07-28, dialogues and subscriptions.

import type { ClientOptions } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, it } from 'vitest';
import { type ConnectedV2, connectSdkV2 } from '../support/sdk-clients.js';
import { registerGreeting, startSdkV2Server } from '../support/sdk-servers.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what:
      upstreams: ["*"]
      tools: ["*"]
      prompts: ["*"]
      resources: ["memo://**"]
      templates: ["memo://notes/{id}"]
  - id: asked
    effect: allow
    who: {subjects: [asked]}
    what: {upstreams: ["*"], elicitation: [form], sampling: true}
`;

const opened: ConnectedV2[] = [];

async function open(subject: string, options: ClientOptions = {}): Promise<ConnectedV2> {
  const token = await gateway.token('modern', { sub: subject });
  const connected = await connectSdkV2(gateway.url('modern'), '2026', { token }, options);
  opened.push(connected);
  return connected;
}

async function openAsked(subject: string): Promise<ConnectedV2> {
  const connected = await open(subject, { capabilities: { elicitation: { form: {} } } });
  connected.client.setRequestHandler('elicitation/create', () => ({
    action: 'accept',
    content: { name: 'Ada' },
  }));
  return connected;
}

const server = shared(() => startSdkV2Server({ extend: registerGreeting }));
const gateway = sharedGateway(() => ({
  upstreams: [{ name: 'modern', url: server.url }],
  policies: { open: POLICY },
}));
afterEach(async () => {
  for (const { close } of opened.splice(0)) await close();
});

describe('a dialogue', () => {
  it('[T-07, T-09] is carried to its end, with the state of the server', async () => {
    const { client } = await openAsked('asked');
    const result = await client.callTool({ name: 'greet_someone', arguments: {} });
    expect(result.content).toEqual([{ type: 'text', text: 'Hello Ada, after leg:1.' }]);
    const retried = server.seen().at(-1)?.body ?? '';
    expect(JSON.parse(retried).params).toMatchObject({
      requestState: 'leg:1',
      inputResponses: { who: { action: 'accept', content: { name: 'Ada' } } },
    });
  });

  it('[T-07] never begins where policy grants no question', async () => {
    const { client } = await openAsked('somebody');
    const outcome = await client
      .callTool({ name: 'greet_someone', arguments: {} })
      .catch((error: unknown) => String(error));
    expect(JSON.stringify(outcome)).not.toContain('Hello');
    expect(server.seen().at(-1)?.body).not.toContain('elicitation');
  });
});

describe('a subscription', () => {
  it('[T-01, T-02, T-05, MCP-21] is agreed to, told of changes, and closed', async () => {
    const { client } = await open('somebody');
    const received: string[] = [];
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      received.push('tools');
    });
    client.setNotificationHandler('notifications/prompts/list_changed', () => {
      received.push('prompts');
    });
    const subscription = await client.listen({ toolsListChanged: true });
    expect(subscription.honoredFilter).toEqual({ toolsListChanged: true });
    server.notify.promptsChanged();
    server.notify.toolsChanged();
    await expect.poll(() => received, PATIENT).toContain('tools');
    expect(received).not.toContain('prompts');
    await subscription.close();
    expect(await subscription.closed).toBe('local');
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  });

  it('[T-01] hears of resources that its caller may read, and of no others', async () => {
    const { client } = await open('somebody');
    const subscription = await client.listen({
      toolsListChanged: true,
      resourceSubscriptions: ['secret://plans'],
    });
    expect(subscription.honoredFilter).toEqual({ toolsListChanged: true });
    const asked = server.seen().filter(({ body }) => body.includes('subscriptions/listen'));
    expect(asked.at(-1)?.body).not.toContain('secret://plans');
    await subscription.close();
  });

  it('[T-03] is opened by itself where a client wants to know, because the gateway declares changes', async () => {
    const received: unknown[] = [];
    const listChanged = { tools: { onChanged: (error: unknown) => void received.push(error) } };
    const { client } = await open('somebody', { listChanged });
    expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true });
    server.notify.toolsChanged();
    await expect.poll(() => received.length, PATIENT).toBeGreaterThan(0);
    expect(received[0]).toBeNull();
  });
});
