// Whoever names hundreds of URIs in one request gets what each of them gets alone: ordinary ones are served, those with
// many readings are decided like any other, and the record says which were named and which were left out. What an
// endpoint leaves out of a subscription because a limit is spent at one of its servers, it tells its client.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { type AuditLine, UPSTREAM } from '../support/gateway.js';
import { onMethod, sseEvent } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { type Access, type EventReader, openEvents } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const LISTEN = 'subscriptions/listen';
const ID = 'io.modelcontextprotocol/subscriptionId';
const MOST = 512;

/** A server that agrees to whatever it is asked for. */
const agree = onMethod(LISTEN, (request: HostileRequest): Act => {
  const params = request.message?.['params'] as JsonObject;
  const first = {
    ...{ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged' },
    params: { notifications: params['notifications'] ?? {}, _meta: { [ID]: request.id ?? 0 } },
  };
  return { kind: 'chunks', contentType: 'text/event-stream', chunks: [sseEvent(first)], ending: 'hold' };
});

const opened: EventReader[] = [];

async function listen(access: Access, notifications: JsonObject): Promise<JsonObject> {
  const reader = await openEvents(access, LISTEN, { notifications });
  opened.push(reader);
  expect(reader.status).toBe(200);
  return ((await reader.next())?.['params'] ?? {}) as JsonObject;
}

function leaveAll(): void {
  for (const reader of opened.splice(0)) reader.leave();
}

const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], resources: ["**"]}}
  - {id: closed, effect: deny, who: {anyone: true}, what: {upstreams: ["*"], resources: ["memo://vault/closed/**"]}}
`;
const SHADOW = `version: 1
policy: next
mode: shadow
rules:
  - {id: none, effect: deny, who: {anyone: true}, what: {upstreams: ["*"], resources: ["memo://next/**"]}}
`;

describe('a subscription', () => {
  let callers = 0;
  const rig = sharedGateway({ policies: { open: POLICY, next: SHADOW } });
  beforeAll(async () => {
    rig.upstream.obey(agree);
  });
  afterEach(leaveAll);

  /** What the caller is told is agreed to, and the decision on record. */
  async function subscribe(uris: readonly string[]): Promise<{ readonly agreed: unknown; readonly line: AuditLine }> {
    callers += 1;
    const sub = `listener ${callers}`;
    const access = { url: rig.access.url, token: await rig.gateway.token(UPSTREAM, { sub }) };
    const { notifications } = await listen(access, { resourceSubscriptions: uris });
    const linesOf = async () =>
      (await rig.gateway.audit()).filter((one) => one['actor']?.sub === sub && one['type'] === 'mcp.decision');
    await expect.poll(async () => (await linesOf()).length, PATIENT).toBe(1);
    const [line] = await linesOf();
    return { agreed: (notifications as JsonObject)['resourceSubscriptions'], line: line as AuditLine };
  }

  it('to as many ordinary resources as it may name is served whole', async () => {
    const uris = Array.from({ length: MOST }, (_, at) => `memo://vault/documents/${at}/${'folder/'.repeat(12)}`);
    expect((await subscribe(uris)).agreed).toEqual(uris);
  });

  it('to many with many readings is decided by each of them', async () => {
    const spell = (folder: string, at: number): string =>
      `memo://vault/${folder}/${at}/${'%2520;v/e%CC%81+/'.repeat(4)}`;
    const uris = Array.from({ length: 96 }, (_, at) => spell(at % 2 === 0 ? 'open' : 'x/..%2fclosed', at));
    expect((await subscribe(uris)).agreed).toEqual(uris.filter((_, at) => at % 2 === 0));
  });

  it('is recorded with the resources that it names, those that were left out, and what shadows would have decided', async () => {
    const uris = ['memo://open/one', 'memo://vault/closed/two', 'memo://next/three'];
    const { line } = await subscribe(uris);
    expect(line['target']).toMatchObject({ method: LISTEN, uris });
    expect(line['findings']).toMatchObject([
      { detector: 'subscription', path: '/params/notifications', action: 'strip' },
      { detector: 'subscription', path: '/params/notifications/resourceSubscriptions/1', action: 'strip' },
    ]);
    expect(line['decision'].shadow).toEqual([
      { verdict: 'deny', policy: 'next', rule: 'next/none', reason: 'denied-by-rule' },
    ]);
  });
});

describe('a subscription at an endpoint', () => {
  const RULES = `version: 1
policy: open
rules:
  - {id: left, effect: allow, who: {anyone: true}, what: {upstreams: [left], tools: ["*"], resources: ["memo://left/**"]}, limits: {rate: 1/h, per: subject}}
  - {id: right, effect: allow, who: {anyone: true}, what: {upstreams: [right], tools: ["*"], resources: ["memo://right/**"]}}
`;
  const rig = shared(() => startMergedRig({ policies: { open: RULES } }));
  beforeAll(async () => {
    rig.left.obey(agree);
    rig.right.obey(agree);
  });
  afterEach(leaveAll);

  it('says what was left out, and why, where a limit is spent at one server', async () => {
    const notifications = { toolsListChanged: true, resourceSubscriptions: ['memo://left/a', 'memo://right/b'] };
    const first = await listen(rig.access, notifications);
    expect(first).toEqual({ notifications, _meta: { [ID]: 'listen-1' } });
    const second = await listen(rig.access, notifications);
    expect(second['notifications']).toEqual({ toolsListChanged: true, resourceSubscriptions: ['memo://right/b'] });
    expect((second['_meta'] as JsonObject)['dev.sallyport/left-out']).toEqual({
      notifications: { resourceSubscriptions: ['memo://left/a'] },
      errors: [expect.objectContaining({ code: 1429, message: expect.stringContaining('Try again in') })],
    });
  });
});
