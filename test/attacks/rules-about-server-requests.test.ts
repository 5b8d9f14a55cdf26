// What rules demand of the requests that a server makes of its client holds in whatever form they come: a request of a
// session, an error that demands visits, an input request of a result or of a task. Source:
// docs/reference/policies.md#server-requests-by-content.

import { afterEach, describe, expect, it } from 'vitest';
import { ALLOW_ALL, type AttackRig, UPSTREAM } from '../support/gateway.js';
import { jsonBody, onMethod } from '../support/hostile-acts.js';
import type { HostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { askStateless, beginStateless, createTaskServer, TASK_TOOLS, type TaskServer } from '../support/mcp-servers.js';
import { openRawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { type Access, openEvents } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CALL = { name: 'talk', arguments: { id: 'one' } };
const DECLARED = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

let server: TaskServer;
let callers = 0;

/** A caller whose limits are untouched. */
async function newCaller(): Promise<Access> {
  callers += 1;
  const token = await rig.gateway.token(UPSTREAM, { sub: `caller ${callers}` });
  return { url: rig.access.url, token };
}

async function grant(members: string, more = ''): Promise<void> {
  await rig.gateway.writePolicy('questions', grantQuestions(undefined, `${members}${more}`));
  expect((await rig.gateway.reload()).filter(({ severity }) => severity === 'error')).toEqual([]);
}

/** Gives the elicitation to the client, and returns all that the client received. */
type Form = (access: Access, elicitation: JsonObject) => Promise<string>;

async function inSession({ token = '' }: Access) {
  return openRawSession(rig.access.url, { token, capabilities: ALL_QUESTIONS });
}

const asRequest: Form = async (access, elicitation) => {
  const session = await inSession(access);
  const question = { id: 'q', method: 'elicitation/create', params: elicitation };
  rig.upstream.obey(onMethod('tools/call', (request) => askThenAnswer(request, [question], 5)));
  return JSON.stringify((await session.ask(9, 'tools/call', CALL)).messages);
};

function demand(elicitation: JsonObject): JsonObject {
  return { code: -32042, message: 'Visit first', data: { elicitations: [elicitation] } };
}

const asError: Form = async (access, elicitation) => {
  const session = await inSession(access);
  rig.upstream.obey(
    onMethod('tools/call', ({ id = 0 }) => jsonBody({ jsonrpc: '2.0', id, error: demand(elicitation) })),
  );
  return JSON.stringify((await session.ask(9, 'tools/call', CALL)).messages);
};

const asResult: Form = async (access, params) => {
  const inputRequests = { a: { method: 'elicitation/create', params } };
  const result = { resultType: 'input_required', inputRequests };
  rig.upstream.obey(onMethod('tools/call', ({ id = 0 }) => jsonBody({ jsonrpc: '2.0', id, result })));
  return (await askStateless(access, 'tools/call', CALL, DECLARED)).text;
};

const asTask: Form = async (access, params) => {
  rig.upstream.obey(server.order);
  const taskId = await beginStateless(access);
  const inputRequests = { a: { method: 'elicitation/create', params } };
  server.say(server.begun.at(-1) ?? '', { status: 'input_required', inputRequests });
  return (await askStateless(access, 'tasks/get', { taskId }, DECLARED)).text;
};

const LINK = { mode: 'url', message: 'Visit.', url: 'https://example.com/a', elicitationId: 'e' };
const SCHEMA = { type: 'object', properties: { colour: { type: 'string' } } };

const FORMS: readonly (readonly [string, Form])[] = [
  ['request of a session', asRequest],
  ['error that demands a visit', asError],
  ['input request of a result', asResult],
  ['input request of a task', asTask],
];
const FOR_FORMS = FORMS.filter(([, form]) => form !== asError);

const rig = sharedGateway(() => {
  server = createTaskServer();
  return {
    policies: { open: ALLOW_ALL, questions: grantQuestions() },
    more: 'inspection: {profiles: {closed: {result: {secrets: block}}}}',
    upstream: ['pinning: {maxAge: 10m}'],
    prepare: (upstream: HostileUpstream) => upstream.offer(() => TASK_TOOLS),
  };
});
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

describe('a limit on server requests', () => {
  it.each(FORMS)('counts a link in the form of an %s', async (_name, form) => {
    await grant('    limits: {rate: 1/h, per: subject}\n');
    const access = await newCaller();
    expect(await form(access, LINK)).toContain('example.com');
    expect(await form(access, LINK)).not.toContain('example.com');
  });
});

describe('a profile that a rule demands for server requests', () => {
  const strict = (kind: string) => `  - id: strictly
    effect: require
    who: {anyone: true}
    what: {elicitation: [${kind}]}
    inspect: closed
`;

  it.each(FOR_FORMS)('holds for a form in the form of an %s', async (_name, form) => {
    const secret = `Use ${makeGithubToken()}.`;
    const asked = { mode: 'form', message: secret, requestedSchema: SCHEMA };
    await grant('');
    const shown = await form(await newCaller(), asked);
    expect(shown).toContain('colour');
    expect(shown).toContain('[redacted:');
    await grant('', strict('form'));
    expect(await form(await newCaller(), asked)).not.toContain('colour');
  });

  it.each(FORMS)('holds for a link in the form of an %s', async (_name, form) => {
    const asked = { ...LINK, message: `Use ${makeGithubToken()}.` };
    await grant('');
    expect(await form(await newCaller(), asked)).toContain('example.com');
    await grant('', strict('url'));
    expect(await form(await newCaller(), asked)).not.toContain('example.com');
  });
});

describe('the record of a server request', () => {
  const shadow = `version: 1
policy: next
mode: shadow
rules:
  - {id: no-links, effect: deny, who: {anyone: true}, what: {elicitation: [url]}}
`;
  type Line = Awaited<ReturnType<AttackRig['gateway']['audit']>>[number];
  const linesFor = async (subject: string): Promise<readonly Line[]> =>
    (await rig.gateway.audit()).filter((line) => line['target']?.kind === 'question' && line['actor']?.sub === subject);
  const linesOnce = async (count: number): Promise<readonly Line[]> => {
    const subject = `caller ${callers}`;
    await expect.poll(async () => (await linesFor(subject)).length, PATIENT).toBeGreaterThanOrEqual(count);
    return linesFor(subject);
  };

  it.each(FORMS)('says who was asked for what, in the form of an %s', async (_name, form) => {
    await rig.gateway.writePolicy('next', shadow);
    await grant('');
    expect(await form(await newCaller(), LINK)).toContain('example.com');
    const [decided, done] = await linesOnce(2);
    expect(decided).toMatchObject({
      type: 'mcp.decision',
      target: { method: 'elicitation/create', name: 'elicitation/url' },
      decision: { verdict: 'allow', rule: 'ask', action: 'forwarded' },
    });
    expect(decided?.['decision'].shadow).toMatchObject([
      { verdict: 'deny', rule: 'next/no-links', reason: 'denied-by-rule' },
    ]);
    expect(done).toMatchObject({ type: 'mcp.outcome', result: { status: 'ok' } });
  });

  it.each(FORMS)('says why it was refused, in the form of an %s', async (_name, form) => {
    const deny = `  - {id: none, effect: deny, who: {anyone: true}, what: {elicitation: [url]}}
`;
    await grant('', deny);
    expect(await form(await newCaller(), LINK)).not.toContain('example.com');
    const [decided] = await linesOnce(2);
    expect(decided?.['decision']).toMatchObject({ verdict: 'deny', action: 'refused' });
    expect(decided?.['decision'].reasons).toEqual(['denied-by-rule']);
  });

  it('is one for a request that a task repeats at every poll', async () => {
    await grant('');
    const access = await newCaller();
    expect(await asTask(access, LINK)).toContain('example.com');
    await linesOnce(2);
    rig.upstream.obey(server.order);
    const taskId = await beginStateless(access);
    const inputRequests = { a: { method: 'elicitation/create', params: LINK } };
    server.say(server.begun.at(-1) ?? '', { status: 'input_required', inputRequests });
    const poll = () => askStateless(access, 'tasks/get', { taskId }, DECLARED);
    expect((await poll()).text).toContain('example.com');
    expect((await poll()).text).toContain('example.com');
    expect((await poll()).text).toContain('example.com');
    await linesOnce(4);
    await poll();
    expect(await linesOnce(4)).toHaveLength(4);
  });
});

describe('what a rule demands of the results of a tool', () => {
  const demanded = (member: string) =>
    `  - {id: strictly, effect: require, who: {anyone: true}, what: {tools: [talk]}, ${member}}\n`;

  it.each(
    FORMS.flatMap(([name, form]) => [
      [name, 'inspect: closed', form] as const,
      [name, 'maxResultBytes: 300', form] as const,
    ]),
  )('holds for what its server requests as an %s: %s', async (_name, member, form) => {
    const message = `Use ${makeGithubToken()}. ${'It is long. '.repeat(40)}`;
    const request = form === asError ? { ...LINK, message } : { mode: 'form', message, requestedSchema: SCHEMA };
    await grant('');
    expect(await form(await newCaller(), request)).toContain('It is long.');
    await grant('', demanded(member));
    expect(await form(await newCaller(), request)).not.toContain('It is long.');
  });
});

describe('the error that demands visits in sessions', () => {
  it('does not pass with more links than a result may have input requests', async () => {
    await grant('');
    const session = await inSession(await newCaller());
    const data = { elicitations: Array.from({ length: 65 }, () => LINK) };
    const error = { code: -32042, message: 'Visit first', data };
    rig.upstream.obey(onMethod('tools/call', ({ id = 0 }) => jsonBody({ jsonrpc: '2.0', id, error })));
    const { text } = await session.ask(9, 'tools/call', CALL);
    expect(text).toContain('elicitation-url');
    expect(text).not.toContain('example.com');
  });

  it('does not pass as the end of a task or of a subscription without one', async () => {
    const access = await newCaller();
    rig.upstream.obey(server.order);
    const taskId = await beginStateless(access);
    server.say(server.begun.at(-1) ?? '', { status: 'failed', error: demand(LINK) });
    const task = await askStateless(access, 'tasks/get', { taskId }, DECLARED);
    expect(task.text).not.toContain('example.com');
    expect(task.text).toContain('elicitation-url');
    rig.upstream.obey(
      onMethod('subscriptions/listen', ({ id = 0 }) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [`data: ${JSON.stringify({ jsonrpc: '2.0', id, error: demand(LINK) })}\n\n`],
        ending: 'end',
      })),
    );
    const params = { notifications: { toolsListChanged: true } };
    const events = await openEvents(access, 'subscriptions/listen', params);
    const received = JSON.stringify(await events.next());
    events.leave();
    expect(received).toContain('error');
    expect(received).not.toContain('example.com');
  });
});
