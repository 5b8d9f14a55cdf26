// Reads the lines of audit files and streams, of any number and size, compressed by gzip or not, wrapped by a container
// runtime or not, and verifies them as they are found. Opens files for reading only, and keeps no more of them in memory
// than a piece.

import { constants, createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { readChainLine, readLink } from './chain.js';
import { createUnwrapper } from './container-log.js';
import { type ChainVerdict, ChainVerifier, isOriginal, type VerifyOptions } from './verify.js';

/** In place of a file: standard input. */
export const STDIN = '-';
const STDIN_FD = 0;

/** A longer line is not an audit line; it is passed on in pieces. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024;

/** The first bytes of a gzip file (RFC 1952). */
const GZIP = [0x1f, 0x8b] as const;

/** What a line has that names its gateway. */
const NAMES_MEMBER = '"run":"';

/** A text of a file, and the number of the line where it ended, from 1. */
export type NumberedLine = { readonly text: string; readonly line: number };

async function* prepend(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

/** The bytes of a file as they were before they were compressed, if they are. */
export async function* readBytes(path: string): AsyncGenerator<Buffer> {
  const stream = path === STDIN ? createReadStream('', { fd: STDIN_FD }) : createReadStream(path);
  try {
    const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]();
    const first = await chunks.next();
    if (first.done === true) return;
    const isCompressed = GZIP.every((byte, index) => first.value[index] === byte);
    const all = prepend(first.value, chunks);
    if (!isCompressed) return yield* all;
    // An error of either stream ends the iteration with it.
    yield* pipeline(Readable.from(all), createGunzip(), () => undefined) as AsyncIterable<Buffer>;
  } finally {
    stream.destroy();
  }
}

/** Physical lines as Latin-1 text, one character per byte. */
async function* readRawLines(path: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of readBytes(path)) {
    const lines = chunk.toString('latin1').split('\n');
    const last = lines.pop() ?? '';
    // What came before is not searched again: a file may be made so that one line takes very many chunks.
    if (lines.length > 0) {
      lines[0] = rest + lines[0];
      rest = '';
    }
    yield* lines;
    rest += last;
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

/** Opening waits for nobody, whatever is at the path. */
const READ_FILE = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * The complete lines behind an offset, as many as fit into a piece; without any, `end` is `start`. A file that is shorter
 * than the offset, or has no line end before it, is not the one that was read, and is read from its beginning. Nothing
 * behind `limit` bytes is read. Rejects if it cannot be read.
 */
export async function readNewLines(path: string, offset: number, limit = Number.POSITIVE_INFINITY): Promise<NewLines> {
  const handle = await open(path, READ_FILE);
  try {
    const size = Math.min((await handle.stat()).size, limit);
    const isLineEnd = offset === 0 || (await readPiece(handle, offset - 1, 1)) === '\n';
    const start = size < offset || !isLineEnd ? 0 : offset;
    for (const bytes of [PIECE_BYTES, MAX_LINE_BYTES]) {
      const text = await readPiece(handle, start, Math.min(size - start, bytes));
      const length = text.lastIndexOf('\n') + 1;
      if (length > 0) return { lines: text.slice(0, length - 1).split('\n'), start, end: start + length };
      if (text.length < bytes) return { lines: [], start, end: start };
    }
    return { lines: [], start, end: await findLineEnd(handle, start + MAX_LINE_BYTES, size, start) };
  } finally {
    await handle.close();
  }
}

/** The offset behind the end of a line that is too long for an audit line; `fallback` while it has none. */
async function findLineEnd(handle: FileHandle, from: number, size: number, fallback: number): Promise<number> {
  for (let at = from; at < size; at += PIECE_BYTES) {
    const end = (await readPiece(handle, at, Math.min(size - at, PIECE_BYTES))).indexOf('\n');
    if (end >= 0) return at + end + 1;
  }
  return fallback;
}

async function readPiece(handle: FileHandle, start: number, bytes: number): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, start);
  return buffer.toString('latin1', 0, bytesRead);
}

/** The lines of a file, or of standard input, with their numbers. Rejects if it cannot be read. */
export async function* readNumberedLines(path: string): AsyncGenerator<NumberedLine> {
  const { add, end } = createUnwrapper(MAX_LINE_BYTES, path === STDIN);
  let line = 0;
  for await (const raw of readRawLines(path)) {
    line += 1;
    for (const text of add(raw)) yield { text, line };
  }
  for (const text of end()) yield { text, line };
}

/** The lines of a file, or of standard input, as Latin-1 text, one character per byte. Rejects if it cannot be read. */
export async function* readLines(path: string): AsyncGenerator<string> {
  for await (const { text } of readNumberedLines(path)) yield text;
}

/** The lines of files, one after the other. */
export async function* readLinesOf(files: readonly string[]): AsyncGenerator<string> {
  for (const file of files) yield* readLines(file);
}

/** The first line of a file; empty if there is none. */
async function readFirstLine(path: string): Promise<string> {
  for await (const line of readLines(path)) return line;
  return '';
}

/**
 * True if gateways of several instances wrote the files, or that can only be found by reading them: then rows have to say
 * of which they are. A file of a run names its instance in its first line; streams are read.
 */
export async function hasSeveralInstances(files: readonly string[]): Promise<boolean> {
  const instances = new Set<string>();
  for (const file of files) {
    if (file === STDIN || !(await stat(file)).isFile()) return true;
    for await (const instance of readInstances(file)) {
      instances.add(instance);
      if (instances.size > 1) return true;
    }
  }
  return false;
}

/** The instances that a file names; the first one alone if a run has written the file. */
async function* readInstances(file: string): AsyncGenerator<string> {
  for await (const text of readLines(file)) {
    const line = text.includes(NAMES_MEMBER) ? readChainLine(text) : undefined;
    if (line?.names === undefined) continue;
    yield line.names.instance;
    if (isOriginal(line, readLink(line.detail), file)) return;
  }
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
  // What is no file, such as a pipe, can be read only once.
  for (const file of files)
    if (file !== STDIN && (await stat(file)).isFile()) verifier.expect(await readFirstLine(file));
  for (const file of files) {
    let isEmpty = true;
    for await (const { text, line } of readNumberedLines(file)) {
      isEmpty = false;
      verifier.push(text, nameOf(file), line);
      onLine?.(text);
    }
    if (isEmpty) verifier.noteEmpty(nameOf(file));
  }
  return verifier.end();
}
