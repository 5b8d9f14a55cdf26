// A response may come long after its request, on another connection: by then rules may deny the call for its arguments.
// However it comes, it is decided on like the rest of a stream that answers a POST. Source:
// docs/reference/start-and-reload.md#what-is-in-progress; docs/reference/policies.md.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGate } from '../support/changing-rig.js';
import { ALLOW_ALL, type AttackRig, type Era, startRig } from '../support/gateway.js';
import { inTurn, onlyIn, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession } from '../support/raw-mcp.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';

const ANSWER = 'what the server answers late';
const SHORT = 'short';
const LONG = 'long '.repeat(1_000);

let rig: AttackRig;

/** Makes the call; the answer comes after what is done meanwhile. All that the client received. */
type Way = (args: JsonObject, meanwhile: () => Promise<unknown>) => Promise<string>;

/** An event stream of which the second part waits. */
function held(first: string, gate: Promise<unknown>, last: string): Act {
  return {
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: [first, last],
    ending: 'end',
    gate,
  };
}

const isCall = ({ method }: HostileRequest): boolean => method === 'tools/call';
const hasCome = (is: (request: HostileRequest) => boolean): Promise<unknown> =>
  expect.poll(() => rig.upstream.seen().some(is), PATIENT).toBe(true);
let answer = ANSWER;
const answerTo = (request: HostileRequest): string => sseEvent(resultFor(request, textResult(answer)));

const streamed: Way = async (args, meanwhile) => {
  const { passed, open } = createGate();
  rig.upstream.obey(
    inTurn(onlyIn('sessions'), (request) => (isCall(request) ? held(': \n\n', passed, answerTo(request)) : undefined)),
  );
  const { url, token = '' } = rig.access;
  const session = await openRawSession(url, { token });
  const reply = session.ask(1, 'tools/call', { name: 'write_record', arguments: args });
  await hasCome(isCall);
  await meanwhile();
  open();
  return (await reply).text;
};

const resumed: Way = async (args, meanwhile) => {
  const { passed, open } = createGate();
  let asked: HostileRequest | undefined;
  const isResumption = ({ headers }: HostileRequest) => headers['last-event-id'] === 'e/0';
  rig.upstream.obey(
    inTurn(onlyIn('sessions'), (request) => {
      if (isCall(request)) {
        asked = request;
        const chunks = ['id: e/0\ndata: \n\n'];
        return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'end' };
      }
      return asked !== undefined && isResumption(request) ? held(': \n\n', passed, answerTo(asked)) : undefined;
    }),
  );
  const { url, token = '' } = rig.access;
  const session = await openRawSession(url, { token });
  const params = { name: 'write_record', arguments: args };
  const { text } = await session.ask(1, 'tools/call', params);
  const id = /^id: (.*)$/m.exec(text)?.[1] ?? '';
  const headers = { accept: 'text/event-stream', ...session.headers, 'last-event-id': id };
  const stream = fetch(url, { headers });
  await hasCome(isResumption);
  await meanwhile();
  open();
  return (await stream).text();
};

const onChannel: Way = async (args, meanwhile) => {
  const { passed, open } = createGate();
  rig.upstream.obey(
    inTurn(onlyIn('sessions'), (request) => (isCall(request) ? held(': \n\n', passed, answerTo(request)) : undefined)),
  );
  const { channel, request } = await openChannelCaller(rig.access);
  const reply = request('tools/call', { name: 'write_record', arguments: args });
  await hasCome(isCall);
  await meanwhile();
  open();
  const { text } = await reply;
  channel.leave();
  return text;
};

const rule = (id: string, effect: string, more: string) =>
  `  - {id: ${id}, effect: ${effect}, who: {anyone: true}, what: {tools: [write_record]}, ${more}}\n`;

async function apply(more: string, base = ALLOW_ALL): Promise<void> {
  await rig.gateway.writePolicy('open', `${base}${more}`);
  expect((await rig.gateway.reload()).filter(({ severity }) => severity === 'error')).toEqual([]);
}

describe.each<[string, Era, Way]>([
  ['on the stream of its request', 'sessions', streamed],
  ['on a stream that was resumed', 'sessions', resumed],
  ['on a channel of HTTP+SSE', 'channels', onChannel],
  ['on a channel before a server with sessions', 'sessions', onChannel],
])('a response that comes %s', (_where, upstream, way) => {
  beforeAll(async () => {
    rig = await startRig({
      era: upstream,
      policies: { open: ALLOW_ALL },
      more: 'inspection: {profiles: {closed: {result: {secrets: block}}}}',
    });
  });
  afterEach(async () => {
    answer = ANSWER;
    rig.upstream.forget();
    await apply('');
  });
  afterAll(() => rig.close());

  it.each([
    ['short', SHORT],
    ['long', LONG],
  ])('with %s arguments does not pass a rule that denies them meanwhile', async (_size, text) => {
    const deny = rule('no-one', 'deny', 'args: {id: {const: one}}');
    expect(await way({ id: 'one', text }, () => apply(deny))).not.toContain(ANSWER);
  });

  it('does not pass a condition on the arguments that denies them meanwhile', async () => {
    const deny = rule('no-one', 'deny', `when: 'args.text.startsWith("sh")'`);
    expect(await way({ id: 'one', text: SHORT }, () => apply(deny))).not.toContain(ANSWER);
  });

  it('does not pass where only other arguments are allowed meanwhile', async () => {
    const other = ALLOW_ALL.replace('tools: ["*"]', 'tools: [read_record]');
    const allow = rule('two', 'allow', 'args: {id: {const: two}}');
    const meanwhile = () => apply(allow, other);
    expect(await way({ id: 'one', text: SHORT }, meanwhile)).not.toContain(ANSWER);
  });

  it('passes a rule about other arguments, and one about long arguments that was there before', async () => {
    const deny = rule('no-two', 'deny', 'args: {id: {const: two}}');
    expect(await way({ id: 'one', text: SHORT }, () => apply(deny))).toContain(ANSWER);
    expect(await way({ id: 'one', text: LONG }, async () => undefined)).toContain(ANSWER);
  });

  it('passes with long arguments if what changes meanwhile reads none', async () => {
    const deny = rule('late', 'deny', `when: 'principal.subject == "another"'`);
    expect(await way({ id: 'one', text: LONG }, () => apply(deny))).toContain(ANSWER);
  });

  it('is inspected as a rule about its arguments demands meanwhile', async () => {
    answer = `${ANSWER} ${makeGithubToken()}`;
    const of = (id: string) => rule('closed', 'require', `args: {id: {const: ${id}}}, inspect: closed`);
    expect(await way({ id: 'one', text: SHORT }, () => apply(of('two')))).toContain(ANSWER);
    expect(await way({ id: 'one', text: SHORT }, () => apply(of('one')))).not.toContain(ANSWER);
  });
});
