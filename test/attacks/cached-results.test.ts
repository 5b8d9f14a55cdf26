// Case 82: an upstream that calls its results public and good for ever, and a list that two callers see
// differently. What depends on the caller leaves as private, and no caller gets another one's list.

import { beforeAll, describe, expect, it } from 'vitest';
import { greedyCache, onMethod } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { callStateless, requestStateless, resultOf, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICIES = {
  roles: `version: 1
policy: roles
rules:
  - id: readers
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record], resources: ["**"]}
  - id: admins
    effect: allow
    who: {issuers: [test], groups: [admins]}
    what: {upstreams: [target], tools: ["*"]}
`,
};

describe('results that an upstream calls public', () => {
  const rig = sharedGateway({
    policies: POLICIES,
    upstream: ['pinning: {maxAge: 10m}', 'limits: {listTtl: 20s}'],
  });
  beforeAll(async () => {
    rig.upstream.obey((request) => {
      if (request.method === 'tools/list' && request.headers['mcp-protocol-version'] === '2026-07-28')
        return greedyCache(request, { tools: HONEST_TOOLS });
      return onMethod('resources/read', () =>
        greedyCache(request, { contents: [{ uri: 'memo://one', text: 'One.' }] }),
      )(request);
    });
  });

  it('[X-82] leave as private and for a bounded time', async () => {
    for (const reply of [
      await requestStateless(rig.access, 'tools/list'),
      await requestStateless(rig.access, 'resources/read', { uri: 'memo://one' }),
      await requestStateless(rig.access, 'server/discover'),
    ]) {
      expect(reply.status).toBe(200);
      expect(resultOf(reply)).toMatchObject({ cacheScope: 'private' });
      expect(resultOf(reply)['ttlMs']).toBeLessThanOrEqual(20_000);
      expect(reply.headers.get('cache-control') ?? 'no-store').not.toContain('public');
    }
  });

  it('[X-82, MCP-27] are never the list of another caller, in whatever order they ask', async () => {
    const admin = rig.as(await rig.gateway.token('target', { sub: 'root', groups: ['admins'] }));
    for (const [access, names] of [
      [admin, ['read_record', 'write_record']],
      [rig.access, ['read_record']],
      [admin, ['read_record', 'write_record']],
      [rig.access, ['read_record']],
    ] as const) {
      const reply = await requestStateless(access, 'tools/list');
      expect(toolNames(reply)).toEqual(names);
      expect(reply.text.includes('write_record')).toBe(names.length === 2);
    }
  });

  it('[X-82] do not open a tool to a caller that may not see it', async () => {
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'write_record', { id: 'one', text: 'x' });
    expect(reply.message).toHaveProperty('error');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-82] change with the policy at once', async () => {
    await rig.gateway.writePolicy('roles', POLICIES.roles.replace('tools: [read_record]', 'tools: [write_record]'));
    expect(await rig.gateway.reload()).toEqual([]);
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(['write_record']);
  });
});
