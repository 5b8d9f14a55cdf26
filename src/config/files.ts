// The file system interface of the configuration readers: file contents and the names in a folder.
// Implemented here for the disk, and by maps in tests. Never writes.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { platform } from 'node:os';

/** Throw if the file or folder cannot be read. */
export type Files = {
  readonly readFile: (path: string) => Uint8Array;
  readonly listFolder: (path: string) => readonly string[];
  /** The permission bits of a file; `undefined` where the system has none. */
  readonly modeOf?: ((path: string) => number | undefined) | undefined;
};

/** The disk. Reads are synchronous: they happen at start and on reload only, and the files are small. */
export const DISK_FILES: Files = {
  readFile: (path) => readFileSync(path),
  listFolder: (path) => readdirSync(path),
  modeOf: (path) => (platform() === 'win32' ? undefined : statSync(path).mode),
};

/** The text of UTF-8 bytes without a byte order mark; `undefined` if they are no UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
