// `sallyport pin sign`: signs lock files as they are now, or adds a signature to the statement of others. The private
// key is read for one signature or stays where a command signs; it is never written.
// docs/reference/lock-files.md#signatures.

import { type KeyObject, sign } from 'node:crypto';
import { basename, resolve } from 'node:path';
import {
  type PublicSignerKey,
  publicPartOf,
  readPrivateSignerKey,
  readPublicSignerKey,
} from '../../config/key-material.js';
import { describeFile } from '../../config/secrets.js';
import type { LockSigner, LockSigning } from '../../config/settings.js';
import { countReviewed, pendingOf } from '../../pins/approval.js';
import { sha256Hex } from '../../pins/digest.js';
import type { Lock } from '../../pins/lock.js';
import {
  decodeBase64,
  digestOfKey,
  type Envelope,
  findMismatch,
  isCounter,
  isSignatureOf,
  type LockStatement,
  type LockText,
  preAuthEncoding,
  readEnvelope,
  readStatement,
  signatureFileOf,
  signersOf,
  writeEnvelope,
  writePayload,
} from '../../pins/signature.js';
import { escapeForTerminal, toVisibleJson } from '../../text/escaping.js';
import { countOf } from '../../text/wording.js';
import { type CliIo, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED, fail } from '../program.js';
import {
  checkUpstream,
  digestText,
  lockFileOf,
  type PinPorts,
  readContent,
  readLockFile,
  readOutline,
} from './lock-files.js';

export type PinSignOptions = {
  readonly config: string;
  readonly upstreams: readonly string[];
  /** Every lock file of the upstreams in the gateway file. */
  readonly all?: boolean;
  /** Exactly one of these three is given. */
  readonly key?: string;
  readonly keyEnv?: string;
  readonly keyCommand?: string;
  /** Belongs to `keyCommand`. */
  readonly publicKey?: string;
  readonly by?: string;
  readonly counter?: number;
  readonly json?: boolean;
};

/** The key of this run. `sign` resolves with why it failed, as the predicate of a sentence about `source`. */
type Signing = PublicSignerKey & {
  readonly source: string;
  sign(bytes: Uint8Array): Promise<Uint8Array | { readonly why: string }>;
};

/** What a run needs besides the lock file. */
type SignRun = {
  readonly folder: string;
  readonly key: Signing;
  readonly required: LockSigning | undefined;
  readonly options: PinSignOptions;
};

/** Signs the named lock files. Exit 1: one of them was not signed. */
export async function runPinSign(options: PinSignOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const usage = findUsageError(options);
  if (usage !== undefined) return fail(usage, EXIT_UNCHECKED, io);
  const outline = readOutline(options.config, io, ports);
  if (outline === undefined) return EXIT_UNCHECKED;
  const { folder, upstreams: known, signing: required } = outline;
  if (!options.upstreams.every((name) => checkUpstream(name, known, io))) return EXIT_UNCHECKED;
  const key = readKey(options, io, ports);
  if (typeof key === 'string') return fail(key, EXIT_UNCHECKED, io);
  if (required !== undefined && !required.signers.some(({ keyId }) => keyId === key.keyId)) {
    io.stderr('note: the key belongs to no signer in pins.signers, so its signature does not count\n');
  }
  const names = options.all
    ? known.filter((name) => readContent(lockFileOf(folder, name), ports) !== 'missing')
    : [...new Set(options.upstreams)];
  const signed: SignedFile[] = [];
  let worst = EXIT_FINE;
  for (const name of names) {
    const outcome = await signOne(name, { folder, key, required, options }, io, ports);
    if (typeof outcome === 'number') worst = Math.max(worst, outcome);
    else signed.push(outcome);
  }
  printSigned(signed, required, options, io);
  return worst;
}

function findUsageError(options: PinSignOptions): string | undefined {
  const { upstreams, all, key, keyEnv, keyCommand, publicKey } = options;
  if ((all === true) === upstreams.length > 0) {
    return 'say what to sign: the names of upstreams, or --all';
  }
  if ([key, keyEnv, keyCommand].filter((given) => given !== undefined).length !== 1) {
    return 'say where the key is: --key FILE, --key-env NAME or --key-command COMMAND';
  }
  if ((keyCommand === undefined) === (publicKey === undefined)) return undefined;
  return keyCommand === undefined
    ? '--public-key belongs to --key-command, which is missing'
    : '--key-command needs --public-key FILE, by which its signature is verified';
}

/** The key, or what is wrong with it. */
function readKey(options: PinSignOptions, io: CliIo, ports: PinPorts): Signing | string {
  const { key, keyEnv, keyCommand, publicKey = '' } = options;
  if (keyCommand !== undefined) {
    const read = readPublicSignerKey(readKeyFile(publicKey, io, ports));
    if (!read.ok) return `${describeFile(publicKey)} ${read.why}`;
    return {
      ...read.key,
      source: 'the command',
      sign: (bytes) => signByCommand(keyCommand, bytes, ports),
    };
  }
  const source = keyEnv === undefined ? describeFile(key ?? '') : `the environment variable "${keyEnv}"`;
  const text = keyEnv === undefined ? readKeyFile(key ?? '', io, ports) : (io.env[keyEnv] ?? '');
  if (text === '') return `${source} is ${keyEnv === undefined ? 'not readable' : 'not set'}`;
  const read = readPrivateSignerKey(text);
  if (!read.ok) return `${source} ${read.why}`;
  return { ...publicPartOf(read.key), source, sign: async (bytes) => signWith(read.key, bytes) };
}

/** Empty if the file cannot be read. */
function readKeyFile(file: string, io: CliIo, ports: PinPorts): string {
  const content = readContent(resolve(io.cwd, file), ports);
  return typeof content === 'string' ? '' : content.text;
}

function signWith(key: KeyObject, bytes: Uint8Array): Uint8Array {
  return new Uint8Array(sign(digestOfKey(key), bytes, key));
}

async function signByCommand(
  command: string,
  bytes: Uint8Array,
  { runCommand }: PinPorts,
): Promise<Uint8Array | { readonly why: string }> {
  const ran = (await runCommand?.(command, bytes)) ?? { why: 'cannot be run here' };
  if ('why' in ran) return ran;
  return decodeBase64(ran.printed.replace(/\s/g, '')) ?? { why: 'printed no signature in base64' };
}

type SignedFile = {
  readonly upstream: string;
  readonly file: string;
  readonly counter: number;
  readonly sha256: string;
  readonly keyId: string;
  readonly isChanged: boolean;
  readonly signatures: number;
  /** Names of the configured signers whose signatures are valid now. */
  readonly signers: readonly string[];
  readonly lock: Lock;
};

async function signOne(upstream: string, run: SignRun, io: CliIo, ports: PinPorts): Promise<SignedFile | number> {
  const { folder, key, required, options } = run;
  const path = lockFileOf(folder, upstream);
  const locked = readLockFile(folder, upstream, io, ports);
  if (locked === 'invalid') return EXIT_UNCHECKED;
  const { lock, text } = locked;
  if (lock === undefined) return fail(`${upstream} has no lock file to sign`, EXIT_FAILED, io);
  const lockText: LockText = { file: basename(path), upstream, text };
  const signaturePath = signatureFileOf(path);
  const existing = readContent(signaturePath, ports);
  const plan = planSignature(lockText, existing, key, required, options.counter);
  const label = escapeForTerminal(basename(signaturePath));
  if ('why' in plan) return fail(`${upstream}: ${label} ${plan.why}`, EXIT_FAILED, io);
  const signer = options.by ?? nameOf(key, required);
  const begun = 'counter' in plan ? begin(lockText, plan.counter, signer, ports) : plan.envelope;
  const envelope = plan.isSigned ? begun : await addSignature(begun, key);
  if ('why' in envelope) return fail(`${key.source} ${envelope.why}`, EXIT_UNCHECKED, io);
  const unchanged = (): boolean =>
    sameContent(readContent(path, ports), { text }) && sameContent(readContent(signaturePath, ports), existing);
  const error = plan.isSigned ? undefined : await write(signaturePath, envelope, unchanged, ports);
  if (error !== undefined) return fail(`${label} ${error}`, EXIT_UNCHECKED, io);
  const statement = readStatement(envelope.payload);
  if (!statement.ok) throw new Error('a statement that was made cannot be read');
  const valid = required === undefined ? [] : signersOf(envelope, required.signers);
  return {
    ...{ upstream, file: signaturePath, lock, keyId: key.keyId },
    counter: statement.value.counter,
    sha256: statement.value.sha256,
    isChanged: !plan.isSigned,
    signatures: envelope.signatures.length,
    signers: valid.map(({ name }) => name),
  };
}

function nameOf({ keyId }: PublicSignerKey, required: LockSigning | undefined): string | undefined {
  return required?.signers.find((signer) => signer.keyId === keyId)?.name;
}

type Content = ReturnType<typeof readContent>;

function sameContent(one: Content, other: Content): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What is done with a signature file: a statement begins, gets a signature, or has it already. */
type Plan =
  | { readonly counter: number; readonly isSigned: false }
  | { readonly envelope: Envelope; readonly isSigned: boolean }
  | { readonly why: string };

/**
 * A statement that nobody vouches for is neither signed nor counted on: whoever can change the file could otherwise
 * choose the counter that somebody signs.
 */
function planSignature(
  lock: LockText,
  existing: Content,
  key: PublicSignerKey,
  required: LockSigning | undefined,
  counter: number | undefined,
): Plan {
  if (existing === 'missing') return { counter: counter ?? 1, isSigned: false };
  if (existing === 'unreadable') return { why: 'cannot be read' };
  const known = readKnown(existing.text, key, required);
  if ('why' in known) {
    if (counter !== undefined) return { counter, isSigned: false };
    return { why: `${known.why}; to begin a new statement, give its counter with --counter` };
  }
  const { envelope, statement } = known;
  if (counter === undefined && findMismatch(statement, lock) === undefined) {
    const bytes = preAuthEncoding(envelope.payload);
    const isSigned = envelope.signatures.some((one) => isSignatureOf(key, bytes, one.bytes));
    return { envelope, isSigned };
  }
  return planNext(statement, lock, counter);
}

/** The counter of the statement that follows another. */
function planNext(before: LockStatement, lock: LockText, counter: number | undefined): Plan {
  const isOwn = before.file === lock.file && before.upstream === lock.upstream;
  if (!isOwn && counter === undefined) {
    return { why: 'is that of another file; to begin a new statement, give --counter' };
  }
  const next = counter ?? before.counter + 1;
  if (isOwn && next <= before.counter) {
    return { why: `has the counter ${before.counter}: a new one must be higher` };
  }
  return isCounter(next) ? { counter: next, isSigned: false } : { why: 'has reached the highest possible counter' };
}

/** The envelope with the signatures that are valid, and its statement. */
function readKnown(
  text: string,
  key: PublicSignerKey,
  required: LockSigning | undefined,
): { readonly envelope: Envelope; readonly statement: LockStatement } | { readonly why: string } {
  const read = readEnvelope(text);
  if (!read.ok) return read;
  const envelope = read.value;
  const statement = readStatement(envelope.payload);
  if (!statement.ok) return statement;
  if (required === undefined) return { envelope, statement: statement.value };
  const own: LockSigner = { ...key, name: '' };
  const bytes = preAuthEncoding(envelope.payload);
  const valid = envelope.signatures.filter((one) =>
    [...required.signers, own].some((signer) => isSignatureOf(signer, bytes, one.bytes)),
  );
  if (valid.length === 0) {
    const { counter } = statement.value;
    return { why: `has no valid signature of a configured signer (its counter is ${counter})` };
  }
  return { envelope: { ...envelope, signatures: valid }, statement: statement.value };
}

function begin(
  { file, upstream, text }: LockText,
  counter: number,
  signer: string | undefined,
  { now }: PinPorts,
): Envelope {
  const signedAt = new Date(now()).toISOString();
  const statement = { file, upstream, sha256: sha256Hex(text), counter, signedAt, signer };
  return { payload: writePayload(statement), signatures: [] };
}

/** The envelope with one more signature, which was verified. */
async function addSignature(envelope: Envelope, key: Signing): Promise<Envelope | { readonly why: string }> {
  const bytes = preAuthEncoding(envelope.payload);
  const signature = await key.sign(bytes);
  if ('why' in signature) return signature;
  if (!isSignatureOf(key, bytes, signature)) {
    return { why: 'made a signature that the public key does not verify' };
  }
  const signatures = [...envelope.signatures, { keyId: key.keyId, bytes: signature }];
  return { ...envelope, signatures };
}

/** Writes the signature file, unless one of the two files was changed since they were read. */
async function write(
  path: string,
  envelope: Envelope,
  unchanged: () => boolean,
  ports: PinPorts,
): Promise<string | undefined> {
  let isCurrent = false;
  try {
    const holder = await ports.updateFile(path, () => {
      isCurrent = unchanged();
      return isCurrent ? writeEnvelope(envelope) : undefined;
    });
    if (holder !== undefined)
      return `is held by ${escapeForTerminal(holder)}; if no other command is running, remove it`;
    return isCurrent ? undefined : 'or the lock file was changed meanwhile; run the command again';
  } catch {
    return 'cannot be written';
  }
}

function printSigned(
  signed: readonly SignedFile[],
  required: LockSigning | undefined,
  { json }: PinSignOptions,
  io: CliIo,
): void {
  if (json) {
    const upstreams = signed.map(({ lock: _, ...one }) => one);
    io.stdout(`${toVisibleJson({ upstreams })}\n`);
    return;
  }
  for (const one of signed) {
    const { upstream, counter, sha256, file, lock, isChanged, signatures, signers } = one;
    if (isChanged) {
      const { approved, blocked } = countReviewed(lock);
      const pending = pendingOf(lock).length;
      const what = `counter ${counter}, ${digestText(sha256)}, ${countOf(signatures, 'signature')}`;
      io.stdout(`signed ${upstream}: ${what}; written to ${escapeForTerminal(file)}\n`);
      io.stdout(`  ${approved} approved, ${blocked} blocked, ${pending} pending\n`);
    } else io.stdout(`${upstream}: already signed with this key, counter ${counter}\n`);
    if (required === undefined || signers.length >= required.require) continue;
    io.stderr(
      `note: ${upstream} has ${signers.length} of ${required.require} required signatures; another signer has to run the same command with another key\n`,
    );
  }
}
