import { describe, expect, it } from 'vitest';
import { loadGateway } from '../../../../src/config/load.js';
import { makeSigner } from '../../../support/signers.js';
import { diagnosticLines, FILE, filesOf, GOOD, KEY_HEX, read, settingsOf } from '../reading.js';

const [alice, bob] = [makeSigner('alice'), makeSigner('bob', 'P-384')];
const AROUND = {
  env: { BOB: bob.publicKey, ALICE_AGAIN: alice.publicKey, SECRET: alice.privateKey },
  files: { '/srv/config/alice.pub.pem': alice.publicKey },
};
const ALICE = 'alice: {publicKey: {file: alice.pub.pem}}';
const BOB = 'bob: {publicKey: {env: BOB}}';

function pins(...members: readonly string[]): string {
  return `${GOOD}pins: {${members.join(', ')}}\n`;
}

describe('[L-94] pins.signers', () => {
  it('are people with public keys, of whom one must sign unless more are required', () => {
    const signers = `signers: {${ALICE}, ${BOB}}`;
    const { name, keyId, publicKey } = alice;
    const other = { name: 'bob', keyId: bob.keyId, publicKey: bob.publicKey };
    expect(settingsOf(pins(signers), AROUND).signing).toEqual({
      signers: [{ name, keyId, publicKey }, other],
      require: 1,
    });
    expect(settingsOf(pins(signers, 'require: 2'), AROUND).signing?.require).toBe(2);
    expect(settingsOf(GOOD).signing).toBeUndefined();
    const { watchedFiles } = settingsOf(pins(signers), AROUND);
    expect(watchedFiles).toContain('/srv/config/alice.pub.pem');
  });

  it('[L-94] may have keys that every user of the machine can read, because these are public', () => {
    const files = filesOf({ [FILE]: pins(`signers: {${ALICE}}`), ...AROUND.files });
    const reading = loadGateway(FILE, {
      ...{ readFile: files.readFile, modeOf: () => 0o644 },
      ...{ env: { KEY: KEY_HEX }, secrets: 'read' },
    });
    expect(reading.diagnostics).toEqual([]);
  });

  it.each([
    [
      'more are required than there are',
      pins(`signers: {${ALICE}, ${BOB}}`, 'require: 3'),
      ['error 3 signers are required, but there are only 2 different keys'],
    ],
    [
      'one key has two names',
      pins(`signers: {${ALICE}, alias: {publicKey: {env: ALICE_AGAIN}}}`, 'require: 2'),
      [
        'warning this key is that of "alice": its signature counts once',
        'error 2 signers are required, but there are only 1 different keys',
      ],
    ],
    ['signatures are required of nobody', pins('require: 1'), ['error "require" needs "signers": nobody could sign']],
    ['there are no signers', pins('signers: {}'), ['error']],
    ['a signer has no key', pins('signers: {alice: {}}'), ['error the key "publicKey" is missing']],
    [
      'a key is private',
      pins('signers: {alice: {publicKey: {env: SECRET}}}'),
      ['error the environment variable "SECRET" holds a private key; name the file of its public key'],
    ],
    [
      'a key is none',
      pins('signers: {alice: {publicKey: {env: KEY}}}'),
      ['error the environment variable "KEY" holds no public key: expected PEM'],
    ],
    ['a key is missing', pins('signers: {alice: {publicKey: {file: nobody.pem}}}'), ['error the file "nobody.pem"']],
    [
      'definitions are trusted on first use',
      `${GOOD.replace('issuers: [corp]', 'issuers: [corp]\n    pinning: {mode: trust-on-first-use}')}pins: {signers: {${ALICE}}}\n`,
      ['error "trust-on-first-use" cannot be combined with "pins.signers"'],
    ],
  ])('[L-94] are refused if %s', (_, text, expected) => {
    const lines = diagnosticLines(text, AROUND);
    for (const one of expected) {
      expect(lines).toContainEqual(expect.stringContaining(one));
    }
    expect(read(text, AROUND).settings).toBeUndefined();
    expect(lines.join()).not.toContain('PRIVATE');
  });

  it('are known without the secrets of the file, if their keys can be read', () => {
    const text = pins(`signers: {${ALICE}}`);
    const without = read(text, { ...AROUND, secrets: 'skip' });
    expect(without.outline?.signing).toMatchObject({ require: 1 });
    expect(read(text, { secrets: 'skip' })).toMatchObject({
      diagnostics: [],
      outline: { signing: 'incomplete' },
    });
  });
});
