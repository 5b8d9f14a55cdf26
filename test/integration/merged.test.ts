// An endpoint of several upstreams through the running gateway, in every pair of client era and upstream era:
// lists joined under prefixes, calls mapped back by exactly one prefix, every control and record the member's.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectTo, firstTextOf, type MergedCaller, startMergedRig } from '../support/deployments.js';
import { linesOf } from '../support/gateway.js';
import { onlyIn, type UpstreamEra } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { makeGithubToken } from '../support/secrets.js';
import { makeProofHolder, proofHeaders } from '../support/tokens.js';
import { errorOf, post, resultOf, statelessParts, toolNames } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const RULES = `version: 1
policy: merged
rules:
  - id: left
    effect: allow
    who: {anyone: true}
    what: {upstreams: [left], tools: [read_record, write_record]}
  - id: right
    effect: allow
    who: {anyone: true}
    what: {upstreams: [right], tools: [read_record, delete_record], resources: ["memo://**"]}
  - id: limited
    effect: allow
    who: {anyone: true}
    what: {upstreams: [left], tools: [limited_record]}
    limits: {rate: 1/h, per: subject}
  - id: scoped
    effect: allow
    who: {anyone: true}
    what: {upstreams: [left], tools: [audit_record]}
    scopes: [audit]
`;
const TOOLS: readonly JsonObject[] = [
  ...HONEST_TOOLS,
  { name: 'delete_record', description: 'Deletes.', inputSchema: { type: 'object' } },
  { name: 'limited_record', description: 'Seldom.', inputSchema: { type: 'object' } },
  { name: 'audit_record', description: 'Audits.', inputSchema: { type: 'object' } },
];

type ClientEra = 'sessions' | 'stateless';
const PAIRS: readonly (readonly [ClientEra, UpstreamEra | 'channels'])[] = [
  ['sessions', 'sessions'],
  ['sessions', 'stateless'],
  ['stateless', 'sessions'],
  ['stateless', 'stateless'],
  ['sessions', 'channels'],
  ['stateless', 'channels'],
];

describe.each(PAIRS)('a client of %s at an endpoint over upstreams of %s', (era, upstreamEra) => {
  let caller: MergedCaller;
  const order = onlyIn(upstreamEra === 'channels' ? 'sessions' : upstreamEra);
  const rig = shared(() =>
    startMergedRig({
      policies: { merged: RULES },
      behindChannels: upstreamEra === 'channels',
      prepare(left, right) {
        for (const [name, upstream] of [
          ['left', left],
          ['right', right],
        ] as const) {
          upstream.obey(order);
          upstream.offer(() => TOOLS);
          upstream.answerCalls((tool, args) => ({
            content: [{ type: 'text', text: `${name} ${tool} ${String(args['id'])}` }],
          }));
        }
      },
    }),
  );
  beforeAll(async () => {
    caller = await connectTo(era, rig.access);
    rig.forget();
  });
  afterEach(() => rig.forget());

  it('[MRG-01, MCP-49] lists what each member lets the caller see, under its prefix and in their order', async () => {
    const listed = await caller.request('tools/list');
    expect(toolNames(listed)).toEqual([
      'l_read_record',
      'l_write_record',
      'l_limited_record',
      'l_audit_record',
      'right_read_record',
      'right_delete_record',
    ]);
    const result = resultOf(listed);
    expect(result).not.toHaveProperty('nextCursor');
    if (era === 'stateless') expect(result).toMatchObject({ resultType: 'complete', cacheScope: 'private' });
    const [first] = result['tools'] as readonly JsonObject[];
    expect(first).toEqual({ ...HONEST_TOOLS[0], name: 'l_read_record' });
  });

  it('[MRG-02] maps a call to its one member, which sees its own name', async () => {
    const reply = await caller.call('right_read_record', { id: 'one' });
    expect(firstTextOf(reply)).toBe('right read_record one');
    expect(rig.left.uses()).toHaveLength(0);
    expect(rig.right.uses().map(({ name }) => name)).toEqual(['read_record']);
    expect(rig.right.uses()[0]?.headers['mcp-name']).toBe(upstreamEra === 'stateless' ? 'read_record' : undefined);
  });

  it('[MRG-03] records the member, and the endpoint that it came through', async () => {
    await caller.call('l_write_record', { id: 'one', text: 'two' });
    await expect
      .poll(async () =>
        (await rig.gateway.audit()).filter(
          (line) => line['target']?.name === 'write_record' && line['decision']?.action === 'forwarded',
        ),
      )
      .toHaveLength(2);
    const lines = (await rig.gateway.audit()).filter((line) => line['target']?.name === 'write_record');
    for (const line of lines) {
      expect(line['target']).toMatchObject({ upstream: 'left', endpoint: 'all' });
      expect(line['decision']).toMatchObject({ policy: 'merged', rule: 'left' });
      expect(line['actor'].token.aud).toBe(rig.gateway.url('all'));
    }
  });

  it.each([
    ['a name without prefix', 'read_record'],
    ["a member's hidden tool", 'l_delete_record'],
    ["another member's tool under this prefix", 'right_write_record'],
    ['a prefix alone', 'l_'],
    ['two prefixes', 'l_right_read_record'],
    ['a prefix in another case', 'L_read_record'],
  ])('[MRG-04] answers %s as unknown', async (_, name) => {
    const reply = await caller.call(name, { id: 'one', text: 'two' });
    const never = await caller.call('no_such_tool');
    expect(errorOf(reply)['code']).toBe(-32602);
    expect({ ...errorOf(reply), data: undefined }).toEqual({ ...errorOf(never), data: undefined });
    expect(reply.status).toBe(never.status);
    expect([...rig.left.uses(), ...rig.right.uses()]).toEqual([]);
  });

  it('[MRG-04] asks for the scope that a member wants with the challenge of the endpoint', async () => {
    const reply = await caller.call('l_audit_record');
    expect(reply.status).toBe(403);
    const challenge = reply.headers.get('www-authenticate') ?? '';
    expect(challenge).toContain('scope="audit"');
    expect(challenge).toContain('/.well-known/oauth-protected-resource/all"');
  });

  it('[MRG-03] holds what goes and what comes to the controls of the member', async () => {
    const secret = makeGithubToken();
    const blocked = await caller.call('l_write_record', { id: 'one', text: `Use ${secret}.` });
    expect(blocked.text).toContain('arguments-content');
    expect(rig.left.uses()).toEqual([]);
    const invalid = await caller.call('l_read_record', { id: 7 });
    expect(invalid.text).toContain('arguments-invalid');
    expect(rig.left.uses()).toEqual([]);
    const redacted = await caller.call('right_delete_record', { id: '4111111111111111' });
    expect(firstTextOf(redacted)).toContain('[redacted:');
    const first = await caller.call('l_limited_record');
    expect(firstTextOf(first)).toContain('left limited_record');
    const second = await caller.call('l_limited_record');
    expect(second.text).toContain('rate-limited');
    expect(rig.left.uses()).toHaveLength(1);
  });

  it('[MRG-05] reads a resource from the member whose rules let the caller', async () => {
    const reply = await caller.request('resources/read', { uri: 'memo://one' });
    expect(reply.text).toContain('One.');
    expect(rig.left.uses()).toHaveLength(0);
    expect(rig.right.uses()).toHaveLength(1);
  });

  // What serves HTTP+SSE in the tests cannot be down.
  const isLegacySse = upstreamEra === 'channels';
  it.skipIf(isLegacySse)('[MRG-06] one member that is down hides its own items alone', async () => {
    rig.left.obey(() => ({ kind: 'destroy' }));
    const listed = await caller.request('tools/list');
    expect(toolNames(listed)).toEqual(['right_read_record', 'right_delete_record']);
    if (era === 'stateless') expect(resultOf(listed)['ttlMs']).toBe(0);
    const reply = await caller.call('l_read_record', { id: 'one' });
    expect([502, 504]).toContain(reply.status);
    expect(firstTextOf(await caller.call('right_read_record', { id: 'one' }))).toBe('right read_record one');
    rig.left.obey(order);
    expect(toolNames(await caller.request('tools/list'))).toHaveLength(6);
  });
});

describe('a token at an endpoint', () => {
  const rig = shared(() => startMergedRig());

  it('[MRG-07] opens neither a member nor, from a member, the endpoint', async () => {
    const { gateway } = rig;
    const { headers, body } = statelessParts('tools/list');
    const text = JSON.stringify(body);
    const own = await gateway.token('all');
    const members = await gateway.token('left');
    expect((await post({ url: gateway.url('all'), token: own }, text, headers)).status).toBe(200);
    expect((await post({ url: gateway.url('left'), token: own }, text, headers)).status).toBe(401);
    const refused = await post({ url: gateway.url('all'), token: members }, text, headers);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('/oauth-protected-resource/all"');
    const lines = await linesOf(gateway, refused.headers.get('sallyport-decision') ?? '', 1);
    expect(lines[0]).toMatchObject({ type: 'auth.failure', target: { upstream: 'all' } });
  });

  it('[MRG-07] is described by metadata of its own', async () => {
    const url = `${rig.gateway.publicUrl}/.well-known/oauth-protected-resource/all`;
    expect(await (await fetch(url)).json()).toMatchObject({
      resource: rig.gateway.url('all'),
      authorization_servers: [rig.gateway.issuer.issuer],
    });
  });
});

describe('[MRG-22] a token that is bound to a key, at an endpoint', () => {
  const rig = shared(() => startMergedRig({ upstream: ['pinning: {maxAge: 10m}', 'binding: dpop'] }));

  it('is proved once for all members, and not once more', async () => {
    const { url } = rig.access;
    const holder = await makeProofHolder();
    const token = await rig.gateway.token('all', { cnf: { jkt: holder.thumbprint } });
    const proved = await proofHeaders(holder, { url, token });
    const { headers, body } = statelessParts('tools/list');
    const send = (own: Readonly<Record<string, string>>) =>
      post({ url, token: undefined }, JSON.stringify(body), { ...headers, ...own });
    expect(toolNames(await send(proved))).toHaveLength(4);
    const again = await send(proved);
    expect(again.status).toBe(401);
    expect(again.headers.get('www-authenticate')).toContain('DPoP');
    const elsewhere = { url: rig.gateway.url('left'), token };
    expect((await send(await proofHeaders(holder, elsewhere))).status).toBe(401);
  });

  it('is demanded because the members demand it', async () => {
    const { headers, body } = statelessParts('tools/list');
    rig.forget();
    const plain = await post(rig.access, JSON.stringify(body), headers);
    expect(plain.status).toBe(401);
    expect([...rig.left.seen(), ...rig.right.seen()]).toEqual([]);
    const document = `${rig.gateway.publicUrl}/.well-known/oauth-protected-resource/all`;
    expect(await (await fetch(document)).json()).toMatchObject({
      dpop_bound_access_tokens_required: true,
    });
  });
});
