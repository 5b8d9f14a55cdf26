// Streams that break off and go on: sealed event ids, priming, retry, and who may resume what.
// Source: MCP 2025-11-25, transports (resumability and redelivery); docs/reference/state.md.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGate } from '../support/changing-rig.js';
import { ALLOW_ALL, UPSTREAM } from '../support/gateway.js';
import { resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import { type Act, type Ending, HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession, postRaw, type RawSession, sendRaw } from '../support/raw-mcp.js';
import { idsOf, isCall, PRIMING, resumeStream, streamed } from '../support/resumed-streams.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { sharedGateway } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const SSE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n';

let session: RawSession;

/** Calls with an upstream that gives a priming event, then closes. Its event id, as the client sees it. */
async function callAndBreak(place = session, params: JsonObject = CALL): Promise<string> {
  rig.upstream.obeyOnce((request) => (isCall(request) ? streamed([PRIMING]) : undefined));
  const answer = await place.ask(7, 'tools/call', params);
  const [id = ''] = idsOf(answer.text);
  return id;
}

const resume = (id: string, headers = session.headers) => resumeStream(rig.access.url, headers, id);

/** What the upstream replays to whoever comes with this event id. */
function replay(lastEventId: string, messages: readonly JsonObject[], ending: Ending = 'end') {
  rig.upstream.obey((request) =>
    request.httpMethod === 'GET' && request.headers['last-event-id'] === lastEventId
      ? streamed(
          messages.map((message, at) => sseEvent(message, `stream-1/${at + 1}`)),
          ending,
        )
      : undefined,
  );
}

/** Resumes after an event; the upstream answers once the gate is open. */
async function resumeBehindGate(act: (gate: Promise<void>) => Act) {
  const id = await callAndBreak();
  rig.upstream.forget();
  const { passed, open } = createGate();
  rig.upstream.obey(({ httpMethod }) => (httpMethod === 'GET' ? act(passed) : undefined));
  const resumed = resume(id);
  await expect.poll(() => rig.upstream.seen().length, PATIENT).toBe(1);
  return { resumed, open };
}

const ownAnswer = (text: string): JsonObject => ({
  jsonrpc: '2.0',
  id: 7,
  result: textResult(text),
});

const rig = sharedGateway({ policies: { open: ALLOW_ALL } });
beforeAll(async () => {
  const { url, token = '' } = rig.access;
  session = await openRawSession(url, { token });
});
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

describe('[Q-12] an answer that is polled for', () => {
  it('begins with a priming event and a retry, and ends without an error', async () => {
    rig.upstream.obeyOnce((request) => (isCall(request) ? streamed([PRIMING]) : undefined));
    const answer = await session.ask(7, 'tools/call', CALL);
    expect(answer.status).toBe(200);
    expect(answer.messages).toEqual([]);
    expect(answer.text).toMatch(/^retry: 1000$/m);
    const [id = ''] = idsOf(answer.text);
    expect(id).toMatch(/^[\w-]{60,}$/);
    expect(answer.text).not.toContain('stream-1');
    expect(answer.text).toContain(`id: ${id}\ndata: \n\n`);
  });

  it('ends with an error where it gave no event to resume after', async () => {
    rig.upstream.obeyOnce((request) => (isCall(request) ? streamed(['retry: 250\n\n']) : undefined));
    const answer = await session.ask(7, 'tools/call', CALL);
    expect(answer.messages).toMatchObject([{ id: 7, error: { code: 1506 } }]);
  });

  it('ends with an error in the stateless era, which has no events to resume after', async () => {
    rig.upstream.obeyOnce((request) => (isCall(request) ? streamed([PRIMING]) : undefined));
    const { callStateless } = await import('../support/wire-client.js');
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(idsOf(reply.text)).toEqual([]);
    expect(reply.message).toMatchObject({ error: { code: 1506 } });
  });
});

describe('[Q-10, MCP-35] a stream that is resumed', () => {
  it('asks the upstream by its own event id, and carries the answer to the request', async () => {
    const id = await callAndBreak();
    replay('stream-1/0', [ownAnswer('resumed')]);
    const { status, messages, text } = await resume(id);
    expect(status).toBe(200);
    expect(messages).toEqual([ownAnswer('resumed')]);
    expect(idsOf(text)).toHaveLength(1);
    const [asked] = rig.upstream.seen().filter(({ httpMethod }) => httpMethod === 'GET');
    expect(asked?.headers['last-event-id']).toBe('stream-1/0');
    expect(asked?.headers['authorization']).toBeUndefined();
  });

  it('is a stream whatever letters its media type is written in (RFC 9110 §8.3.1)', async () => {
    const id = await callAndBreak();
    rig.upstream.obey(({ httpMethod }) =>
      httpMethod === 'GET'
        ? {
            ...{ kind: 'chunks', ending: 'end', contentType: 'Text/Event-Stream ; charset=utf-8' },
            chunks: [sseEvent(ownAnswer('resumed'))],
          }
        : undefined,
    );
    expect((await resume(id)).messages).toEqual([ownAnswer('resumed')]);
  });

  it('is none where its media type only begins like that of one', async () => {
    const id = await callAndBreak();
    rig.upstream.obey(({ httpMethod }) =>
      httpMethod === 'GET'
        ? {
            ...{ kind: 'chunks', ending: 'end', contentType: 'text/event-streams' },
            chunks: [sseEvent(ownAnswer('resumed'))],
          }
        : undefined,
    );
    const { status, messages } = await resume(id);
    expect([status, messages]).toEqual([502, []]);
  });

  it('goes on for as often as it breaks off', async () => {
    const id = await callAndBreak(session, { ...CALL, _meta: { progressToken: 1 } });
    const progress = {
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 1, progress: 1 },
    };
    replay('stream-1/0', [progress]);
    const first = await resume(id);
    expect(first.messages).toEqual([progress]);
    const [next = ''] = idsOf(first.text);
    replay('stream-1/1', [ownAnswer('at last')]);
    expect((await resume(next)).messages).toEqual([ownAnswer('at last')]);
  });

  it('is inspected like its beginning, and gives nobody the answers of others', async () => {
    const secret = makeGithubToken();
    const id = await callAndBreak();
    replay('stream-1/0', [
      { ...ownAnswer('of another request'), id: 8 },
      { ...ownAnswer('of another request'), id: '7' },
      ownAnswer(`take ${secret}`),
    ]);
    const { messages, text } = await resume(id);
    expect(text).not.toContain(secret);
    expect(text).not.toContain('of another request');
    expect(messages).toMatchObject([{ id: 7, result: { content: [{ type: 'text' }] } }]);
    expect(text).toContain('[redacted:');
  });

  it('is filtered where it answers a list', async () => {
    rig.upstream.obeyOnce(({ method }) => (method === 'tools/list' ? streamed([PRIMING]) : undefined));
    const [id = ''] = idsOf((await session.ask(7, 'tools/list')).text);
    const tool = { name: 'wipe', description: 'x', inputSchema: { type: 'object' } };
    replay('stream-1/0', [{ jsonrpc: '2.0', id: 7, result: { tools: [tool] } }]);
    const { messages } = await resume(id);
    expect(messages).toEqual([{ jsonrpc: '2.0', id: 7, result: { tools: [] } }]);
  });

  it('is on record with the request that it answers', async () => {
    const id = await callAndBreak();
    replay('stream-1/0', [ownAnswer('resumed')]);
    await resume(id);
    const outcomes = async () =>
      (await rig.gateway.audit()).filter((line) => line['type'] === 'mcp.outcome' && line['target']?.request_id === 7);
    await expect
      .poll(async () => (await outcomes()).at(-1)?.['result'], PATIENT)
      .toMatchObject({
        status: 'ok',
        http: 200,
      });
    expect((await outcomes()).at(-1)?.['target']).toMatchObject({
      method: 'tools/call',
      kind: 'tool',
      name: 'read_record',
    });
  });

  it('of the session itself carries notices, and no answers', async () => {
    const log = {
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: 'hello' },
    };
    rig.upstream.obey(({ httpMethod, headers }) => {
      if (httpMethod !== 'GET') return undefined;
      const at = headers['last-event-id'] === undefined ? 'own-1' : 'own-2';
      const messages = [log, ownAnswer('stray')];
      return streamed(messages.map((message) => sseEvent(message, at)));
    });
    const open = await fetch(rig.access.url, {
      headers: { accept: 'text/event-stream', ...session.headers },
    });
    const text = await open.text();
    expect(text).toContain('hello');
    expect(text).not.toContain('stray');
    const resumed = await resume(idsOf(text)[0] ?? '');
    expect(resumed.messages).toEqual([log]);
    const asked = rig.upstream.seen().filter(({ httpMethod }) => httpMethod === 'GET');
    expect(asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'own-1']);
  });
});

describe('[Q-11, MCP-35] an event id', () => {
  it('of another caller, session or gateway, altered or made up, is one 404', async () => {
    const id = await callAndBreak();
    rig.upstream.forget();
    const { url, token = '' } = rig.access;
    const other = await openRawSession(url, { token });
    const mallory = await openRawSession(url, {
      token: await rig.gateway.token(UPSTREAM, { sub: 'mallory' }),
    });
    rig.upstream.forget();
    const altered = id.slice(0, -1) + (id.endsWith('A') ? 'B' : 'A');
    const replies = [
      await resume(id, other.headers),
      await resume(id, mallory.headers),
      await resume(altered),
      await resume('stream-1/0'),
      await resume(session.id ?? ''),
      await resume(id, { ...session.headers, 'mcp-session-id': 'made-up' }),
    ];
    for (const reply of replies) {
      expect(reply.status).toBe(404);
      expect(reply.text.replace(/[0-9a-f-]{36}/, 'ID')).toBe(replies[0]?.text.replace(/[0-9a-f-]{36}/, 'ID'));
    }
    expect(rig.upstream.seen()).toEqual([]);
  });

  it('of what the caller may no longer see is a 404', async () => {
    const id = await callAndBreak();
    rig.upstream.forget();
    await rig.gateway.writePolicy('no', NOTHING);
    await rig.gateway.reload();
    expect((await resume(id)).status).toBe(404);
    expect(rig.upstream.seen()).toEqual([]);
    await rig.gateway.writePolicy('no', NOTHING.replace('read_record', 'other_*'));
    await rig.gateway.reload();
    replay('stream-1/0', [ownAnswer('again')]);
    expect((await resume(id)).messages).toEqual([ownAnswer('again')]);
  });

  it('that no header could carry is not passed on, and the answer is', async () => {
    rig.upstream.obeyOnce((request) =>
      isCall(request) ? streamed([sseEvent(resultFor(request, textResult('x')), 'caf\u00e9 \u0007')]) : undefined,
    );
    const answer = await session.ask(7, 'tools/call', CALL);
    expect(idsOf(answer.text)).toEqual([]);
    expect(answer.messages).toMatchObject([{ id: 7, result: textResult('x') }]);
  });
});

describe('[Q-10] a stream that is resumed is judged by what is in force when a message comes', () => {
  it('is refused where a rule denies it while the upstream opens it', async () => {
    const { resumed, open } = await resumeBehindGate((gate) => ({
      ...{ kind: 'raw', ending: 'hold', gate },
      chunks: ['', SSE_HEAD, sseEvent(ownAnswer('late'))],
    }));
    await rig.gateway.writePolicy('no', NOTHING);
    await rig.gateway.reload();
    open();
    const { status, text } = await resumed;
    await rig.gateway.writePolicy('no', NOTHING.replace('read_record', 'other_*'));
    await rig.gateway.reload();
    expect([status, text]).toEqual([404, expect.stringContaining('unknown-session')]);
  });
});

describe('[Q-13] a client that leaves', () => {
  it('a resumable stream frees it at once, cancels nothing, and finds the answer later', async () => {
    rig.upstream.obeyOnce((request) => (isCall(request) ? streamed([PRIMING], 'hold') : undefined));
    const leave = new AbortController();
    const body = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: CALL };
    const response = await sendRaw(rig.access.url, body, {
      headers: session.headers,
      signal: leave.signal,
    });
    const reader = response.body?.getReader();
    const first = await reader?.read();
    const [id = ''] = idsOf(new TextDecoder().decode(first?.value));
    leave.abort();
    // The upstream sees its own connection close, which is no cancellation in this era.
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, PATIENT).toBe(true);
    expect(rig.upstream.seen().map(({ method }) => method)).not.toContain('notifications/cancelled');
    replay('stream-1/0', [ownAnswer('kept')]);
    expect((await resume(id)).messages).toEqual([ownAnswer('kept')]);
  });
});

describe('[Q-13] a client that cancels its request', () => {
  it('ends the stream on which it resumed the response, which has none', async () => {
    const id = await callAndBreak();
    rig.upstream.forget();
    rig.upstream.obey(({ httpMethod }) => (httpMethod === 'GET' ? streamed([':\n\n'], 'hold') : undefined));
    const resumed = resume(id);
    const streams = () => rig.upstream.seen().filter(({ httpMethod }) => httpMethod === 'GET');
    await expect.poll(() => streams().length, PATIENT).toBe(1);
    const params = { requestId: 7 };
    const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params };
    expect((await postRaw(rig.access.url, note, { headers: session.headers })).status).toBe(202);
    expect((await resumed).messages).toEqual([]);
    await expect.poll(() => streams()[0]?.isAborted, PATIENT).toBe(true);
  });
});

/** The last of this file, because what has drifted stays so until it is listed again. */
describe('[Q-10] a stream that is resumed, under a drift', () => {
  it('gives no answer of a tool whose definition has changed meanwhile', async () => {
    const { resumed, open } = await resumeBehindGate((gate) => ({
      ...{ kind: 'chunks', contentType: 'text/event-stream', ending: 'end', gate },
      chunks: [': begun\n\n', sseEvent(ownAnswer('late'), 'stream-1/1')],
    }));
    const [first, ...others] = HONEST_TOOLS;
    rig.upstream.offer(() => [{ ...first, description: 'Reads a record, and more.' }, ...others]);
    expect((await session.ask(8, 'tools/list')).text).not.toContain('read_record');
    open();
    expect((await resumed).messages).toEqual([]);
  });
});

const NOTHING = `version: 1
policy: nothing
rules:
  - id: none
    effect: deny
    who: {anyone: true}
    what: {tools: [read_record]}
`;
