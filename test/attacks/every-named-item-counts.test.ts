// Whoever names many resources or tasks in one request must not have them for the price of one: each counts against the
// limits of the rule that allows it, as in requests of their own.

import { describe, expect, it } from 'vitest';
import { decisionOf, UPSTREAM } from '../support/gateway.js';
import { onMethod } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import {
  askStateless,
  beginStateless,
  createTaskServer,
  EXTENSION,
  initializeWithTasks,
  TASK_TOOLS,
} from '../support/mcp-servers.js';
import { type Access, openEvents, openSession, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const RATE = 5;
const POLICY = `version: 1
policy: open
rules:
  - {id: read, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], resources: ["memo://**"]}, limits: {rate: ${RATE}/h, per: subject}}
  - {id: talk, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: [talk]}, limits: {rate: ${RATE}/h, per: subject}}
`;
const LIMITED = 'rate-limited';

const rig = sharedGateway({
  policies: { open: POLICY },
  prepare(upstream) {
    upstream.offer(() => TASK_TOOLS);
    upstream.obey(createTaskServer().order);
  },
});

const as = async (sub: string): Promise<Access> => rig.as(await rig.gateway.token(UPSTREAM, { sub }));
const uris = (count: number): string[] => Array.from({ length: count }, (_, index) => `memo://${index}`);
const isLimited = (text: string): boolean => text.includes(LIMITED);

/** Opens a subscription and leaves it; the reason why it was refused, if it was. */
async function listen(access: Access, notifications: object): Promise<string | undefined> {
  const meta = {
    'io.modelcontextprotocol/clientCapabilities': { extensions: { [EXTENSION]: {} } },
  };
  const params = { notifications: { ...notifications }, _meta: meta };
  const reader = await openEvents(access, 'subscriptions/listen', params);
  if (reader.headers.get('content-type')?.startsWith('text/event-stream') === true) {
    reader.leave();
    return undefined;
  }
  reader.leave();
  return (await requestStateless(access, 'subscriptions/listen', params)).text;
}

describe('each resource', () => {
  it('of a subscription counts as a request for it', async () => {
    const access = await as('subscriber');
    expect(await listen(access, { resourceSubscriptions: uris(RATE - 1) })).toBeUndefined();
    expect(await listen(access, { resourceSubscriptions: uris(2) })).toContain(LIMITED);
    expect(await listen(access, { resourceSubscriptions: uris(1) })).toBeUndefined();
    const read = await requestStateless(access, 'resources/read', { uri: 'memo://one' });
    expect(decisionOf(read).reason).toBe(LIMITED);
    expect(await listen(access, { toolsListChanged: true })).toBeUndefined();
  });

  it('counts as the same in the subscriptions of sessions', async () => {
    const session = await openSession(await as('in a session'));
    const replies = [];
    for (const uri of uris(RATE + 1)) replies.push((await session.request('resources/subscribe', { uri })).text);
    expect(replies.map(isLimited)).toEqual(uris(RATE + 1).map((_, index) => index === RATE));
  });

  it('is named with the number that the rule allows, where no wait would help', async () => {
    const text = await listen(await as('greedy'), { resourceSubscriptions: uris(RATE + 1) });
    expect(text).toContain(`names ${RATE + 1} items, and the rule allows ${RATE}`);
  });
});

describe('each task', () => {
  it('of a subscription counts as a call of its tool, and so does an answer to it', async () => {
    const access = await as('with tasks');
    const taskIds = [await beginStateless(access), await beginStateless(access)];
    expect(await listen(access, { taskIds })).toBeUndefined();
    expect(await listen(access, { taskIds })).toContain(LIMITED);
    const [taskId = ''] = taskIds;
    const inputResponses = { colour: { action: 'decline' } };
    const update = async () => (await askStateless(access, 'tasks/update', { taskId, inputResponses })).text;
    expect(isLimited(await update())).toBe(false);
    expect(isLimited(await update())).toBe(true);
  });

  it('is polled and cancelled whatever was counted', async () => {
    const access = await as('waiting');
    let taskId = '';
    for (let count = 0; count < RATE; count += 1) taskId = await beginStateless(access);
    for (let count = 0; count < 2 * RATE; count += 1)
      expect((await askStateless(access, 'tasks/get', { taskId })).text).toContain('working');
    expect(isLimited((await askStateless(access, 'tasks/cancel', { taskId })).text)).toBe(false);
  });

  it('of a session too', async () => {
    const access = await as('waiting in a session');
    rig.upstream.obeyOnce(onMethod('initialize', (request) => initializeWithTasks(request)));
    const session = await openSession(access);
    const call = { name: 'talk', arguments: { id: 'one' }, task: {} };
    const replies = [];
    for (let count = 0; count <= RATE; count += 1) replies.push(await session.request('tools/call', call));
    expect(replies.map(({ text }) => isLimited(text)).indexOf(true)).toBe(RATE);
    const { taskId = '' } = resultOf(replies[0] ?? { message: undefined })['task'] as JsonObject;
    for (let count = 0; count < 2 * RATE; count += 1) {
      expect((await session.request('tasks/get', { taskId })).text).toContain('working');
      expect(isLimited((await session.request('tasks/result', { taskId })).text)).toBe(false);
      expect(isLimited((await session.request('tasks/list')).text)).toBe(false);
    }
    expect(isLimited((await session.request('tasks/cancel', { taskId })).text)).toBe(false);
  });
});
