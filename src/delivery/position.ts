// How far the lines of audit files were delivered to one receiver, kept beside the files: of each file the offset behind
// the last line that the receiver has. It is written when the receiver is new and after lines were delivered, never
// before, so that whatever was lost with a process is delivered again. Two gateways in one folder may overwrite each
// other's position: both deliver everything, and an older offset only repeats lines.

import { randomUUID } from 'node:crypto';
import { lstat, open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { currentUser, listFilesOf } from '../audit/folder.js';
import { COMPRESSED, compareRuns, readRunName } from '../audit/run-name.js';
import type { OwnFile } from '../audit/sink.js';
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
  const next = `${path}.${randomUUID()}.new`;
  const handle = await open(next, 'w', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(written)}\n`);
    await handle.sync();
    await handle.close();
    await rename(next, path);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(next, { force: true });
    throw error;
  }
  const folder = await open(dirname(path), 'r');
  await folder.sync().finally(() => folder.close());
}

/** A file and how far it may be read. */
export type FileState = { readonly path: string; readonly offset: number; readonly bytes: number };

export type Position = {
  /** The name of the first file that is delivered. */
  readonly from: string;
  /** The files of which the receiver does not have everything, the oldest first. */
  behind(): Promise<readonly FileState[]>;
  advance(file: string, offset: number): void;
  /** Writes what has changed. Rejects if it cannot be written. */
  save(): Promise<void>;
};

/** Files of which the receiver has everything, and that this process does not write, are looked at again after this time. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Opens the position of a receiver. A new receiver begins with the file that this run has opened: what was recorded
 * before stays where it is. Rejects while the file sink has none open.
 */
export async function openPosition(
  auditPath: string,
  receiver: string,
  ownFile: () => OwnFile | undefined,
): Promise<Position> {
  const path = positionPath(auditPath, receiver);
  const known = await read(path);
  const begun = ownFile();
  if (known === undefined && begun === undefined) throw new Error('there is no audit file yet');
  const from = known?.from ?? basename(begun?.path ?? '');
  const first = readRunName(from);
  const user = currentUser();
  const offsets = new Map(Object.entries(known?.files ?? {}));
  const settled = new Map<string, number>();
  let isChanged = false;
  if (known === undefined) await write(path, { from, files: {} });

  /** False for what was recorded before there was this receiver, and for files whose lines every receiver has. */
  function isConcerned(name: string): boolean {
    if (name.endsWith(COMPRESSED)) return false;
    const run = readRunName(name);
    return first === undefined || (run !== undefined && (name === from || compareRuns(run, first) >= 0));
  }

  async function look(file: string): Promise<FileState | undefined> {
    const name = basename(file);
    const own = ownFile();
    if (own?.path === file) return behindIn(file, Math.min((await lstat(file)).size, own.bytes));
    if (performance.now() < (settled.get(name) ?? 0)) return undefined;
    const { size, uid } = await lstat(file);
    const state = isOfUser(uid) ? behindIn(file, size) : undefined;
    if (state === undefined) settled.set(name, performance.now() + LOOK_AGAIN_MS);
    return state;
  }

  /** Undefined if nothing is left. A shorter file is another one. */
  function behindIn(path: string, bytes: number): FileState | undefined {
    const offset = offsets.get(basename(path)) ?? 0;
    return offset === bytes ? undefined : { path, offset: offset > bytes ? 0 : offset, bytes };
  }

  /** What another user has put there is not this gateway's. */
  function isOfUser(uid: number): boolean {
    return user === undefined || uid === user;
  }

  return {
    from,
    async behind() {
      const files = (await listFilesOf(auditPath)).filter((file) => isConcerned(basename(file)));
      const names = new Set(files.map((file) => basename(file)));
      for (const name of offsets.keys()) if (!names.has(name)) offsets.delete(name);
      const states: FileState[] = [];
      for (const file of files) {
        const state = await look(file).catch((error: unknown) => {
          if (systemErrorCode(error) === 'ENOENT') return undefined;
          throw error;
        });
        if (state !== undefined) states.push(state);
      }
      return states;
    },
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
