// Reads the audit files of a gateway by their configured path, and verifies what a test has read of them.

import { readdirSync, readFileSync } from 'node:fs';
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
  return readdirSync(dirname(path))
    .filter((name) => readRunName(name)?.configured === basename(path))
    .sort()
    .map((name) => readFileSync(join(dirname(path), name), 'latin1'))
    .join('');
}
