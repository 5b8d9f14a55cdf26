// Sampling, elicitation and roots between real clients and servers, with every control armed: what is
// granted passes and is answered, what may not be asked is refused for the client and recorded.
// Source: MCP 2025-11-25, sampling, elicitation, roots; docs/reference/policies.md#server-requests-by-content;
// docs/reference/responses.md.

import { afterEach, describe, expect, it } from 'vitest';
import { type AuditLine, EVERYTHING_TEMPLATES, writeOpenPolicy } from '../support/gateway.js';
import { sseEvent } from '../support/hostile-acts.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession } from '../support/raw-mcp.js';
import {
  ALL_QUESTIONS,
  type AskedClient,
  answersTo,
  askThenAnswer,
  connectAsked,
  grantQuestions,
} from '../support/sdk-clients.js';
import { startEverything } from '../support/sdk-servers.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const SECRET = makeGithubToken();
const CALL = { name: 'read_record', arguments: { id: 'one' } };

const opened: AskedClient[] = [];

async function open(upstream: string, answer: Parameters<typeof connectAsked>[2] = {}) {
  const token = await gateway.token(upstream);
  const connected = await connectAsked(gateway.url(upstream), token, answer);
  opened.push(connected);
  return connected;
}

const openQuestionSession = (token: string, capabilities: object = ALL_QUESTIONS) =>
  openRawSession(gateway.url('asking'), { token, capabilities });

const form = (properties: JsonObject, message = 'Who are you?'): JsonObject => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties } },
});
const link = (url: string): JsonObject => ({
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Open this.', url, elicitationId: 'e-1' },
});
const sample = (text: string): JsonObject => ({
  method: 'sampling/createMessage',
  params: { maxTokens: 10, messages: [{ role: 'user', content: { type: 'text', text } }] },
});

let questions = 0;

/** What the client was asked and the server was told when it asks this before it answers a call. */
async function ask(question: JsonObject, answer: Parameters<typeof connectAsked>[2] = {}) {
  // Lines of the audit are found by it: those of another test may still be on their way.
  questions += 1;
  const id = `question-${questions}`;
  requester.obey((request) =>
    request.method === 'tools/call' ? askThenAnswer(request, [{ id, ...question }]) : undefined,
  );
  const { client, asked } = await open('asking', answer);
  const result = await client.callTool(CALL);
  expect(result.content).toEqual([{ type: 'text', text: 'answered' }]);
  await expect.poll(() => answersTo(requester).has(id), PATIENT).toBe(true);
  return { id, asked, reply: answersTo(requester).get(id) };
}

/** The lines of a question and of its answer, once there are as many. */
async function linesOf(id: string, count: number): Promise<readonly AuditLine[]> {
  const find = async () => (await gateway.audit()).filter((line) => line['target']?.request_id === id);
  await expect.poll(async () => (await find()).length, PATIENT).toBe(count);
  return find();
}

const requester = shared(() => startHostileUpstream());
const everything = shared(() => startEverything());
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'asking', url: requester.url, more: ['pinning: {maxAge: 10m}'] },
    { name: 'everything', url: everything.url },
  ],
  policies: { open: writeOpenPolicy(EVERYTHING_TEMPLATES), questions: grantQuestions() },
}));
afterEach(async () => {
  for (const { close } of opened.splice(0)) await close();
  requester.repent();
  requester.forget();
});

describe('[Q-04] a granted question of the reference server', () => {
  it('for a completion is answered by the client', async () => {
    const { client, asked } = await open('everything');
    const result = await client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: 'Say something.', maxTokens: 20 },
    });
    expect(JSON.stringify(result.content)).toContain('told by the model');
    expect(asked.map(({ method }) => method)).toContain('sampling/createMessage');
  });

  it('for input is answered by the client, by form and by link', async () => {
    const { client, asked } = await open('everything');
    const result = await client.callTool({ name: 'trigger-elicitation-request', arguments: {} });
    expect(JSON.stringify(result.content)).toContain('Ada');
    const url = 'https://example.com/confirm?x=1';
    await client.callTool({ name: 'trigger-url-elicitation', arguments: { url } });
    const links = asked.filter(({ params }) => params['mode'] === 'url');
    expect(links.map(({ params }) => params['url'])).toEqual([url]);
  });

  it('for roots comes on the stream of the session, and is answered', async () => {
    const { client, asked } = await open('everything');
    // The server asks by itself. A call before the stream is open would wait for a reply to a request that was lost.
    await expect.poll(() => asked.map(({ method }) => method), PATIENT).toContain('roots/list');
    const result = await client.callTool({ name: 'get-roots-list', arguments: {} });
    expect(JSON.stringify(result.content)).toContain('file:///work/project');
    const before = asked.length;
    await client.sendRootsListChanged();
    await expect.poll(() => asked.length, PATIENT).toBeGreaterThan(before);
  });
});

describe('[Q-04] a granted question', () => {
  it('reaches the client under a sealed id, the answer the server under its own', async () => {
    for (const id of [0, 'own-id']) {
      requester.obey((request) =>
        request.method === 'tools/call' ? askThenAnswer(request, [{ id, ...sample('Say yes.') }]) : undefined,
      );
      const { client, asked } = await open('asking');
      await client.callTool(CALL);
      expect(asked).toMatchObject([{ params: { messages: [{ content: { text: 'Say yes.' } }] } }]);
      await expect
        .poll(() => answersTo(requester).get(id), PATIENT)
        .toMatchObject({
          result: { content: { text: 'told by the model' } },
        });
      requester.forget();
    }
  });

  it('is recorded, and so is its answer: a decision and an outcome each', async () => {
    const { id } = await ask(sample('Say yes.'));
    const lines = await linesOf(id, 4);
    expect(new Set(lines.map((line) => line['decision'].id)).size).toBe(2);
    for (const line of lines) {
      expect(line['target']).toMatchObject({ kind: 'question', name: 'sampling', request_id: id });
      expect(line['decision']).toMatchObject({
        verdict: 'allow',
        action: 'forwarded',
        rule: 'ask',
      });
    }
  });

  it('[Q-09] has its content inspected', async () => {
    const { asked } = await ask(sample(`Use ${SECRET} a\u200bnd go on.`));
    const text = JSON.stringify(asked);
    expect(text).not.toContain(SECRET);
    expect(text).toContain('[redacted:');
    expect(text).not.toContain('\u200b');
    expect(text).toContain(' and go on.');
  });

  it('[Q-17] is taken back under the id that the client knows', async () => {
    const taken = { method: 'notifications/cancelled', params: { requestId: 'q' } };
    const other = { method: 'notifications/cancelled', params: { requestId: 'never-asked' } };
    requester.obey((request) =>
      request.method === 'tools/call'
        ? askThenAnswer(request, [{ id: 'q', ...sample('Wait.') }, taken, other], 20)
        : undefined,
    );
    const token = await gateway.token('asking');
    const session = await openQuestionSession(token);
    const answer = await session.ask(3, 'tools/call', CALL);
    const [question, cancelled, own] = answer.messages;
    expect(question).toMatchObject({ method: 'sampling/createMessage' });
    expect(cancelled).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: question.id },
    });
    expect(own).toMatchObject({ id: 3 });
  });
});

describe('[Q-08] the answer to a question', () => {
  it('that holds a secret stays here, and the server is told that none will come', async () => {
    const { id, asked, reply } = await ask(sample('Say yes.'), { text: `take ${SECRET}` });
    expect(asked).toHaveLength(1);
    expect(reply).toMatchObject({ error: { code: -32603 } });
    expect(requester.seen().some(({ body }) => body.includes(SECRET))).toBe(false);
    const refused = (await linesOf(id, 4)).filter((line) => line['decision'].action === 'refused');
    expect(refused).toHaveLength(2);
    for (const line of refused) expect(line['decision'].reasons).toEqual(['arguments-content']);
  });

  it("that holds the caller's own token stays here too", async () => {
    requester.obey((request) =>
      request.method === 'tools/call'
        ? askThenAnswer(request, [{ id: 'q', ...form({ name: { type: 'string' } }) }])
        : undefined,
    );
    const token = await gateway.token('asking');
    const url = gateway.url('asking');
    const { client, close } = await connectAsked(url, token, { content: { name: token } });
    await client.callTool(CALL);
    await expect.poll(() => answersTo(requester).get('q'), PATIENT).toMatchObject({ error: { code: -32603 } });
    expect(requester.seen().some(({ body }) => body.includes(token))).toBe(false);
    await close();
  });
});

describe('a question that may not pass', () => {
  it.each<[string, JsonObject]>([
    ['a password', form({ password: { type: 'string' } })],
    ['an API key by its title', form({ a: { type: 'string', title: 'Your API key' } })],
    ['a card', form({ a: { type: 'string', description: 'Credit card number' } })],
    ['a format', form({ a: { type: 'string', format: 'password' } })],
    ['its message', form({ a: { type: 'string' } }, 'Enter your password to go on')],
  ])('[Q-05, MCP-57] asks for %s', async (_what, question) => {
    await expectRefused(question, 'elicitation-sensitive', -32602);
  });

  it.each([
    'http://example.com/',
    'javascript:alert(1)',
    'data:text/html,hello',
    'https://user:pass@example.com/',
    `https://example.com/?key=${SECRET}`,
  ])('[Q-06, MCP-58] links to %s', async (url) => {
    await expectRefused(link(url), 'elicitation-url', -32602);
  });

  it('[Q-06] shows the host of a link in ASCII', async () => {
    const { asked } = await ask(link('https://\u0440\u0430ypal.com/login'));
    expect(asked[0]?.params['url']).toBe('https://xn--ypal-43d9g.com/login');
  });

  it.each([
    ['a mode that nobody defines', { ...form({}), params: { mode: 'voice', message: 'x' } }],
    ['a form without fields', { method: 'elicitation/create', params: { message: 'x' } }],
    ['a task', { ...sample('x'), params: { task: { ttl: 1 }, messages: [], maxTokens: 1 } }],
  ])('is %s', async (_what, question) => {
    await expectRefused(question as JsonObject, 'upstream-protocol', -32602);
  });

  async function expectRefused(question: JsonObject, reason: string, code: number) {
    const { id, asked, reply } = await ask(question);
    expect(asked).toEqual([]);
    expect(reply).toMatchObject({ id, error: { code } });
    const lines = await linesOf(id, 2);
    expect(lines.map((line) => line['type'])).toEqual(['mcp.decision', 'mcp.outcome']);
    for (const line of lines) {
      expect(line['decision']).toMatchObject({ verdict: 'deny', action: 'refused' });
      expect(line['decision'].reasons).toEqual([reason]);
    }
  }
});

describe('[Q-06] the error that asks for links', () => {
  const errorWith = (urls: readonly string[]): JsonObject => ({
    code: -32042,
    message: 'Open first.',
    data: {
      elicitations: urls.map((url) => ({ mode: 'url', url, elicitationId: 'e', message: 'm' })),
    },
  });

  it.each([
    ['passes with plain links', ['https://example.com/a'], -32042],
    ['is withheld with any other', ['https://example.com/a', 'javascript:alert(1)'], undefined],
  ])('%s', async (_what, urls, code) => {
    requester.obey((request) =>
      request.method === 'tools/call'
        ? {
            kind: 'http',
            status: 200,
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({
              jsonrpc: '2.0',
              id: request.id ?? 0,
              error: errorWith(urls),
            }),
          }
        : undefined,
    );
    const session = await openQuestionSession(await gateway.token('asking'));
    const [message] = (await session.ask(1, 'tools/call', CALL)).messages;
    if (code !== undefined) expect(message).toMatchObject({ error: errorWith(urls) });
    else {
      expect(message).toMatchObject({
        result: {
          isError: true,
          _meta: { 'dev.sallyport/decision': { reason: 'elicitation-url' } },
        },
      });
    }
  });

  it('is withheld from whoever has declared no links', async () => {
    requester.obey((request) =>
      request.method === 'tools/call'
        ? {
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: [
              sseEvent({
                jsonrpc: '2.0',
                id: request.id ?? 0,
                error: errorWith(['https://a.example/']),
              }),
            ],
            ending: 'end',
          }
        : undefined,
    );
    const session = await openQuestionSession(await gateway.token('asking'), {});
    const [message] = (await session.ask(1, 'tools/call', CALL)).messages;
    expect(JSON.stringify(message)).not.toContain('a.example');
  });
});
