// Results that ask for input first (2026), through the running gateway: which questions reach a client, and
// what of its answers reaches the upstream.

import { afterEach, describe, expect, it } from 'vitest';
import { expectWithheldLines, UPSTREAM } from '../support/gateway.js';
import { jsonBody, onMethod, stream } from '../support/hostile-acts.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { type Access, errorOf, type Reply, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const ALL = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

const POLICY = `version: 1
policy: open
rules:
  - id: everything
    effect: allow
    who: {subjects: [asked]}
    what:
      upstreams: ["*"]
      tools: ["*"]
      resources: ["memo://**"]
      sampling: true
      elicitation: [form, url]
      roots: true
  - id: forms
    effect: allow
    who: {subjects: [forms]}
    what: {upstreams: ["*"], tools: ["*"], elicitation: [form]}
  - id: seldom
    effect: allow
    who: {subjects: [seldom]}
    what: {upstreams: ["*"], elicitation: [form]}
    limits: {rate: 1/h}
  - id: seldom-links
    effect: allow
    who: {subjects: [linked]}
    what: {upstreams: ["*"], elicitation: [url]}
    limits: {rate: 1/h}
  - id: seldom-tools
    effect: allow
    who: {subjects: [seldom, linked]}
    what: {upstreams: ["*"], tools: ["*"]}
  - id: some-content
    effect: allow
    who: {subjects: [limited]}
    what:
      upstreams: ["*"]
      elicitation: {url: [login.example.com]}
      sampling: {includeContext: [none], tools: false}
  - id: tools
    effect: allow
    who: {subjects: [plain, limited]}
    what: {upstreams: ["*"], tools: ["*"]}
`;

async function accessOf(subject: string): Promise<Access> {
  return { url: rig.access.url, token: await rig.gateway.token(UPSTREAM, { sub: subject }) };
}

type Asked = {
  readonly as?: string;
  readonly capabilities?: JsonObject;
  readonly more?: JsonObject;
  readonly id?: number;
};

async function call({ as = 'asked', capabilities = ALL, more = {}, id = 1 }: Asked = {}) {
  const params = { name: 'read_record', arguments: { id: 'one' }, ...more };
  const meta = { [CAPABILITIES]: capabilities };
  return requestStateless(await accessOf(as), 'tools/call', { ...params, _meta: meta }, { id });
}

function form(properties: JsonObject, message = 'Who is it for?'): JsonObject {
  const requestedSchema = { type: 'object', properties };
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } };
}

function link(url: string): JsonObject {
  return { method: 'elicitation/create', params: { mode: 'url', message: 'Please visit.', url } };
}

const FORM = form({ person: { type: 'string' } });
const SAMPLING = {
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: 'Say it.' } }],
    maxTokens: 9,
  },
};

/** Asks for this at every first leg; a leg with answers is served honestly. */
function ask(inputRequests: JsonObject | undefined, requestState?: string, more: JsonObject = {}) {
  rig.upstream.obey((request) => {
    if (request.method !== 'tools/call' || hasAnswers(request)) return undefined;
    const requests = inputRequests === undefined ? {} : { inputRequests };
    const state = requestState === undefined ? {} : { requestState };
    const result = { resultType: 'input_required', ...requests, ...state, ...more };
    return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
  });
}

function paramsOf(request: HostileRequest | undefined): JsonObject {
  return (request?.message?.['params'] ?? {}) as JsonObject;
}

function hasAnswers(request: HostileRequest): boolean {
  const params = paramsOf(request);
  return params['inputResponses'] !== undefined || params['requestState'] !== undefined;
}

function lastSent(): JsonObject {
  return paramsOf(rig.upstream.uses().at(-1));
}

function decisionReason(reply: Reply): unknown {
  const meta = resultOf(reply)['_meta'] as JsonObject | undefined;
  return (meta?.['dev.sallyport/decision'] as JsonObject | undefined)?.['reason'];
}

const rig = sharedGateway({
  policies: { open: POLICY },
  upstream: ['pinning: {maxAge: 10m}', 'arguments: any'],
});
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

describe('a question', () => {
  it('[T-07] passes where it is granted and declared, and its answer comes back', async () => {
    const questions = {
      who: FORM,
      where: link('https://example.com/consent?step=1'),
      model: SAMPLING,
      places: { method: 'roots/list' },
    };
    ask(questions);
    const first = await call();
    expect(resultOf(first)).toEqual({ resultType: 'input_required', inputRequests: questions });
    const declared = (lastSent()['_meta'] as JsonObject)[CAPABILITIES];
    expect(declared).toEqual(ALL);
    const inputResponses = { who: { action: 'accept', content: { person: 'Ada' } } };
    const second = await call({ more: { inputResponses }, id: 2 });
    expect(second.text).toContain('read_record one');
    expect(lastSent()['inputResponses']).toEqual(inputResponses);
  });

  it('[T-07] is cut from what reaches the upstream where it is not granted', async () => {
    await call({ as: 'forms' });
    expect((lastSent()['_meta'] as JsonObject)[CAPABILITIES]).toEqual({
      elicitation: { form: {} },
    });
    await call({ as: 'plain' });
    expect((lastSent()['_meta'] as JsonObject)[CAPABILITIES]).toEqual({});
  });

  it.each<[string, string, JsonObject, JsonObject, string]>([
    ['sampling that is not granted', 'forms', ALL, { a: SAMPLING }, 'sampling-forbidden'],
    ['roots that are not granted', 'forms', ALL, { a: { method: 'roots/list' } }, 'roots-forbidden'],
    ['a link that is not granted', 'forms', ALL, { a: link('https://example.com/') }, 'elicitation-forbidden'],
    ['a form that is not granted', 'plain', ALL, { a: FORM }, 'elicitation-forbidden'],
    ['a form that is not declared', 'asked', { sampling: {} }, { a: FORM }, 'elicitation-forbidden'],
    [
      'a link where forms alone are declared',
      'asked',
      { elicitation: {} },
      { a: link('https://example.com/') },
      'elicitation-forbidden',
    ],
    ['sampling that is not declared', 'asked', {}, { a: SAMPLING }, 'sampling-forbidden'],
    ['one of two', 'asked', { elicitation: {} }, { a: FORM, b: SAMPLING }, 'sampling-forbidden'],
  ])('[T-07, MCP-26] is withheld: %s', async (_what, as, capabilities, requests, reason) => {
    ask(requests);
    const reply = await call({ as, capabilities });
    expect([reply.status, decisionReason(reply)]).toEqual([200, reason]);
    expect(reply.text).not.toContain('inputRequests');
    await expectWithheldLines(rig, reply, reason as never);
  });

  it('[T-07] passes with the content that its rule names', async () => {
    const inputRequests = { where: link('https://login.example.com/?a'), model: SAMPLING };
    ask(inputRequests);
    const capabilities = { elicitation: { url: {} }, sampling: { tools: {}, context: {} } };
    const reply = await call({ as: 'limited', capabilities });
    expect(resultOf(reply)).toEqual({ resultType: 'input_required', inputRequests });
    expect((lastSent()['_meta'] as JsonObject)[CAPABILITIES]).toEqual({
      elicitation: { url: {} },
      sampling: {},
    });
  });

  it.each<[string, JsonObject, string, string?]>([
    ['a password', form({ password: { type: 'string' } }), 'elicitation-sensitive'],
    ['a field with a title', form({ x: { type: 'string', title: 'API key' } }), 'elicitation-sensitive'],
    ['a message that asks', form({ x: { type: 'string' } }, 'Please enter your password.'), 'elicitation-sensitive'],
    ['a script', link('javascript:alert(1)'), 'elicitation-url'],
    ['plain http', link('http://example.com/'), 'elicitation-url'],
    ['a user in the link', link('https://user:word@example.com/'), 'elicitation-url'],
    ['a link to another host', link('https://evil.example/'), 'elicitation-url', 'limited'],
    [
      'sampling with the context of the server',
      { ...SAMPLING, params: { ...SAMPLING.params, includeContext: 'thisServer' } },
      'sampling-forbidden',
      'limited',
    ],
    [
      'sampling with tools',
      { ...SAMPLING, params: { ...SAMPLING.params, tools: [{ name: 'search' }] } },
      'sampling-forbidden',
      'limited',
    ],
  ])('[T-08] is withheld: %s', async (_what, request, reason, as = 'asked') => {
    ask({ ok: as === 'asked' ? FORM : link('https://login.example.com/'), bad: request });
    const reply = await call({ as });
    expect([reply.status, decisionReason(reply)]).toEqual([200, reason]);
    await expectWithheldLines(rig, reply, reason as never);
  });

  it('[T-08] is withheld where its forms together are longer than one may be', async () => {
    const long = form({ x: { type: 'string' } }, 'How is the weather there? '.repeat(500));
    ask({ a: long, b: long });
    expect((await call()).text).toContain('inputRequests');
    ask({ a: long, b: long, c: long });
    const reply = await call();
    expect([reply.status, errorOf(reply)['code']]).toEqual([502, 1506]);
    expect(reply.text).not.toContain('inputRequests');
  });

  it('[T-08] is sanitized like every text', async () => {
    const secret = ['sk', 'live', 'a8Kq2ZrT7mXw4Lp9Nv3Bd6Yh'].join('_');
    ask({ who: form({ person: { type: 'string' } }, `Is ${secret} yours?`) }, 'state-1');
    const reply = await call();
    expect(resultOf(reply)['resultType']).toBe('input_required');
    expect(reply.text).not.toContain(secret);
    expect(reply.text).toContain('[redacted:');
  });

  it('[T-06, MCP-23] is a protocol fault on other methods, and where it is none', async () => {
    const result = { resultType: 'input_required', inputRequests: { a: FORM } };
    for (const method of ['tools/list', 'server/discover']) {
      rig.upstream.obey(onMethod(method, (request) => jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result })));
      const reply = await requestStateless(await accessOf('asked'), method);
      expect([method, reply.status, errorOf(reply)['code']]).toEqual([method, 502, 1506]);
    }
    for (const wrong of [
      {},
      { inputRequests: {} },
      { inputRequests: [] },
      { requestState: 1 },
      { inputRequests: { a: { method: 'tools/call', params: {} } } },
      { inputRequests: { a: { method: 'elicitation/create', params: { mode: 'spoken' } } } },
      { inputRequests: { a: 'x' } },
      { inputRequests: { 'gw.approval': FORM } },
      { inputRequests: { 'GW.approval': FORM } },
    ]) {
      ask(undefined, undefined, wrong as JsonObject);
      const reply = await call();
      expect([JSON.stringify(wrong), reply.status, errorOf(reply)['code']]).toEqual([JSON.stringify(wrong), 502, 1506]);
    }
  });

  it('[T-07] is counted, and withheld past the limit of its rule', async () => {
    ask({ a: FORM });
    expect(resultOf(await call({ as: 'seldom' }))['inputRequests']).toEqual({ a: FORM });
    const second = await call({ as: 'seldom' });
    expect([second.status, decisionReason(second)]).toEqual([200, 'rate-limited']);
    expect(second.text).not.toContain('inputRequests');
  });

  it('[T-07] is not counted where its content may not pass', async () => {
    const token = ['sk', 'live', 'a8Kq2ZrT7mXw4Lp9Nv3Bd6Yh'].join('_');
    ask({ a: link(`https://example.com/?token=${token}`) });
    expect(decisionReason(await call({ as: 'linked' }))).toBe('elicitation-url');
    const good = { a: link('https://example.com/') };
    ask(good);
    expect(resultOf(await call({ as: 'linked' }))['inputRequests']).toEqual(good);
    expect(decisionReason(await call({ as: 'linked' }))).toBe('rate-limited');
  });

  it('[T-07] comes on a stream as on a body', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        stream([
          {
            jsonrpc: '2.0',
            id: request.id ?? 0,
            result: { resultType: 'input_required', inputRequests: { a: FORM } },
          },
        ]),
      ),
    );
    expect(resultOf(await call())['inputRequests']).toEqual({ a: FORM });
    expect((await call({ as: 'plain' })).text).not.toContain('inputRequests');
  });

  it('[T-11, MCP-28] is never cached, nor is what a retry brings', async () => {
    ask({ a: FORM }, undefined, { ttlMs: 60_000, cacheScope: 'public' });
    const asked = resultOf(await call());
    expect([asked['ttlMs'], asked['cacheScope']]).toEqual([undefined, undefined]);
    rig.upstream.obey(
      onMethod('resources/read', (request) =>
        jsonBody({
          jsonrpc: '2.0',
          id: request.id ?? 0,
          result: {
            resultType: 'complete',
            contents: [{ uri: 'memo://one', text: 'Said.' }],
            ttlMs: 9_000,
            cacheScope: 'public',
          },
        }),
      ),
    );
    const read = { uri: 'memo://one' };
    const plain = await requestStateless(await accessOf('asked'), 'resources/read', read);
    expect(resultOf(plain)).toMatchObject({ ttlMs: 9_000, cacheScope: 'private' });
    const retry = { ...read, inputResponses: { a: { action: 'decline' } } };
    const retried = await requestStateless(await accessOf('asked'), 'resources/read', retry);
    expect(resultOf(retried)).toMatchObject({ ttlMs: 0, cacheScope: 'private' });
  });
});

describe('the state of a dialogue', () => {
  const STATE = ' state "with" \\ every\u0001thing: ü 𐀀 \u2028 eyJhbGciOiJIUzI1NiJ9.e30.x ';

  async function firstLeg(): Promise<string> {
    ask({ a: FORM }, STATE);
    const state = resultOf(await call())['requestState'];
    return String(state);
  }

  it('[T-09, MCP-24] is sealed towards the client and restored byte for byte', async () => {
    const sealed = await firstLeg();
    expect(sealed).not.toContain('state');
    expect(sealed).toMatch(/^[A-Za-z0-9_-]{60,}$/);
    const answer = { inputResponses: { a: { action: 'accept' } }, requestState: sealed };
    const reply = await call({ more: answer, id: 7 });
    expect([reply.status, reply.text.includes('read_record one')]).toEqual([200, true]);
    expect(lastSent()['requestState']).toBe(STATE);
    expect(rig.upstream.uses().at(-1)?.body).not.toContain(sealed);
  });

  it('[T-09] may come alone, and any number of legs', async () => {
    ask(undefined, STATE);
    const first = resultOf(await call());
    expect(Object.keys(first).sort()).toEqual(['requestState', 'resultType']);
    await call({ more: { requestState: String(first['requestState']) } });
    expect(lastSent()['requestState']).toBe(STATE);
  });

  it('[T-09, MCP-25] does not open when changed, for another caller, tool or argument', async () => {
    const sealed = await firstLeg();
    rig.upstream.forget();
    const flipped = `${sealed.slice(0, -2)}${sealed.at(-2) === 'A' ? 'B' : 'A'}${sealed.at(-1)}`;
    const attempts: readonly Asked[] = [
      { more: { requestState: flipped } },
      { more: { requestState: `${sealed}-TAMPERED` } },
      { more: { requestState: STATE } },
      { as: 'forms', more: { requestState: sealed } },
      { more: { requestState: sealed, name: 'write_record', arguments: { id: 'one', text: 'x' } } },
      { more: { requestState: sealed, arguments: { id: 'two' } } },
      { more: { requestState: sealed, arguments: { id: 'one', extra: 1 } } },
    ];
    for (const attempt of attempts) {
      const reply = await call(attempt);
      expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32602]);
    }
    const read = { uri: 'memo://one', requestState: sealed };
    const other = await requestStateless(await accessOf('asked'), 'resources/read', read);
    expect([other.status, errorOf(other)['code']]).toEqual([400, -32602]);
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[T-09] is invalid for params that have no canonical form, and the record still names the rule', async () => {
    const many = Array.from({ length: 25_000 }, () => 0);
    const reply = await call({ more: { requestState: STATE, arguments: { id: 'one', many } }, id: 4711 });
    expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32602]);
    const decisionOf = async () =>
      (await rig.gateway.audit()).find(
        (line) => line['target']?.request_id === 4711 && line['decision'] !== undefined,
      )?.['decision'];
    await expect.poll(decisionOf, PATIENT).toMatchObject({ policy: 'open', rule: 'everything' });
  });

  it('[T-09] says nothing of what its caller may not see', async () => {
    const sealed = await firstLeg();
    const hidden = await call({ more: { name: 'no_such_tool', requestState: sealed } });
    expect([hidden.status, errorOf(hidden)['message']]).toEqual([200, 'Unknown tool. Request the list again.']);
  });
});

describe('answers', () => {
  it('[T-10] are guarded like arguments', async () => {
    const secret = ['sk', 'live', 'a8Kq2ZrT7mXw4Lp9Nv3Bd6Yh'].join('_');
    const access = await accessOf('asked');
    for (const leaked of [secret, access.token ?? '']) {
      const inputResponses = { a: { action: 'accept', content: { person: leaked } } };
      const params = { name: 'read_record', arguments: { id: 'one' }, inputResponses };
      const reply = await requestStateless(access, 'tools/call', params);
      expect(decisionReason(reply)).toBe('arguments-content');
    }
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[T-10] under keys of our own never reach the upstream', async () => {
    const inputResponses = { 'gw.one': { action: 'accept' }, a: {}, 'Gw.two': {} };
    await call({ more: { inputResponses } });
    expect(lastSent()['inputResponses']).toEqual({ a: {} });
  });

  it('[T-10] are a fault on methods that cannot ask', async () => {
    const params = { inputResponses: { a: {} } };
    const reply = await requestStateless(await accessOf('asked'), 'tools/list', params);
    expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32602]);
    expect(rig.upstream.seen()).toEqual([]);
  });
});
