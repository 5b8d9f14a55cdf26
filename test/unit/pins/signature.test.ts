import { createHash, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readPrivateSignerKey, readPublicSignerKey } from '../../../src/config/key-material.js';
import {
  checkSignatures,
  MAX_COUNTER,
  preAuthEncoding,
  readEnvelope,
  readStatement,
  writeEnvelope,
  writePayload,
} from '../../../src/pins/signature.js';
import { envelopeOf, type KeyKind, makeSigner, statementOf } from '../../support/signers.js';

const TEXT = 'lockfileVersion: 1\nupstream: github\n';
const LOCK = { file: 'github.lock.yaml', upstream: 'github', text: TEXT };
const [alice, bob, eve] = [makeSigner('alice'), makeSigner('bob', 'P-256'), makeSigner('eve')];
const ONE = { signers: [alice, bob], require: 1 };
const TWO = { signers: [alice, bob], require: 2 };
const STATEMENT = statementOf(TEXT);

function why(envelope: string | undefined, signing = ONE, lock = LOCK): string | undefined {
  const check = checkSignatures(lock, envelope, signing);
  return check.ok ? undefined : check.why;
}

/** A payload with other text, signed as it stands. */
function signed(text: string, payloadType?: string): string {
  const more = payloadType === undefined ? {} : { payloadType };
  return envelopeOf(new TextEncoder().encode(text), [alice], more);
}

const PAYLOAD = new TextDecoder().decode(writePayload(STATEMENT));

describe('[L-90] a signed lock file', () => {
  it('is signed over the pre-authentication encoding of DSSE', () => {
    const bytes = preAuthEncoding(new TextEncoder().encode('hé'));
    expect(new TextDecoder().decode(bytes)).toBe('DSSEv1 28 application/vnd.in-toto+json 3 hé');
  });

  it('has an in-toto statement about the bytes of the file', () => {
    expect(JSON.parse(PAYLOAD)).toEqual({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [
        {
          name: 'github.lock.yaml',
          digest: { sha256: createHash('sha256').update(TEXT).digest('hex') },
        },
      ],
      predicateType: 'urn:sallyport:predicate:lock:1',
      predicate: {
        ...{ upstream: 'github', counter: 1, signer: 'alice' },
        signedAt: '2026-11-20T10:00:00.000Z',
      },
    });
  });

  it.each<KeyKind>(['ed25519', 'P-256', 'P-384'])('is accepted with a key of %s', (kind) => {
    const signer = makeSigner('carol', kind);
    const check = checkSignatures(LOCK, envelopeOf(STATEMENT, [signer]), {
      ...{ signers: [alice, signer], require: 1 },
    });
    expect(check).toEqual({ ok: true, statement: STATEMENT, signers: ['carol'] });
  });

  it.each<KeyKind>(['P-256', 'P-384'])('may have raw signatures of ECDSA with %s', (kind) => {
    const signer = makeSigner('carol', kind);
    const raw = signer.sign(preAuthEncoding(writePayload(STATEMENT)), 'ieee-p1363');
    const sig = Buffer.from(raw).toString('base64');
    const signing = { signers: [signer], require: 1 };
    expect(why(envelopeOf(STATEMENT, [signer], { sig }), signing)).toBeUndefined();
    const cut = Buffer.from(raw.slice(0, -1)).toString('base64');
    expect(why(envelopeOf(STATEMENT, [signer], { sig: cut }), signing)).toContain('no valid');
  });

  it('needs as many different signers as are required', () => {
    expect(why(envelopeOf(STATEMENT, [alice, bob]), TWO)).toBeUndefined();
    expect(why(envelopeOf(STATEMENT, [alice, alice]), TWO)).toBe(
      'is not signed by enough signers: github.lock.sig.json has valid signatures of 1 (alice), and 2 must sign',
    );
    const twice = { signers: [alice, { ...alice, name: 'alias' }], require: 2 };
    expect(why(envelopeOf(STATEMENT, [alice, alice]), twice)).toContain('of 1 (alice), and 2');
    expect(why(envelopeOf(STATEMENT, [eve]))).toContain('no valid signature of a configured');
    expect(why(undefined)).toBe('is not signed: github.lock.sig.json does not exist');
  });

  it('takes key ids as hints: a wrong one changes nothing, and a right one proves nothing', () => {
    expect(why(envelopeOf(STATEMENT, [alice], { keyid: 'unknown' }))).toBeUndefined();
    expect(why(envelopeOf(STATEMENT, [eve], { keyid: alice.keyId }))).toContain('no valid');
    expect(why(envelopeOf(STATEMENT, [eve, alice]))).toBeUndefined();
  });

  it('is refused if one word of it was changed', () => {
    const lock = { ...LOCK, text: TEXT.replace('github', 'gitlab') };
    expect(why(envelopeOf(STATEMENT, [alice]), ONE, lock)).toBe(
      'is not what was signed: it was changed after its signatures were made',
    );
    const bom = { ...LOCK, text: `\ufeff${TEXT}` };
    expect(why(envelopeOf(STATEMENT, [alice]), ONE, bom)).toContain('was changed');
  });

  it('is refused as the file of another upstream, under either name', () => {
    const other = statementOf(TEXT, { file: 'gitlab.lock.yaml', upstream: 'gitlab' });
    expect(why(envelopeOf(other, [alice]))).toBe(
      'is signed as another file: the signatures are for "gitlab.lock.yaml (gitlab)"',
    );
    const half = statementOf(TEXT, { upstream: 'gitlab' });
    expect(why(envelopeOf(half, [alice]))).toContain('is signed as another file');
  });

  it('is refused with a signature over another payload, or over the bare payload', () => {
    const other = JSON.parse(envelopeOf(statementOf(TEXT, { counter: 9 }), [alice]));
    const own = JSON.parse(envelopeOf(STATEMENT, [alice]));
    expect(why(JSON.stringify({ ...own, payload: other.payload }))).toContain('no valid');
    const bare = sign(null, writePayload(STATEMENT), alice.key).toString('base64');
    expect(why(envelopeOf(STATEMENT, [alice], { sig: bare }))).toContain('no valid');
  });

  it.each([
    ['another payload type', signed(PAYLOAD, 'application/json'), 'no payload of type'],
    ['a predicate of another type', signed(PAYLOAD.replace('lock:1', 'lock:2')), 'another type'],
    ['another type of statement', signed(PAYLOAD.replace('v1', 'v0.1')), 'is no statement'],
    ['a member twice', signed(PAYLOAD.replace('{', '{"_type":"x",')), 'duplicate-key'],
    ['text that is no JSON', signed(`${PAYLOAD}}`), 'malformed-json'],
    ['two subjects', signed(PAYLOAD.replace('[{', '[{"name":"x"},{')), 'not about one file'],
    ['a counter of 0', signed(PAYLOAD.replace('"counter":1', '"counter":0')), 'without a counter'],
    ['a counter of text', signed(PAYLOAD.replace(':1,', ':"1",')), 'without a counter'],
    [
      'a counter that leaves none',
      signed(PAYLOAD.replace('"counter":1', `"counter":${MAX_COUNTER + 1}`)),
      'without a counter',
    ],
    ['a digest of another kind', signed(PAYLOAD.replace('sha256', 'sha512')), 'without name'],
  ])('is refused with %s, though its key is right', (_, envelope, expected) => {
    expect(why(envelope)).toContain(expected);
  });

  it('may have a payload in any other notation, because its bytes are what is signed', () => {
    const spaced = JSON.stringify(JSON.parse(PAYLOAD), null, 4);
    expect(why(signed(`${spaced}\n`))).toBeUndefined();
  });

  it.each([
    ['no JSON', 'x', 'cannot be read as JSON'],
    ['a list', '[]', 'is no envelope'],
    ['a member twice', '{"payloadType":"x","payloadType":"x"}', 'duplicate-key'],
    ['no signatures', envelopeOf(STATEMENT, []), 'has no signatures'],
    ['too many', envelopeOf(STATEMENT, Array(17).fill(alice)), 'more than 16 signatures'],
    ['too much', `${envelopeOf(STATEMENT, [alice])}${' '.repeat(65_536)}`, 'too large'],
    ['a signature of text', envelopeOf(STATEMENT, [alice], { sig: 'x y' }), 'signature that cannot be read'],
  ])('has no envelope that is %s', (_, envelope, expected) => {
    expect(why(envelope)).toContain(expected);
  });

  it('has its payload in base64 of one form only', () => {
    const good = JSON.parse(envelopeOf(STATEMENT, [alice]));
    const payload: string = good.payload;
    for (const bad of [`${payload}\n`, ` ${payload}`, payload.replace(/.$/, '!'), '']) {
      const read = readEnvelope(JSON.stringify({ ...good, payload: bad }));
      expect(read).toEqual({ ok: false, why: 'has no payload in base64' });
    }
    const url = Buffer.from(payload, 'base64').toString('base64url');
    expect(why(JSON.stringify({ ...good, payload: url }))).toBeUndefined();
  });

  it('reads back what it writes', () => {
    const read = readEnvelope(envelopeOf(STATEMENT, [alice, bob]));
    if (!read.ok) throw new Error(read.why);
    expect(readEnvelope(writeEnvelope(read.value))).toEqual(read);
    expect(readStatement(read.value.payload)).toEqual({ ok: true, value: STATEMENT });
    const nameless = statementOf(TEXT, { signer: undefined });
    expect(readStatement(writePayload(nameless))).toEqual({ ok: true, value: nameless });
  });
});

describe('[L-90] the key of a signer', () => {
  it('has the same id in every form', () => {
    const jwk = JSON.stringify(bob.key.export({ format: 'jwk' }));
    const { d: _, ...publicJwk } = JSON.parse(jwk);
    expect(readPublicSignerKey(JSON.stringify(publicJwk))).toEqual({
      ok: true,
      key: { keyId: bob.keyId, publicKey: bob.publicKey },
    });
    expect(readPublicSignerKey(bob.publicKey)).toMatchObject({ key: { keyId: bob.keyId } });
    expect(readPrivateSignerKey(jwk).ok).toBe(true);
    expect(readPrivateSignerKey(bob.privateKey).ok).toBe(true);
  });

  it('is no private key where a public one is meant, and of a kind that is known', () => {
    const jwk = JSON.stringify(alice.key.export({ format: 'jwk' })).replace('"d"', '"\\u0064"');
    for (const text of [alice.privateKey, jwk]) {
      expect(readPublicSignerKey(text)).toMatchObject({ ok: false, why: /holds a private key/ });
    }
    for (const kind of ['P-521', 'rsa'] as const) {
      const { publicKey, privateKey } = makeSigner('carol', kind);
      expect(readPublicSignerKey(publicKey)).toMatchObject({ why: /of another kind/ });
      expect(readPrivateSignerKey(privateKey)).toMatchObject({ why: /of another kind/ });
    }
    for (const text of ['', 'x', '{}', '{', 'sallyport-public-1:x']) {
      expect(readPublicSignerKey(text)).toMatchObject({ why: /holds no public key/ });
      expect(readPrivateSignerKey(text)).toMatchObject({ why: /holds no private key/ });
    }
  });
});
