// What a caller gets whose ground is lost while something is under way for it: a response, a batch, a stream that the
// upstream opens late. The rows are those of docs/reference/access-leases.md.

import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { createGate, DENY_ALL, endSession, startChangingRig } from '../support/changing-rig.js';
import { ALLOW_ALL } from '../support/gateway.js';
import { outcomesOf } from '../support/held-access.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { Chunk, HostileRequest } from '../support/hostile-upstream.js';
import { callMessage, openSessionChannel } from '../support/http-sse-clients.js';
import type { JsonObject, RequestId } from '../support/json.js';
import { openRawSession, postRaw, sendRaw } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, answersTo, grantQuestions } from '../support/sdk-clients.js';
import { startSseServer } from '../support/sse-server.js';
import { PATIENT } from '../support/timing.js';
import { bearer, listenOn, statelessParts } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const CAPPED = `${ALLOW_ALL}  - id: small
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
    maxResultBytes: 2KiB
`;

/** A caller, by its subject and by the headers that name it and its session. */
type Holder = { readonly subject: string; readonly headers: Readonly<Record<string, string>> };
type Lose = (holder: Holder) => Promise<void>;

const rig = shared(() => startChangingRig());

/** Begins a call of a session that the upstream answers with these chunks, all but the first behind the gate. */
async function callBehindGate(
  subject: string,
  { contentType, chunks }: { readonly contentType: string; chunks(request: HostileRequest): readonly Chunk[] },
  capabilities: object = {},
) {
  const token = await rig.gateway.token('left', { sub: subject });
  const { passed, open: release } = createGate();
  const session = await openRawSession(rig.gateway.url('left'), { token, capabilities });
  rig.forget();
  rig.left.obeyOnce(
    onMethod('tools/call', (request) => ({
      ...{ kind: 'chunks', contentType, ending: 'end', gate: passed },
      chunks: chunks(request),
    })),
  );
  const params = { name: 'read_record', arguments: { id: 'one' } };
  const reply = session.ask(7, 'tools/call', params);
  await expect.poll(() => rig.left.uses().length, PATIENT).toBe(1);
  return { reply, release, session, subject };
}

const SSE = 'text/event-stream';
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const ASKED = { toolsListChanged: true, resourceSubscriptions: ['memo://one'] };
const WITHOUT_RESOURCES = `${ALLOW_ALL}  - id: no-resources
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], resources: ["**"]}
`;
const own = (request: HostileRequest, text: string): JsonObject => resultFor(request, textResult(text));

describe('while a response is on its way', () => {
  afterEach(async () => {
    await rig.gateway.writePolicy('questions', grantQuestions());
    await rig.applyPolicy(ALLOW_ALL);
    rig.left.repent();
  });

  it('row 2: what a new decision owes is owed from then on', async () => {
    const { reply, release } = await callBehindGate('owing', {
      contentType: SSE,
      chunks: (request) => [': begun\n\n', sseEvent(own(request, 'x'.repeat(5_000)))],
    });
    await rig.applyPolicy(CAPPED);
    release();
    expect((await reply).messages).toMatchObject([
      {
        result: {
          isError: true,
          _meta: { 'dev.sallyport/decision': { reason: 'result-too-large' } },
        },
      },
    ]);
  });

  it('row 11: a server request is decided by the rules of now, and its client sees nothing', async () => {
    const subject = 'asked';
    const { reply, release } = await callBehindGate(
      subject,
      {
        contentType: SSE,
        chunks: (request) => [
          ': begun\n\n',
          sseEvent({ jsonrpc: '2.0', id: 'q1', method: 'roots/list' }),
          sseEvent(own(request, 'after')),
        ],
      },
      ALL_QUESTIONS,
    );
    await rig.gateway.writePolicy('questions', grantQuestions('sampling: true'));
    await rig.reload();
    release();
    expect((await reply).messages).toMatchObject([{ result: textResult('after') }]);
    await expect.poll(() => answersTo(rig.left).get('q1'), PATIENT).toMatchObject({ error: { code: -32601 } });
    const outcomes = () => outcomesOf(rig.gateway, { subject }, 'roots/list');
    await expect
      .poll(async () => (await outcomes())[0]?.['decision'], PATIENT)
      .toMatchObject({
        ...{ action: 'refused', reasons: ['roots-forbidden'] },
      });
  });

  it('row 9: a subscription that is allowed in part goes on, and what is denied of it is dropped', async () => {
    const subject = 'allowed in part';
    const token = await rig.gateway.token('left', { sub: subject });
    const { passed, open: release } = createGate();
    const eventOf = (id: RequestId | undefined, method: string, params: JsonObject): string =>
      sseEvent({
        jsonrpc: '2.0',
        method,
        params: { ...params, _meta: { [SUBSCRIPTION]: id ?? 0 } },
      });
    rig.left.obeyOnce(
      onMethod('subscriptions/listen', ({ id }) => ({
        ...{ kind: 'chunks', contentType: SSE, ending: 'end', gate: passed },
        chunks: [
          eventOf(id, 'notifications/subscriptions/acknowledged', { notifications: ASKED }),
          eventOf(id, 'notifications/resources/updated', { uri: 'memo://one' }),
          sseEvent({ jsonrpc: '2.0', id: id ?? 0, result: { resultType: 'complete' } }),
        ],
      })),
    );
    const { headers, body } = statelessParts('subscriptions/listen', { notifications: ASKED });
    const url = rig.gateway.url('left');
    const listening = await listenOn(await sendRaw(url, body, { headers: { ...headers, ...bearer(token) } }));
    await expect.poll(() => listening.text(), PATIENT).toContain('memo://one');
    await rig.applyPolicy(WITHOUT_RESOURCES);
    expect(listening.isOver()).toBe(false);
    release();
    await expect.poll(() => listening.isOver(), PATIENT).toBe(true);
    expect(listening.text()).not.toContain('resources/updated');
    const outcomes = () => outcomesOf(rig.gateway, { subject }, 'subscriptions/listen');
    await expect
      .poll(async () => (await outcomes())[0]?.['findings'], PATIENT)
      .toContainEqual(expect.objectContaining({ detector: 'unasked-notice', action: 'drop' }));
  });

  it.each([
    ['its caller is revoked', ({ subject }) => rig.revokeSubject(subject)],
    ['a rule denies it', () => rig.applyPolicy(DENY_ALL)],
    ['its session is ended', ({ headers }) => endSession(rig.gateway.url('left'), headers)],
  ] satisfies readonly (readonly [string, Lose])[])('row 15: a JSON response passes though %s', async (what, lose) => {
    const { reply, release, session, subject } = await callBehindGate(`whole, ${what}`, {
      contentType: 'application/json',
      chunks: (request) => {
        const text = JSON.stringify(own(request, 'late'));
        return [text.slice(0, 9), text.slice(9)];
      },
    });
    await lose({ subject, headers: session.headers });
    release();
    const { status, messages } = await reply;
    expect([status, messages]).toMatchObject([200, [{ result: textResult('late') }]]);
    const outcomes = () => outcomesOf(rig.gateway, { subject }, 'tools/call');
    await expect
      .poll(async () => (await outcomes())[0]?.['decision'], PATIENT)
      .toMatchObject({
        ...{ action: 'forwarded', reasons: [] },
      });
  });
});

describe('while a batch runs', () => {
  afterEach(() => rig.applyPolicy(ALLOW_ALL));

  it.each([
    ['its caller is revoked', 1401, ({ subject }) => rig.revokeSubject(subject)],
    ['a rule denies it', -32602, () => rig.applyPolicy(DENY_ALL)],
    ['its session is ended', 1404, ({ headers }) => endSession(rig.gateway.url('left'), headers)],
  ] satisfies readonly (readonly [string, number, Lose])[])(
    'row 14: the elements that are left are refused where %s',
    async (what, code, lose) => {
      const subject = `batch, ${what}`;
      const url = rig.gateway.url('left');
      const token = await rig.gateway.token('left', { sub: subject });
      const { headers } = await openRawSession(url, { token, version: '2025-03-26' });
      rig.forget();
      const { passed, open: release } = createGate();
      rig.left.obeyOnce(
        onMethod('tools/call', (request) => {
          const text = JSON.stringify(own(request, 'late'));
          const chunks = [text.slice(0, 9), text.slice(9)];
          return {
            kind: 'chunks',
            contentType: 'application/json',
            chunks,
            ending: 'end',
            gate: passed,
          };
        }),
      );
      const call = (id: number): JsonObject => ({
        ...{ jsonrpc: '2.0', id, method: 'tools/call' },
        params: { name: 'read_record', arguments: { id: 'one' } },
      });
      const reply = postRaw(url, [call(1), call(2)], { headers });
      await expect.poll(() => rig.left.uses().length, PATIENT).toBe(1);
      await lose({ subject, headers });
      release();
      expect((await reply).messages).toMatchObject([
        { id: 1, result: textResult('late') },
        { id: 2, error: { code } },
      ]);
      expect(rig.left.uses()).toHaveLength(1);
    },
  );
});

const SSE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n';

describe('while the upstream opens a stream', () => {
  afterEach(async () => {
    rig.left.repent();
    await rig.applyPolicy(ALLOW_ALL);
    await rig.applySettings();
  });

  /** Opens it; the upstream answers once `lose` is done. */
  async function openLate(
    subject: string,
    request: 'GET' | 'tools/call',
    lose: (headers: Readonly<Record<string, string>>) => Promise<unknown>,
  ): Promise<Response> {
    const url = rig.gateway.url('left');
    const token = await rig.gateway.token('left', { sub: subject });
    const { headers } = await openRawSession(url, { token });
    rig.forget();
    const { passed, open: release } = createGate();
    const chunks = ['', SSE_HEAD, ': begun\n\n'];
    rig.left.obey(({ httpMethod, method }) =>
      request === (method ?? httpMethod) ? { kind: 'raw', chunks, ending: 'hold', gate: passed } : undefined,
    );
    const params = { name: 'read_record', arguments: { id: 'one' } };
    const opening =
      request === 'GET'
        ? fetch(url, { headers: { ...headers, accept: SSE } })
        : sendRaw(url, { jsonrpc: '2.0', id: 7, method: request, params }, { headers });
    await expect
      .poll(() => rig.left.seen().some((one) => request === (one.method ?? one.httpMethod)), PATIENT)
      .toBe(true);
    await lose(headers);
    release();
    return opening;
  }

  /** Closed properly or broken off: nothing of it is a message. */
  async function expectNothing(response: Response): Promise<void> {
    const listening = await listenOn(response);
    await expect.poll(() => listening.isOver(), PATIENT).toBe(true);
    expect(listening.text()).not.toContain('data');
  }

  const end = (headers: Readonly<Record<string, string>>): Promise<void> =>
    endSession(rig.gateway.url('left'), headers);

  it('row 3: a session stream of a revoked caller is refused', async () => {
    const subject = 'revoked while it opens';
    const response = await openLate(subject, 'GET', () => rig.revokeSubject(subject));
    expect([response.status, await response.text()]).toEqual([401, 'The token was revoked.']);
    const outcomes = () => outcomesOf(rig.gateway, { subject }, 'GET');
    await expect
      .poll(async () => (await outcomes())[0]?.['decision'], PATIENT)
      .toMatchObject({ action: 'withheld', reasons: ['token-revoked'] });
  });

  it('row 3: a session stream whose upstream is removed is refused', async () => {
    const response = await openLate('removed while it opens', 'GET', () => rig.removeLeft());
    expect([response.status, await response.text()]).toEqual([502, expect.stringContaining('upstream-unavailable')]);
  });

  it('row 7: a session stream of an ended session is refused', async () => {
    const response = await openLate('ended while it opens', 'GET', end);
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('unknown-session')]);
  });

  it('row 2: a session response of an ended session is refused as its first event', async () => {
    const response = await openLate('ended while it answers', 'tools/call', end);
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('unknown-session')]);
  });

  it('row 2: a session response of a revoked caller opens and closes', async () => {
    const subject = 'revoked while it answers';
    const response = await openLate(subject, 'tools/call', () => rig.revokeSubject(subject));
    await expectNothing(response);
  });
});

describe('a session whose upstream changes its transport', () => {
  afterAll(() => rig.applySettings());

  it('row 13: is unknown from then on, and the first request that learns it closes its legacy SSE stream', async () => {
    const subject = 'of another transport';
    const token = await rig.gateway.token('left', { sub: subject });
    const { post } = await openSessionChannel(rig.gateway.url('left'), token);
    const url = `url: ${JSON.stringify(rig.left.url)}\n`;
    await rig.applySettings([url, `${url}    transport: http-sse\n`]);
    const streams = () => outcomesOf(rig.gateway, { subject }, 'GET');
    expect(await streams()).toEqual([]);
    expect(await post({ jsonrpc: '2.0', id: 'ping', method: 'ping' })).toBe(404);
    await expect.poll(async () => (await streams()).length, PATIENT).toBe(1);
  });
});

describe('a response of a legacy SSE upstream', () => {
  const server = shared(() => startSseServer());
  const gateway = sharedGateway(() => ({
    upstreams: [{ name: 'old', url: server.url, more: ['transport: http-sse'] }],
  }));

  /** A call that waits, and what makes its server answer it. */
  async function call(claims: JsonObject = {}) {
    server.forget();
    const token = await gateway.token('old', claims);
    const { channel, post } = await openSessionChannel(gateway.url('old'), token);
    expect(await post(callMessage('kept', 'wait'))).toBe(202);
    const sent = (): string | undefined => server.seen().find(({ body }) => body.includes('"wait"'))?.body;
    await expect.poll(sent, PATIENT).toBeDefined();
    const id: unknown = JSON.parse(sent() ?? '{}').id;
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result: textResult('told') });
    return { channel, answer: () => server.say(`event: message\ndata: ${answer}\n\n`) };
  }

  it('row 10: passes while its ground stands', async () => {
    const { channel, answer } = await call();
    answer();
    expect(await channel.answer('kept')).toMatchObject({ result: textResult('told') });
    channel.leave();
  });

  it('row 10: is refused in its place where a rule denies it, and the stream stays', async () => {
    const { channel, answer } = await call();
    await gateway.writePolicy('open', DENY_ALL);
    await gateway.reload();
    answer();
    expect(await channel.answer('kept')).toMatchObject({ error: { code: -32602 } });
    await gateway.writePolicy('open', ALLOW_ALL);
    await gateway.reload();
    expect(channel.text()).not.toContain('told');
    channel.leave();
  });

  it('rows 3 and 10: does not come once the token has expired, because its stream has closed', async () => {
    const subject = 'expires';
    const { channel, answer } = await call({ sub: subject, exp: Date.now() / 1000 + 2 });
    const closed = () => outcomesOf(gateway, { subject }, 'GET');
    await expect.poll(async () => (await closed()).length, PATIENT).toBe(1);
    answer();
    expect(channel.text()).not.toContain('told');
  });
});
