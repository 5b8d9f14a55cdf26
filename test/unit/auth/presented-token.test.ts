import { createHmac, hash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readConfirmation } from '../../../src/auth/claims.js';
import {
  createProofNonces,
  createProofVerifier,
  PROOF_ALGORITHMS,
  type ProofVerdict,
  readBearer,
  readProofKey,
} from '../../../src/auth/presented-token.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { createMemoryReplays } from '../../../src/state/memory.js';
import { makeProofHolder, type ProofHolder } from '../../support/tokens.js';

const ONCE = new Set<string>();
const part = (text: string) => Buffer.from(text).toString('base64url');
const TOKEN = `${part('{"alg":"ES256"}')}.${part('{"sub":"a"}')}.${part('signature')}`;

function read(authorization: string | undefined, query = '') {
  return readBearer({ authorization }, ONCE, query);
}

describe('the bearer token of a request', () => {
  it('[A-20] is the one token of the one Authorization header', () => {
    expect(read(`Bearer ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'bearer' });
    expect(read(`bEARER ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'bearer' });
    expect(read(`Bearer ${TOKEN}`, 'cursor=access_token')).toEqual({
      token: TOKEN,
      scheme: 'bearer',
    });
  });

  it('[BND-01] comes by the scheme DPoP too, in the same one spelling', () => {
    expect(read(`DPoP ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'dpop' });
    expect(read(`dpop ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'dpop' });
    for (const header of ['DPoP', 'DPoP ', `DPoP  ${TOKEN}`, `DPoP ${TOKEN}=`, `DPoPs ${TOKEN}`]) {
      expect(read(header), header).toBe('malformed');
    }
    expect(readBearer({ authorization: `DPoP ${TOKEN}` }, new Set(['dpop']), '')).toBe('malformed');
  });

  it('[A-20] is missing without a bearer credential', () => {
    for (const header of [undefined, '', 'Basic YTpi', TOKEN]) {
      expect(read(header), header).toBe('missing');
    }
  });

  it('[A-21] is refused when the header came twice, even with one value', () => {
    const repeated = new Set(['authorization']);
    expect(readBearer({ authorization: `Bearer ${TOKEN}` }, repeated, '')).toBe('malformed');
  });

  it('[A-21] is refused when the query carries a token, alone or beside a header', () => {
    const queries = [`access_token=${TOKEN}`, 'a=1&access_token=', 'access%5Ftoken=x'];
    for (const query of [...queries, 'ACCESS_TOKEN=x', 'access_token']) {
      expect(read(undefined, query), query).toBe('malformed');
      expect(read(`Bearer ${TOKEN}`, query), query).toBe('malformed');
    }
  });

  it('[A-22] is refused in any spelling but the canonical one', () => {
    const [head = '', body = '', signature = ''] = TOKEN.split('.');
    const bad = [
      'Bearer',
      'Bearer ',
      `Bearer  ${TOKEN}`,
      `Bearer\t${TOKEN}`,
      `Bearer ${TOKEN} `,
      `Bearer ${TOKEN}=`,
      `Bearer ${TOKEN},Bearer ${TOKEN}`,
      `Bearer ${head}.${body}`,
      `Bearer ${head}.${body}.`,
      `Bearer .${body}.${signature}`,
      `Bearer ${head}.${body}.${signature}.${signature}.${signature}`,
      `Bearer ${head}.${body}.${signature.slice(0, 4)}\n${signature.slice(4)}`,
      `Bearer ${head}.${body}.${signature}+/`,
      `Bearer ${head}.${body}.${'A'.repeat(5)}`,
      'Bearer opaque',
    ];
    for (const header of bad) expect(read(header), JSON.stringify(header)).toBe('malformed');
  });

  it('[A-22] has one spelling for each value of each part', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 70 }), fc.constantFrom(...alphabet), (bytes, last) => {
        const canonical = Buffer.from(bytes).toString('base64url');
        const other = canonical.slice(0, -1) + last;
        const isCanonical = Buffer.from(other, 'base64url').toString('base64url') === other;
        const expected = isCanonical ? { token: `a000.b000.${other}`, scheme: 'bearer' } : 'malformed';
        expect(read(`Bearer a000.b000.${other}`)).toEqual(expected);
      }),
    );
  });

  it('[A-23] is refused past 8 KiB without being looked at', () => {
    const signature = 'A'.repeat(8192 - 'aaaa.aaaa.'.length);
    const longest = `aaaa.aaaa.${signature.slice(0, signature.length - (signature.length % 4))}`;
    expect(read(`Bearer ${longest}`)).toEqual({ token: longest, scheme: 'bearer' });
    expect(read(`Bearer ${longest}${'A'.repeat(8)}`)).toBe('malformed');
  });
});

const URI = 'https://mcp.example.com/notes';
const BOUND_TOKEN = 'a.b.c';
const MAX_AGE_MS = 60_000;

const hmac = (purpose: string, text: string): string => createHmac('sha256', purpose).update(text).digest('base64url');

const digests =
  (keys: readonly string[]) =>
  (purpose: string, text: string): readonly string[] =>
    keys.map((key) => hmac(key + purpose, text));

function makeVerifier(more: { now?: () => number; maxUses?: number } = {}) {
  const { now = Date.now, maxUses } = more;
  const replays = createMemoryReplays(now, maxUses);
  const checkProof = createProofVerifier({
    now,
    hmacAll: digests(['one']),
    replays,
    nonces: undefined,
    maxAgeMs: MAX_AGE_MS,
  });
  return {
    replays,
    checkProof: (
      proof: string | undefined,
      { thumbprint: proofKey }: ProofHolder,
      owner = 'caller',
    ): Promise<ProofVerdict> => checkProof({ proof, method: 'POST', uri: URI, token: BOUND_TOKEN, proofKey, owner }),
  };
}

describe('a proof of possession', () => {
  it.each(PROOF_ALGORITHMS)('[BND-06] may be signed with %s', async (alg) => {
    const holder = await makeProofHolder(alg);
    const proof = await holder.prove('POST', URI, { token: BOUND_TOKEN });
    expect(await makeVerifier().checkProof(proof, holder)).toBe('valid');
  });

  it('[BND-06] is never signed with a weak key', async () => {
    const { publicKey } = await crypto.subtle.generateKey(
      {
        name: 'RSASSA-PKCS1-v1_5',
        modulusLength: 1024,
        publicExponent: new Uint8Array([1, 0, 1]),
        hash: 'SHA-256',
      },
      true,
      ['sign', 'verify'],
    );
    const jwk = (await crypto.subtle.exportKey('jwk', publicKey)) as JsonObject;
    expect(readProofKey(jwk, 'RS256')).toBeUndefined();
  });

  it('[BND-05] is good from a little before its time until its age, and not a moment longer', async () => {
    const holder = await makeProofHolder();
    const iat = 1_800_000_000;
    const proof = await holder.prove('POST', URI, { token: BOUND_TOKEN, claims: { iat } });
    for (const [offsetMs, verdict] of [
      [-5_001, 'invalid_dpop_proof'],
      [-5_000, 'valid'],
      [0, 'valid'],
      [MAX_AGE_MS, 'valid'],
      [MAX_AGE_MS + 1, 'invalid_dpop_proof'],
    ] as const) {
      const { checkProof } = makeVerifier({ now: () => iat * 1000 + offsetMs });
      expect(await checkProof(proof, holder), String(offsetMs)).toBe(verdict);
    }
  });

  it('[BND-04] is remembered for as long as it is good', async () => {
    const holder = await makeProofHolder();
    const iat = 1_800_000_000;
    const proof = await holder.prove('POST', URI, { token: BOUND_TOKEN, claims: { iat } });
    let nowMs = iat * 1000 - 5_000;
    const { checkProof } = makeVerifier({ now: () => nowMs });
    expect(await checkProof(proof, holder)).toBe('valid');
    for (nowMs of [iat * 1000, iat * 1000 + MAX_AGE_MS, iat * 1000 + MAX_AGE_MS + 10])
      expect(await checkProof(proof, holder)).toBe('invalid_dpop_proof');
  });

  it('[ACH-08] is used once at replicas that stand at different steps of a change of keys', async () => {
    const holder = await makeProofHolder();
    const steps = [['old'], ['old', 'new'], ['new', 'old']];
    for (const [first, second] of steps.flatMap((one) => steps.map((other) => [one, other]))) {
      const replays = createMemoryReplays(Date.now);
      const proof = await holder.prove('POST', URI, { token: BOUND_TOKEN });
      const ask = (keys: readonly string[] = []): Promise<ProofVerdict> =>
        createProofVerifier({
          ...{ now: Date.now, hmacAll: digests(keys), replays },
          ...{ nonces: undefined, maxAgeMs: MAX_AGE_MS },
        })({
          ...{ proof, method: 'POST', uri: URI, token: BOUND_TOKEN },
          ...{ proofKey: holder.thumbprint, owner: 'caller' },
        });
      expect(await ask(first)).toBe('valid');
      expect(await ask(second)).toBe('invalid_dpop_proof');
    }
  });

  it('[BND-29] passes nowhere when nobody can tell whether it was used', async () => {
    const holder = await makeProofHolder();
    const { checkProof } = makeVerifier({ maxUses: 1 });
    const next = () => holder.prove('POST', URI, { token: BOUND_TOKEN });
    expect(await checkProof(await next(), holder)).toBe('valid');
    expect(await checkProof(await next(), holder)).toBe('unavailable');
  });

  it('[BND-29] of one caller leaves room for those of others, however many keys the caller has', async () => {
    const { checkProof } = makeVerifier({ maxUses: 8 });
    const verdicts: ProofVerdict[] = [];
    for (const owner of ['greedy', 'greedy', 'greedy', 'modest']) {
      const holder = await makeProofHolder();
      const proof = await holder.prove('POST', URI, { token: BOUND_TOKEN });
      verdicts.push(await checkProof(proof, holder, owner));
    }
    expect(verdicts).toEqual(['valid', 'valid', 'unavailable', 'valid']);
  });

  it('[BND-05] is refused after any one of its characters was changed', async () => {
    const holder = await makeProofHolder();
    const proof = await holder.prove('POST', URI, { token: BOUND_TOKEN });
    const { checkProof, replays } = makeVerifier();
    await fc.assert(
      fc.asyncProperty(fc.nat(proof.length - 1), fc.constantFrom(...'ABCxyz019-_.= '), async (at, char) => {
        if (proof[at] === char) return;
        const changed = proof.slice(0, at) + char + proof.slice(at + 1);
        expect(await checkProof(changed, holder)).toBe('invalid_dpop_proof');
      }),
      { numRuns: 200 },
    );
    expect(replays.size).toBe(0);
    expect(await checkProof(undefined, holder)).toBe('invalid_dpop_proof');
    expect(await checkProof(proof, holder)).toBe('valid');
  });
});

describe('the key of a proof', () => {
  it('[BND-06] has the thumbprint of RFC 7638, whatever else it says of itself', async () => {
    for (const alg of ['ES256', 'ES512', 'EdDSA', 'PS256']) {
      const holder = await makeProofHolder(alg);
      const jwk = { kid: 'any', use: 'sig', ...holder.publicJwk } as JsonObject;
      expect(readProofKey(jwk, alg)?.thumbprint).toBe(holder.thumbprint);
    }
  });

  it('[BND-06] is public, of the kind of its algorithm, and in one spelling', async () => {
    const { publicJwk, privateJwk } = await makeProofHolder();
    const ec = publicJwk as JsonObject;
    const { d = '' } = privateJwk;
    const bad: readonly [JsonObject | Json, string][] = [
      [{ ...ec, d }, 'ES256'],
      [{ ...ec, k: 'x' }, 'ES256'],
      [{ ...ec, crv: 'P-384' }, 'ES256'],
      [ec, 'ES384'],
      [ec, 'RS256'],
      [ec, 'EdDSA'],
      [ec, 'HS256'],
      [ec, 'none'],
      [ec, 'constructor'],
      [ec, '__proto__'],
      [{ ...ec, x: `${String(ec['x'])}=` }, 'ES256'],
      [{ ...ec, x: `AA${String(ec['x'])}` }, 'ES256'],
      [{ ...ec, x: String(ec['x']).slice(2) }, 'ES256'],
      [{ ...ec, y: 7 }, 'ES256'],
      [{ kty: 'oct', k: 'AAAA' }, 'HS256'],
      [[], 'ES256'],
      ['jwk', 'ES256'],
      [null, 'ES256'],
    ];
    for (const [jwk, alg] of bad) expect(readProofKey(jwk, alg), JSON.stringify(jwk)).toBeUndefined();
    expect(readProofKey(ec, 'ES256')).toBeDefined();
  });

  it('[BND-06] of RSA has 2048 to 4096 bits and a short exponent', () => {
    const of = (bytes: number, e = 'AQAB', first = 0x80): JsonObject => {
      const modulus = randomBytes(bytes);
      modulus[0] = first;
      return { kty: 'RSA', n: modulus.toString('base64url'), e };
    };
    for (const good of [of(256), of(512)]) expect(readProofKey(good, 'PS256')).toBeDefined();
    const long = randomBytes(64).toString('base64url');
    for (const bad of [of(255), of(513), of(4096), of(256, long), of(256, 'AQAB', 0), of(256, '')])
      expect(readProofKey(bad, 'PS256')).toBeUndefined();
  });
});

describe('nonces', () => {
  const hmacAll = (purpose: string, text: string): readonly string[] =>
    ['new', 'old'].map((key) => hmac(key + purpose, text));

  it('[BND-12] hold for one to two steps, and are the same on every replica', () => {
    let nowMs = 1_800_000_000_000;
    const nonces = createProofNonces({ now: () => nowMs, hmacAll });
    const other = createProofNonces({ now: () => nowMs, hmacAll });
    const first = nonces.current();
    expect(other.isFresh(first)).toBe(true);
    nowMs += 120_000;
    expect(nonces.current()).not.toBe(first);
    expect(nonces.isFresh(first)).toBe(true);
    nowMs += 120_000;
    expect(nonces.isFresh(first)).toBe(false);
    // What will be given out later is not good yet.
    nowMs += 120_000;
    const later = nonces.current();
    nowMs -= 240_000;
    expect(nonces.isFresh(later)).toBe(false);
  });

  it('[BND-12] of the key before stay good while keys are rotated', () => {
    const now = (): number => 1_800_000_000_000;
    const before = createProofNonces({ now, hmacAll: (of, text) => hmacAll(of, text).slice(1) });
    const after = createProofNonces({ now, hmacAll });
    expect(after.isFresh(before.current())).toBe(true);
    expect(before.isFresh(after.current())).toBe(false);
  });
});

describe('a confirmation', () => {
  const print = hash('sha256', 'x', 'base64url');

  it('[BND-08] is a thumbprint of a key, of a certificate, or both', () => {
    expect(readConfirmation({ jkt: print })).toEqual({ proofKey: print });
    expect(readConfirmation({ 'x5t#S256': print })).toEqual({ certificate: print });
    expect(readConfirmation({ jkt: print, 'x5t#S256': print })).toEqual({
      proofKey: print,
      certificate: print,
    });
    expect(readConfirmation(undefined)).toBeUndefined();
  });

  it('[BND-08] of any other shape is one that nobody can prove', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(readConfirmation(value as Json)).toBe('unknown');
      }),
    );
    for (const odd of [`${print}=`, print.slice(1), `${print.slice(0, -1)}B`, `${print}A`])
      expect(readConfirmation({ jkt: odd })).toBe('unknown');
  });
});
