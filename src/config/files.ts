// What the readers of configuration ask of a file system: whole files and the names in a folder.
// Two implementations: the disk, here, and maps in tests. Never writes.

import { readdirSync, readFileSync } from 'node:fs';

/** Both throw where the file or folder cannot be read. */
export type Files = {
  readonly readFile: (path: string) => Uint8Array;
  readonly listFolder: (path: string) => readonly string[];
};

/** The disk. Reading is synchronous: it happens at the start and at a reload, and files are small. */
export const DISK_FILES: Files = {
  readFile: (path) => readFileSync(path),
  listFolder: (path) => readdirSync(path),
};
