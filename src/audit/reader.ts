// Reads the lines of audit files, of any number and size, and verifies files as they are found in a folder. Opens files for
// reading only, and keeps no more of them in memory than a piece.

import { createReadStream } from 'node:fs';
import { readFirstLine } from './folder.js';
import { type ChainVerdict, ChainVerifier, type VerifyOptions } from './verify.js';

/** In place of a file: standard input. */
export const STDIN = '-';
const STDIN_FD = 0;

/** A longer line is not an audit line; it is passed on in pieces. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024;

/** Lines of a file, or of standard input, as Latin-1 text, one character per byte. Rejects if it cannot be read. */
export async function* readLines(path: string): AsyncGenerator<string> {
  let rest = '';
  const stream =
    path === STDIN
      ? createReadStream('', { fd: STDIN_FD, encoding: 'latin1' })
      : createReadStream(path, { encoding: 'latin1' });
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_LINE_BYTES) {
      yield rest;
      rest = '';
    }
  }
  if (rest !== '') yield rest;
}

/** The lines of files, one after the other. */
export async function* readLinesOf(files: readonly string[]): AsyncGenerator<string> {
  for (const file of files) yield* readLines(file);
}

/**
 * Verifies files, in their order. `onLine` gets every line too.
 *
 * @throws Error if one of them cannot be read.
 */
export async function verifyAuditFiles(
  files: readonly string[],
  options: VerifyOptions,
  { nameOf, onLine }: { readonly nameOf: (file: string) => string; readonly onLine?: (line: string) => void },
): Promise<ChainVerdict> {
  const verifier = new ChainVerifier(options);
  for (const file of files) if (file !== STDIN) verifier.expect(await readFirstLine(file));
  for (const file of files) {
    let number = 0;
    for await (const line of readLines(file)) {
      number += 1;
      verifier.push(line, nameOf(file), number);
      onLine?.(line);
    }
    if (number === 0) verifier.noteEmpty(nameOf(file));
  }
  return verifier.end();
}
