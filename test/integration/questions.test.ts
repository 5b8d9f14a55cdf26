// Questions of servers under policies that grant less, change, or count; and answers that nobody may give.
// Source: docs/reference/policies.md#server-requests-by-content; docs/reference/state.md; MCP 2025-11-25, transports.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL, expectRefusedLines, UPSTREAM } from '../support/gateway.js';
import { jsonBody } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession, type RawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { post, sessionHeaders } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const SAMPLING = {
  method: 'sampling/createMessage',
  params: { maxTokens: 1, messages: [{ role: 'user', content: { type: 'text', text: 'x' } }] },
};
const ROOTS = { method: 'roots/list' };
const FORM = {
  method: 'elicitation/create',
  params: { message: 'x', requestedSchema: { type: 'object', properties: {} } },
};

let session: RawSession;

async function open(capabilities: object = ALL_QUESTIONS, token = rig.access.token) {
  return openRawSession(rig.access.url, { token: token ?? '', capabilities });
}

async function grant(policy: string): Promise<void> {
  await rig.gateway.writePolicy('questions', policy);
  expect((await rig.gateway.reload()).filter(({ severity }) => severity === 'error')).toEqual([]);
}

/** Asks all of these in the answer to a call; what of them reached the client. */
async function asked(questions: readonly JsonObject[], place = session): Promise<JsonObject[]> {
  rig.upstream.obey((request) =>
    request.method === 'tools/call'
      ? askThenAnswer(
          request,
          questions.map((question, index) => ({ id: `q${index}`, ...question })),
          5,
        )
      : undefined,
  );
  const { messages } = await place.ask(9, 'tools/call', CALL);
  expect(messages.at(-1)).toMatchObject({ id: 9 });
  return messages.slice(0, -1);
}

const methodsOf = (messages: readonly JsonObject[]) => messages.map(({ method }) => method);

const rig = sharedGateway({
  policies: { open: ALLOW_ALL, questions: grantQuestions() },
  more: 'inspection: {profiles: {closed: {result: {secrets: block}}}}',
});
beforeAll(async () => {
  session = await open();
});
afterEach(async () => {
  rig.upstream.repent();
  rig.upstream.forget();
  await grant(grantQuestions());
});

describe('[Q-03] a question', () => {
  it('that is not granted is gone from the capabilities, and refused when it comes all the same', async () => {
    await grant(grantQuestions('roots: true'));
    rig.upstream.forget();
    const place = await open();
    const [initialize] = rig.upstream.seen().filter(({ method }) => method === 'initialize');
    expect(initialize?.message).toMatchObject({
      params: { capabilities: { roots: { listChanged: true } } },
    });
    expect(initialize?.body).not.toMatch(/sampling|elicitation/);
    expect(methodsOf(await asked([SAMPLING, FORM, ROOTS], place))).toEqual(['roots/list']);
    await expect.poll(() => answersTo(rig.upstream).size, PATIENT).toBe(2);
    for (const id of ['q0', 'q1']) {
      expect(answersTo(rig.upstream).get(id)).toMatchObject({ error: { code: -32601 } });
    }
    const reasons = async () =>
      (await rig.gateway.audit())
        .filter((line) => line['target']?.kind === 'question')
        .flatMap((line) => line['decision'].reasons);
    await expect.poll(reasons, PATIENT).toContain('sampling-forbidden');
    await expect.poll(reasons, PATIENT).toContain('no-matching-allow');
  });

  it('that was not declared is refused though it is granted', async () => {
    const place = await open({ sampling: {} });
    expect(methodsOf(await asked([SAMPLING, FORM, ROOTS], place))).toEqual(['sampling/createMessage']);
  });

  it('that was granted when the session was opened is refused once it is not', async () => {
    expect(await asked([SAMPLING])).toHaveLength(1);
    await grant(grantQuestions('roots: true'));
    expect(await asked([SAMPLING])).toEqual([]);
  });

  it('that a deny rule names is refused, whoever allows it', async () => {
    const deny = `  - id: no-forms
    effect: deny
    who: {anyone: true}
    what: {elicitation: [form]}
`;
    await grant(grantQuestions(undefined, deny));
    expect(methodsOf(await asked([FORM, ROOTS]))).toEqual(['roots/list']);
  });

  const linking = (url: string) => ({
    method: 'elicitation/create',
    params: { mode: 'url', message: 'Visit.', url, elicitationId: 'e' },
  });
  const HOSTS = 'elicitation: {form: true, url: [login.example.com, "*.sso.example.com"]}';

  it('with a link is refused unless its host is one that the rule names', async () => {
    await grant(grantQuestions(HOSTS));
    const place = await open();
    const links = [
      'https://login.example.com/a',
      'https://evil.example/login.example.com',
      'https://a.sso.example.com/',
      'https://login.example.com:8443/',
    ].map(linking);
    const shown = await asked(links, place);
    expect(shown.map(({ params }) => (params as JsonObject)['url'])).toEqual([
      'https://login.example.com/a',
      'https://a.sso.example.com/',
    ]);
    await expect.poll(() => answersTo(rig.upstream).size, PATIENT).toBe(2);
    for (const id of ['q1', 'q3']) expect(answersTo(rig.upstream).get(id)).toMatchObject({ error: { code: -32602 } });
    const refused = async () =>
      (await rig.gateway.audit()).filter(
        ({ type, target, decision }) =>
          type === 'mcp.outcome' &&
          target.name === 'elicitation/url' &&
          decision.reasons?.includes('elicitation-url') === true,
      ).length;
    await expect.poll(refused, PATIENT).toBe(2);
  });

  it('by an error is withheld unless every link is to a host that the rule names', async () => {
    await grant(grantQuestions(HOSTS));
    const place = await open();
    const failing = async (...urls: readonly string[]) => {
      const elicitations = urls.map((url) => linking(url).params);
      rig.upstream.obey((request) =>
        request.method === 'tools/call'
          ? jsonBody({
              jsonrpc: '2.0',
              id: request.id ?? 0,
              error: { code: -32042, message: 'Visit first', data: { elicitations } },
            })
          : undefined,
      );
      return JSON.stringify((await place.ask(9, 'tools/call', CALL)).messages);
    };
    expect(await failing('https://login.example.com/a')).toContain('Visit first');
    const other = await failing('https://login.example.com/a', 'https://evil.example/');
    expect(other).not.toContain('evil.example');
    expect(other).toContain('elicitation-url');
  });

  it('for sampling is refused unless its context and tools are those that the rule names', async () => {
    const sampling = 'sampling: {includeContext: [none, thisServer], tools: [search]}';
    await grant(grantQuestions(sampling));
    const place = await open({ sampling: { tools: {}, context: {} } });
    const withParams = (params: JsonObject) => ({
      ...SAMPLING,
      params: { ...SAMPLING.params, ...params },
    });
    const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
    const shown = await asked(
      [
        withParams({ includeContext: 'thisServer', tools: [tool('search')] }),
        withParams({ includeContext: 'allServers' }),
        withParams({ tools: [tool('search'), tool('wipe')] }),
        withParams({ IncludeContext: 'allServers' }),
        SAMPLING,
      ],
      place,
    );
    expect(shown.map(({ params }) => (params as JsonObject)['includeContext'])).toEqual(['thisServer', undefined]);
    await expect.poll(() => answersTo(rig.upstream).size, PATIENT).toBe(3);
  });

  it('for sampling may be declared only with what a rule could allow', async () => {
    const declared = async (what: string) => {
      await grant(grantQuestions(what));
      rig.upstream.forget();
      await open({ sampling: { tools: {}, context: {}, other: 1 } });
      const [initialize] = rig.upstream.seen().filter(({ method }) => method === 'initialize');
      return (initialize?.message?.['params'] as JsonObject | undefined)?.['capabilities'];
    };
    expect(await declared('sampling: true')).toEqual({
      sampling: { tools: {}, context: {}, other: 1 },
    });
    expect(await declared('sampling: {tools: false}')).toEqual({
      sampling: { context: {}, other: 1 },
    });
    expect(await declared('sampling: {includeContext: [none], tools: false}')).toEqual({
      sampling: { other: 1 },
    });
  });

  it('[Q-09] is counted once, when it is asked', async () => {
    await grant(grantQuestions(undefined, '    limits: {rate: 2/min, per: subject}\n'));
    const token = await rig.gateway.token(UPSTREAM, { sub: 'counted' });
    const place = await open(ALL_QUESTIONS, token);
    const [first] = await asked([ROOTS], place);
    const answer = { jsonrpc: '2.0', id: first?.['id'], result: { roots: [] } };
    const reply = await post({ ...rig.access, token }, JSON.stringify(answer), place.headers);
    expect(reply.status).toBe(202);
    expect(await asked([ROOTS, ROOTS], place)).toHaveLength(1);
    await expect.poll(() => answersTo(rig.upstream).get('q1'), PATIENT).toMatchObject({ error: { code: -32603 } });
  });

  it('[Q-09] is inspected under the profile that a rule asks for', async () => {
    const text = `Use ${makeGithubToken()}.`;
    const telling = { ...FORM, params: { ...FORM.params, message: text } };
    expect(JSON.stringify(await asked([telling]))).toContain('[redacted:');
    const strict = `  - id: strictly
    effect: require
    who: {anyone: true}
    what: {elicitation: [form]}
    inspect: closed
`;
    await grant(grantQuestions(undefined, strict));
    expect(await asked([telling])).toEqual([]);
  });
});

describe('[Q-07] an answer', () => {
  it('does not leave with a secret, under whatever name it stands', async () => {
    const [first] = await asked([SAMPLING]);
    rig.upstream.forget();
    const requestState = makeGithubToken();
    const content = { type: 'text', text: 'told' };
    const result = { model: 'm', role: 'assistant', content, requestState };
    const answer = { jsonrpc: '2.0', id: first?.['id'], result };
    const reply = await post(rig.access, JSON.stringify(answer), session.headers);
    await expectRefusedLines(rig, reply, 'arguments-content');
    expect(JSON.stringify(rig.upstream.seen().map(({ body }) => body))).not.toContain(requestState);
  });

  const answering = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result: { roots: [] } });

  it('is 202 with no body, once and for its own session', async () => {
    const [question] = await asked([ROOTS]);
    const body = answering(question?.['id']);
    const reply = await post(rig.access, body, session.headers);
    expect([reply.status, reply.text]).toEqual([202, '']);
    expect(answersTo(rig.upstream).get('q0')).toMatchObject({ result: { roots: [] } });
    rig.upstream.forget();
    const other = await open();
    const elsewhere = await post(rig.access, body, other.headers);
    expect(elsewhere.status).toBe(400);
    await expectRefusedLines(rig, elsewhere, 'invalid-message');
    const mallory = await rig.gateway.token(UPSTREAM, { sub: 'mallory' });
    const theirs = await open(ALL_QUESTIONS, mallory);
    const stolen = { ...rig.access, token: mallory };
    const { authorization: _own, ...bare } = session.headers;
    expect((await post(stolen, body, bare)).status).toBe(404);
    const { authorization: _theirs, ...named } = theirs.headers;
    expect((await post(stolen, body, named)).status).toBe(400);
    expect(answersTo(rig.upstream).size).toBe(0);
  });

  const answersSeen = () => rig.upstream.seen().filter(({ message, method }) => message !== undefined && !method);

  it('that is posted again, later or at the same time, reaches the server once', async () => {
    const [question] = await asked([ROOTS]);
    rig.upstream.forget();
    const body = answering(question?.['id']);
    const atOnce = await Promise.all([1, 2, 3].map(() => post(rig.access, body, session.headers)));
    expect(atOnce.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
    const late = await post(rig.access, body, session.headers);
    expect(late.status).toBe(409);
    await expectRefusedLines(rig, late, 'already-answered');
    const error = { jsonrpc: '2.0', id: question?.['id'], error: { code: -1, message: 'no' } };
    expect((await post(rig.access, JSON.stringify(error), session.headers)).status).toBe(409);
    expect(answersSeen()).toHaveLength(1);
  });

  it('that was refused is not asked for again: the server has heard that none will come', async () => {
    const [question] = await asked([ROOTS]);
    rig.upstream.forget();
    const uri = `file:///${makeGithubToken()}`;
    const leaking = { jsonrpc: '2.0', id: question?.['id'], result: { roots: [{ uri }] } };
    const refused = await post(rig.access, JSON.stringify(leaking), session.headers);
    await expectRefusedLines(rig, refused, 'arguments-content');
    await expect.poll(() => answersSeen().length, PATIENT).toBe(1);
    await post(rig.access, JSON.stringify(leaking), session.headers);
    const clean = await post(rig.access, answering(question?.['id']), session.headers);
    expect(clean.status).toBe(409);
    const other = await asked([SAMPLING]);
    expect(other).toHaveLength(1);
    expect(answersTo(rig.upstream).get('q0')).toMatchObject({ error: { code: -32603 } });
    expect(answersSeen()).toHaveLength(1);
  });

  it('to nothing, or under an altered id, is 400', async () => {
    const [question] = await asked([ROOTS]);
    const sealed = String(question?.['id']);
    const altered = (sealed.startsWith('A') ? 'B' : 'A') + sealed.slice(1);
    for (const id of ['q0', 1, altered, `${sealed}A`, session.id]) {
      expect((await post(rig.access, answering(id), session.headers)).status).toBe(400);
    }
    expect(answersTo(rig.upstream).size).toBe(0);
  });

  it('that the rules no longer allow is 400, and the server learns that none will come', async () => {
    const [question] = await asked([ROOTS]);
    await grant(grantQuestions('sampling: true'));
    const reply = await post(rig.access, answering(question?.['id']), session.headers);
    expect(reply.status).toBe(400);
    await expect.poll(() => answersTo(rig.upstream).get('q0'), PATIENT).toMatchObject({ error: { code: -32603 } });
  });
});

describe('[Q-17] what a server says about links', () => {
  const complete = {
    jsonrpc: '2.0',
    method: 'notifications/elicitation/complete',
    params: { elicitationId: 'e' },
  };

  it('passes only where links were granted', async () => {
    rig.upstream.obey((request) =>
      request.method === 'tools/call' ? askThenAnswer(request, [complete], 5) : undefined,
    );
    expect((await session.ask(1, 'tools/call', CALL)).messages).toHaveLength(2);
    const forms = await open({ elicitation: {} });
    expect((await forms.ask(1, 'tools/call', CALL)).messages).toHaveLength(1);
  });

  it('changed roots reach the server only where roots were granted', async () => {
    const note = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
    expect((await post(rig.access, note, session.headers)).status).toBe(202);
    const none = await open({ sampling: {} });
    rig.upstream.forget();
    expect((await post(rig.access, note, none.headers)).status).toBe(202);
    expect(rig.upstream.seen()).toEqual([]);
  });
});

describe('[Q-16] a session that is no session', () => {
  it('is one and the same 404: ended, foreign, altered, made up, or lost by the upstream', async () => {
    const ended = await rig.openSession();
    await ended.end();
    const own = await rig.openSession();
    const lost = await rig.openSession();
    const mallory = rig.as(await rig.gateway.token(UPSTREAM, { sub: 'mallory' }));
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    rig.upstream.obeyOnce(({ method }) => (method === 'ping' ? { kind: 'http', status: 404 } : undefined));
    const replies = [
      await post(rig.access, ping, sessionHeaders(lost.id)),
      await post(rig.access, ping, sessionHeaders(lost.id)),
      await post(rig.access, ping, sessionHeaders(ended.id)),
      await post(mallory, ping, sessionHeaders(own.id)),
      await post(rig.access, ping, sessionHeaders(`${own.id}A`)),
      await post(rig.access, ping, sessionHeaders('made-up')),
    ];
    const shapes = replies.map((reply) => [reply.status, reply.text.replace(/[0-9a-f-]{36}/, 'ID')]);
    for (const shape of shapes) expect(shape).toEqual(shapes[0]);
    expect(shapes[0]?.[0]).toBe(404);
    expect((await post(rig.access, ping, sessionHeaders(own.id))).status).toBe(200);
  });
});
