// What was verified once, after a change: keys that could not be renewed, settings that say something else
// of tokens, a reload in a flood, and the twin of a signature. Source: docs/reference/authorization.md;
// docs/reference/reasons.md.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL, type AttackRig, expectLoginLine, UPSTREAM } from '../support/gateway.js';
import { makeSecret } from '../support/secrets.js';
import { bearer, callStateless, sessionHeaders } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const call = (rig: AttackRig, token: string) => callStateless(rig.as(token), 'read_record', { id: 'one' });

describe('a token that is remembered', () => {
  const rig = sharedGateway({ issuer: ['algorithms: [ES256]', 'keysMaxAge: 2s'] });

  it('[X-51, ACH-01] is good no longer than the keys that verified it', async () => {
    const token = rig.access.token ?? '';
    expect((await call(rig, token)).status).toBe(200);
    rig.gateway.issuer.misbehave('down');
    await expect.poll(async () => (await call(rig, token)).status, { timeout: 10_000, interval: 100 }).toBe(503);
    rig.upstream.forget();
    const refused = await call(rig, token);
    expect(refused.headers.get('www-authenticate')).toBeNull();
    await expectLoginLine(rig, refused, 'keys-unavailable');
    expect(rig.upstream.uses()).toEqual([]);
    rig.gateway.issuer.misbehave('none');
    await expect.poll(async () => (await call(rig, token)).status, { timeout: 15_000, interval: 100 }).toBe(200);
  }, 30_000);
});

/** The order of the group of P-256: with `s`, its difference from this verifies as well. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function twinOf(token: string): string {
  const at = token.lastIndexOf('.') + 1;
  const signature = Buffer.from(token.slice(at), 'base64url');
  const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
  const other = Buffer.from((ORDER - s).toString(16).padStart(64, '0'), 'hex');
  return token.slice(0, at) + Buffer.concat([signature.subarray(0, 32), other]).toString('base64url');
}

describe('a signed token without an id', () => {
  const rig = sharedGateway({ issuer: ['algorithms: [ES256]', 'tokenType: JWT'] });

  it('[ACH-04] is one token on record, whichever of its signatures it carries', async () => {
    const mint = () =>
      rig.gateway.issuer.mint(rig.access.url, {
        claims: { jti: undefined, nbf: Math.floor(Math.random() * 1_000_000) },
        header: { typ: 'JWT' },
      });
    const token = await mint();
    for (const each of [token, twinOf(token), await mint()]) expect((await call(rig, each)).status).toBe(200);
    const lines = (await rig.gateway.audit()).filter((line) => line['type'] === 'mcp.decision');
    const [one, twin, other] = lines.map((line) => String(line['actor'].token.id));
    expect(twin).toBe(one);
    expect(other).not.toBe(one);
  });
});

describe('a stream of a session', () => {
  let file: string;
  let text: string;
  const rig = sharedGateway();
  beforeAll(async () => {
    file = join(rig.gateway.folder, 'gateway.yaml');
    text = await readFile(file, 'utf8');
  });
  afterEach(() => write(PINNING, PINNING));

  async function open(): Promise<{ isOver(): boolean; leave(): void }> {
    const session = await rig.openSession();
    const leaving = new AbortController();
    const headers = {
      ...bearer(rig.access.token),
      ...sessionHeaders(session.id),
      accept: 'text/event-stream',
    };
    const response = await fetch(rig.access.url, { headers, signal: leaving.signal });
    expect(response.status).toBe(200);
    let isOver = false;
    async function read(): Promise<void> {
      for await (const chunk of response.body ?? []) void chunk;
    }
    void read()
      .catch(() => undefined)
      .finally(() => {
        isOver = true;
      });
    return { isOver: () => isOver, leave: () => leaving.abort() };
  }

  async function write(from: string, to: string): Promise<void> {
    expect(text).toContain(from);
    await writeFile(file, text.replace(from, to));
    const diagnostics = await rig.gateway.reload();
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  }

  const PINNING = 'pinning: {maxAge: 10m}';
  const ISSUERS = 'issuers: [test]';

  it.each([
    ['demands a binding', PINNING, `${PINNING}\n    binding: dpop`],
    ['asks for another audience', ISSUERS, `${ISSUERS}\n    audiences: {test: ["api://x"]}`],
    ['takes other algorithms', 'algorithms: [ES256, RS256]', 'algorithms: [RS256]'],
    ['takes another type', 'algorithms: [', 'tokenType: JWT, algorithms: ['],
    ['reads groups elsewhere', 'algorithms: [', 'claims: {groups: roles}, algorithms: ['],
  ])('[ACH-03] ends with a reload that %s', async (_title, from, to) => {
    const stream = await open();
    await write(from, to);
    await expect.poll(stream.isOver, { timeout: 2_000 }).toBe(true);
  });

  it('[ACH-03] goes on over a reload that changes nothing of this', async () => {
    const stream = await open();
    await write('algorithms: [', 'keysMaxAge: 2h, algorithms: [');
    await write(PINNING, `${PINNING}\n    scopesSupported: ["a"]`);
    await rig.gateway.writePolicy('open', `${ALLOW_ALL}# changed\n`);
    await rig.gateway.reload();
    expect(stream.isOver()).toBe(false);
    stream.leave();
  });
});

describe('a caller whom an issuer vouched for', () => {
  const good = makeSecret();
  const startedAt = Date.now();
  const rig = sharedGateway({
    // The rate of questions is filled by this clock, which stands.
    now: () => startedAt,
    issuer: ['introspection: {clientId: gateway, clientSecret: {env: CLIENT}, maxPerSecond: 6}'],
    env: { CLIENT: makeSecret() },
  });

  it('[X-38, ACH-06] is known after a reload, and goes on through a flood of strangers', async () => {
    const exp = Math.floor(startedAt / 1000) + 60;
    rig.gateway.issuer.answerAbout((token) =>
      token === good
        ? { active: true, sub: 'alice', client_id: 'ide', aud: rig.gateway.url(UPSTREAM), exp }
        : { active: false },
    );
    expect((await call(rig, good)).status).toBe(200);
    await rig.gateway.writePolicy('open', `${ALLOW_ALL}# changed\n`);
    await rig.gateway.reload();
    const statuses: number[] = [];
    for (let round = 0; round < 4; round += 1) statuses.push((await call(rig, makeSecret())).status);
    expect(statuses).toEqual([401, 401, 503, 503]);
    expect((await call(rig, good)).status).toBe(200);
  });
});
