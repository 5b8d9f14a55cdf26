// Two gateways with one key and no store: what one gave out, the other serves
// (docs/reference/state.md#sessions-on-any-replica).

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL, type RunningGateway, startTestGateway } from '../support/gateway.js';
import { sseEvent, textResult } from '../support/hostile-acts.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import { askStateless, beginStateless, createTaskServer } from '../support/mcp-servers.js';
import { openRawSession, postRaw, type RawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { startTestIssuer, type TestIssuer } from '../support/tokens.js';
import { errorOf, resultOf } from '../support/wire-client.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };

let upstream: HostileUpstream;
let issuer: TestIssuer;
let folder: string;
let one: RunningGateway;
let two: RunningGateway;
let session: RawSession;

async function start(): Promise<RunningGateway> {
  return startTestGateway({
    upstreams: [{ name: 'shared', url: upstream.url, more: ['pinning: {maxAge: 10m}'] }],
    policies: { open: ALLOW_ALL, questions: grantQuestions() },
    issuerUrl: issuer.issuer,
    more: `keys: [{file: ${JSON.stringify(join(folder, 'key'))}}]
endpoints: {all: {issuers: [test], upstreams: {shared: {prefix: s_}}}}`,
  });
}

/** The session's headers towards the other gateway: its own token, the same session. */
async function elsewhere(gateway: RunningGateway): Promise<Record<string, string>> {
  const token = await issuer.mint(gateway.url('shared'));
  return { ...session.headers, authorization: `Bearer ${token}` };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-replicas-'));
  await writeFile(join(folder, 'key'), randomBytes(32).toString('hex'), { mode: 0o600 });
  upstream = await startHostileUpstream();
  issuer = await startTestIssuer();
  one = await start();
  two = await start();
  const token = await issuer.mint(one.url('shared'));
  session = await openRawSession(one.url('shared'), { token, capabilities: ALL_QUESTIONS });
});
afterEach(() => {
  upstream.repent();
  upstream.forget();
});
afterAll(async () => {
  await one?.close();
  await two?.close();
  await issuer?.close();
  await upstream?.close();
  await rm(folder, { recursive: true, force: true });
});

describe('[Q-15] another replica', () => {
  it('serves a session that it did not open', async () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: CALL };
    const headers = await elsewhere(two);
    const answer = await postRaw(two.url('shared'), body, { headers });
    expect(answer.messages).toMatchObject([{ id: 1, result: textResult('read_record one') }]);
    const used = upstream.uses().map(({ headers: sent }) => sent['mcp-session-id']);
    await session.ask(2, 'tools/call', CALL);
    expect(upstream.uses().at(-1)?.headers['mcp-session-id']).toBe(used[0]);
  });

  it('takes the answer to a question that came through the first', async () => {
    upstream.obey((request) =>
      request.method === 'tools/call' ? askThenAnswer(request, [{ id: 'q', method: 'roots/list' }]) : undefined,
    );
    const [question] = (await session.ask(3, 'tools/call', CALL)).messages;
    const answer = { jsonrpc: '2.0', id: question.id, result: { roots: [] } };
    const headers = await elsewhere(two);
    expect((await postRaw(two.url('shared'), answer, { headers })).status).toBe(202);
    expect(answersTo(upstream).get('q')).toMatchObject({ result: { roots: [] } });
  });

  it('[TSK-01] [TSK-02] knows a task that the first has given, and whose it is', async () => {
    upstream.obey(createTaskServer().order);
    const mint = (gateway: RunningGateway, sub: string) => issuer.mint(gateway.url('shared'), { claims: { sub } });
    const first = { url: one.url('shared'), token: await mint(one, 'ada') };
    const second = { url: two.url('shared'), token: await mint(two, 'ada') };
    const stranger = { url: two.url('shared'), token: await mint(two, 'eve') };
    const taskId = await beginStateless(first, 'read_record', { id: 'one' });
    expect(resultOf(await askStateless(second, 'tasks/get', { taskId }))['taskId']).toBe(taskId);
    const stolen = await askStateless(stranger, 'tasks/get', { taskId });
    expect(errorOf(stolen)['code']).toBe(-32602);
  });

  it('resumes a stream that broke off at the first', async () => {
    upstream.obey(({ method, httpMethod, headers }) => {
      const stream = (chunk: string) =>
        ({
          kind: 'chunks',
          contentType: 'text/event-stream',
          chunks: [chunk],
          ending: 'end',
        }) as const;
      if (method === 'tools/call') return stream('id: e-1\ndata: \n\n');
      if (httpMethod !== 'GET' || headers['last-event-id'] !== 'e-1') return undefined;
      return stream(sseEvent({ jsonrpc: '2.0', id: 4, result: textResult('resumed') }));
    });
    const { text } = await session.ask(4, 'tools/call', CALL);
    const id = /^id: (.*)$/m.exec(text)?.[1] ?? '';
    const resumed = await fetch(two.url('shared'), {
      headers: { accept: 'text/event-stream', ...(await elsewhere(two)), 'last-event-id': id },
    });
    expect(resumed.status).toBe(200);
    expect(await resumed.text()).toContain('resumed');
  });

  it('[MRG-09] serves a session of an endpoint that it did not open', async () => {
    const token = await issuer.mint(one.url('all'));
    const opened = await openRawSession(one.url('all'), { token });
    const headers = {
      ...opened.headers,
      authorization: `Bearer ${await issuer.mint(two.url('all'))}`,
    };
    const params = { ...CALL, name: 's_read_record' };
    const body = { jsonrpc: '2.0', id: 5, method: 'tools/call', params };
    const answer = await postRaw(two.url('all'), body, { headers });
    expect(answer.messages).toMatchObject([{ id: 5, result: textResult('read_record one') }]);
  });
});
