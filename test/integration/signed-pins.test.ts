// Lock files that must be signed: one word changed, a signature missing, an old file with its old signatures. Refused
// at the start, at a reload and by `validate`, and the running version stays.

import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runCommand } from '../support/commands.js';
import { tryStart, UPSTREAM } from '../support/gateway.js';
import { makeSigner, type TestSigner } from '../support/signers.js';
import { requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const [alice, bob] = [makeSigner('alice'), makeSigner('bob', 'P-256')];
const FILES = { 'alice.pub.pem': alice.publicKey, 'bob.pub.pem': bob.publicKey };
const SIGNERS = 'signers: {alice: {publicKey: {file: ./alice.pub.pem}}, bob: {publicKey: {env: BOB}}}, require: 2';
const ENV = { BOB: bob.publicKey, KEY_OF_ALICE: alice.privateKey, KEY_OF_BOB: bob.privateKey };
const KEYS: ReadonlyMap<TestSigner, string> = new Map([
  [alice, 'KEY_OF_ALICE'],
  [bob, 'KEY_OF_BOB'],
]);

let folder: string;
let lockFile: string;
let signatureFile: string;
let gatewayFile: string;

/** A command on the files of the gateway. */
const run = (...argv: readonly string[]) => runCommand([...argv, '-c', gatewayFile], { cwd: folder, env: ENV });

async function signAs(signer: TestSigner, counter?: number): Promise<void> {
  const more = counter === undefined ? [] : ['--counter', String(counter)];
  const { code } = await run('pin', 'sign', UPSTREAM, '--key-env', KEYS.get(signer) ?? '', ...more);
  expect(code).toBe(0);
}

async function sign(...signers: readonly TestSigner[]): Promise<void> {
  for (const signer of signers) await signAs(signer);
}

/** What `validate` prints, and how it ends. */
async function validate(): Promise<readonly [number, string]> {
  const { code, stdout } = await run('validate');
  return [code, stdout];
}

/** Starts a second gateway from the same files, which another one serves: a start that reaches its ports has read them. */
async function start(): Promise<string> {
  const started = await tryStart({ file: gatewayFile, env: ENV });
  if (started.kind === 'refused') return started.diagnostics.map(({ message }) => message).join();
  if (started.kind === 'started') await started.gateway.close();
  return started.kind === 'failed' ? started.message : 'started';
}

/** The errors that a reload reports. */
async function reload(): Promise<readonly string[]> {
  const found = await rig.gateway.reload();
  return found.flatMap(({ severity, message }) => (severity === 'error' ? [message] : []));
}

async function control(): Promise<{ state: string; detail?: string }> {
  const lines = rig.gateway.log().split('\n');
  const line = lines.findLast((one) => one.includes('"control":"pin-signatures"')) ?? '{}';
  return JSON.parse(line);
}

const failures = async (): Promise<number> =>
  Number(
    /^sallyport_lock_signature_failures_total\{upstream="target"\} (\d+)$/m.exec(await rig.gateway.metrics())?.[1] ?? 0,
  );
const listed = async () => toolNames(await requestStateless(rig.access, 'tools/list'));

/** Changes a word outside the definitions, so that nothing but the signature shows it. */
const edited = (lock: string): string => lock.replace('by: test', 'by: toast');

const rig = sharedGateway({ env: ENV, files: FILES });
beforeAll(async () => {
  ({ folder } = rig.gateway);
  gatewayFile = join(folder, 'gateway.yaml');
  lockFile = join(folder, `policies/pins/${UPSTREAM}.lock.yaml`);
  signatureFile = join(folder, `policies/pins/${UPSTREAM}.lock.sig.json`);
  const text = await readFile(gatewayFile, 'utf8');
  await writeFile(gatewayFile, text.replace('{dir: ./policies/pins}', `{dir: ./policies/pins, ${SIGNERS}}`));
  await sign(alice, bob);
  expect(await reload()).toEqual([]);
});

describe('[L-92] a gateway whose lock files must be signed', () => {
  let lock: string;
  let signatures: string;
  beforeEach(async () => {
    lock = await readFile(lockFile, 'utf8');
    signatures = await readFile(signatureFile, 'utf8');
  });
  afterEach(async () => {
    await writeFile(lockFile, lock);
    await writeFile(signatureFile, signatures);
    await rig.gateway.reload();
    expect(await control()).toMatchObject({ state: 'armed' });
  });

  it('is armed, and its lock file passes the check of the files', async () => {
    expect(await control()).toMatchObject({ state: 'armed' });
    expect((await validate())[0]).toBe(0);
    // The port is taken by the gateway that runs: the files were accepted.
    expect(await start()).toMatch(/in use/);
  });

  it.each<[string, () => Promise<void>, string]>([
    ['one word of the file', () => writeFile(lockFile, edited(lock)), 'is not what was signed'],
    ['no signatures', () => rm(signatureFile), 'is not signed: target.lock.sig.json does not exist'],
    [
      'one signature of two',
      async () => {
        await rm(signatureFile);
        await sign(alice);
      },
      'has valid signatures of 1 (alice), and 2 must sign',
    ],
    [
      'the signatures of another file',
      () => writeFile(signatureFile, signatures.replace(/"payload": "[^"]*"/, '"payload": "e30="')),
      'no valid signature of a configured signer',
    ],
    [
      'a definition that was changed without its digest',
      () => writeFile(lockFile, lock.replace('Reads a record', 'Reads a card')),
      'is not what was signed',
    ],
  ])('refuses, with %s, a start and a reload, and validate says why', async (_, change, why) => {
    const before = [await listed(), await failures()] as const;
    await change();
    const [code, out] = await validate();
    expect([code, out]).toEqual([1, expect.stringContaining(why)]);
    expect(out).toContain(`${UPSTREAM}.lock.yaml:1:1 error the lock file`);
    expect(await start()).toContain(why);
    await rig.gateway.reload();
    expect(await control()).toMatchObject({
      state: 'degraded',
      detail: `the previous version stays in force, because of refused signatures of the lock files of: ${UPSTREAM}`,
    });
    expect(await listed()).toEqual(before[0]);
    expect(await failures()).toBeGreaterThan(before[1]);
    expect(await rig.gateway.metrics()).toContain('sallyport_controls{control="pin-signatures",state="degraded"} 1');
  });

  it('counts again once the signature comes after the file', async () => {
    await writeFile(lockFile, edited(lock));
    await rig.gateway.reload();
    expect(await control()).toMatchObject({ state: 'degraded' });
    await sign(bob, alice);
    await expect.poll(async () => (await control()).state, { timeout: 2_000, interval: 25 }).toBe('armed');
    // The next test compares with the counter that was seen here.
    [lock, signatures] = [await readFile(lockFile, 'utf8'), await readFile(signatureFile, 'utf8')];
  });

  it('[L-93] refuses an old file with its old signatures, also after a restart', async () => {
    const old = [lock, signatures] as const;
    await writeFile(lockFile, lock.replace('by: toast', 'by: roast'));
    await sign(alice, bob);
    await rig.gateway.reload();
    expect(await control()).toMatchObject({ state: 'armed' });
    const current = [await readFile(lockFile, 'utf8'), await readFile(signatureFile, 'utf8')];
    await writeFile(lockFile, old[0]);
    await writeFile(signatureFile, old[1]);
    const [refused] = await reload();
    expect(refused).toMatch(
      /is older than one that was seen: its counter is 2, and 3 was seen; .* sallyport pin sign target --counter 4$/,
    );
    expect(await control()).toMatchObject({ state: 'degraded' });
    const counters = JSON.parse(await readFile(join(folder, 'audit.lock-counters'), 'utf8'));
    expect(counters.counters[UPSTREAM]).toEqual({
      ...{ counter: 3, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    // Signed again, the old file is the newest.
    await signAs(alice, 4);
    await signAs(bob);
    expect(await reload()).toEqual([]);
    expect(await control()).toMatchObject({ state: 'armed' });
    // A file with the same counter and other bytes is refused, too.
    await writeFile(lockFile, current[0] ?? '');
    await rm(signatureFile);
    await signAs(alice, 4);
    await signAs(bob);
    const [twin] = await reload();
    expect(twin).toContain('differs from the file that was seen with the same');
    await signAs(alice, 5);
    await signAs(bob);
    [lock, signatures] = [current[0] ?? '', await readFile(signatureFile, 'utf8')];
  });
});

describe('[L-93] the counters of lock files', () => {
  it('refuse a start with an old file, and one whose counters are damaged', () =>
    withGateway({ env: ENV, files: FILES }, async (own) => {
      const at = (name: string): string => join(own.gateway.folder, name);
      [folder, gatewayFile] = [own.gateway.folder, at('gateway.yaml')];
      const text = await readFile(gatewayFile, 'utf8');
      const signers = `{dir: ./policies/pins, ${SIGNERS}}`;
      await writeFile(gatewayFile, text.replace('{dir: ./policies/pins}', signers));
      await sign(alice, bob);
      await writeFile(gatewayFile, text);
      expect((await validate())[1]).toContain('note nothing checks this file: "pins.signers" is');
      await writeFile(gatewayFile, text.replace('{dir: ./policies/pins}', signers));
      await own.gateway.gateway.close();
      const counters = at('audit.lock-counters');
      const seen = (counter: number) =>
        JSON.stringify({
          schema: 'sallyport.lock-counters/1',
          counters: { [UPSTREAM]: { counter, sha256: '00' } },
        });
      await writeFile(counters, seen(7));
      expect(await start()).toContain('its counter is 1, and 7 was seen');
      await writeFile(counters, seen(1));
      expect(await start()).toContain('differs from the file that was seen with the same');
      for (const damaged of ['', '{}', seen(0)]) {
        await writeFile(counters, damaged);
        expect(await start()).toContain('is damaged; remove it to begin anew');
      }
      await writeFile(counters, JSON.stringify({ schema: 'sallyport.lock-counters/2', counters: [] }));
      expect(await start()).toContain(
        'was written by another version of Sallyport, in a form that this one does not know',
      );
      await rm(counters);
      expect(await start()).toBe('started');
      expect(JSON.parse(await readFile(counters, 'utf8')).counters[UPSTREAM].counter).toBe(1);
      await chmod(counters, 0o600);
    }));
});
