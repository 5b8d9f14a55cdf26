import { describe, expect, it } from 'vitest';
import { keysCommand } from '../../../src/cli/keys.js';
import { buildProgram } from '../../../src/cli/program.js';
import {
  publicKeyInfoOf,
  publicPartOf,
  readKeyText,
  readPrivateSignerKey,
  readPublicSignerKey,
} from '../../../src/config/key-material.js';
import { filesOf, GOOD, KEY_HEX } from '../config/reading.js';
import { terminal } from './console.js';

const FILES = { '/srv/key': `${KEY_HEX}\n`, '/srv/gateway.yaml': GOOD, '/srv/notes': 'hunter2' };
const ID = readKeyText(KEY_HEX)?.id;

async function run(argv: readonly string[], stdin = '') {
  const io = terminal({ env: { KEY: KEY_HEX }, readStdin: () => Promise.resolve(stdin) });
  const code = await buildProgram(io, [keysCommand(io, { files: filesOf(FILES) })]).run(['keys', ...argv]);
  return { code, out: io.out(), err: io.err() };
}

describe('[C-22] keys', () => {
  it('new prints one line that is a key', async () => {
    const { code, out, err } = await run(['new']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^sallyport-key-1:[A-Za-z0-9_-]{43}\n$/);
    expect(readKeyText(out)?.bytes).toHaveLength(32);
    expect((await run(['new'])).out).not.toBe(out);
  });

  it.each([
    ['a file', ['public', 'key'], ''],
    ['stdin', ['public', '-'], KEY_HEX],
    ['a gateway file', ['public', '-c', 'gateway.yaml'], ''],
  ])('public prints the public part of %s, and never the key', async (_, argv, stdin) => {
    const { code, out } = await run(argv, stdin);
    expect(code).toBe(0);
    const key = readKeyText(KEY_HEX);
    expect(out).toBe(`${key && publicKeyInfoOf(key).text}\n`);
    expect(out).not.toContain(KEY_HEX);
  });

  it('public --json prints a JSON Web Key Set', async () => {
    const { keys } = JSON.parse((await run(['public', 'key', '--json'])).out);
    expect(keys).toHaveLength(1);
    expect(keys[0]).toMatchObject({ kty: 'OKP', crv: 'Ed25519', kid: ID, alg: 'EdDSA' });
    expect(keys[0].d).toBeUndefined();
  });

  it.each([
    [['public'], 2],
    [['public', 'key', '-c', 'gateway.yaml'], 2],
    [['public', 'missing'], 2],
    [['public', 'notes'], 1],
    [['public', '-c', 'missing.yaml'], 2],
    [['public', '-c', 'notes'], 1],
  ])('%j exits with %i and prints nothing of what it read', async (argv, expected) => {
    const { code, out, err } = await run(argv);
    expect([code, out]).toEqual([expected, '']);
    expect(err).not.toBe('');
    expect(err).not.toContain('hunter2');
  });
});

describe('[C-22] keys for signatures', () => {
  it('are made as PKCS #8, and their public part is printed as PEM or JWK', async () => {
    const { code, out } = await run(['new', '--signing']);
    const reading = readPrivateSignerKey(out);
    if (!reading.ok) throw new Error(reading.why);
    const { keyId, publicKey } = publicPartOf(reading.key);
    expect(code).toBe(0);
    expect(await run(['public', '-'], out)).toEqual({ code: 0, out: publicKey, err: '' });
    const json = await run(['public', '-', '--json'], out);
    const [jwk] = JSON.parse(json.out).keys;
    expect(jwk).toMatchObject({ kty: 'OKP', crv: 'Ed25519', kid: keyId, use: 'sig' });
    expect(jwk.d).toBeUndefined();
    expect(readPublicSignerKey(JSON.stringify(jwk))).toMatchObject({ key: { keyId, publicKey } });
    expect((await run(['new', '--signing'])).out).not.toBe(out);
  });
});
