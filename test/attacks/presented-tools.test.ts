// Tools that an operator presents otherwise than their server offers them, for clients of each era and through an
// endpoint: what clients are shown, what the server gets, and that neither the old name nor what was fixed or hidden can be
// reached by any spelling, or by definitions that change.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type World, withWorld } from '../compat/rig.js';
import { runCommand } from '../support/commands.js';
import { type ClientEra, connectIn } from '../support/eras.js';
import { ALLOW_ALL, decisionOf, expectRefusedLines, linesOf } from '../support/gateway.js';
import { type HostileRequest, paramsOf } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { createTaskServer, initializeWithTasks, TASK_TOOLS } from '../support/mcp-servers.js';
import { startSseServer } from '../support/sse-server.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  callStateless,
  errorOf,
  post,
  type Reply,
  requestStateless,
  resultOf,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { sharedGateway, untilTestEnds, withGateway } from '../support/with-gateway.js';

const TICKET: JsonObject = {
  name: 'create_ticket_v2',
  description: 'Creates a ticket in any project.',
  inputSchema: {
    type: 'object',
    properties: {
      title: { type: 'string' },
      project: { type: 'string', 'x-mcp-header': 'Project' },
      priority: { type: 'string' },
      limit: { type: 'number' },
      internal_note: { type: 'string' },
    },
    required: ['title', 'project', 'priority'],
  },
};

function tool(name: string): JsonObject {
  return {
    name,
    description: `Does ${name}.`,
    inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  };
}

const PRESENTED =
  'tools: {create_ticket_v2: {name: create_ticket, description: Creates a ticket in the project SUPPORT., parameters: {project: {value: SUPPORT}, priority: {default: normal}, limit: {value: 0.1}, internal_note: {hide: true}}}}';

const POLICIES = {
  some: `version: 1
policy: some
rules:
  - id: support
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [create_ticket_v2]}
    args: {project: {const: SUPPORT}}
  - id: others
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: ["*t"]}
`,
};

const ERAS: readonly ClientEra[] = ['channels', 'array', '2025-06-18', 'sessions', 'stateless'];
const SHOWN = {
  name: 'create_ticket',
  description: 'Creates a ticket in the project SUPPORT.',
  inputSchema: {
    type: 'object',
    properties: { title: { type: 'string' }, priority: { type: 'string', default: 'normal' } },
    required: ['title'],
  },
};

describe('tools that are presented otherwise than their server offers them', () => {
  let endpoint: Access;
  const rig = sharedGateway({
    policies: POLICIES,
    upstream: ['pinning: {maxAge: 10m}', 'arguments: any', PRESENTED],
    more: 'endpoints:\n  all: {issuers: [test], upstreams: {target: {prefix: t_}}}',
    prepare(upstream) {
      upstream.offer(() => [TICKET, tool('shout')]);
      upstream.answerCalls((name) => ({ content: [{ type: 'text', text: `did ${name}` }] }));
    },
  });
  beforeAll(async () => {
    endpoint = { url: rig.gateway.url('all'), token: await rig.gateway.token('all') };
  });

  const ways = ERAS.flatMap((era) => [
    [era, 'upstream', ''],
    ...(era === 'channels' ? [] : [[era, 'endpoint', 't_'] as const]),
  ]) as readonly (readonly [ClientEra, 'upstream' | 'endpoint', string])[];

  it.each(ways)(
    '[PRE-01, PRE-02] %s at the %s: both sides have their names, values and headers',
    async (era, at, prefix) => {
      const { request, leave } = await connectIn(era, at === 'endpoint' ? endpoint : rig.access);
      const listed = resultOf(await request('tools/list'))['tools'];
      expect(listed).toMatchObject([{ ...SHOWN, name: `${prefix}create_ticket` }, { name: `${prefix}shout` }]);
      expect((listed as JsonObject[])[0]).toMatchObject({ inputSchema: SHOWN.inputSchema });
      expect(JSON.stringify(listed)).not.toMatch(/project"|internal_note|_v2|any project/);
      rig.upstream.forget();
      const reply = await request('tools/call', { name: `${prefix}create_ticket`, arguments: { title: 'It' } });
      expect(resultOf(reply)).toMatchObject({ content: [{ text: 'did create_ticket_v2' }] });
      const [use] = rig.upstream.uses();
      expect(use && paramsOf(use)).toMatchObject({
        name: 'create_ticket_v2',
        arguments: { title: 'It', project: 'SUPPORT', priority: 'normal', limit: 0.1 },
      });
      if (era === 'stateless')
        expect(use?.headers).toMatchObject({ 'mcp-name': 'create_ticket_v2', 'mcp-param-project': 'SUPPORT' });
      rig.upstream.forget();
      leave();
    },
  );

  /** A refusal, without what differs between any two of them. */
  function shape(reply: Reply): unknown {
    const { date: _date, 'sallyport-decision': _id, ...headers } = Object.fromEntries(reply.headers);
    const text = reply.text.replaceAll(decisionOf(reply).id, 'ID').replace(/"id":\d+/, '"id":N');
    return { status: reply.status, headers, text };
  }

  /** Each of the decisions was refused for this reason; the record is read once. */
  async function expectReasons(ids: readonly string[], reason: string): Promise<void> {
    await linesOf(rig.gateway, ids.at(-1) ?? '', 2);
    const lines = await rig.gateway.audit();
    const reasons = ids.map((id) => lines.find((line) => line['decision']?.id === id)?.['decision'].reasons);
    expect(reasons).toEqual(ids.map(() => [reason]));
  }

  it('[PRE-03] the old name looks, to the byte, like one that does not exist', PATIENT, async () => {
    const ids: string[] = [];
    for (const era of ERAS) {
      const { request, leave } = await connectIn(era, rig.access);
      const call = (name: string) => request('tools/call', { name, arguments: { title: 'It', project: 'EVIL' } });
      const old = await call('create_ticket_v2');
      expect([era, shape(old)]).toEqual([era, shape(await call('no_such_tool'))]);
      ids.push(decisionOf(old).id);
      leave();
    }
    await expectReasons(ids, 'tool-unpinned');
    expect(rig.upstream.uses()).toEqual([]);
  });

  /** Members of arguments that no client may send. */
  const SENT = [
    ...['"project":"EVIL"', '"project":"SUPPORT"', '"project":null', '"\\u0070roject":"EVIL"'],
    ...['"Project":"EVIL"', '"PROJECT":1,"proJect":2', '"internal_note":"EVIL"', '"INTERNAL_NOTE":"EVIL"'],
    ...['"internal_note":null', '"limit":1e400', '"Limit":2'],
  ];

  it('[PRE-04] what is fixed or hidden is refused in every spelling', PATIENT, async () => {
    const ids: string[] = [];
    for (const era of ['channels', 'sessions', 'stateless'] as const) {
      const { request, leave } = await connectIn(era, rig.access);
      const params = { name: 'create_ticket', arguments: { title: 'It', MARK: 1 } };
      for (const member of SENT) {
        const write = (message: JsonObject) => JSON.stringify(message).replace('"MARK":1', () => member);
        const reply = await request('tools/call', params, { write });
        expect([member, resultOf(reply)['isError']]).toEqual([member, true]);
        expect(reply.text).not.toMatch(/EVIL|SUPPORT/);
        ids.push(decisionOf(reply).id);
      }
      const write = (message: JsonObject) => JSON.stringify(message).replace('"MARK":1', '"title":"again"');
      expect((await request('tools/call', params, { write })).message).toHaveProperty('error');
      leave();
    }
    await expectReasons(ids, 'arguments-invalid');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[PRE-04] no header gives a fixed value, or the old name', async () => {
    const call = (headers: Record<string, string>) =>
      callStateless(rig.access, 'create_ticket', { title: 'It' }, {}, { headers });
    for (const project of ['EVIL', 'SUPPORT']) {
      const reply = await call({ 'mcp-param-project': project });
      expect(resultOf(reply)['isError']).toBe(true);
      await expectRefusedLines(rig, reply, 'arguments-invalid');
    }
    await expectRefusedLines(rig, await call({ 'mcp-name': 'create_ticket_v2' }), 'header-mismatch');
    const session = await rig.openSession();
    const params = { name: 'create_ticket', arguments: { title: 'It' } };
    const inSession = await session.request('tools/call', params, { 'mcp-param-project': 'SUPPORT' });
    await expectRefusedLines(rig, inSession, 'arguments-invalid');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[PRE-05] the record has the arguments as forwarded, and both names', async () => {
    const reply = await callStateless(rig.access, 'create_ticket', { title: 'It', priority: 'high' });
    expect(resultOf(reply)['isError']).toBeUndefined();
    const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    for (const line of lines)
      expect(line['target']).toMatchObject({ name: 'create_ticket_v2', shown_as: 'create_ticket' });
    expect(new Set(lines[0]?.['args'].keys)).toEqual(new Set(['title', 'priority', 'project', 'limit']));
    const plain = await callStateless(rig.access, 'shout', { id: 'x' });
    for (const line of await linesOf(rig.gateway, decisionOf(plain).id, 2))
      expect(line['target']).not.toHaveProperty('shown_as');
    rig.upstream.forget();
  });

  it('[PRE-05] a tool without a presentation is forwarded byte for byte', async () => {
    const params = '{"name":"shout" ,"arguments":{"id":"\\u0078"}}';
    const body = `{"jsonrpc":"2.0", "id":"7", "method":"tools/call", "params":${params}}`;
    const { id } = await rig.openSession();
    rig.upstream.forget();
    await post(rig.access, body, sessionHeaders(id));
    expect(rig.upstream.uses().map((use) => use.body)).toEqual([body]);
    rig.upstream.forget();
  });

  it('[PRE-07] a reload presents anew, and a call by the name of before is unknown', async () => {
    const file = join(rig.gateway.folder, 'gateway.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(
      file,
      text.replace('name: create_ticket,', 'name: open_ticket,').replace('value: SUPPORT', 'value: HELP'),
    );
    expect((await rig.gateway.reload()).filter(({ severity }) => severity === 'error')).toEqual([]);
    const before = await callStateless(rig.access, 'create_ticket', { title: 'It' });
    expect(shape(before)).toEqual(shape(await callStateless(rig.access, 'no_such_tool', {})));
    // The rule allows another project alone.
    await expectRefusedLines(rig, await callStateless(rig.access, 'open_ticket', { title: 'It' }), 'arguments-invalid');
    await writeFile(file, text);
    await rig.gateway.reload();
  });

  it('[PRE-06] a name that another tool gets is no tool of either, and the control says so', PATIENT, async () => {
    rig.upstream.offer(() => [TICKET, tool('create_ticket'), tool('shout')]);
    await rig.gateway.approvePins();
    await rig.gateway.reload();
    const names = async () => toolNames(await requestStateless(rig.access, 'tools/list'));
    await expect.poll(names, { timeout: 5_000, interval: 50 }).toEqual(['shout']);
    for (const name of ['create_ticket', 'create_ticket_v2']) {
      const reply = await callStateless(rig.access, name, { title: 'It' });
      expect(shape(reply)).toEqual(shape(await callStateless(rig.access, 'no_such_tool', {})));
    }
    expect(rig.upstream.uses()).toEqual([]);
    await expect
      .poll(() => rig.gateway.log(), { timeout: 5_000, interval: 50 })
      .toContain('another tool has the name \\"create_ticket\\"');
    rig.upstream.offer(() => [TICKET, tool('shout')]);
    await rig.gateway.approvePins();
  });
});

function ticket(more: JsonObject = {}, required: readonly string[] = ['title']): JsonObject {
  const text = { type: 'string' };
  return {
    name: 'create_ticket_v2',
    description: 'Creates a ticket.',
    inputSchema: { type: 'object', properties: { title: text, project: text, note: text }, required, ...more },
  };
}

const FIXED =
  'tools: {create_ticket_v2: {name: create_ticket, parameters: {project: {value: SUPPORT}, note: {hide: true}}}}';

const namesIn = async ({ access }: World) => toolNames(await requestStateless(access, 'tools/list'));

describe('[PRE-05] a person who is asked for a yes', () => {
  it('is shown the call as it will be forwarded, and both names', async () => {
    const policies = {
      p: [
        'version: 1',
        'policy: p',
        'rules:',
        '  - {id: all, effect: allow, who: {anyone: true}, what: {tools: [create_ticket_v2]}}',
        '  - id: ask',
        '    effect: require',
        '    who: {anyone: true}',
        '    what: {tools: [create_ticket_v2]}',
        '    when: args.project == "SUPPORT"',
        '    approval: {by: caller, proof: client}',
      ].join('\n'),
    };
    const upstream = ['pinning: {maxAge: 1h}', FIXED];
    await withWorld({ tools: [ticket()], upstream, policies }, async ({ access, gateway, upstream: server }) => {
      const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
      const asked = resultOf(await callStateless(access, 'create_ticket', { title: 'It' }, meta));
      const request = (asked['inputRequests'] as JsonObject)['gw.approval'] as { params: JsonObject };
      expect(request.params['message']).toContain('u: create_ticket_v2, which your client knows as create_ticket\n');
      expect(request.params['message']).toContain('"project":"SUPPORT"');
      expect(server.uses()).toEqual([]);
      const inputResponses = { 'gw.approval': { action: 'accept', content: { approve: true } } };
      const params = { name: 'create_ticket', arguments: { title: 'It' }, inputResponses, _meta: meta };
      await requestStateless(access, 'tools/call', params);
      const [use] = server.uses();
      expect(use && paramsOf(use)).toMatchObject({
        name: 'create_ticket_v2',
        arguments: { title: 'It', project: 'SUPPORT' },
      });
      // A yes is for the call as it is forwarded: presented otherwise meanwhile, it is asked about anew.
      const later = { title: 'Later' };
      resultOf(await callStateless(access, 'create_ticket', later, meta));
      const file = join(gateway.folder, 'gateway.yaml');
      const text = await readFile(file, 'utf8');
      await writeFile(file, text.replace('note: {hide: true}', 'note: {value: of the desk}'));
      expect((await gateway.reload()).filter(({ severity }) => severity === 'error')).toEqual([]);
      server.forget();
      const late = resultOf(await requestStateless(access, 'tools/call', { ...params, arguments: later }));
      expect(JSON.stringify(late['inputRequests'])).toContain('of the desk');
      expect(server.uses()).toEqual([]);
      await requestStateless(access, 'tools/call', { ...params, arguments: later });
      expect(server.uses().map(paramsOf)).toMatchObject([{ arguments: { ...later, note: 'of the desk' } }]);
      await writeFile(file, text);
      await gateway.reload();
      const command = (name: string) =>
        runCommand(['explain', 'call', `u/${name}`, '--args', '{"title":"x"}', '-c', 'gateway.yaml'], {
          cwd: gateway.folder,
        });
      const { stdout } = await command('create_ticket_v2');
      expect(stdout).toContain('clients know the tool as create_ticket\n');
      expect(stdout).toContain('filled in /project: "SUPPORT"');
      expect((await command('create_ticket')).stderr).toContain('; clients know "create_ticket_v2" by it');
    });
  });
});

describe('[PRE-01, PRE-03] a presented tool', () => {
  it('begins a task by its own name at the server, and none by its old name', async () => {
    const tasks = createTaskServer();
    const order = (request: HostileRequest) => {
      if (request.method === 'initialize') return initializeWithTasks(request);
      if (request.httpMethod === 'DELETE' || request.method?.startsWith('notifications/') === true)
        return { kind: 'http', status: 202 } as const;
      return tasks.order(request);
    };
    const upstream = ['pinning: {maxAge: 1h}', 'tools: {talk: {name: speak}}'];
    const policies = { p: ALLOW_ALL.replace('tools: ["*"]', 'tools: [talk]') };
    await withWorld({ tools: TASK_TOOLS, upstream, policies }, async ({ upstream: server, openSession }) => {
      server.obey(order);
      const session = await openSession();
      server.forget();
      const begin = (name: string) => session.request('tools/call', { name, arguments: {}, task: { ttl: 60_000 } });
      const task = resultOf(await begin('speak'))['task'] as JsonObject;
      expect(server.uses().map(paramsOf)).toMatchObject([{ name: 'talk', task: { ttl: 60_000 } }]);
      expect(errorOf(await begin('talk'))['code']).toBe(-32602);
      const taskId = String(task['taskId']);
      expect(resultOf(await session.request('tasks/get', { taskId }))).toMatchObject({ taskId, status: 'working' });
      expect(tasks.begun).toHaveLength(1);
    });
  });

  it('has its names, and what is filled in, at a server of HTTP+SSE', async () => {
    const server = await untilTestEnds(startSseServer());
    const more = ['transport: http-sse', 'tools: {echo: {name: say, parameters: {text: {default: hello}}}}'];
    const policies = { open: ALLOW_ALL };
    await withGateway({ upstreams: [{ name: 'old', url: server.url, more }], policies }, async (gateway) => {
      const access = { url: gateway.url('old'), token: await gateway.token('old') };
      const names = toolNames(await requestStateless(access, 'tools/list'));
      expect([names.includes('say'), names.includes('echo')]).toEqual([true, false]);
      expect(resultOf(await callStateless(access, 'say', {}))).toMatchObject({ content: [{ text: 'hello' }] });
      expect(resultOf(await callStateless(access, 'say', { text: 'other' }))).toMatchObject({
        content: [{ text: 'other' }],
      });
      expect(errorOf(await callStateless(access, 'echo', { text: 'x' }))['code']).toBe(-32602);
    });
  });
});

describe('[PRE-06] without pins, definitions that change', () => {
  it('take a tool away that can no longer be presented, and give its name to no other', async () => {
    const upstream = ['pinning: {mode: "off"}', FIXED];
    await withWorld({ tools: [ticket()], upstream, result: (name) => ({ content: [], name }) }, async (world) => {
      const { upstream: server, access } = world;
      const call = async (name: string) => {
        server.forget();
        await callStateless(access, name, { title: 'x' });
        return server.uses().map(paramsOf);
      };
      const forwarded = [{ name: 'create_ticket_v2', arguments: { title: 'x', project: 'SUPPORT' } }];
      expect(await namesIn(world)).toEqual(['create_ticket']);
      expect(await call('create_ticket')).toMatchObject(forwarded);
      // A server without pins may read a name in any spelling.
      for (const name of ['CREATE_TICKET_V2', ' create_ticket_v2', 'create_ticket_v2\u200b'])
        expect(await call(name)).toEqual([]);
      // Another tool takes the name: it is nobody's way around what is fixed.
      server.offer(() => [tool('create_ticket'), ticket()]);
      const listed = resultOf(await requestStateless(access, 'tools/list'))['tools'];
      expect(listed).toMatchObject([{ name: 'create_ticket', description: 'Creates a ticket.' }]);
      expect(await call('create_ticket')).toMatchObject(forwarded);
      const hostile: readonly JsonObject[] = [
        // What is hidden is needed, or something may depend on it.
        ticket({}, ['title', 'note']),
        ticket({ anyOf: [{ required: ['note'] }, {}] }),
        // What is fixed is no parameter any more, or has a twin.
        ticket({ properties: { title: { type: 'string' }, note: { type: 'string' } } }),
        ticket({ properties: { title: {}, project: {}, Project: {}, note: {} } }),
      ];
      for (const definition of hostile) {
        server.offer(() => [definition]);
        expect(await namesIn(world)).toEqual([]);
        for (const name of ['create_ticket', 'create_ticket_v2']) expect(await call(name)).toEqual([]);
      }
    });
  });
});
