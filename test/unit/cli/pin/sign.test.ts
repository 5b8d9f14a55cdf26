import { describe, expect, it } from 'vitest';
import type { PinPorts } from '../../../../src/cli/pin/lock-files.js';
import { pinCommand } from '../../../../src/cli/pin/pin-command.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { sha256Hex } from '../../../../src/pins/digest.js';
import { writeLock } from '../../../../src/pins/lock.js';
import { checkSignatures, MAX_COUNTER, readStatement } from '../../../../src/pins/signature.js';
import { envelopeOf, makeSigner, statementOf, type TestSigner } from '../../../support/signers.js';
import { GOOD } from '../../config/reading.js';
import { lockOf, pinOf, toolOf, versionOf } from '../../pins/samples.js';
import { terminal } from '../console.js';

const FOLDER = '/srv/config/policies/pins';
const FILE = `${FOLDER}/github.lock.yaml`;
const SIGNATURES = `${FOLDER}/github.lock.sig.json`;
const TOOL = toolOf('get_issue');
const LOCK = writeLock(lockOf([pinOf(TOOL, 'approved', [versionOf(toolOf('get_issue', { title: 'x' }), 'pending')])]));
const CHANGED = writeLock(lockOf([pinOf(TOOL)]));
const [alice, bob, eve] = [makeSigner('alice'), makeSigner('bob', 'P-384'), makeSigner('eve')];
const SIGNERS = `pins:
  require: 2
  signers:
    alice: {publicKey: {file: alice.pub.pem}}
    bob: {publicKey: {env: BOB}}
`;

type Given = {
  readonly lock?: string;
  readonly signatures?: string | undefined;
  readonly signers?: boolean;
  /** What another command writes while this one signs. */
  readonly meanwhile?: readonly [string, string];
  readonly printed?: (input: Uint8Array) => string;
};

async function run(line: string, given: Given = {}) {
  const io = terminal({ env: { BOB: bob.publicKey, KEY_OF_BOB: bob.privateKey } });
  const files = new Map([
    ['/srv/config/gateway.yaml', given.signers === false ? GOOD : GOOD + SIGNERS],
    ['/srv/config/alice.pub.pem', alice.publicKey],
    ['/srv/alice.pem', alice.privateKey],
    ['/srv/eve.pem', eve.privateKey],
    ['/srv/bob.pub.pem', bob.publicKey],
    [FILE, given.lock ?? LOCK],
  ]);
  if (given.signatures !== undefined) files.set(SIGNATURES, given.signatures);
  const ports: PinPorts = {
    files: {
      readFile(path) {
        const text = files.get(path);
        if (text === undefined) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
        return new TextEncoder().encode(text);
      },
      listFolder: () => [...files.keys()],
    },
    async updateFile(path, update) {
      if (given.meanwhile !== undefined) files.set(...given.meanwhile);
      const text = update();
      if (text !== undefined) files.set(path, text);
      return undefined;
    },
    observe: () => Promise.reject(new Error('nothing is listed')),
    now: () => Date.UTC(2026, 10, 22, 10),
    runCommand: async (command, input) =>
      command === 'fail' ? { why: 'ended with 3' } : { printed: given.printed?.(input) ?? '' },
  };
  const argv = ['pin', 'sign', '-c', 'config/gateway.yaml', ...line.split(' ')];
  const code = await buildProgram(io, [pinCommand(io, ports)]).run(argv);
  return { code, out: io.out(), err: io.err(), signatures: files.get(SIGNATURES), files };
}

/** What is signed, and by whom validly; the names are of the configured signers. */
function read(signatures: string | undefined, text = LOCK) {
  const lock = { file: 'github.lock.yaml', upstream: 'github', text };
  const check = checkSignatures(lock, signatures, { signers: [alice, bob, eve], require: 1 });
  if (!check.ok) return check.why;
  const { counter, signer } = check.statement;
  return { counter, signer, signers: check.signers };
}

const signedBy = (signers: readonly TestSigner[], counter = 1, text = LOCK): string =>
  envelopeOf(statementOf(text, { counter }), signers);

describe('[L-91] pin sign', () => {
  it('begins a statement in the name of the configured signer, and says what is missing', async () => {
    const { code, out, err, signatures } = await run('github --key alice.pem');
    expect([code, read(signatures)]).toEqual([0, { counter: 1, signer: 'alice', signers: ['alice'] }]);
    expect(out).toBe(
      `signed github: counter 1, sha256:${sha256Hex(LOCK)}, 1 signature; written to ${SIGNATURES}\n` +
        '  1 approved, 0 blocked, 1 pending\n',
    );
    expect(err).toContain('note: github has 1 of 2 required signatures');
    const statement = readStatement(Buffer.from(JSON.parse(signatures ?? '').payload, 'base64'));
    expect(statement).toMatchObject({ value: { signedAt: '2026-11-22T10:00:00.000Z' } });
  });

  it('never writes or prints a private key', async () => {
    for (const line of ['github --key alice.pem', 'github --key-env KEY_OF_BOB --json']) {
      const { code, out, err, signatures = '' } = await run(line);
      expect(code).toBe(0);
      expect([out, err, signatures].join('')).not.toContain('PRIVATE KEY');
    }
  });

  it('adds a signature to the statement of another while the file is the same', async () => {
    const first = signedBy([alice], 4);
    const { code, err, signatures } = await run('github --key-env KEY_OF_BOB', {
      signatures: first,
    });
    expect([code, err]).toEqual([0, '']);
    expect(read(signatures)).toMatchObject({ counter: 4, signers: ['alice', 'bob'] });
    expect(JSON.parse(signatures ?? '').payload).toBe(JSON.parse(first).payload);
    const again = await run('github --key alice.pem', { signatures });
    expect([again.code, again.signatures]).toEqual([0, signatures]);
    expect(again.out).toBe('github: already signed with this key, counter 4\n');
  });

  it('begins the next statement after a change, without the old signatures', async () => {
    const signatures = signedBy([alice, bob], 4);
    const next = await run('github --key alice.pem', { lock: CHANGED, signatures });
    expect(read(next.signatures, CHANGED)).toMatchObject({ counter: 5, signers: ['alice'] });
    expect(JSON.parse(next.signatures ?? '').signatures).toHaveLength(1);
    const far = await run('github --key alice.pem --counter 70', { lock: CHANGED, signatures });
    expect(read(far.signatures, CHANGED)).toMatchObject({ counter: 70 });
    const low = await run('github --key alice.pem --counter 4', { lock: CHANGED, signatures });
    expect([low.code, low.signatures]).toEqual([1, signatures]);
    expect(low.err).toContain('has the counter 4: a new one must be higher');
  });

  it('signs no statement and counts on no counter that nobody vouches for', async () => {
    for (const [signatures, what] of [
      [signedBy([eve], MAX_COUNTER), `its counter is ${MAX_COUNTER}`],
      ['{}', 'has no payload'],
      [envelopeOf(statementOf(LOCK, { file: 'x.lock.yaml' }), [alice]), 'that of another file'],
    ] as const) {
      const refused = await run('github --key alice.pem', { signatures });
      expect([refused.code, refused.signatures]).toEqual([1, signatures]);
      expect(refused.err).toContain(what);
      expect(refused.err).toContain('--counter');
      const anew = await run('github --key alice.pem --counter 3', { signatures });
      expect(read(anew.signatures)).toMatchObject({ counter: 3, signers: ['alice'] });
    }
    const last = await run('github --key alice.pem', {
      ...{ lock: CHANGED, signatures: signedBy([alice], MAX_COUNTER) },
    });
    expect(last.err).toContain('has reached the highest possible counter');
  });

  it('leaves out signatures of others that are not valid', async () => {
    const signatures = signedBy([eve, alice]);
    const { signatures: written } = await run('github --key-env KEY_OF_BOB', { signatures });
    expect(read(written)).toMatchObject({ signers: ['alice', 'bob'] });
  });

  it('works without configured signers, with a name that is given', async () => {
    const given = { signers: false };
    const { code, err, signatures } = await run('--all --key eve.pem --by Eve', given);
    expect([code, err, read(signatures)]).toEqual([...[0, '', { counter: 1, signer: 'Eve', signers: ['eve'] }]]);
    const { err: note } = await run('github --key eve.pem');
    expect(note).toContain('note: the key belongs to no signer in pins.signers');
  });

  it('lets a command sign, DER or raw, and verifies what it printed', async () => {
    for (const encoding of ['der', 'ieee-p1363'] as const) {
      const printed = (input: Uint8Array) =>
        `${Buffer.from(bob.sign(input, encoding))
          .toString('base64')
          .replace(/(.{64})/g, '$1\n')}\n`;
      const line = 'github --key-command kms --public-key bob.pub.pem';
      const { code, signatures } = await run(line, { printed });
      expect([code, read(signatures)]).toMatchObject([0, { signer: 'bob', signers: ['bob'] }]);
    }
    for (const [command, printed, what] of [
      ['fail', '', 'the command ended with 3'],
      ['kms', 'not base64!', 'the command printed no signature in base64'],
      ['kms', Buffer.from('x'.repeat(96)).toString('base64'), 'that the public key does not verify'],
    ] as const) {
      const line = `github --key-command ${command} --public-key bob.pub.pem`;
      const { code, err, signatures } = await run(line, { printed: () => printed });
      expect([code, signatures]).toEqual([2, undefined]);
      expect(err).toContain(what);
    }
  });

  it.each([
    ['github', 'say where the key is'],
    ['--key alice.pem', 'say what to sign'],
    ['github --all --key alice.pem', 'say what to sign'],
    ['github --key alice.pem --key-env KEY_OF_BOB', 'say where the key is'],
    ['github --key-command kms', 'needs --public-key'],
    ['github --key alice.pem --public-key bob.pub.pem', 'belongs to --key-command'],
    ['github --key bob.pub.pem', 'holds no private key'],
    ['github --key missing.pem', 'not readable'],
    ['github --key-env NONE', 'is not set'],
    ['github --key-command kms --public-key alice.pem', 'holds a private key'],
    ['gitlab --key alice.pem', 'no upstream is named "gitlab"'],
    ['github --key alice.pem --counter 0', 'a whole number from 1'],
  ])('is refused: %s', async (line, what) => {
    const { code, err, signatures } = await run(line);
    expect([code, signatures]).toEqual([2, undefined]);
    expect(err).toContain(what);
  });

  it('signs no file that is not valid, and none that was changed meanwhile', async () => {
    const broken = await run('github --key alice.pem', { lock: LOCK.replace('Reads', 'Deletes') });
    expect([broken.code, broken.signatures]).toEqual([2, undefined]);
    for (const meanwhile of [
      [FILE, CHANGED],
      [SIGNATURES, signedBy([bob], 9)],
    ] as const) {
      const { code, err, signatures } = await run('github --key alice.pem', { meanwhile });
      expect(code).toBe(2);
      expect(err).toContain('was changed meanwhile; run the command again');
      expect(signatures).toBe(meanwhile[0] === SIGNATURES ? meanwhile[1] : undefined);
    }
  });
});
