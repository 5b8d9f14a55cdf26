// Attacks on the way from a yes to its use: another request than the one that was approved, one yes used twice, at two
// replicas or after it is void, and stores, clocks and rules that change in between. The store is one of this process;
// what a real one does is in test/system.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ADMINS, adminsOf, startTwoGateways } from '../support/deployments.js';
import { connectIn } from '../support/eras.js';
import { type AuditLine, decisionOf, type RunningGateway } from '../support/gateway.js';
import { body, jsonBody, serverRequestInStream } from '../support/hostile-acts.js';
import { HONEST_TOOLS, startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  askStateless,
  createTaskServer,
  initializeWithTasks,
  TASK_TOOLS,
  type TaskServer,
} from '../support/mcp-servers.js';
import { replace } from '../support/seams.js';
import { createFakeStore } from '../support/state.js';
import { PATIENT } from '../support/timing.js';
import { type Access, callStateless, openSession, type Reply, resultOf } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

let aheadMs = 0;
const now = () => Date.now() + aheadMs;
const store = createFakeStore(now);
replace('redis', { openRedisLink: () => store.link() });

const ADMIN_AUDIENCE = 'https://mcp.example.com/admin';
const MINUTE_MS = 60_000;
const ERASE: JsonObject = { ...HONEST_TOOLS[1], name: 'erase_record' };
const TOOLS: readonly JsonObject[] = [...TASK_TOOLS, ERASE];

const policy = (reason: string, more = '') => `version: 1
policy: records
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - id: ask
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [write_record, erase_record, talk]}
    approval: {by: reviewer, expires: 10m, use: 2m}
    reason: ${reason}
  - {id: never, effect: deny, who: {groups: [banned]}, what: {upstreams: ["*"], tools: [write_record]}, when: args.id == "one"}
${more}`;

const upstream = shared(async () => {
  const started = await startHostileUpstream();
  started.offer(() => TOOLS);
  return started;
});
const both = shared(() =>
  startTwoGateways({
    upstreams: ['target', 'twin'].map((name) => ({ name, url: upstream.url, more: ['pinning: {maxAge: 1s}'] })),
    policies: { records: policy('Writing is for good.') },
    env: { REDIS_URL: 'redis://127.0.0.1:9' },
    now,
    more: `state: {type: redis, url: {env: REDIS_URL}}\nendpoints:\n  all: {issuers: [test], upstreams: {target: {prefix: t_}, twin: {}}}\n${ADMINS}`,
  }),
);

/** The upstream obeys no order any more, and offers what is pinned. */
function calm(): void {
  upstream.repent();
  upstream.offer(() => TOOLS);
}

type Claims = Readonly<Record<string, unknown>>;
/** Every test has a caller of its own, so that nothing of another is in its way. */
let caller = '';
let callers = 0;
beforeEach(() => {
  callers += 1;
  caller = `caller-${callers}`;
  upstream.forget();
});

const seconds = (ms: number) => Math.floor(ms / 1000);

async function accessTo(gateway: RunningGateway, claims: Claims = {}, endpoint = 'target'): Promise<Access> {
  const times = { iat: seconds(now()) - 1, exp: seconds(now()) + 600 };
  const token = await both.issuer.mint(gateway.url(endpoint), { claims: { sub: caller, ...times, ...claims } });
  return { url: gateway.url(endpoint), token };
}

const ARGS = { id: 'one', text: 'x' };

async function call(gateway: RunningGateway, args: JsonObject = ARGS, claims?: Claims, tool = 'write_record') {
  return callStateless(await accessTo(gateway, claims), tool, args);
}

const REASON = /approval-[a-z]+|tainted-flow|store-unavailable|denied-by-rule|blocked|token-[a-z]+|audit-unavailable/;
const outcomeOf = (reply: Reply): string =>
  reply.text.includes('_record one') ? 'passed' : (REASON.exec(reply.text)?.[0] ?? `${reply.status} ${reply.text}`);

/** The line of the decision behind a reply, once it is written. */
async function decisionLineOf(gateway: RunningGateway, id: string): Promise<AuditLine | undefined> {
  const isDecision = (line: AuditLine): boolean => line['type'] === 'mcp.decision' && line['decision'].id === id;
  await expect.poll(async () => (await gateway.audit()).some(isDecision), PATIENT).toBe(true);
  return (await gateway.audit()).find(isDecision);
}

/** The pin by which a gateway decides a call of a tool that nobody has to approve. */
async function pinSeenBy(gateway: RunningGateway): Promise<string> {
  const lines = async () =>
    (await gateway.audit()).filter((line) => line['type'] === 'mcp.decision' && line['target'].name === 'read_record');
  const before = (await lines()).length;
  expect((await callStateless(await accessTo(gateway), 'read_record', { id: 'one' })).status).toBe(200);
  await expect.poll(async () => (await lines()).length, PATIENT).toBeGreaterThan(before);
  const pin = (await lines()).at(-1)?.['target'].pin;
  expect(pin).toMatch(/^(?:sha256:)?[0-9a-f]{64}$/);
  return pin;
}

/** The approval that the decision behind a refusal names. */
async function approvalOf(gateway: RunningGateway, reply: Reply): Promise<string> {
  expect(outcomeOf(reply)).toBe('approval-required');
  const line = await decisionLineOf(gateway, decisionOf(reply).id);
  expect(line?.['decision'].approval).toMatch(/^[\w-]{16,}$/);
  return line?.['decision'].approval;
}

function adminToken(claims: Claims): Promise<string> {
  const times = { iat: seconds(now()) - 1, exp: seconds(now()) + 600 };
  return both.issuer.mint(ADMIN_AUDIENCE, { claims: { ...times, ...claims } });
}

async function answer(gateway: RunningGateway, id: string, verdict: 'grant' | 'deny' = 'grant', subject = 'rita') {
  const token = await adminToken({ sub: subject, groups: ['leads'], auth_time: seconds(now()) - 5 });
  return (await adminsOf(gateway).ask('POST', `/api/approvals/${id}/${verdict}`, { token, body: {} })).status;
}

/** What a reviewer is shown of an approval. */
async function shownArguments(id: string): Promise<string> {
  const token = await adminToken({ sub: 'rita', groups: ['leads'] });
  const reply = await adminsOf(both.one).ask('GET', `/api/approvals/${id}`, { token });
  return String(((reply.body as JsonObject)['approval'] as JsonObject)['arguments']);
}

/** Asks for the call of this test at one replica, and has it granted at the other. */
async function approved(claims?: Claims): Promise<string> {
  const id = await approvalOf(both.one, await call(both.one, ARGS, claims));
  expect(await answer(both.other, id)).toBe(200);
  return id;
}

const uses = () => upstream.uses().length;

/** The lines about approvals of one caller, of both replicas. */
async function evidence(subject = caller): Promise<readonly string[]> {
  const lines = [...(await both.one.audit()), ...(await both.other.audit())];
  return lines
    .filter((line) => line['type'].startsWith('approval.') && line['actor'].sub === subject)
    .map((line) => line['type'].slice('approval.'.length));
}

describe('[APR-60] a yes', () => {
  it.each<readonly [string, { args?: JsonObject; claims?: Claims; tool?: string }]>([
    ['another value', { args: { ...ARGS, text: 'y' } }],
    ['text that looks the same', { args: { ...ARGS, text: 'x\u200b' } }],
    ['another id', { args: { ...ARGS, id: 'One' } }],
    ['another tool', { tool: 'erase_record' }],
    ['another client', { claims: { client_id: 'another' } }],
    ['an actor', { claims: { act: { sub: 'agent-7' } } }],
    ['another subject', { claims: { sub: 'somebody' } }],
  ])('is not for %s', async (_, { args = ARGS, claims, tool }) => {
    await approved();
    expect(outcomeOf(await call(both.one, args, claims, tool))).toBe('approval-required');
    expect(uses()).toBe(0);
    expect(outcomeOf(await call(both.one))).toBe('passed');
    expect(uses()).toBe(1);
  });

  it.each<readonly [string, Claims, Claims]>([
    ['without its actor', { act: { sub: 'agent-7' } }, {}],
    ['with another actor', { act: { sub: 'agent-7' } }, { act: { sub: 'agent-8' } }],
    [
      'with an actor behind its actor',
      { act: { sub: 'agent-7' } },
      { act: { sub: 'agent-7', act: { sub: 'agent-8' } } },
    ],
  ])('to an actor is not for the caller %s', async (_, asked, sent) => {
    await approved(asked);
    expect(outcomeOf(await call(both.one, ARGS, sent))).toBe('approval-required');
    expect(uses()).toBe(0);
    expect(outcomeOf(await call(both.other, ARGS, asked))).toBe('passed');
  });

  it('is not for the same tool of another upstream', async () => {
    await approved();
    const elsewhere = await callStateless(await accessTo(both.one, {}, 'twin'), 'write_record', ARGS);
    expect(outcomeOf(elsewhere)).toBe('approval-required');
    expect(uses()).toBe(0);
  });

  it('is for the same arguments, however they are written', async () => {
    await approved();
    const reply = await call(both.other, { text: 'x', id: 'one' });
    expect(outcomeOf(reply)).toBe('passed');
    const [sent] = upstream.uses();
    expect(sent?.message?.['params']).toMatchObject({ arguments: ARGS });
  });

  it('[APR-61] is used once, at whichever replica, and its evidence is complete', async () => {
    const id = await approved();
    expect(outcomeOf(await call(both.other))).toBe('passed');
    for (const gateway of [both.one, both.other]) expect(outcomeOf(await call(gateway))).toBe('approval-required');
    expect(uses()).toBe(1);
    const complete = ['granted', 'requested', 'requested', 'used'];
    await expect.poll(async () => [...(await evidence())].sort(), PATIENT).toEqual(complete);
    const used = (await both.other.audit()).find(
      (line) => line['type'] === 'approval.used' && line['approval'].id === id,
    );
    const decision = await decisionLineOf(both.other, used?.['decision'].id);
    expect(decision).toMatchObject({ type: 'mcp.decision', decision: { verdict: 'allow', approval: id } });
    expect(JSON.stringify(used)).not.toContain('"x"');
  });

  it('of two uses at once on two replicas passes one', async () => {
    await approved();
    const replies = await Promise.all([both.one, both.other, both.one, both.other].map((gateway) => call(gateway)));
    expect(replies.map(outcomeOf).filter((outcome) => outcome === 'passed')).toHaveLength(1);
    expect(uses()).toBe(1);
  });

  it('passes in any era, and once in all of them', async () => {
    await approved();
    const outcomes: string[] = [];
    for (const era of ['array', 'sessions', 'channels', 'stateless'] as const) {
      const client = await connectIn(era, await accessTo(both.one));
      outcomes.push(outcomeOf(await client.request('tools/call', { name: 'write_record', arguments: ARGS })));
      client.leave();
    }
    expect(outcomes).toEqual(['passed', ...outcomes.slice(1).map(() => 'approval-required')]);
    expect(uses()).toBe(1);
  });

  it.each(['array', 'sessions', 'channels', 'stateless'] as const)(
    'is asked for in the era %s, and nothing is sent before',
    async (era) => {
      const client = await connectIn(era, await accessTo(both.one));
      const send = () => client.request('tools/call', { name: 'write_record', arguments: ARGS });
      const refused = await send();
      expect(outcomeOf(refused)).toBe('approval-required');
      expect(uses()).toBe(0);
      const id = /Approval ([\w-]{16,})/.exec(refused.text)?.[1] ?? '';
      expect(await answer(both.other, id)).toBe(200);
      expect(outcomeOf(await send())).toBe('passed');
      client.leave();
      expect(uses()).toBe(1);
    },
  );

  it('is for one of two equal requests of one batch', async () => {
    await approved();
    const access = await accessTo(both.one);
    const client = await connectIn('2025-03-26', access);
    const request = (id: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'write_record', arguments: ARGS },
    });
    const reply = await client.request('ping', {}, { write: () => JSON.stringify([request(1), request(2)]) });
    client.leave();
    expect(uses()).toBe(1);
    expect(reply.text).toContain('approval-required');
  });

  it('is needed for a task as well, which is not created before', async () => {
    const client = await connectIn('sessions', await accessTo(both.one));
    const reply = await client.request('tools/call', { name: 'write_record', arguments: ARGS, task: { ttl: 60_000 } });
    client.leave();
    expect(reply.text).not.toContain('"taskId"');
    expect(uses()).toBe(0);
  });

  it('is needed behind an endpoint of several upstreams, and used there', async () => {
    const access = await accessTo(both.one, {}, 'all');
    const send = () => callStateless(access, 't_write_record', ARGS);
    const refused = await send();
    expect(outcomeOf(refused)).toBe('approval-required');
    expect(uses()).toBe(0);
    expect(await answer(both.one, /Approval ([\w-]{16,})/.exec(refused.text)?.[1] ?? '')).toBe(200);
    expect(outcomeOf(await send())).toBe('passed');
    expect(outcomeOf(await send())).toBe('approval-required');
    expect(uses()).toBe(1);
  });
});

describe('[APR-60, TSK-02] a task', () => {
  const ASKED = { id: 'one' };
  let server: TaskServer;
  beforeEach(() => {
    server = createTaskServer();
    upstream.obey((request) =>
      request.method === 'initialize' ? initializeWithTasks(request) : server.order(request),
    );
  });
  afterEach(calm);

  type Begin = (gateway: RunningGateway, args?: JsonObject, claims?: Claims) => Promise<Reply>;
  const inSession: Begin = async (gateway, args = ASKED, claims = {}) => {
    const session = await openSession(await accessTo(gateway, claims));
    return session.request('tools/call', { name: 'talk', arguments: args, task: { ttl: 60_000 } });
  };
  const stateless: Begin = async (gateway, args = ASKED, claims = {}) =>
    askStateless(await accessTo(gateway, claims), 'tools/call', { name: 'talk', arguments: args });
  const plainInSession: Begin = async (gateway, args = ASKED, claims = {}) =>
    (await openSession(await accessTo(gateway, claims))).call('talk', args);

  const begunOr = (reply: Reply): string => (reply.text.includes('"taskId"') ? 'begun' : outcomeOf(reply));
  const grantAsked = async (reply: Reply): Promise<void> =>
    expect(await answer(both.other, /Approval ([\w-]{16,})/.exec(reply.text)?.[1] ?? '')).toBe(200);

  it.each<readonly [string, string, Begin, Begin, JsonObject, Claims]>([
    ['in a session', 'other arguments', inSession, inSession, { id: 'two' }, {}],
    ['in a session', 'another caller', inSession, inSession, ASKED, { sub: 'somebody' }],
    ['in a session', 'another client', inSession, inSession, ASKED, { client_id: 'another' }],
    ['in a session', 'the same call without a task', inSession, plainInSession, ASKED, {}],
    ['in 2026', 'other arguments', stateless, stateless, { id: 'two' }, {}],
    ['in 2026', 'another caller', stateless, stateless, ASKED, { sub: 'somebody else' }],
  ])('%s is begun once, by its own yes and not by that for %s', async (_, _other, begin, beginOther, args, claims) => {
    const elsewhere = await beginOther(both.one, args, claims);
    expect(begunOr(elsewhere)).toBe('approval-required');
    await grantAsked(elsewhere);
    const asked = await begin(both.one);
    expect([begunOr(asked), server.begun]).toEqual(['approval-required', []]);
    expect(begunOr(await begin(both.other))).toBe('approval-required');
    expect(uses()).toBe(0);
    await grantAsked(asked);
    expect([begunOr(await begin(both.other)), server.begun.length]).toEqual(['begun', 1]);
    expect([begunOr(await begin(both.one)), server.begun.length]).toEqual(['approval-required', 1]);
  });

  it('is not begun by a yes of which the time is over', async () => {
    await grantAsked(await inSession(both.one));
    aheadMs += 3 * MINUTE_MS;
    expect([begunOr(await inSession(both.one)), server.begun]).toEqual(['approval-expired', []]);
  });
});

describe('[APR-60] a question', () => {
  it('is asked once for ten identical requests at two replicas', async () => {
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, index) => call(index % 2 === 0 ? both.one : both.other)),
    );
    expect(new Set(replies.map(outcomeOf))).toEqual(new Set(['approval-required']));
    const ids = replies.map((reply) => /Approval ([\w-]{16,})/.exec(reply.text)?.[1]);
    expect(new Set(ids).size).toBe(1);
    await expect.poll(() => evidence(), PATIENT).toEqual(['requested']);
  });

  it('that is refused is asked nobody again, at no replica', async () => {
    const id = await approvalOf(both.one, await call(both.one));
    expect(await answer(both.other, id, 'deny')).toBe(200);
    for (const gateway of [both.one, both.other]) {
      const refused = await call(gateway);
      expect(outcomeOf(refused)).toBe('approval-denied');
      expect(refused.text).toContain('with the token of a reviewer');
    }
    expect(await answer(both.one, id)).toBe(409);
    expect(outcomeOf(await call(both.one))).toBe('approval-denied');
    await expect.poll(async () => [...(await evidence())].sort(), PATIENT).toEqual(['denied', 'requested']);
  });

  it('is not asked about what a rule denies, and a yes from before does not help', async () => {
    expect(outcomeOf(await call(both.one, ARGS, { groups: ['banned'] }))).toBe('denied-by-rule');
    expect(await evidence()).toEqual([]);
    await approved();
    expect(outcomeOf(await call(both.one, ARGS, { groups: ['banned'] }))).toBe('denied-by-rule');
    expect(uses()).toBe(0);
  });

  it('of one caller with many requests leaves room for others', async () => {
    const flood = Array.from({ length: 40 }, (_, index) => index);
    for (let at = 0; at < flood.length; at += 20)
      await Promise.all(flood.slice(at, at + 20).map((index) => call(both.one, { ...ARGS, text: `${index}` })));
    const asked = await evidence();
    expect(asked.length).toBeLessThanOrEqual(20);
    expect(new Set(asked)).toEqual(new Set(['requested']));
    const crowded = await call(both.other, { ...ARGS, text: 'one more' });
    expect(outcomeOf(crowded)).toBe('approval-required');
    expect(crowded.text).toContain('nobody was asked');
    caller = `${caller}-other`;
    await approved();
    expect(outcomeOf(await call(both.one))).toBe('passed');
  });
});

describe('[APR-60] what a server asks of its client', () => {
  const ASKS = `
  - {id: forms, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], elicitation: [form]}}
  - {id: ask-forms, effect: require, who: {anyone: true}, what: {upstreams: ["*"], elicitation: [form]}, approval: {by: reviewer}}
`;
  const FORM: JsonObject = {
    ...{ mode: 'form', message: 'Which branch?' },
    requestedSchema: { type: 'object', properties: { branch: { type: 'string' } } },
  };
  const isQuestion = (line: AuditLine) =>
    line['type'] === 'mcp.decision' && line['target'].name === 'elicitation/form' && line['actor'].sub === caller;
  /** The approval of the last question that was refused to the server of this caller. */
  async function asked(gateway: RunningGateway, refused: number): Promise<string> {
    const lines = async () => (await gateway.audit()).filter(isQuestion);
    await expect.poll(async () => (await lines()).length, PATIENT).toBe(refused);
    return (await lines()).at(-1)?.['decision'].approval;
  }

  beforeEach(async () => {
    for (const gateway of [both.one, both.other]) {
      await gateway.writePolicy('records', policy('Writing is for good.', ASKS));
      expect(await gateway.reload()).toEqual([]);
    }
  });

  it('in a result that needs input ends the call, which delivers it once, after the yes', async () => {
    upstream.obey(({ method, id = 0 }) =>
      method === 'tools/call'
        ? jsonBody({
            ...{ jsonrpc: '2.0', id },
            result: {
              resultType: 'input_required',
              inputRequests: { b: { method: 'elicitation/create', params: FORM } },
            },
          })
        : undefined,
    );
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
    const read = async (gateway: RunningGateway) =>
      callStateless(await accessTo(gateway), 'read_record', { id: 'one' }, meta);
    const refused = await read(both.one);
    expect(outcomeOf(refused)).toBe('approval-required');
    expect(refused.text).not.toContain('Which branch?');
    expect(await answer(both.other, await asked(both.one, 1))).toBe(200);
    expect((await read(both.other)).text).toContain('Which branch?');
    expect(outcomeOf(await read(both.one))).toBe('approval-required');
    calm();
  });

  it('of a task is delivered within the time of its yes, and not behind it', async () => {
    const server = createTaskServer();
    upstream.obey(server.order);
    const form = { elicitation: { form: {} } };
    const begun = await askStateless(await accessTo(both.one), 'tools/call', { name: 'compute', arguments: {} }, form);
    const taskId = String(resultOf(begun)['taskId']);
    const inputRequests = { b: { method: 'elicitation/create', params: FORM } };
    server.say(server.begun.at(-1) ?? '', { status: 'input_required', inputRequests });
    const look = async (gateway: RunningGateway) =>
      (await askStateless(await accessTo(gateway), 'tasks/get', { taskId }, form)).text;
    try {
      expect(await look(both.one)).not.toContain('Which branch?');
      expect(await answer(both.other, await asked(both.one, 1))).toBe(200);
      aheadMs += 3 * MINUTE_MS;
      expect(await look(both.one)).not.toContain('Which branch?');
      await look(both.one);
      expect(await answer(both.other, await asked(both.one, 3))).toBe(200);
      expect(await look(both.other)).toContain('Which branch?');
      expect(await look(both.one)).not.toContain('Which branch?');
    } finally {
      calm();
    }
  });

  // What the server writes into the params beside the message, when it is asked about and afterwards.
  it.each<readonly [string, string, string, boolean]>([
    ['a number that no double holds', '"limit":9007199254740993', '"limit":9007199254740992', false],
    ['a spelling of the same number', '"limit":1.0', '"limit":1', true],
    ['text in _meta', '"_meta":{"com.example/note":"a"}', '"_meta":{"com.example/note":"b"}', false],
    ['text in _meta that was not there', '"_meta":{"progressToken":1}', '"_meta":{"com.example/note":"b"}', false],
    ['another progress token', '"_meta":{"progressToken":1}', '"_meta":{"progressToken":2}', true],
    ['no progress token any more', '"_meta":{"progressToken":1},"limit":1', '"limit":1', true],
    [
      'another trace',
      `"_meta":{"traceparent":"00-${'a'.repeat(32)}-${'b'.repeat(16)}-01","com.example/note":"a"}`,
      `"_meta":{"com.example/note":"a","traceparent":"00-${'c'.repeat(32)}-${'d'.repeat(16)}-01"}`,
      true,
    ],
    ['text in place of a trace', '"_meta":{"traceparent":"a"}', '"_meta":{"traceparent":"b"}', false],
  ])('with %s: the yes counts only for what was shown', async (_, asked1, asked2, isSame) => {
    let members = asked1;
    upstream.obey(({ method, id = 0 }) => {
      if (method !== 'tools/call') return undefined;
      const params = `${JSON.stringify(FORM).slice(0, -1)},${members}}`;
      const request = `{"b":{"method":"elicitation/create","params":${params}}}`;
      return body(`{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required","inputRequests":${request}}}`);
    });
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
    const read = async () => callStateless(await accessTo(both.one), 'read_record', { id: 'one' }, meta);
    try {
      expect(outcomeOf(await read())).toBe('approval-required');
      const id = await asked(both.one, 1);
      expect(await shownArguments(id)).toContain(/"(?:com.example.note|limit)":[^,}]+/.exec(asked1)?.[0] ?? '{');
      expect(await answer(both.other, id)).toBe(200);
      members = asked2;
      expect((await read()).text.includes('Which branch?')).toBe(isSame);
    } finally {
      calm();
    }
  });

  it('in a session is answered to the server with an error at once, and delivered when it is asked again', async () => {
    upstream.obey((received) =>
      received.method === 'tools/call' ? serverRequestInStream(received, 'elicitation/create', FORM) : undefined,
    );
    const session = await openSession(await accessTo(both.one), { elicitation: {} });
    const first = await session.call('read_record', { id: 'one' });
    expect(first.text).toContain('after the question');
    expect(first.text).not.toContain('Which branch?');
    expect(await answer(both.other, await asked(both.one, 1))).toBe(200);
    expect((await session.call('read_record', { id: 'one' })).text).toContain('Which branch?');
    calm();
  });
});

describe('[APR-60] between a yes and its use', () => {
  it('the time passes: the yes is late, and one replica of both says so once', async () => {
    await approved();
    aheadMs += 3 * MINUTE_MS;
    const replies = await Promise.all([call(both.one), call(both.other)]);
    expect(replies.map(outcomeOf)).toContain('approval-expired');
    expect(replies.map(outcomeOf)).not.toContain('passed');
    expect(uses()).toBe(0);
    await expect.poll(async () => (await evidence()).filter((type) => type === 'expired').length, PATIENT).toBe(1);
    expect(outcomeOf(await call(both.one))).toBe('approval-required');
    expect((await evidence()).filter((type) => type === 'expired')).toHaveLength(1);
  });

  it('[APR-61] nobody answers in time: one line says so, over two replicas, and nothing can be answered', async () => {
    const id = await approvalOf(both.one, await call(both.one));
    aheadMs += 11 * MINUTE_MS;
    const statuses = await Promise.all([answer(both.one, id), answer(both.other, id)]);
    expect(statuses).toEqual([409, 409]);
    await Promise.all([call(both.one), call(both.other)]);
    await expect.poll(async () => (await evidence()).filter((type) => type === 'expired').length, PATIENT).toBe(1);
    expect(uses()).toBe(0);
  });

  it('the clock is set back: the yes is of a time to come, and does not count', async () => {
    await approved();
    aheadMs -= 30 * MINUTE_MS;
    try {
      expect(outcomeOf(await call(both.one))).not.toBe('passed');
      expect(uses()).toBe(0);
    } finally {
      aheadMs += 30 * MINUTE_MS;
    }
  });

  it('the store is away: nothing passes, nothing is answered, and afterwards the yes counts', async () => {
    await approved();
    const waiting = await approvalOf(both.one, await call(both.one, { ...ARGS, text: 'z' }));
    store.goDown();
    try {
      expect(outcomeOf(await call(both.one))).toBe('store-unavailable');
      expect(await answer(both.one, waiting)).toBe(503);
      expect(uses()).toBe(0);
    } finally {
      store.comeBack();
    }
    await expect.poll(async () => outcomeOf(await call(both.one)), PATIENT).toBe('passed');
    expect(uses()).toBe(1);
    // The other replica finds the store again by itself, which the tests behind this one need.
    const token = await adminToken({ sub: 'rita', groups: ['leads'] });
    const list = () => adminsOf(both.other).ask('GET', '/api/approvals', { token });
    await expect.poll(async () => (await list()).status, PATIENT).toBe(200);
  });

  it('the store loses everything: the yes is gone, and the old id answers nothing', async () => {
    const id = await approved();
    const waiting = await approvalOf(both.one, await call(both.one, { ...ARGS, text: 'z' }));
    store.forget();
    await expect.poll(async () => outcomeOf(await call(both.one)), PATIENT).toBe('approval-required');
    for (const old of [id, waiting]) expect(await answer(both.one, old)).toBe(404);
    expect(uses()).toBe(0);
  });

  it.each([
    ['the token is revoked', (subject: string) => ({ subject: { issuer: 'test', subject } }), 401],
    ['the caller is blocked', (subject: string) => ({ block: { target: 'subject', issuer: 'test', subject } }), 403],
  ] as const)('%s: the call is refused in spite of the yes', async (_, orderOf, status) => {
    await approved();
    const holders = [await accessTo(both.one), await accessTo(both.other)];
    const token = await adminToken({ sub: 'root', groups: ['platform'] });
    const body = { ...orderOf(caller), note: 'left' };
    expect((await adminsOf(both.one).ask('POST', '/api/revocations', { token, body })).status).toBe(201);
    for (const access of holders) {
      // What needs no approval shows when a replica knows of it.
      const read = async () => (await callStateless(access, 'read_record', { id: 'one' })).status;
      await expect.poll(read, PATIENT).toBe(status);
      upstream.forget();
      expect((await callStateless(access, 'write_record', ARGS)).status).toBe(status);
      expect(uses()).toBe(0);
    }
  });

  it('the rule says something else: the yes is void everywhere, and the call is asked anew', async () => {
    const id = await approved();
    for (const gateway of [both.one, both.other]) {
      await gateway.writePolicy('records', policy('Writing is for ever.'));
      expect(await gateway.reload()).toEqual([]);
    }
    const refused = await call(both.other);
    expect(outcomeOf(refused)).toBe('approval-mismatch');
    const line = await decisionLineOf(both.other, decisionOf(refused).id);
    expect(line?.['decision']).toMatchObject({ approval: id, reasons: ['approval-mismatch'] });
    const again = await approvalOf(both.one, await call(both.one));
    expect(again).not.toBe(id);
    expect(uses()).toBe(0);
  });

  it('a rule forbids the call: it is refused in spite of the yes', async () => {
    await approved();
    const deny = `  - {id: stop, effect: deny, who: {anyone: true}, what: {upstreams: ["*"], tools: [write_record]}, when: args.text == "x"}\n`;
    for (const gateway of [both.one, both.other]) {
      await gateway.writePolicy('records', policy('Writing is for ever.', deny));
      await gateway.reload();
    }
    expect(outcomeOf(await call(both.one))).toBe('denied-by-rule');
    expect(uses()).toBe(0);
  });

  it('the definition is another one: the yes is void, although both versions are approved', async () => {
    for (const gateway of [both.one, both.other]) {
      await gateway.writePolicy('records', policy('Writing is for good.'));
      await gateway.reload();
    }
    await approved();
    const pinsBefore = [await pinSeenBy(both.one), await pinSeenBy(both.other)];
    upstream.offer(() => TOOLS.map((tool) => ({ ...tool, description: `${tool['description']} Quickly.` })));
    for (const gateway of [both.one, both.other]) {
      await gateway.approvePins();
      await gateway.reload();
    }
    // A yes is bound to what the gateway itself has seen of the server, which the list of a caller may be ahead of.
    for (const [index, gateway] of [both.one, both.other].entries())
      await expect.poll(() => pinSeenBy(gateway), PATIENT).not.toBe(pinsBefore[index]);
    upstream.forget();
    expect(outcomeOf(await call(both.one))).toBe('approval-mismatch');
    expect(uses()).toBe(0);
  });
});
