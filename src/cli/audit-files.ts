// Audit files as the commands read them: named on the command line, or those of a gateway file; line by
// line, whatever their size, and onwards while they grow. Opens files for reading only.

import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Settings } from '../config/settings.js';
import type { CliIo } from './program.js';

/** A line longer than this is no audit line; it is given up in pieces. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;

const FOLLOW_EVERY_MS = 250;

export type AuditFilePorts = {
  /** Reads a gateway file. Faults are whole sentences for stderr. */
  readonly loadSettings: (
    file: string,
  ) => Promise<{ readonly settings: Settings | undefined; readonly diagnostics: string }>;
  /** Waits; ends early, with false, when the command is to end. */
  readonly wait: (ms: number) => Promise<boolean>;
};

export type FileChoice = { readonly files: readonly string[]; readonly config?: string };

/** The files that are meant, absolute; a sentence where there are none. */
export async function chooseFiles(
  choice: FileChoice,
  io: CliIo,
  ports: AuditFilePorts,
): Promise<readonly string[] | string> {
  if (choice.files.length > 0) return choice.files.map((file) => resolve(io.cwd, file));
  if (choice.config === undefined) return 'error: name an audit file, or a gateway file with -c\n';
  const { settings, diagnostics } = await ports.loadSettings(resolve(io.cwd, choice.config));
  if (settings === undefined) return diagnostics;
  const paths = settings.audit.sinks.flatMap((sink) => (sink.type === 'file' ? [sink.path] : []));
  const [first] = paths;
  return first === undefined ? 'error: this gateway writes no audit file\n' : [first];
}

/** Lines of a file as Latin-1 text, one character a byte. Rejects when it cannot be read. */
export async function* readLines(path: string): AsyncGenerator<string> {
  let rest = '';
  const stream = createReadStream(path, { encoding: 'latin1' });
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

async function readFrom(path: string, offset: number, size: number): Promise<string> {
  const handle = await open(path, 'r');
  try {
    const bytes = Buffer.alloc(Math.min(size - offset, MAX_LINE_BYTES));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, offset);
    return bytes.toString('latin1', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Whole lines that are written from now on, over rotation, until `wait` says to end. */
export async function* followLines(
  path: string,
  wait: AuditFilePorts['wait'],
): AsyncGenerator<string> {
  let offset = (await stat(path)).size;
  let inode = (await stat(path)).ino;
  let rest = '';
  while (await wait(FOLLOW_EVERY_MS)) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    if (found.ino !== inode || found.size < offset) {
      inode = found.ino;
      offset = 0;
      rest = '';
    }
    while (offset < found.size) {
      const text = await readFrom(path, offset, found.size);
      if (text === '') break;
      offset += text.length;
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  }
}
