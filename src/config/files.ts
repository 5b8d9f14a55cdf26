// The file system interface of the configuration readers: file contents and the names in a folder.
// Implemented here for the disk, and by maps in tests. Never writes.

import { readdirSync, readFileSync } from 'node:fs';

/** Both functions throw if the file or folder cannot be read. */
export type Files = {
  readonly readFile: (path: string) => Uint8Array;
  readonly listFolder: (path: string) => readonly string[];
};

/** The disk. Reads are synchronous: they happen at start and on reload only, and the files are small. */
export const DISK_FILES: Files = {
  readFile: (path) => readFileSync(path),
  listFolder: (path) => readdirSync(path),
};
