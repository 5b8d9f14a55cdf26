// Replaces a lock file, or what is kept beside it, as a whole, while other processes may write it too.

import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemErrorCode } from '../text/wording.js';

/** A writer needs milliseconds; one that takes longer than these polls has ended in the middle. */
const WRITER_POLL_MS = 20;
const WRITER_POLLS = 100;
const PERMISSIONS = 0o777;
const NEW_FILE = 0o666;
const OWNER_ONLY = 0o600;

/**
 * Replaces a file by what `update` returns, atomically: a reader sees the old text or the new one, never a mixture.
 * Writers take turns: the new text is written to a file beside it, which only one of them can create, and `update` is
 * called after it was created, so that no other writer changes what it reads. `undefined` writes nothing. Creates the
 * folder, and keeps the mode of the file. Resolves with the path of the file beside it where another writer does not finish; rejects on failure and
 * leaves nothing behind.
 */
export async function updateFile(path: string, update: () => string | undefined): Promise<string | undefined> {
  const temporaryPath = `${path}.new`;
  await mkdir(dirname(path), { recursive: true });
  const known = await stat(path).catch(() => undefined);
  // A secret that only its owner may read is not to be read by others while it is replaced.
  const handle = await createExclusively(temporaryPath, known === undefined ? NEW_FILE : OWNER_ONLY);
  if (handle === undefined) return temporaryPath;
  try {
    const text = update();
    if (text !== undefined) await handle.writeFile(text);
    const before = (await stat(path).catch(() => undefined)) ?? known;
    if (before !== undefined) await handle.chmod(before.mode & PERMISSIONS);
    await handle.close();
    if (text === undefined) await rm(temporaryPath);
    else await rename(temporaryPath, path);
    return undefined;
  } catch (error) {
    await handle.close();
    await rm(temporaryPath, { force: true });
    throw error;
  }
}

async function createExclusively(path: string, mode: number): Promise<FileHandle | undefined> {
  for (let polls = 0; polls < WRITER_POLLS; polls += 1) {
    try {
      return await open(path, 'wx', mode);
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, WRITER_POLL_MS));
  }
  return undefined;
}
