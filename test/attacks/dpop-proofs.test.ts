// Case 48: a token that is bound to a key, without a good proof of that key. Nothing but one fresh proof,
// by that key, for this request and this token, lets it pass, however often the token was verified before.

import { hash } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectLoginLine, expectNothingForwarded, linesOf } from '../support/gateway.js';
import { makeProofHolder, type ProofHolder, type ProofOptions } from '../support/tokens.js';
import {
  type HeaderLines,
  hasCompleteResponse,
  post,
  type Reply,
  rawPost,
  sendRaw,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const { headers: MIRRORS, body } = statelessParts('tools/call', {
  name: 'read_record',
  arguments: { id: 'one' },
});
const TEXT = JSON.stringify(body);
const nowSeconds = (): number => Math.floor(Date.now() / 1000);
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('[X-48] a token that is bound to a key', () => {
  let holder: ProofHolder;
  let thief: ProofHolder;
  let token: string;
  let url: string;
  const rig = sharedGateway();
  beforeAll(async () => {
    [holder, thief] = [await makeProofHolder(), await makeProofHolder()];
    token = await rig.gateway.token('target', { cnf: { jkt: holder.thumbprint } });
    ({ url } = rig.access);
  });
  beforeEach(() => rig.upstream.forget());

  const send = (headers: HeaderLines): Promise<Reply> =>
    post({ url, token: undefined }, TEXT, { ...MIRRORS, ...headers });
  const dpop = (proof: string, presented = token): Promise<Reply> =>
    send({ authorization: `DPoP ${presented}`, dpop: proof });
  const prove = (options: ProofOptions = {}): Promise<string> => holder.prove('POST', url, { token, ...options });

  async function expectRefused(reply: Reply, error = 'invalid_dpop_proof'): Promise<void> {
    expect(reply.status).toBe(401);
    const challenge = reply.headers.get('www-authenticate') ?? '';
    expect(challenge).toMatch(/^DPoP resource_metadata="/);
    expect(challenge).toContain(`error="${error}"`);
    expect(challenge).toContain('algs="ES256 ');
    await expectLoginLine(rig, reply, 'token-binding', 'token-malformed');
    expectNothingForwarded(rig);
  }

  it('[BND-02] passes with a proof, is on record as bound, and neither goes to the upstream', async () => {
    const reply = await dpop(await prove());
    expect(reply.status).toBe(200);
    const [seen] = rig.upstream.uses();
    expect(seen?.headers).not.toHaveProperty('dpop');
    expect(seen?.headers).not.toHaveProperty('authorization');
    const lines = (await rig.gateway.audit()).filter((line) => line['actor']?.token?.binding === 'dpop');
    expect(lines.length).toBeGreaterThan(0);
  });

  it('[BND-03] is refused as a bearer token, with a good proof beside it too', async () => {
    await expectRefused(await send({ authorization: `Bearer ${token}` }), 'invalid_token');
    const proof = await prove();
    await expectRefused(await send({ authorization: `Bearer ${token}`, dpop: proof }), 'invalid_token');
    // Nothing of this has used the proof.
    expect((await dpop(proof)).status).toBe(200);
  });

  it('[BND-03] is refused without a proof though it was verified a moment ago', async () => {
    expect((await dpop(await prove())).status).toBe(200);
    rig.upstream.forget();
    await expectRefused(await send({ authorization: `DPoP ${token}` }));
    await expectRefused(await send({ authorization: `Bearer ${token}` }), 'invalid_token');
  });

  it('[BND-04] passes once with one proof, whatever the request says', async () => {
    const proof = await prove();
    expect((await dpop(proof)).status).toBe(200);
    rig.upstream.forget();
    await expectRefused(await dpop(proof));
    const other = statelessParts('tools/list');
    const reply = await post({ url, token: undefined }, JSON.stringify(other.body), {
      ...other.headers,
      authorization: `DPoP ${token}`,
      dpop: proof,
    });
    await expectRefused(reply);
  });

  it('[BND-04] passes once when one proof is sent many times at once', async () => {
    const proof = await prove();
    const replies = await Promise.all(Array.from({ length: 8 }, () => dpop(proof)));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(401)]);
  });

  it('[BND-04] keeps the ids of two keys apart', async () => {
    const other = await rig.gateway.token('target', { cnf: { jkt: thief.thumbprint } });
    const claims = { jti: 'the-same-id' };
    expect((await dpop(await prove({ claims }))).status).toBe(200);
    const proof = await thief.prove('POST', url, { token: other, claims });
    expect((await dpop(proof, other)).status).toBe(200);
  });

  it.each<[string, ProofOptions]>([
    ['another method', { claims: { htm: 'GET' } }],
    ['the method in another case', { claims: { htm: 'post' } }],
    ['no method', { claims: { htm: undefined } }],
    ['no URL', { claims: { htu: undefined } }],
    ['a URL that is none', { claims: { htu: 'target' } }],
    ['another token', { claims: { ath: hash('sha256', 'another', 'base64url') } }],
    ['no token', { claims: { ath: undefined } }],
    ['an old time', { claims: { iat: nowSeconds() - 120 } }],
    ['a time to come', { claims: { iat: nowSeconds() + 60 } }],
    ['a time that is text', { claims: { iat: String(nowSeconds()) } }],
    ['no time', { claims: { iat: undefined } }],
    ['no id', { claims: { jti: undefined } }],
    ['an empty id', { claims: { jti: '' } }],
    ['an id that is a number', { claims: { jti: 7 } }],
    ['an id without end', { claims: { jti: 'x'.repeat(300) } }],
    ['the type of a token', { header: { typ: 'at+jwt' } }],
    ['no type', { header: { typ: undefined } }],
    ['no key', { header: { jwk: undefined } }],
    ['a key by its name', { header: { jwk: undefined, kid: 'key' } }],
    ['something that it calls critical', { header: { crit: ['exp'], exp: 1 } }],
    ['more than it may weigh', { claims: { padding: 'x'.repeat(5_000) } }],
  ])('[BND-05] is refused where the proof names %s', async (_what, options) => {
    await expectRefused(await dpop(await prove(options)));
  });

  it('[BND-05] is refused where the proof names another resource', async () => {
    const { origin, pathname } = new URL(url);
    for (const htu of [
      `${url}/`,
      `${url}x`,
      origin,
      url.replace('http:', 'https:'),
      `http://evil.example${pathname}`,
      `http://user@127.0.0.1:${rig.port}${pathname}`,
      `${origin}${pathname.toUpperCase()}`,
    ]) {
      await expectRefused(await dpop(await prove({ claims: { htu } })));
    }
  });

  it('[BND-05] passes where the URL has a query, a fragment or another notation', async () => {
    for (const htu of [`${url}?a=b`, `${url}#a`, url.replace('http:', 'HTTP:')]) {
      expect((await dpop(await prove({ claims: { htu } }))).status, htu).toBe(200);
    }
  });

  it('[BND-06] is refused where another key proves, or signs for the right one', async () => {
    await expectRefused(await dpop(await thief.prove('POST', url, { token })));
    await expectRefused(await dpop(await prove({ signer: thief.privateKey })));
    const jwk = thief.publicJwk;
    await expectRefused(await dpop(await prove({ header: { jwk } })));
  });

  it('[BND-06] is refused where the proof brings its private key', async () => {
    const { d } = holder.privateJwk;
    await expectRefused(await dpop(await prove({ header: { jwk: { ...holder.publicJwk, d } } })));
  });

  it('[BND-06] is refused where nobody signed, or a secret that everyone can read', async () => {
    const claims = { jti: 'x', htm: 'POST', htu: url, iat: nowSeconds() };
    const ath = hash('sha256', token, 'base64url');
    for (const alg of ['none', 'None', 'HS256']) {
      const head = { typ: 'dpop+jwt', alg, jwk: holder.publicJwk };
      for (const signature of ['', 'AAAA']) {
        await expectRefused(await dpop(`${encode(head)}.${encode({ ...claims, ath })}.${signature}`));
      }
    }
  });

  it('[BND-06] is refused with another spelling of a good proof', async () => {
    const proof = await prove();
    const [head = '', claims = '', signature = ''] = proof.split('.');
    const last = signature.at(-1) ?? '';
    const next = String.fromCharCode(last.charCodeAt(0) + 1);
    for (const spelling of [
      `${proof}=`,
      `${head}.${claims}.${signature.slice(0, -1)}${next}`,
      `${head}.${claims}.${signature}.`,
      `${proof}, ${proof}`,
    ]) {
      await expectRefused(await dpop(spelling));
    }
    expect((await dpop(proof)).status).toBe(200);
  });

  it('[BND-05] is refused with two proofs, whichever is good', async () => {
    const [one, other] = [await prove(), await prove()];
    const lines = [
      `Host: 127.0.0.1:${rig.port}`,
      'Content-Type: application/json',
      `Content-Length: ${TEXT.length}`,
      `Authorization: DPoP ${token}`,
      ...Object.entries(MIRRORS).map(([name, value]) => `${name}: ${value}`),
    ];
    for (const [first, second] of [
      [one, other],
      [one, one],
      [one, 'x'],
      ['x', one],
    ]) {
      const sent = rawPost(rig.path, [...lines, `DPoP: ${first}`, `dpop: ${second}`], TEXT);
      const reply = await sendRaw(rig.port, [sent], hasCompleteResponse);
      expect(reply.status).toBe(401);
    }
    expectNothingForwarded(rig);
    expect((await dpop(one)).status).toBe(200);
  });

  it('[BND-07] is refused as what it is not: an unbound token gains nothing by a proof', async () => {
    const free = rig.access.token ?? '';
    const proof = await holder.prove('POST', url, { token: free });
    await expectRefused(await dpop(proof, free), 'invalid_token');
    // A proof beside a bearer token that is bound to nothing says nothing.
    expect((await send({ authorization: `Bearer ${free}`, dpop: proof })).status).toBe(200);
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['an empty binding', {}],
    ['a short thumbprint', { jkt: 'x' }],
    ['a key by value', { jwk: { kty: 'EC' } }],
    ['a key by name', { kid: 'x' }],
    ['a known and an unknown binding', { jkt: 'A'.repeat(43), osc: 'x' }],
  ])('[BND-08] is refused where it is bound to %s', async (_what, cnf) => {
    const odd = await rig.gateway.token('target', { cnf });
    const proof = await holder.prove('POST', url, { token: odd });
    for (const headers of [{ authorization: `Bearer ${odd}` }, { authorization: `DPoP ${odd}`, dpop: proof }]) {
      const reply = await send(headers);
      expect(reply.status).toBe(401);
      await expectLoginLine(rig, reply, 'token-binding');
    }
    expectNothingForwarded(rig);
  });

  it('[BND-05] is judged by the configured URL, whatever the request says of its way here', () =>
    withGateway({ publicPath: '/mcp' }, async (behind) => {
      const bound = await behind.gateway.token('target', { cnf: { jkt: holder.thumbprint } });
      const outer = `${behind.gateway.publicUrl}/mcp/target`;
      const ask = async (htu: string, headers: HeaderLines = {}): Promise<number> => {
        const proof = await holder.prove('POST', htu, { token: bound });
        const all = { ...MIRRORS, ...headers, authorization: `DPoP ${bound}`, dpop: proof };
        return (await post({ url: behind.access.url, token: undefined }, TEXT, all)).status;
      };
      expect(await ask(outer)).toBe(200);
      expect(await ask(behind.access.url)).toBe(401);
      const lies = {
        'x-forwarded-host': 'evil.example',
        'x-forwarded-proto': 'https',
        'x-forwarded-prefix': '/evil',
        forwarded: 'host=evil.example;proto=https',
      };
      expect(await ask(outer, lies)).toBe(200);
      expect(await ask('https://evil.example/evil/target', lies)).toBe(401);
    }));

  it('[BND-02] leaves no proof and no token in any record', async () => {
    const proof = await prove();
    await dpop(proof);
    const reply = await dpop(proof);
    await linesOf(rig.gateway, reply.headers.get('sallyport-decision') ?? '', 1);
    const signature = proof.split('.')[2] ?? 'none';
    const written = [rig.gateway.log(), JSON.stringify(await rig.gateway.audit()), reply.text];
    written.push(await rig.gateway.metrics());
    for (const text of written) {
      expect(text).not.toContain(signature);
      expect(text).not.toContain(token.split('.')[2]);
    }
  });
});
