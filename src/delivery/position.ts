// How far the lines of audit files were delivered to one receiver, kept beside the files: of each file the offset behind
// the last line that the receiver has. It is written after lines were delivered, never before, so that whatever was
// lost with a process is delivered again. Two gateways in one folder may overwrite each other's file: both deliver
// everything, and an older offset only repeats lines.

import { open, readFile, rename } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { listFilesOf } from '../audit/folder.js';
import { COMPRESSED } from '../audit/run-name.js';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import { systemErrorCode } from '../text/wording.js';

/** The file that has the position of a receiver. */
export function positionPath(auditPath: string, receiver: string): string {
  return join(dirname(auditPath), `${parse(auditPath).name}.${receiver}.position`);
}

type Written = { readonly from: string; readonly files: Readonly<Record<string, number>> };

/** Undefined if there is none yet. One that cannot be read stands for the very beginning: nothing is left out. */
async function read(path: string): Promise<Written | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  const { from, files } = parseObject(text) ?? {};
  const offsets = Object.entries(isObject(files) ? files : {}).filter(
    (entry): entry is [string, number] => Number.isSafeInteger(entry[1]) && Number(entry[1]) >= 0,
  );
  return { from: typeof from === 'string' ? from : '', files: Object.fromEntries(offsets) };
}

async function write(path: string, written: Written): Promise<void> {
  const next = `${path}.new`;
  const handle = await open(next, 'w', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(written)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(next, path);
}

export type Position = {
  /** The files to deliver, the oldest first, as absolute paths. */
  files(): Promise<readonly string[]>;
  /** The offset up to which a file was delivered. */
  offsetIn(file: string): number;
  advance(file: string, offset: number): void;
  /** Writes what has changed. Rejects if it cannot be written. */
  save(): Promise<void>;
};

/**
 * Opens the position of a receiver. A new receiver begins with the newest file that is there, which is that of this run
 * once its sink is open: what was recorded before stays where it is.
 */
export async function openPosition(auditPath: string, receiver: string): Promise<Position> {
  const path = positionPath(auditPath, receiver);
  const known = await read(path);
  const from = known?.from ?? basename((await listFilesOf(auditPath)).at(-1) ?? '');
  const offsets = new Map(Object.entries(known?.files ?? {}));
  let isChanged = known === undefined;

  return {
    async files() {
      // A file is compressed once every receiver has its lines.
      const all = (await listFilesOf(auditPath)).filter((file) => !file.endsWith(COMPRESSED));
      const names = new Set(all.map((file) => basename(file)));
      for (const name of offsets.keys()) if (!names.has(name)) offsets.delete(name);
      const first = all.findIndex((file) => basename(file) === from);
      // Where the first file was removed, all that are left came after it.
      return first < 0 ? all : all.slice(first);
    },
    offsetIn: (file) => offsets.get(basename(file)) ?? 0,
    advance(file, offset) {
      offsets.set(basename(file), offset);
      isChanged = true;
    },
    async save() {
      if (!isChanged) return;
      isChanged = false;
      try {
        await write(path, { from, files: Object.fromEntries(offsets) });
      } catch (error) {
        isChanged = true;
        throw error;
      }
    },
  };
}
