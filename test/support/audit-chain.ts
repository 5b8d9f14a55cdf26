// Reads the audit files of a gateway by their configured path, and verifies what a test has read of them.

import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expandAuditPath, listFilesOf } from '../../src/audit/folder.js';
import { verifyAuditFiles } from '../../src/audit/reader.js';
import { readRunName } from '../../src/audit/run-name.js';
import { type ChainVerdict, ChainVerifier, type VerifyOptions } from '../../src/audit/verify.js';

export { listFilesOf };

/** Verifies the lines of one file (Latin-1 text, without line feeds). */
export function verifyChain(lines: Iterable<string>, options: VerifyOptions = {}, file = 'audit'): ChainVerdict {
  const verifier = new ChainVerifier(options);
  let number = 0;
  for (const line of lines) {
    number += 1;
    verifier.push(line, file, number);
  }
  return verifier.end();
}

/** Verifies the audit files in a folder, as `sallyport audit verify` does. */
export async function verifyFolder(folder: string, options: VerifyOptions = {}): Promise<ChainVerdict> {
  return verifyAuditFiles(await expandAuditPath(folder), options, { nameOf: (file) => basename(file) });
}

/** The newest audit file of a configured path. */
export async function newestAuditFile(path: string): Promise<string> {
  const file = (await listFilesOf(path)).at(-1);
  if (file === undefined) throw new Error(`no audit file of ${path}`);
  return file;
}

/** What stands in all audit files of a configured path, the oldest first. */
export async function readAudit(path: string): Promise<string> {
  const texts = await Promise.all((await listFilesOf(path)).map((file) => readFile(file, 'latin1')));
  return texts.join('');
}

/** The same, for a test that must not wait. */
export function readAuditSync(path: string): string {
  return filesOf(path)
    .map((file) => readFileSync(file, 'latin1'))
    .join('');
}

/** What {@link listFilesOf} lists, at once. */
function filesOf(path: string): readonly string[] {
  const name = basename(path);
  const own = readdirSync(dirname(path)).filter((one) => one === name || readRunName(one)?.configured === name);
  return own
    .sort((one, other) => (one === name ? -1 : other === name ? 1 : one < other ? -1 : 1))
    .map((one) => join(dirname(path), one));
}

/**
 * Reads the complete lines of all audit files of a configured path, each time those that have come since. A test that waits
 * for a line asks again and again. Where files were not only appended to, all of it is read anew.
 */
export function followAudit<Line>(path: string, startReading: () => (line: string) => Line): () => readonly Line[] {
  let read = startReading();
  let lines: Line[] = [];
  let rest = '';
  let lengths: Lengths = [];

  function append(file: string, from: number, to: number): void {
    const complete = (rest + readRange(file, from, to)).split('\n');
    rest = complete.pop() ?? '';
    for (const line of complete) lines.push(read(line));
  }

  return () => {
    const now = filesOf(path).map((file) => [file, statSync(file).size] as const);
    if (!isContinued(lengths, now)) {
      [read, lines, rest, lengths] = [startReading(), [], '', []];
    }
    for (const [index, [file, bytes]] of now.entries()) append(file, lengths[index]?.[1] ?? 0, bytes);
    lengths = now;
    return [...lines];
  };
}

type Lengths = readonly (readonly [file: string, bytes: number])[];

/** True if of the files of before the last may have grown, and others may have come behind it. */
function isContinued(before: Lengths, now: Lengths): boolean {
  return before.every(([file, bytes], index) => {
    const [same, size = 0] = now[index] ?? [];
    return same === file && (index === before.length - 1 ? size >= bytes : size === bytes);
  });
}

function readRange(file: string, from: number, to: number): string {
  if (to <= from) return '';
  const handle = openSync(file, 'r');
  try {
    const buffer = Buffer.alloc(to - from);
    return buffer.toString('latin1', 0, readSync(handle, buffer, 0, buffer.length, from));
  } finally {
    closeSync(handle);
  }
}
