// `sallyport audit verify`: verifies that audit files form one complete chain and prints where they do not.
// Reads files and a checkpoint kept elsewhere, and never repairs. Exit 0 complete, 1 not complete, 2 not
// checked.

import { createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { type ChainHead, readChainLine, readCheckpoint } from '../../audit/chain.js';
import { type ChainVerdict, ChainVerifier, type VerifyOptions } from '../../audit/verify.js';
import { countOf } from '../../text/counting.js';
import { makeVisible, toVisibleJson } from '../../text/escaping.js';
import { type CliIo, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import { printError, readLines } from './read.js';

export type AuditVerifyOptions = {
  readonly files: readonly string[];
  /** `EPOCH:SEQ:HASH`, a checkpoint event as JSON, or a file whose last checkpoint is used. */
  readonly head?: string;
  /** Public keys: the output of `keys public`, a JWK, PEM, or a file with one of them. */
  readonly key?: readonly string[];
  readonly json?: boolean;
};

const INLINE_HEAD = /^([\w-]{1,64}):(\d{1,15}):([0-9a-f]{64}|[\w-]{43})$/;
const PUBLIC_TEXT = /^(?:sallyport-public-1:)?([A-Za-z0-9_-]{43})$/;

/** The head stated by a line: for a checkpoint, the position that it signs. */
function headOfLine(text: string): ChainHead | undefined {
  const line = readChainLine(text);
  const point = line?.type === 'checkpoint' ? readCheckpoint(line.detail) : undefined;
  return point && { epoch: point.epoch, seq: point.seq, hash: point.hash };
}

function inlineHead(text: string): ChainHead | undefined {
  const [, epoch, seq, hash] = INLINE_HEAD.exec(text.trim()) ?? [];
  if (epoch === undefined || hash === undefined) return undefined;
  return { epoch, seq: Number(seq), hash };
}

async function readHead(text: string, cwd: string): Promise<ChainHead | undefined> {
  const inline = inlineHead(text);
  if (inline !== undefined) return inline;
  if (text.trimStart().startsWith('{')) return headOfLine(text.trim());
  let last: ChainHead | undefined;
  for await (const line of readLines(resolve(cwd, text)))
    last = inlineHead(line) ?? headOfLine(line) ?? last;
  return last;
}

/** The raw public keys in a text: lines of `keys public`, a JWK or JWK Set, or PEM. */
function publicKeysOf(text: string): readonly string[] {
  const gatewayKeys = text
    .trim()
    .split('\n')
    .map((line) => PUBLIC_TEXT.exec(line.trim())?.[1]);
  const known = gatewayKeys.filter((key): key is string => key !== undefined);
  if (known.length > 0) return known;
  try {
    if (text.includes('-----BEGIN'))
      return ed25519(createPublicKey(text).export({ format: 'jwk' }));
    const value: unknown = JSON.parse(text);
    const keys =
      typeof value === 'object' && value !== null && 'keys' in value ? value.keys : [value];
    return Array.isArray(keys) ? keys.flatMap(ed25519) : [];
  } catch {
    return [];
  }
}

function ed25519(key: unknown): string[] {
  if (typeof key !== 'object' || key === null) return [];
  const { crv, x }: { crv?: unknown; x?: unknown } = key;
  return crv === 'Ed25519' && typeof x === 'string' ? [x] : [];
}

/** The raw public keys of options: given as text, or in files. */
export async function readKeys(texts: readonly string[], cwd: string): Promise<readonly string[]> {
  const all: string[] = [];
  for (const text of texts) {
    const given = publicKeysOf(text);
    const keys =
      given.length > 0 ? given : publicKeysOf(await readFile(resolve(cwd, text), 'utf8'));
    if (keys.length === 0) throw new Error(`no public key in ${text}`);
    all.push(...keys);
  }
  return all;
}

async function readOptions(options: AuditVerifyOptions, cwd: string): Promise<VerifyOptions> {
  const head = options.head === undefined ? undefined : await readHead(options.head, cwd);
  if (options.head !== undefined && head === undefined) throw new Error('no checkpoint in --head');
  const publicKeys = await readKeys(options.key ?? [], cwd);
  return {
    ...(head === undefined ? {} : { head }),
    ...(publicKeys.length === 0 ? {} : { publicKeys }),
  };
}

async function verifyFiles(options: AuditVerifyOptions, cwd: string): Promise<ChainVerdict> {
  const verifier = new ChainVerifier(await readOptions(options, cwd));
  for (const file of options.files) {
    const path = resolve(cwd, file);
    const name = relative(cwd, path) || path;
    let number = 0;
    for await (const line of readLines(path)) {
      number += 1;
      verifier.push(line, name, number);
    }
  }
  return verifier.end();
}

/** The lines that could have been rewritten undetected: printed first, whatever the result. */
function unsignedText({ unsigned, lines }: ChainVerdict, hasKey: boolean): string {
  const { lines: count, fromSeq } = unsigned;
  const lineCount = countOf(count, 'line');
  const from = fromSeq === undefined ? '' : `, from sequence number ${fromSeq} on,`;
  const consequence =
    count === 0
      ? 'unsigned: 0 lines'
      : `unsigned: ${lineCount}${from} could have been rewritten or cut off`;
  return hasKey || count === lines
    ? consequence
    : `${consequence}; without --key, all ${lines} could have been rewritten`;
}

function report(verdict: ChainVerdict, hasKey: boolean, io: CliIo): void {
  io.stdout(`${unsignedText(verdict, hasKey)}\n`);
  for (const { file, line, kind, message } of verdict.faults) {
    io.stdout(`${makeVisible(`${file}:${line} ${kind}: ${message}`)}\n`);
  }
  for (const text of verdict.unchecked) io.stdout(`${makeVisible(`not checked: ${text}`)}\n`);
  if (verdict.isWhole) {
    const { head } = verdict;
    const at =
      head === undefined ? '' : `, head ${makeVisible(`${head.epoch}:${head.seq}:${head.hash}`)}`;
    io.stdout(
      `complete: the chain of ${countOf(verdict.lines, 'line')} with ${countOf(verdict.checkpoints, 'signed checkpoint')} was verified${at}\n`,
    );
  }
  // What could not be checked was printed above, with the note that says why.
  const notes = verdict.notes.filter(
    (note) => !verdict.unchecked.some((text) => text.includes(note)),
  );
  for (const note of notes) io.stderr(`note: ${makeVisible(note)}\n`);
}

/** Verifies files as one chain, in the given order. */
export async function runAuditVerify(options: AuditVerifyOptions, io: CliIo): Promise<number> {
  try {
    const verdict = await verifyFiles(options, io.cwd);
    if (options.json) io.stdout(`${toVisibleJson(verdict)}\n`);
    else report(verdict, (options.key ?? []).length > 0, io);
    if (verdict.faults.length > 0) return EXIT_FAILED;
    return verdict.isWhole ? EXIT_FINE : EXIT_UNCHECKED;
  } catch (error) {
    return printError(error, io);
  }
}
