// Reads the lines of audit files, of any number and size, and verifies files as they are found in a folder. Opens files for
// reading only, and keeps no more of them in memory than a piece.

import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
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

/** Complete lines of a file that is being written, and the bytes between which they stand. */
export type NewLines = { readonly lines: readonly string[]; readonly start: number; readonly end: number };

/** Few lines are longer. */
const PIECE_BYTES = 256 * 1024;

/**
 * The complete lines behind an offset, as many as fit into a piece; without any, `end` is `start`. A file that is shorter
 * than the offset took the place of another, and is read from its beginning. Rejects if it cannot be read.
 */
export async function readNewLines(path: string, offset: number): Promise<NewLines> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    const start = size < offset ? 0 : offset;
    for (const bytes of [PIECE_BYTES, MAX_LINE_BYTES]) {
      const text = await readPiece(handle, start, Math.min(size - start, bytes));
      const length = text.lastIndexOf('\n') + 1;
      if (length > 0) return { lines: text.slice(0, length - 1).split('\n'), start, end: start + length };
      if (text.length === MAX_LINE_BYTES) return { lines: [text], start, end: start + text.length };
      if (text.length < bytes) break;
    }
    return { lines: [], start, end: start };
  } finally {
    await handle.close();
  }
}

async function readPiece(handle: FileHandle, start: number, bytes: number): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, start);
  return buffer.toString('latin1', 0, bytesRead);
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
