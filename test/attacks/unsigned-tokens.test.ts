// Case 37: tokens without a signature, and tokens signed with the public key as a shared secret.

import { describe, expect, it } from 'vitest';
import { expectLoginLine, expectNothingForwarded } from '../support/gateway.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a token that nobody signed', () => {
  const rig = sharedGateway();

  async function expectRefused(token: string): Promise<void> {
    const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    expect(reply.status).toBe(401);
    expect(reply.headers.get('www-authenticate')).toContain('error="invalid_token"');
    // One text for everything that is wrong with a signature; nothing of the token.
    expect(reply.text).toMatch(/^The token (could not be verified|is malformed)\.$/);
    await expectLoginLine(rig, reply, 'token-signature', 'token-malformed');
    expectNothingForwarded(rig);
  }

  it.each(['none', 'nOnE', 'NONE', '', 'HS256', 'HS512'])('[X-37, MCP-39] is a 401 with alg %j', async (alg) => {
    const { kid } = rig.gateway.issuer.currentKey();
    const header = { alg, kid, typ: 'at+jwt' };
    const mint = rig.gateway.issuer.mintUnsigned;
    await expectRefused(mint(rig.access.url, header, new Uint8Array(64)));
    await expectRefused(mint(rig.access.url, header, new Uint8Array(0)));
  });

  it('[X-37] is a 401 when the public key was used as a secret', async () => {
    await expectRefused(await rig.gateway.issuer.mintWithPublicKeyAsSecret(rig.access.url));
  });

  it('[X-37] is a 401 without alg, and with a list of them', async () => {
    const mint = rig.gateway.issuer.mintUnsigned;
    await expectRefused(mint(rig.access.url, { typ: 'at+jwt' }, new Uint8Array(64)));
    await expectRefused(mint(rig.access.url, { typ: 'at+jwt', alg: ['ES256'] }, new Uint8Array(64)));
  });
});
