// Tasks of the stateless era through the running gateway: what of them reaches the upstream, and how what
// they bring is judged. Source: the Tasks extension of 2026-07-28.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ALLOW_ALL,
  type AuditLine,
  decisionOf,
  expectNothingForwarded,
  expectRefusedLines,
  expectWithheldLines,
  UPSTREAM,
} from '../support/gateway.js';
import { jsonBody, onMethod } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import {
  askStateless,
  beginStateless,
  createTaskServer,
  EXTENSION,
  TASK_TOOLS,
  type TaskServer,
  taskOf,
} from '../support/mcp-servers.js';
import { grantQuestions } from '../support/sdk-clients.js';
import { type Access, callStateless, errorOf, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const SECRET = ['sk', 'live', 'a8Kq2ZrT7mXw4Lp9Nv3Bd6Yh'].join('_');
const FORM = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Which colour?',
    requestedSchema: { type: 'object', properties: { colour: { type: 'string' } } },
  },
};
const INPUT_CAPABILITIES = { elicitation: { form: {} }, sampling: {} };

let server: TaskServer;

function text(value: string): JsonObject {
  return { content: [{ type: 'text', text: value }] };
}

function look(taskId: string, capabilities: JsonObject = {}, access: Access = rig.access) {
  return askStateless(access, 'tasks/get', { taskId }, capabilities);
}

/** Applies what was written; warnings are none of a test's. */
async function reload(): Promise<void> {
  const diagnostics = await rig.gateway.reload();
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
}

/** The outcome of the last request about a task. */
async function lastOutcome(): Promise<AuditLine> {
  const find = async () =>
    (await rig.gateway.audit()).findLast(({ type, target }) => type === 'mcp.outcome' && target.kind === 'task');
  await expect.poll(find).toBeDefined();
  return (await find()) ?? {};
}

const rig = sharedGateway({
  policies: { open: ALLOW_ALL, questions: grantQuestions('elicitation: [form]') },
  prepare: (upstream) => upstream.offer(() => TASK_TOOLS),
});
beforeEach(() => {
  server = createTaskServer();
  rig.upstream.offer(() => TASK_TOOLS);
  rig.upstream.obey(server.order);
});
afterEach(() => rig.upstream.forget());

describe('the life of a task', () => {
  it('[TSK-01] its client knows it by one sealed id, its server by its own', async () => {
    const taskId = await beginStateless(rig.access);
    expect(taskId).not.toContain('up-1');
    rig.upstream.forget();
    server.say('up-1', { status: 'completed', result: text('all done') });
    const reply = await look(taskId);
    expect(resultOf(reply)).toEqual({
      resultType: 'complete',
      ...taskOf(taskId, { status: 'completed', result: text('all done') }),
    });
    const sent = rig.upstream.seen().at(-1);
    expect(sent?.headers).toMatchObject({ 'mcp-method': 'tasks/get', 'mcp-name': 'up-1' });
    expect(sent?.message?.['params']).toMatchObject({ taskId: 'up-1' });
    expect(sent?.body).not.toContain(taskId);
    const line = await lastOutcome();
    expect(line['target']).toMatchObject({ method: 'tasks/get', kind: 'task', name: 'talk' });
    expect(JSON.stringify(await rig.gateway.audit())).not.toContain(taskId);
  });

  it('[TSK-01] an update and a cancellation are acknowledged, and no more', async () => {
    const taskId = await beginStateless(rig.access);
    server.say('up-1', { taskId: 'up-1', status: 'completed', result: text('slipped past') });
    for (const [method, more] of [
      ['tasks/update', { inputResponses: { colour: { action: 'decline' } } }],
      ['tasks/cancel', {}],
    ] as const) {
      const reply = await askStateless(rig.access, method, { taskId, ...more });
      expect(resultOf(reply)).toEqual({ resultType: 'complete' });
    }
    expect(rig.upstream.seen().at(-1)?.headers['mcp-name']).toBe('up-1');
  });

  it('[TSK-05] the extension is all that is declared, on both sides', async () => {
    rig.upstream.obeyOnce(
      onMethod('server/discover', (request) => {
        const capabilities = {
          tools: {},
          tasks: { list: {} },
          extensions: { [EXTENSION]: { odd: 1 }, 'com.example/other': {} },
        };
        const cache = { ttlMs: 0, cacheScope: 'private' };
        const result = {
          resultType: 'complete',
          supportedVersions: ['2026-07-28'],
          capabilities,
          ...cache,
        };
        return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
      }),
    );
    const discovered = await requestStateless(rig.access, 'server/discover');
    expect(resultOf(discovered)['capabilities']).toEqual({
      tools: { listChanged: true },
      extensions: { [EXTENSION]: {} },
    });
    const meta = {
      'io.modelcontextprotocol/clientCapabilities': {
        extensions: { 'com.example/other': {}, [EXTENSION]: {}, 'com.example/more': {} },
        tasks: {},
      },
    };
    await callStateless(rig.access, 'talk', {}, meta);
    expect(rig.upstream.uses().at(-1)?.body).toContain(`"extensions":{"${EXTENSION}":{}}}`);
  });

  it('[TSK-03] the wish of another revision is taken out', async () => {
    rig.upstream.repent();
    rig.upstream.offer(() => TASK_TOOLS);
    const params = { name: 'read_record', arguments: { id: 'one' }, task: { ttl: 1 } };
    const reply = await requestStateless(rig.access, 'tools/call', params);
    expect(resultOf(reply)['content']).toBeDefined();
    expect(rig.upstream.uses().at(-1)?.message?.['params']).not.toHaveProperty('task');
  });
});

describe('what is no answer', () => {
  it('[TSK-03] a task that its client has not declared', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => {
        const result = { resultType: 'task', ...taskOf('up-9', {}) };
        return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
      }),
    );
    const reply = await callStateless(rig.access, 'talk');
    expect([reply.status, errorOf(reply)['code']]).toEqual([502, 1506]);
    expect(reply.text).not.toContain('up-9');
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  });

  it.each<[string, JsonObject]>([
    ['of another id', { taskId: 'up-2' }],
    ['of no known status', { status: 'done' }],
    ['with a result before it is completed', { result: text('early') }],
    ['completed without a result', { status: 'completed' }],
    ['with a result that asks', { status: 'completed', result: { resultType: 'input_required' } }],
    ['with a misspelt result', { status: 'completed', result: text('x'), Result: text('y') }],
    ['with an error that is none', { status: 'failed', error: { message: 'no code' } }],
    ['with state to carry', { requestState: 'x' }],
    ['with questions of nobody', { status: 'input_required', inputRequests: { a: { method: 'x' } } }],
  ])('[TSK-04] a task %s', async (_what, state) => {
    const taskId = await beginStateless(rig.access);
    server.say('up-1', state);
    const reply = await look(taskId, INPUT_CAPABILITIES);
    expect([reply.status, errorOf(reply)['code']]).toEqual([502, 1506]);
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  });

  it('[TSK-04] a task that begins with content', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => {
        const result = {
          resultType: 'task',
          ...taskOf('up-1', { status: 'completed', result: {} }),
        };
        return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
      }),
    );
    const reply = await askStateless(rig.access, 'tools/call', { name: 'talk', arguments: {} });
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  });
});

describe('what a task brings', () => {
  it.each<[string, JsonObject]>([
    ['its result', { status: 'completed', result: text(`the key is ${SECRET}`) }],
    ['its error', { status: 'failed', error: { code: -32603, message: `broke at ${SECRET}` } }],
    ['its status', { status: 'working', statusMessage: `using ${SECRET}` }],
  ])('[TSK-04] a secret in %s is removed', async (_what, state) => {
    const taskId = await beginStateless(rig.access);
    server.say('up-1', state);
    const reply = await look(taskId);
    expect(reply.status).toBe(200);
    expect(reply.text).not.toContain(SECRET);
    expect(resultOf(reply)).toMatchObject({ taskId, status: state['status'] });
    const actions = async () => (await lastOutcome())['findings'].map((one: JsonObject) => one['action']);
    await expect.poll(actions).toContain('redact');
  });

  it('[TSK-04, MCP-62] active content in its status is made inert, as in every text', async () => {
    const taskId = await beginStateless(rig.access);
    const picture = '![x](https://evil.example/p.png?q=1)';
    server.say('up-1', { statusMessage: `Working ${picture}` });
    const reply = await look(taskId);
    expect(resultOf(reply)['status']).toBe('working');
    expect(reply.text).not.toContain(picture);
  });

  it('[TSK-04] the result satisfies the schema that was approved, or is withheld', async () => {
    const taskId = await beginStateless(rig.access, 'compute');
    server.say('up-1', { status: 'completed', result: { structuredContent: { sum: 'many' } } });
    const reply = await look(taskId);
    expect(errorOf(reply)['code']).toBe(1424);
    await expectWithheldLines(rig, reply, 'result-invalid');
    server.say('up-1', { status: 'completed', result: { structuredContent: { sum: 3 } } });
    expect(resultOf(await look(taskId))).toMatchObject({
      result: { structuredContent: { sum: 3 } },
    });
  });

  it('[TSK-04] what rules asked of the answer by the arguments of the call holds for the task', async () => {
    const rule = `version: 1
policy: caps
rules:
  - id: small
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [talk]}
    args: {id: {const: long}}
    maxResultBytes: 400B
`;
    await rig.gateway.writePolicy('caps', rule);
    await reload();
    const [long, short] = [
      await beginStateless(rig.access, 'talk', { id: 'long' }),
      await beginStateless(rig.access, 'talk', { id: 'short' }),
    ];
    for (const id of server.begun) server.say(id, { status: 'completed', result: text('x'.repeat(500)) });
    const withheld = await look(long);
    await expectWithheldLines(rig, withheld, 'result-too-large');
    expect(resultOf(await look(short))['status']).toBe('completed');
  });
});

describe('every look', () => {
  const DENY = `version: 1
policy: deny
rules:
  - id: no-talk
    effect: deny
    who: {subjects: [leaver]}
    what: {upstreams: ["*"], tools: [talk]}
`;

  it('[TSK-06] is decided by the rules of now: whoever may not see the tool has no task', async () => {
    const token = await rig.gateway.token(UPSTREAM, { sub: 'leaver' });
    const leaver = { url: rig.access.url, token };
    const taskId = await beginStateless(leaver);
    expect(resultOf(await look(taskId, {}, leaver))['taskId']).toBe(taskId);
    await rig.gateway.writePolicy('deny', DENY);
    await reload();
    rig.upstream.forget();
    const reply = await look(taskId, {}, leaver);
    expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32602]);
    expect(errorOf(reply)['message']).toBe('Task not found');
    await expectRefusedLines(rig, reply, 'denied-by-rule');
    const unknown = await look('nobodys', {}, leaver);
    const [one, other] = [reply, unknown].map((each) => each.text.replace(decisionOf(each).id, 'DECISION'));
    expect(one).toBe(other);
    expectNothingForwarded(rig);
  });
});

describe('a rule that names uses of tasks', () => {
  it('[TSK-06] takes these away, and leaves the others and the calls', async () => {
    const deny = `version: 1
policy: deny
rules:
  - {id: d, effect: deny, who: {subjects: [watcher]}, what: {upstreams: ["*"], tasks: [cancel, update]}}
`;
    await rig.gateway.writePolicy('deny', deny);
    await reload();
    const watcher = {
      url: rig.access.url,
      token: await rig.gateway.token(UPSTREAM, { sub: 'watcher' }),
    };
    const taskId = await beginStateless(watcher);
    expect(resultOf(await look(taskId, {}, watcher))['status']).toBe('working');
    rig.upstream.forget();
    const inputResponses = { colour: { action: 'decline' } };
    for (const [method, more] of [
      ['tasks/cancel', {}],
      ['tasks/update', { inputResponses }],
    ] as const) {
      const reply = await askStateless(watcher, method, { taskId, ...more });
      expect(errorOf(reply)).toMatchObject({ code: -32602, message: 'Task not found' });
      await expectRefusedLines(rig, reply, 'denied-by-rule');
    }
    expectNothingForwarded(rig);
    const own = await beginStateless(rig.access);
    const cancelled = await askStateless(rig.access, 'tasks/cancel', { taskId: own });
    expect(resultOf(cancelled)).toEqual({ resultType: 'complete' });
  });
});

describe('questions of a task', () => {
  const asks = (inputRequests: JsonObject) => ({ status: 'input_required', inputRequests });

  it('[TSK-07] pass where they are declared and granted, and their answers reach the task', async () => {
    const taskId = await beginStateless(rig.access);
    server.say('up-1', asks({ colour: FORM }));
    const reply = await look(taskId, INPUT_CAPABILITIES);
    expect(resultOf(reply)).toMatchObject({ taskId, inputRequests: { colour: FORM } });
    server.say('up-1', {});
    const inputResponses = { colour: { action: 'accept', content: { colour: 'red' } } };
    const updated = await askStateless(rig.access, 'tasks/update', { taskId, inputResponses }, INPUT_CAPABILITIES);
    expect(resultOf(updated)).toEqual({ resultType: 'complete' });
    expect(rig.upstream.seen().at(-1)?.message?.['params']).toMatchObject({ inputResponses });
  });

  it.each<[string, JsonObject, JsonObject, string]>([
    ['is not declared', {}, { a: FORM }, 'elicitation-forbidden'],
    [
      'no rule grants',
      INPUT_CAPABILITIES,
      { a: { method: 'sampling/createMessage', params: {} } },
      'sampling-forbidden',
    ],
    [
      'asks for a secret',
      INPUT_CAPABILITIES,
      {
        a: {
          ...FORM,
          params: {
            ...FORM.params,
            requestedSchema: { type: 'object', properties: { password: { type: 'string' } } },
          },
        },
      },
      'elicitation-sensitive',
    ],
  ])('[TSK-07] one that %s withholds the look', async (_what, capabilities, questions, reason) => {
    const taskId = await beginStateless(rig.access);
    server.say('up-1', asks(questions));
    const reply = await look(taskId, capabilities);
    expect(reply.text).not.toContain('inputRequests');
    await expectWithheldLines(rig, reply, reason as 'elicitation-forbidden');
  });

  it('[TSK-07] are counted once, however often they are looked at', async () => {
    const limited = grantQuestions('elicitation: [form]', '    limits: {rate: 2/h, per: subject}\n');
    await rig.gateway.writePolicy('questions', limited);
    await reload();
    server = createTaskServer('counted');
    rig.upstream.obey(server.order);
    const taskId = await beginStateless(rig.access);
    server.say('counted-1', asks({ colour: FORM }));
    for (let looks = 0; looks < 4; looks += 1)
      expect(resultOf(await look(taskId, INPUT_CAPABILITIES))['status']).toBe('input_required');
    server.say('counted-1', asks({ shape: FORM, size: FORM }));
    for (let looks = 0; looks < 2; looks += 1)
      expect(errorOf(await look(taskId, INPUT_CAPABILITIES))['code']).toBe(1429);
    await rig.gateway.writePolicy('questions', grantQuestions('elicitation: [form]'));
    await reload();
  });

  it('[TSK-07] are not counted where their content may not pass', async () => {
    const limits = '    limits: {rate: 1/h, per: subject}\n';
    const policy = grantQuestions('elicitation: [url]', limits).replace('id: ask', 'id: links');
    await rig.gateway.writePolicy('questions', policy);
    await reload();
    const link = (url: string): JsonObject => ({
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Please visit.', url },
    });
    const declared = { elicitation: { url: {} } };
    const taskId = await beginStateless(rig.access);
    server.say('up-1', asks({ a: link(`https://example.com/?token=${SECRET}`) }));
    await expectWithheldLines(rig, await look(taskId, declared), 'elicitation-url');
    server.say('up-1', asks({ a: link('https://example.com/') }));
    expect(resultOf(await look(taskId, declared))['status']).toBe('input_required');
    server.say('up-1', asks({ b: link('https://example.com/') }));
    expect(errorOf(await look(taskId, declared))['code']).toBe(1429);
    await rig.gateway.writePolicy('questions', grantQuestions('elicitation: [form]'));
    await reload();
  });

  it('[TSK-07] a secret in the place of an id that nobody reads does not leave either', async () => {
    const params = { name: 'talk', arguments: {}, taskId: SECRET };
    rig.upstream.forget();
    expect(resultOf(await askStateless(rig.access, 'tools/call', params))['resultType']).toBe('task');
    expect(rig.upstream.uses()).toHaveLength(1);
    expect(String(rig.upstream.uses()[0]?.body)).not.toContain(SECRET);
  });

  it('[TSK-07] a secret in an answer does not leave', async () => {
    const taskId = await beginStateless(rig.access);
    rig.upstream.forget();
    const inputResponses = { colour: { action: 'accept', content: { colour: SECRET } } };
    const reply = await askStateless(rig.access, 'tasks/update', { taskId, inputResponses });
    expect(errorOf(reply)['code']).toBe(1423);
    await expectRefusedLines(rig, reply, 'arguments-content');
    expectNothingForwarded(rig);
  });
});

describe('a flow', () => {
  it('[FL-01] refuses an answer to a task of its sink, and no look at the task', async () => {
    const flow = `labels: {${UPSTREAM}/talk: [sensitive, egress]}
flows: [{id: no-leak, from: sensitive, to: egress, effect: deny}]
`;
    await rig.gateway.writePolicy('open', ALLOW_ALL.concat(flow));
    await reload();
    const taskId = await beginStateless(rig.access);
    const inputResponses = { colour: { action: 'accept', content: { colour: 'red' } } };
    const sent = await askStateless(rig.access, 'tasks/update', { taskId, inputResponses });
    await expectRefusedLines(rig, sent, 'tainted-flow');
    expect(resultOf(await look(taskId))['status']).toBe('working');
    await rig.gateway.writePolicy('open', ALLOW_ALL);
    await reload();
  });
});

describe('limits', () => {
  it('[TSK-06] of the tool count its calls, and no look at what they began', async () => {
    const limited = ALLOW_ALL.replace('policy: open', 'policy: limited').concat(
      '    limits: {rate: 1/h, per: subject}\n',
    );
    await rig.gateway.writePolicy('open', limited);
    await reload();
    const taskId = await beginStateless(rig.access);
    for (let looks = 0; looks < 3; looks += 1) expect(resultOf(await look(taskId))['status']).toBe('working');
    const again = await askStateless(rig.access, 'tools/call', { name: 'talk', arguments: {} });
    await expectRefusedLines(rig, again, 'rate-limited');
    await rig.gateway.writePolicy('open', ALLOW_ALL);
    await reload();
  });
});

describe('a tool that drifted', () => {
  it('[TSK-06] takes its tasks along: there are none until it is approved again', async () => {
    const taskId = await beginStateless(rig.access);
    const drifted = TASK_TOOLS.map((tool) => ({ ...tool, description: 'Something else.' }));
    rig.upstream.offer(() => drifted);
    await requestStateless(rig.access, 'tools/list');
    rig.upstream.forget();
    const reply = await look(taskId);
    expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32602]);
    await expectRefusedLines(rig, reply, 'tool-changed');
    expectNothingForwarded(rig);
  });
});
