// Case 41 where the type of a token tells nothing, and what else claims may pretend: kinds of tokens,
// chains of actors, groups that are somewhere else.

import { describe, expect, it } from 'vitest';
import {
  expectCallPasses,
  expectLoginRefused,
  expectNothingForwarded,
  expectRefusedLines,
  linesOf,
} from '../support/gateway.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: groups
rules:
  - {id: eng, effect: allow, who: {groups: [eng]}, what: {upstreams: ["*"], tools: ["*"]}}
`;
const WITH_DENY = `version: 1
policy: groups
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - {id: not-contractors, effect: deny, who: {groups: [contractors]}, what: {upstreams: ["*"], tools: ["*"]}}
`;
const MEMBERS = [
  'algorithms: [ES256]',
  'tokenType: JWT',
  'claims: {groups: [/realm_access/roles, "https://example.com/roles", groups]}',
];

describe('a token whose type tells nothing', () => {
  const rig = sharedGateway({ issuer: MEMBERS, policies: { groups: POLICY } });

  const mint = (claims: Readonly<Record<string, unknown>>, typ: string | undefined = 'JWT') =>
    rig.gateway.issuer.mint(rig.access.url, { claims, header: { typ } });

  it.each([
    ['an identity token', { nonce: 'n', at_hash: 'h' }],
    ['the hash of a code', { c_hash: 'h' }],
    ['a logout token', { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }],
    ['a refresh token', { typ: 'Refresh' }],
    ['an identity token by its own word', { typ: 'ID' }],
    ['an identity token by its use', { token_use: 'id' }],
  ])('[X-41, TOK-06] is a 401 as %s', async (_title, claims) => {
    await expectLoginRefused(rig, await mint(claims), 'token-type');
  });

  it.each(['at+jwt', 'oauth-id-jag+jwt', 'logout+jwt', 'dpop+jwt'])('[X-41, TOK-06] is a 401 as %s', async (typ) => {
    await expectLoginRefused(rig, await mint({}, typ), 'token-type');
  });

  it('[TOK-07] carries its chain of actors into the record, whole', async () => {
    const act = { sub: 'agent', iss: 'https://a.example', act: { sub: 'scheduler' } };
    const token = await mint({ act, typ: 'Bearer', groups: ['eng'] });
    await expectCallPasses(rig, token);
    const line = (await rig.gateway.audit()).findLast((one) => one['type'] === 'mcp.decision');
    expect(line?.['actor'].act).toEqual([
      { iss: 'https://a.example', sub: 'agent' },
      { iss: null, sub: 'scheduler' },
    ]);
    for (const bad of [null, 'agent', { iss: 'https://a.example' }, { sub: 'a', act: [] }]) {
      await expectLoginRefused(rig, await mint({ act: bad }), 'token-malformed');
    }
  });

  it.each([
    ['a nested claim', { realm_access: { roles: ['eng'] } }],
    ['a claim with a URL as its name', { 'https://example.com/roles': ['eng'] }],
    ['a plain claim', { groups: 'eng' }],
  ])('[TOK-08] finds groups in %s', async (_title, claims) => {
    await expectCallPasses(rig, await mint({ groups: undefined, ...claims }));
  });

  it('[TOK-08] finds none in a name that only looks like the path', async () => {
    rig.upstream.forget();
    const token = await mint({ groups: undefined, 'realm_access.roles': ['eng'] });
    const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    await expectRefusedLines(rig, reply, 'no-matching-allow');
    expectNothingForwarded(rig);
  });

  it('[TOK-09] grants nothing to groups that are unknown, and spares them no denial', async () => {
    const claims = { groups: undefined, _claim_names: { groups: 'src1' } };
    const token = await mint(claims);
    rig.upstream.forget();
    const refused = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    await expectRefusedLines(rig, refused, 'no-matching-allow');
    await rig.gateway.writePolicy('groups', WITH_DENY);
    await rig.gateway.reload();
    await expectCallPasses(rig, await mint({ groups: [] }));
    rig.upstream.forget();
    const denied = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    const lines = await expectRefusedLines(rig, denied, 'denied-by-rule');
    expect(lines[0]?.['decision'].rule).toBe('not-contractors');
    expectNothingForwarded(rig);
    expect(await linesOf(rig.gateway, lines[0]?.['decision'].id, 2)).toHaveLength(2);
  });
});

describe('a token without a type, of an issuer that gives none', () => {
  const rig = sharedGateway({ issuer: ['algorithms: [ES256]', 'tokenType: none'] });

  it('[X-41, TOK-06] passes, and no other does', async () => {
    const mint = (typ: string | undefined, claims = {}) =>
      rig.gateway.issuer.mint(rig.access.url, { header: { typ }, claims });
    await expectCallPasses(rig, await mint(undefined));
    for (const typ of ['JWT', 'at+jwt', 'none', 'dpop+jwt']) {
      await expectLoginRefused(rig, await mint(typ), 'token-type');
    }
    await expectLoginRefused(rig, await mint(undefined, { nonce: 'n' }), 'token-type');
  });
});
