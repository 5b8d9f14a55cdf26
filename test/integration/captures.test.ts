// Arguments that rules have recorded, from the policy file to the line of the audit: whoever calls, however
// it is called and however it ends; without secrets, and bounded.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readAudit } from '../support/audit-chain.js';
import { runCommand } from '../support/commands.js';
import { ALLOW_ALL, type AuditLine, decisionOf, linesOf } from '../support/gateway.js';
import { jsonBody, onMethod, resultFor, sessionsOnly, statelessOnly } from '../support/hostile-acts.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { askStateless, beginStateless, createTaskServer, TASK_TOOLS } from '../support/mcp-servers.js';
import { openRawSession, postRaw } from '../support/raw-mcp.js';
import { makeCard, makeGithubToken, makeSecret, makeSsn } from '../support/secrets.js';
import { callStateless, openSession, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const MAX_LINE_CHARACTERS = 256 * 1024;
const MANY = Array.from({ length: 80 }, (_, index) => `member${index}`);
const TOOLS: readonly JsonObject[] = ['open_record', 'closed_record', 'other_record'].map((name) => ({
  name,
  description: 'Does something with a record.',
  inputSchema: {
    type: 'object',
    properties: {
      id: { type: ['string', 'number', 'boolean', 'null'] },
      note: {},
      parts: { type: 'array', items: { type: 'object', properties: { of: {} } } },
      'a/b': { type: 'string' },
      ...Object.fromEntries(MANY.map((member) => [member, { type: 'string' }])),
    },
  },
}));
const CAPTURES = 'audit: {capture: [/id, /note, /parts, /parts/1/of, /a~1b, /absent]}';

const POLICIES = {
  captures: `version: 1
policy: captures
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], prompts: ["*"]}
  - id: no-forbidden
    effect: deny
    who: {anyone: true}
    what: {tools: [open_record]}
    args: {id: {const: forbidden}}
  - id: nobody-closes
    effect: deny
    who: {anyone: true}
    what: {tools: [closed_record]}
  - id: ids
    effect: require
    who: {anyone: true}
    what: {tools: [open_record, closed_record], prompts: ["*"]}
    ${CAPTURES.replace(', /absent', '')}
  - id: names
    effect: require
    who: {anyone: true}
    what: {tools: [open_record]}
    when: args.id == "limited"
    limits: {rate: 1/h, per: subject}
    audit: {capture: [/member0]}
  - id: many
    effect: require
    who: {anyone: true}
    what: {tools: [open_record]}
    args: {member70: {type: string}}
    audit: {capture: [${MANY.slice(0, 64).map((member) => `/${member}`)}]}
`,
};
const FLAGGING = `inspection:
  profiles:
    default: {request: {secrets: flag}}
endpoints:
  all: {issuers: [test], upstreams: {target: {prefix: t_}}}
`;

const rig = sharedGateway({
  policies: POLICIES,
  more: FLAGGING,
  prepare(upstream) {
    upstream.offer(() => TOOLS);
    upstream.answerCalls(() => ({ content: [{ type: 'text', text: 'done' }] }));
    upstream.obey(answerPrompts);
  },
});
afterEach(() => {
  rig.upstream.obey(answerPrompts);
});

const answerPrompts = onMethod('prompts/get', (request) => jsonBody(resultFor(request, { messages: [] })));

/** The arguments of the newest call, as both of its lines record them. */
async function recorded(about: (line: AuditLine) => boolean = () => true): Promise<AuditLine> {
  const find = async (): Promise<AuditLine | undefined> =>
    (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.outcome' && about(line));
  await expect.poll(find).toBeDefined();
  const outcome = (await find()) as AuditLine;
  const lines = await linesOf(rig.gateway, outcome['decision'].id, 2);
  expect(lines.map(({ type }) => type)).toEqual(['mcp.decision', 'mcp.outcome']);
  expect(lines[0]?.['args']).toEqual(lines[1]?.['args']);
  return outcome;
}

/** What was captured of the call with this id of a request. */
async function capturedOf(args: JsonObject, tool = 'open_record'): Promise<JsonObject> {
  const id = randomUUID();
  await requestStateless(rig.access, 'tools/call', { name: tool, arguments: args }, { id });
  const line = await recorded((one) => one['target'].request_id === id);
  return line['args'].captured as JsonObject;
}

describe('[O-09] what rules capture', () => {
  it('is the text of the value at each pointer, and nothing where there is none', async () => {
    expect(await capturedOf({ id: 'R-1', 'a/b': 'slash' })).toEqual({
      '/id': 'R-1',
      '/a~1b': 'slash',
    });
    expect(await capturedOf({ id: 7, note: { by: ['ada', 1, null, true] } })).toEqual({
      '/id': '7',
      '/note': '{"by":["ada",1,null,true]}',
    });
    expect(await capturedOf({ id: null, parts: [{ of: 'x' }, { of: 'y' }] })).toEqual({
      '/id': 'null',
      '/parts': '[{"of":"x"},{"of":"y"}]',
      '/parts/1/of': 'y',
    });
    expect(await capturedOf({ note: '__proto__' }, 'other_record')).toEqual({});
  });

  it('is recorded of a session, of an element of an array, of a prompt and of an endpoint', async () => {
    const session = await openSession(rig.access);
    await session.call('open_record', { id: 'in a session' });
    const captures = async (): Promise<unknown> => (await recorded())['args']?.captured;
    await expect.poll(captures).toEqual({ '/id': 'in a session' });

    const { url, token = '' } = rig.access;
    const older = await openRawSession(url, { token, version: '2025-03-26' });
    const element = (id: number, name: string, args: JsonObject) => ({
      ...{ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } },
    });
    const both = [element(31, 'open_record', { id: 'first' }), element(32, 'open_record', { id: 'second' })];
    await postRaw(url, both, { headers: older.headers });
    for (const [id, text] of [
      [31, 'first'],
      [32, 'second'],
    ] as const) {
      const line = await recorded(({ target }) => target.request_id === id);
      expect(line['args'].captured).toEqual({ '/id': text });
    }

    const params = { name: 'summary', arguments: { id: 'of a prompt' } };
    rig.upstream.obey(offerPrompt);
    await rig.gateway.approvePins();
    await rig.gateway.reload();
    await expect
      .poll(async () => {
        await requestStateless(rig.access, 'prompts/get', params);
        return recorded(({ target }) => target.kind === 'prompt');
      })
      .toMatchObject({ args: { captured: { '/id': 'of a prompt' } } });

    const all = { url: rig.gateway.url('all'), token: await rig.gateway.token('all') };
    await callStateless(all, 't_open_record', { id: 'of an endpoint' });
    const line = await recorded(({ target }) => target?.endpoint === 'all' && target.name !== null);
    expect(line['args'].captured).toEqual({ '/id': 'of an endpoint' });
  });

  it('is recorded of what is refused too: by arguments, by a rule, by a limit, and hidden', async () => {
    const cases: readonly (readonly [JsonObject, string, string])[] = [
      [{ id: ['no', 'string'] }, 'open_record', 'arguments-invalid'],
      [{ id: 'forbidden' }, 'open_record', 'denied-by-rule'],
      [{ id: 'closed' }, 'closed_record', 'denied-by-rule'],
    ];
    for (const [args, tool, reason] of cases) {
      const reply = await callStateless(rig.access, tool, args);
      const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
      expect(line?.['decision'].reasons).toEqual([reason]);
      const { id } = args;
      const text = typeof id === 'string' ? id : JSON.stringify(id);
      expect(line?.['args'].captured).toEqual({ '/id': text });
    }
    await callStateless(rig.access, 'open_record', { id: 'limited', member0: 'one' });
    const reply = await callStateless(rig.access, 'open_record', { id: 'limited', member0: 'two' });
    const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    expect(line?.['decision'].reasons).toEqual(['rate-limited']);
    expect(line?.['args'].captured).toEqual({ '/id': 'limited', '/member0': 'two' });
  });

  it('holds no secret, no personal data and no token of the caller, written any way', async () => {
    const [token, card, ssn, password] = [makeGithubToken(), makeCard(), makeSsn(), makeSecret()];
    expect(await capturedOf({ id: `with ${token}`, note: `card ${card}` })).toEqual({
      '/id': 'with [redacted:github-token]',
      '/note': 'card [redacted:card]',
    });
    const nested = { password, ssn, token: Buffer.from(token).toString('base64') };
    const kept = String((await capturedOf({ note: [nested] }))['/note']);
    expect(kept).toContain('{"password":"[redacted:');
    expect(kept).toContain('"ssn":"[redacted:ssn]"');
    expect(await capturedOf({ note: { password: 80_273_951_466 } })).toEqual({
      '/note': '{"password":"[redacted:secret]"}',
    });
    // Behind a name that says "secret" nothing is kept, also where results would keep it as a word.
    const secrets = {
      password: 'correct horse',
      note: { secret: { of: ['plain'], at: 7, is: true } },
    };
    expect(await capturedOf({ note: secrets })).toEqual({
      '/note':
        '{"password":"[redacted:secret]","note":{"secret":{"of":["[redacted:secret]"],"at":"[redacted:secret]","is":true}}}',
    });
    // A line that is cut holds no beginning of what was moved up by a removal before it.
    const moved = `${token} ${'z '.repeat(460)}${makeGithubToken()}`;
    expect(await capturedOf({ note: moved })).toMatchObject({
      '/note': expect.stringMatching(/^\[redacted:github-token\](?: z)+\u2026$/),
    });
    const own = await rig.gateway.token('target');
    const refused = await callStateless(rig.as(own), 'open_record', { id: own, note: [own] });
    const [line] = await linesOf(rig.gateway, decisionOf(refused).id, 2);
    expect(line?.['decision'].reasons).toEqual(['arguments-content']);
    expect(JSON.stringify(line?.['args'])).not.toContain(own.slice(0, 24));
    // Names, too, are other people's words: of what is asked for by a name that nobody knows.
    await requestStateless(rig.access, 'resources/read', { uri: `memo://of/${token}` });
    await recorded(({ target }) => target.name === 'memo://of/[redacted:github-token]');
    const file = await readAudit(join(rig.gateway.folder, 'audit.jsonl'));
    for (const secret of [token, card, ssn, password, nested.token]) {
      expect(file).not.toContain(secret);
    }
  });

  it('is cut, and bounded in sum; the chain holds and is shown', async () => {
    const long = 'Zeile \u2028\u{1f512} '.repeat(400);
    const args = Object.fromEntries(MANY.map((member) => [member, long.slice(0, 3000)]));
    const captured = await capturedOf({ ...args, id: 'x'.repeat(500) });
    expect(Object.keys(captured)).toHaveLength(64);
    for (const text of Object.values(captured)) expect(String(text).length).toBe(128);
    const path = join(rig.gateway.folder, 'audit.jsonl');
    const lines = (await readAudit(path)).split('\n');
    for (const line of lines) expect(line.length).toBeLessThan(MAX_LINE_CHARACTERS);

    const audit = (...argv: readonly string[]) => runCommand(['audit', ...argv], { cwd: rig.gateway.folder });
    expect((await audit('verify', path)).code).toBe(0);
    await capturedOf({ id: 'to be shown' });
    const { decision } = await recorded();
    expect((await audit('show', decision.id, path)).stdout).toContain('"/id": "to be shown"');
  });
});

const offerPrompt = (request: Parameters<typeof answerPrompts>[0]) =>
  onMethod('prompts/list', (asked) =>
    jsonBody(
      resultFor(asked, {
        prompts: [{ name: 'summary', arguments: [{ name: 'id' }] }],
        ttlMs: 0,
        cacheScope: 'private',
      }),
    ),
  )(request) ?? answerPrompts(request);

describe('[O-09] what is captured of the call of a task, and of a call on a channel', () => {
  const other = sharedGateway({
    policies: {
      open: ALLOW_ALL,
      captures: `version: 1
policy: captures
rules:
  - {id: ids, effect: require, who: {anyone: true}, what: {tools: ["*"]}, audit: {capture: [/id]}}
`,
    },
    prepare: (upstream) => upstream.offer(() => TASK_TOOLS),
  });
  beforeAll(async () => {
    other.upstream.obey(createTaskServer().order);
  });

  const outcomeOf = async (method: string): Promise<AuditLine | undefined> =>
    (await other.gateway.audit()).findLast(({ type, target }) => type === 'mcp.outcome' && target.method === method);

  it('is recorded where the task began, and is no matter of who asks for it later', async () => {
    const taskId = await beginStateless(other.access, 'talk', { id: 'of a task' });
    await expect.poll(() => outcomeOf('tools/call')).toMatchObject({ args: { captured: { '/id': 'of a task' } } });
    await askStateless(other.access, 'tasks/get', { taskId });
    await expect.poll(() => outcomeOf('tasks/get')).toMatchObject({ args: null });
  });

  it('is recorded of a message that was posted for a stream', async () => {
    other.upstream.repent();
    other.upstream.offer(() => TASK_TOOLS);
    const caller = await openChannelCaller(other.access);
    const call = { name: 'talk', arguments: { id: 'on a channel' } };
    void caller.request('tools/call', call).catch(() => undefined);
    await expect
      .poll(async () => (await other.gateway.audit()).filter(({ args }) => args?.captured?.['/id'] === 'on a channel'))
      .not.toEqual([]);
    caller.channel.leave();
  });
});

describe.each([
  ['sessions', statelessOnly],
  ['stateless', sessionsOnly],
] as const)('[O-09] what a client of %s before the other era has captured', (era, order) => {
  const other = sharedGateway({
    policies: POLICIES,
    prepare(upstream) {
      upstream.offer(() => TOOLS);
      upstream.obey(order);
    },
  });

  it('is recorded as it was sent', async () => {
    if (era === 'stateless') await callStateless(other.access, 'open_record', { id: 'crossing' });
    else await (await openSession(other.access)).call('open_record', { id: 'crossing' });
    await expect
      .poll(async () => (await other.gateway.audit()).findLast(({ args }) => args !== null))
      .toMatchObject({ args: { captured: { '/id': 'crossing' } } });
  });
});
