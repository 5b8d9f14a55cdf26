// Official clients at an endpoint over official servers of both eras: what they use each server with, they use
// all of them with, under prefixes.

import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { EVERYTHING_TEMPLATES, writeOpenPolicy } from '../support/gateway.js';
import { connectAsked, connectSdkV1, connectSdkV2, grantQuestions } from '../support/sdk-clients.js';
import { startEverything, startSdkV2Server } from '../support/sdk-servers.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const everything = shared(() => startEverything());
const dual = shared(() => startSdkV2Server());
const modern = shared(() => startSdkV2Server({ legacy: 'reject' }));
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'every', url: everything.url },
    { name: 'dual', url: dual.url },
    { name: 'modern', url: modern.url },
  ],
  policies: {
    open: writeOpenPolicy([...EVERYTHING_TEMPLATES, 'memo://notes/{id}']),
    questions: grantQuestions(),
    // Two servers have one resource: the rules say whose it is.
    apart: `version: 1
policy: apart
rules:
  - id: one-memo
    effect: deny
    who: {anyone: true}
    what: {upstreams: [dual], resources: ["memo://**"], templates: ["memo://notes/{id}"]}
  - id: no-memo
    effect: deny
    who: {anyone: true}
    what: {upstreams: [every], resources: ["memo://**"]}
  - id: no-demo
    effect: deny
    who: {anyone: true}
    what: {upstreams: [modern, dual], resources: ["demo://**"]}
`,
  },
  more: `endpoints:
  all: {path: /together, issuers: [test], upstreams: {every: {prefix: e.}, modern: {prefix: m_}, dual: {}}}
`,
}));

const url = (): string => gateway.url('together');
const access = async () => ({ token: await gateway.token('together') });

describe.each([
  ['SDK v1', async () => connectSdkV1(url(), await access())],
  ['SDK v2 with sessions', async () => connectSdkV2(url(), '2025', await access())],
  ['SDK v2 without sessions', async () => connectSdkV2(url(), '2026', await access())],
] as const)('[MRG-18] %s at an endpoint of three servers', (_name, connect) => {
  it('learns what each of them is for', async () => {
    const { client, close } = await connect();
    expect(client.getServerVersion()).toEqual({ name: 'all', version: '0.0.0-test' });
    const instructions = client.getInstructions() ?? '';
    expect(instructions).toContain('# every (its names begin with e.)');
    expect(instructions).toContain('# modern (its names begin with m_)\n\nA server of the stateless era.');
    expect(client.getServerCapabilities()).toMatchObject({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true },
      completions: {},
    });
    await close();
  });

  it('lists and calls tools of all of them', async () => {
    const { client, close } = await connect();
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['e.echo', 'm_echo', 'dual_echo', 'm_by_region']));
    const call = async (name: string, args: Record<string, unknown>): Promise<string> =>
      JSON.stringify(((await client.callTool({ name, arguments: args })) as CallToolResult).content);
    expect(await call('e.echo', { message: 'grüße' })).toContain('Echo: grüße');
    expect(await call('m_echo', { text: 'modern' })).toContain('modern');
    expect(await call('m_by_region', { region: 'Zürich' })).toContain('served in Zürich');
    expect(await call('dual_add', { a: 2, b: 3 })).toContain('5');
    await expect(client.callTool({ name: 'echo', arguments: {} })).rejects.toThrow(/Unknown tool/);
    await close();
  });

  it('gets prompts, reads resources and completes', async () => {
    const { client, close } = await connect();
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['e.simple-prompt', 'm_greet', 'dual_greet']),
    );
    const greeting = await client.getPrompt({ name: 'm_greet', arguments: { name: 'desk' } });
    expect(JSON.stringify(greeting.messages)).toContain('Greet desk.');
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toContain('memo://readme');
    const note = await client.readResource({ uri: 'memo://notes/7' });
    expect(JSON.stringify(note.contents)).toContain('Note 7.');
    const first = resources.find(({ uri }) => uri.startsWith('demo://'))?.uri ?? '';
    expect((await client.readResource({ uri: first })).contents).toHaveLength(1);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(
      expect.arrayContaining([...EVERYTHING_TEMPLATES, 'memo://notes/{id}']),
    );
    const completed = await client.complete({
      ref: { type: 'ref/prompt', name: 'e.completable-prompt' },
      argument: { name: 'department', value: 'E' },
    });
    expect(completed.completion.values).toContain('Engineering');
    await close();
  });
});

describe('[MRG-18] progress of a call', () => {
  const call = { name: 'm_slow', arguments: { steps: 3 } };

  it('reaches a client with a session', async () => {
    const received: number[] = [];
    const onprogress = ({ progress }: { progress: number }): void => void received.push(progress);
    const { client, close } = await connectSdkV1(url(), await access());
    const done = await client.callTool(call, undefined, { onprogress });
    expect(JSON.stringify(done)).toContain('done after 3');
    expect(received).toEqual([1, 2, 3]);
    await close();
  });

  it('reaches a client without', async () => {
    const received: number[] = [];
    const onprogress = ({ progress }: { progress: number }): void => void received.push(progress);
    const { client, close } = await connectSdkV2(url(), '2026', await access());
    const done = await client.callTool(call, { onprogress });
    expect(JSON.stringify(done)).toContain('done after 3');
    expect(received).toEqual([1, 2, 3]);
    await close();
  });
});

describe('[MRG-18] a client that answers questions', () => {
  it('is asked by the member whose tool it calls, across eras', async () => {
    const { client, asked, close } = await connectAsked(url(), (await access()).token);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('e.trigger-sampling-request');
    const answer = await client.callTool({
      name: 'e.trigger-sampling-request',
      arguments: { prompt: 'hello', maxTokens: 5 },
    });
    expect(JSON.stringify(answer)).toContain('told by the model');
    await expect.poll(() => asked.map(({ method }) => method), PATIENT).toContain('sampling/createMessage');
    await close();
  });
});
