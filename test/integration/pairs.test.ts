// Every control over every pair of client era and upstream era: what is listed, hidden, refused, redacted,
// drifted, stolen and recorded is the same, whichever era the client speaks and whichever its upstream.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectRefusedLines, linesOf } from '../support/gateway.js';
import { jsonBody, onlyIn, onMethod, resultFor, type UpstreamEra } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { openChannelCaller, postMessage, type RawChannel } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { makeGithubToken } from '../support/secrets.js';
import {
  type Access,
  errorOf,
  type OpenSession,
  openSession,
  type Reply,
  requestInSession,
  requestStateless,
  resultOf,
  toolNames,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const TOOLS: readonly JsonObject[] = [
  ...HONEST_TOOLS,
  { name: 'delete_record', description: 'Deletes.', inputSchema: { type: 'object' } },
  { name: 'audit_record', description: 'Audits.', inputSchema: { type: 'object' } },
];
const RULES = `version: 1
policy: pairs
rules:
  - id: some
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record, write_record], resources: ["memo://**"]}
  - id: scoped
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [audit_record]}
    scopes: [audit]
`;

type PairEra = 'channels' | UpstreamEra;
type Caller = {
  request(method: string, params?: JsonObject): Promise<Reply>;
  call(name: string, args?: JsonObject): Promise<Reply>;
  readonly session: OpenSession | undefined;
  readonly channel: RawChannel | undefined;
};
const ERAS = { channels: '2024', sessions: '2025', stateless: '2026' } as const;

/** A client of one era, so that a test says the same in all. */
async function connect(era: PairEra, access: Access): Promise<Caller> {
  const session = era === 'sessions' ? await openSession(access) : undefined;
  const caller = era === 'channels' ? await openChannelCaller(access) : undefined;
  const request = (method: string, params: JsonObject = {}): Promise<Reply> =>
    (caller ?? session)?.request(method, params) ?? requestStateless(access, method, params);
  const call = (name: string, args: JsonObject = {}): Promise<Reply> =>
    request('tools/call', { name, arguments: args });
  return { request, call, session, channel: caller?.channel };
}

const ALL: readonly PairEra[] = ['channels', 'sessions', 'stateless'];
const PAIRS = ALL.flatMap((client) => ALL.map((upstream) => [client, upstream] as const));

describe.each(PAIRS)('a client of %s before an upstream of %s', (clientEra, upstreamEra) => {
  let caller: Caller;
  const rig = sharedGateway({
    policies: { pairs: RULES },
    upstream: ['pinning: {maxAge: 10m}'],
    behindChannels: upstreamEra === 'channels',
    prepare(upstream) {
      upstream.obey(onlyIn(upstreamEra === 'channels' ? 'sessions' : upstreamEra));
      upstream.offer(() => TOOLS);
      upstream.answerCalls(answerHonestly);
    },
  });
  beforeAll(async () => {
    caller = await connect(clientEra, rig.access);
    rig.upstream.forget();
  });
  afterEach(() => rig.upstream.forget());
  afterAll(async () => {
    caller.channel?.leave();
  });

  function answerHonestly(name: string, args: JsonObject): JsonObject {
    return { content: [{ type: 'text', text: `${name} ${String(args['id'])}` }] };
  }

  /** What reached the upstream, in the one form that it knows. */
  function expectSpoken(): void {
    for (const { httpMethod, headers, url } of rig.front?.seen() ?? []) {
      expect(url).toMatch(httpMethod === 'GET' ? /^\/events$/ : /^\/post\?channel=/);
      expect(headers['authorization']).toBeUndefined();
      expect(Object.keys(headers).filter((name) => name.startsWith('mcp-'))).toEqual([]);
    }
    for (const { headers, method } of rig.upstream.seen()) {
      const isStateless = headers['mcp-protocol-version'] === '2026-07-28';
      expect([method, isStateless]).toEqual([method, upstreamEra === 'stateless']);
      expect(headers['authorization']).toBeUndefined();
    }
  }

  it('[Y-01] lists what it may use, and calls it', async () => {
    const listed = await caller.request('tools/list');
    expect(toolNames(listed)).toEqual(['read_record', 'write_record', 'audit_record']);
    const result = resultOf(listed);
    const own = clientEra === 'stateless' ? { resultType: 'complete', cacheScope: 'private' } : {};
    expect(result).toMatchObject(own);
    if (clientEra !== 'stateless') expect(result).not.toHaveProperty('resultType');
    const reply = await caller.call('read_record', { id: 'one' });
    expect(reply.status).toBe(200);
    expect(resultOf(reply)['content']).toEqual([{ type: 'text', text: 'read_record one' }]);
    expect(resultOf(reply)['resultType']).toBe(clientEra === 'stateless' ? 'complete' : undefined);
    expect(rig.upstream.uses()).toHaveLength(1);
    expectSpoken();
  });

  it('[Y-01] reads resources, and gets the error of its era for what is not there', async () => {
    const read = await caller.request('resources/read', { uri: 'memo://one' });
    expect(read.text).toContain('One.');
    const missing = await caller.request('resources/read', { uri: 'memo://two' });
    expect(errorOf(missing)['code']).toBe(clientEra === 'stateless' ? -32602 : -32002);
    expectSpoken();
  });

  it('[Y-02] never learns of what is hidden, and cannot call it', async () => {
    const listed = await caller.request('tools/list');
    expect(listed.text).not.toContain('delete_record');
    const reply = await caller.call('delete_record');
    expect(errorOf(reply)).toMatchObject({
      code: -32602,
      message: 'Unknown tool. Request the list again.',
    });
    await expectRefusedLines(rig, reply, 'no-matching-allow');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[Y-02] is refused arguments that the approved schema does not have', async () => {
    const reply = await caller.call('read_record', { id: 7 });
    expect(resultOf(reply)['isError']).toBe(true);
    await expectRefusedLines(rig, reply, 'arguments-invalid');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[Y-02] may not send secrets away', async () => {
    const reply = await caller.call('read_record', { id: makeGithubToken() });
    await expectRefusedLines(rig, reply, 'arguments-content');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[Y-02] needs the scope that a rule asks for', async () => {
    const reply = await caller.call('audit_record');
    expect(reply.status).toBe(403);
    expect(reply.headers.get('www-authenticate')).toContain('scope="audit"');
    await expectRefusedLines(rig, reply, 'insufficient-scope');
    expect(rig.upstream.uses()).toEqual([]);
    const scoped = rig.as(await rig.gateway.token('target', { scope: 'audit' }));
    const allowed = await (await connect(clientEra, scoped)).call('audit_record', { id: 'one' });
    expect(allowed.text).toContain('audit_record one');
  });

  it('[Y-02] gets results without the secrets in them', async () => {
    const secret = makeGithubToken();
    rig.upstream.answerCalls(() => ({ content: [{ type: 'text', text: `key ${secret}` }] }));
    const reply = await caller.call('read_record', { id: 'one' });
    expect(reply.status).toBe(200);
    expect(reply.text).not.toContain(secret);
    expect(reply.text).toContain('key ');
    expect(rig.upstream.uses()).toHaveLength(1);
    rig.upstream.answerCalls(answerHonestly);
  });

  it('[Y-02] is recorded: one decision and one outcome, in its own era', async () => {
    await caller.call('read_record', { id: 'recorded' });
    const last = (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.decision');
    const [decision, outcome] = await linesOf(rig.gateway, last?.['decision'].id, 2);
    expect([decision?.['type'], outcome?.['type']]).toEqual(['mcp.decision', 'mcp.outcome']);
    expect(decision?.['target']).toMatchObject({ method: 'tools/call', name: 'read_record' });
    expect(decision?.['decision']).toMatchObject({ verdict: 'allow', action: 'forwarded' });
    expect(decision?.['client'].era).toBe(ERAS[clientEra]);
    expect(decision?.['decision'].id).toBe(outcome?.['decision'].id);
  });

  it('[Y-02] keeps sessions from everyone else', async () => {
    const thief = rig.as(await rig.gateway.token('target', { sub: 'mallory' }));
    if (caller.session !== undefined) {
      const stolen = await requestInSession(thief, caller.session.id, 'tools/list');
      expect(stolen.status).toBe(404);
      expect(rig.upstream.seen()).toEqual([]);
      return;
    }
    if (caller.channel !== undefined) {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      const stolen = await postMessage(caller.channel.address, thief.token, message);
      expect(stolen.status).toBe(404);
      expect(rig.upstream.seen()).toEqual([]);
      return;
    }
    await caller.call('read_record', { id: 'one' });
    await requestStateless(thief, 'tools/call', { name: 'read_record', arguments: { id: 'two' } });
    const used = rig.upstream.uses().map(({ headers }) => headers['mcp-session-id']);
    // The one upstream session of a caller is never that of another.
    if (upstreamEra !== 'stateless') expect(new Set(used).size).toBe(2);
    else expect(used).toEqual([undefined, undefined]);
  });

  it('[Y-02] has the state of a dialogue bound to it', async () => {
    if (clientEra !== 'stateless' || upstreamEra !== 'stateless') return;
    const params = { name: 'read_record', arguments: { id: 'one' } };
    rig.upstream.obeyOnce(
      onMethod('tools/call', (request) =>
        jsonBody(resultFor(request, { resultType: 'input_required', requestState: 'mine' })),
      ),
    );
    const asked = await caller.request('tools/call', params);
    const { requestState } = resultOf(asked);
    expect(requestState).not.toBe('mine');
    rig.upstream.forget();
    const thief = rig.as(await rig.gateway.token('target', { sub: 'mallory' }));
    const again = { ...params, requestState: String(requestState) };
    const stolen = await requestStateless(thief, 'tools/call', again);
    expect(errorOf(stolen)['code']).toBe(-32602);
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[Y-02] loses a tool that has drifted', async () => {
    rig.upstream.offer(() =>
      TOOLS.map((tool) => (tool['name'] === 'read_record' ? { ...tool, description: 'And more.' } : tool)),
    );
    expect(toolNames(await caller.request('tools/list'))).toEqual(['write_record', 'audit_record']);
    rig.upstream.forget();
    const reply = await caller.call('read_record', { id: 'one' });
    await expectRefusedLines(rig, reply, 'tool-changed');
    expect(rig.upstream.uses()).toEqual([]);
    const drift = (await rig.gateway.audit()).filter((line) => line['type'] === 'pin.drift');
    expect(drift).toHaveLength(1);
  });
});
