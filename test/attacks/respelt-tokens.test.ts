// Cases 38, 45 and 46: every spelling that the library would take for the same token, and tokens that are
// too large to be read. None is remembered, none is let in, before or after the good one.

import { beforeAll, describe, expect, it } from 'vitest';
import { expectCallPasses, expectLoginRefused, expectNothingForwarded } from '../support/gateway.js';
import { callStateless, hasCompleteResponse, rawPost, sendRaw, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function insert(text: string, at: number, what: string): string {
  return text.slice(0, at) + what + text.slice(at);
}

/** The same bytes of the last part, with other spare bits in its last letter. */
function spareBits(token: string): readonly string[] {
  const last = LETTERS.indexOf(token.slice(-1));
  return Array.from({ length: 15 }, (_, i) => token.slice(0, -1) + LETTERS[last ^ (i + 1)]);
}

describe('[X-46, TOK-10] a good token in another spelling', () => {
  let token: string;
  const rig = sharedGateway();
  beforeAll(async () => {
    token = await rig.gateway.token('target');
  });

  it('is refused for each of the spare bits of its signature', async () => {
    for (const spelling of spareBits(token)) {
      await expectLoginRefused(rig, spelling, 'token-malformed', 'token-signature');
    }
  });

  it.each<readonly [string, (token: string) => string]>([
    ['padding', (good) => `${good}=`],
    ['more padding', (good) => `${good}==`],
    ['padding within', (good) => good.replace('.', '=.')],
    ['a space in the signature', (good) => insert(good, good.length - 9, ' ')],
    ['a tab in the signature', (good) => insert(good, good.length - 9, '\t')],
    ['a space in the claims', (good) => insert(good, good.indexOf('.') + 9, ' ')],
    ['the other alphabet', (good) => `${good.replaceAll('-', '+').replaceAll('_', '/')}+`],
    ['a percent sign', (good) => good.replace('.', '%2E')],
    ['quotation marks', (good) => `"${good}"`],
    ['a comma behind it', (good) => `${good},`],
    ['itself twice', (good) => `${good},${good}`],
    ['a fourth part', (good) => `${good}.`],
    ['two spaces before it', (good) => ` ${good}`],
    ['a scheme of its own', (good) => `Bearer ${good}`],
  ])('is refused with %s, before and after the good one', async (_title, spell) => {
    await expectLoginRefused(rig, spell(token), 'token-malformed');
    await expectCallPasses(rig, token);
    await expectLoginRefused(rig, spell(token), 'token-malformed');
  });

  it('is the same token with spaces behind it, which HTTP takes off, and in another case of Bearer', async () => {
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'one' },
    });
    const text = JSON.stringify(body);
    for (const value of [`Bearer ${token}  `, `bearer ${token}`, `BEARER ${token}`]) {
      const lines = [
        `Host: 127.0.0.1:${rig.port}`,
        'Content-Type: application/json',
        `Content-Length: ${text.length}`,
        `Authorization: ${value}`,
        ...Object.entries(headers).map(([name, one]) => `${name}: ${one}`),
      ];
      const reply = await sendRaw(rig.port, [rawPost(rig.path, lines, text)], hasCompleteResponse);
      expect(reply.status).toBe(200);
    }
  });

  it('[X-38, X-45] is refused unread past 8 KiB, whatever makes it large', async () => {
    const { mint } = rig.gateway.issuer;
    const scope = Array.from({ length: 10_000 }, (_, i) => `s${i}`).join(' ');
    const large = [
      await mint(rig.access.url, { claims: { scope } }),
      await mint(rig.access.url, { header: { kid: 'k'.repeat(1_000_000) } }),
      await mint(rig.access.url, { header: { kid: 'k'.repeat(9_000) } }),
    ];
    const asked = rig.gateway.issuer.hits.get('/keys');
    for (const one of large) {
      rig.upstream.forget();
      const status = await callStateless(rig.as(one), 'read_record', { id: 'one' }).then(
        (reply) => reply.status,
        () => 'closed',
      );
      expect([401, 431, 'closed']).toContain(status);
      expectNothingForwarded(rig);
    }
    expect(rig.gateway.issuer.hits.get('/keys')).toBe(asked);
  });
});
