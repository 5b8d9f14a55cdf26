import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { type KeySet, readKeySet, selectKey } from '../../../src/auth/jwks.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import { makeSigningKey } from '../../support/tokens.js';

const ALGORITHMS = ['ES256', 'RS256', 'EdDSA'];
let ec: JWK;
let ec2: JWK;
let rsa: JWK;

beforeAll(async () => {
  ec = (await makeSigningKey('ES256', 'ec')).publicJwk;
  ec2 = (await makeSigningKey('ES256', 'ec2')).publicJwk;
  rsa = (await makeSigningKey('RS256', 'rsa')).publicJwk;
});

async function read(keys: readonly unknown[], algorithms = ALGORITHMS) {
  return await readKeySet(JSON.parse(JSON.stringify({ keys })), algorithms);
}

async function keysOf(keys: readonly unknown[], algorithms = ALGORITHMS): Promise<KeySet> {
  const reading = await read(keys, algorithms);
  if (!reading.ok) throw new Error(reading.detail);
  return reading.keys;
}

describe('a key set', () => {
  it('[A-29] gives the key of an id and an algorithm, and no other', async () => {
    const keys = await keysOf([ec, ec2, rsa]);
    expect(selectKey(keys, { kid: 'ec', alg: 'ES256' })).toBeDefined();
    expect(selectKey(keys, { kid: 'ec', alg: 'RS256' })).toBeUndefined();
    expect(selectKey(keys, { kid: 'EC', alg: 'ES256' })).toBeUndefined();
    expect(selectKey(keys, { kid: 'rsa', alg: 'PS256' })).toBeUndefined();
  });

  it('[A-29] gives a key without an id only when the algorithm has one', async () => {
    const keys = await keysOf([ec, ec2, rsa]);
    expect(selectKey(keys, { alg: 'RS256' })).toBeDefined();
    expect(selectKey(keys, { alg: 'ES256' })).toBeUndefined();
  });

  it('[A-30] leaves out what may not verify, and keeps the rest', async () => {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const { alg: _, ...open } = rsa;
    const unusable: readonly unknown[] = [
      { kty: 'oct', k: Buffer.from('0'.repeat(32)).toString('base64url'), kid: 'a', alg: 'HS256' },
      { ...(await exportJWK(privateKey)), kid: 'b' },
      { ...ec, kid: 'c', use: 'enc' },
      { ...ec, kid: 'd', key_ops: ['sign'] },
      { ...ec, kid: 'e', alg: 'ES384' },
      { ...ec, kid: 7 },
      { ...ec, kid: 'f', x: 'AAAA' },
      { ...rsa, kid: 'g', n: 'w'.repeat(171) },
      'text',
      null,
    ];
    const keys = await keysOf([...unusable, { ...open, kid: 'good' }], [...ALGORITHMS, 'HS256']);
    expect([...keys.keys()]).toEqual(['RS256']);
    expect([...(keys.get('RS256')?.keys() ?? [])]).toEqual(['good']);
  });

  it('[A-30] uses neither of two keys of one id', async () => {
    const keys = await keysOf([ec, { ...ec2, kid: 'ec' }, rsa]);
    expect(selectKey(keys, { kid: 'ec', alg: 'ES256' })).toBeUndefined();
    expect(selectKey(keys, { kid: 'rsa', alg: 'RS256' })).toBeDefined();
  });

  it('[A-30] fails when it is none, is too long, or holds nothing that may be used', async () => {
    const documents: readonly Json[] = [null, [], {}, { keys: {} }, { keys: [] }, 'keys'];
    for (const document of documents) {
      expect(await readKeySet(document, ALGORITHMS)).toMatchObject({ ok: false });
    }
    const many = Array.from({ length: 101 }, (_, index) => ({ ...ec, kid: `k${index}` }));
    expect(await read(many)).toMatchObject({ ok: false });
    expect(await read(many.slice(1))).toMatchObject({ ok: true });
  });

  it('has a fingerprint that tells sets apart and not their order', async () => {
    const prints = [];
    for (const keys of [[ec, rsa], [rsa, ec], [ec], [{ ...ec2, kid: 'ec' }, rsa]]) {
      const reading = await read(keys);
      prints.push(reading.ok && reading.fingerprint);
    }
    expect(prints[0]).toBe(prints[1]);
    expect(new Set(prints).size).toBe(3);
  });
});
