// Writes the files of a new setup (`init`, `dev --save`) into a folder that may be somebody else's checkout: never over
// a file, and never through a link that the folder contains, because it may lead to a shell profile or a place that
// others can read. Only the folder that the user named is taken as it is. docs/reference/commands.md.

import { constants } from 'node:fs';
import { lstat, mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode } from '../text/wording.js';

/** `path` is relative to the folder, with slashes. */
export type NewFile = {
  readonly path: string;
  readonly text: string;
  /** Only its owner can read the file and list the folders that are made for it. */
  readonly isSecret: boolean;
};

const IGNORE_FILE = '.gitignore';
const OWNER_ONLY_FILE = 0o600;
const OWNER_ONLY_FOLDER = 0o700;

/** What stands in the way of new files, as paths with the folder. */
export type Obstacles = {
  /** Links in place of a file or of a folder above it, wherever they lead; that of .gitignore too. */
  readonly links: readonly string[];
  /** Files and folders of the same names. */
  readonly existing: readonly string[];
};

export async function findObstacles(folder: string, paths: readonly string[]): Promise<Obstacles> {
  const links = new Set<string>();
  const existing = new Set<string>();
  for (const path of [...paths, IGNORE_FILE]) {
    const folders = path.split('/').slice(0, -1);
    const above = folders.map((_, at) => join(folder, ...folders.slice(0, at + 1)));
    const linked = (await Promise.all(above.map(isLink))).findIndex((found) => found);
    const file = join(folder, path);
    if (linked >= 0) links.add(above[linked] ?? file);
    else if (await isLink(file)) links.add(file);
    else if (path !== IGNORE_FILE && (await statusOf(file)) !== undefined) existing.add(file);
  }
  return { links: [...links], existing: [...existing] };
}

async function statusOf(path: string) {
  return await lstat(path).catch(() => undefined);
}

async function isLink(path: string): Promise<boolean> {
  return (await statusOf(path))?.isSymbolicLink() === true;
}

/**
 * Creates the files, all or none. What must not be committed is in .gitignore before it exists. Resolves with why that
 * failed: a link or a file may have come since `findObstacles`.
 */
export async function writeNewFiles(
  folder: string,
  files: readonly NewFile[],
  ignored: readonly string[],
): Promise<string | undefined> {
  const created: string[] = [];
  try {
    await mkdir(folder, { recursive: true });
    await addIgnored(folder, ignored);
    for (const { path, text, isSecret } of files) {
      await makeFolders(folder, path, isSecret);
      const file = join(folder, path);
      // With `wx` the system follows no link in place of the file (O_EXCL).
      await writeFile(file, text, { flag: 'wx', ...(isSecret ? { mode: OWNER_ONLY_FILE } : {}) });
      created.push(file);
    }
    return undefined;
  } catch (error) {
    for (const file of created) await rm(file, { force: true });
    return error instanceof Error ? error.message : 'unknown failure';
  }
}

/** One after the other: making them all at once would follow the links among them. */
async function makeFolders(folder: string, path: string, isSecret: boolean): Promise<void> {
  const names = path.split('/').slice(0, -1);
  for (const at of names.keys()) {
    const made = join(folder, ...names.slice(0, at + 1));
    try {
      await mkdir(made, isSecret ? { mode: OWNER_ONLY_FOLDER } : {});
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
      if ((await lstat(made)).isSymbolicLink()) throw new Error(`${made} is a link`);
    }
  }
}

/** Appends the entries that are missing; creates the file if there is none. */
export async function addIgnored(folder: string, entries: readonly string[]): Promise<void> {
  const path = join(folder, IGNORE_FILE);
  if (await isLink(path)) throw new Error(`${path} is a link`);
  // A system without this flag has the check above alone.
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o666);
  try {
    const text = await file.readFile('utf8');
    const lines = text.split('\n').map((line) => line.trim());
    const missing = entries.filter((entry) => !lines.includes(entry));
    if (missing.length === 0) return;
    const separator = text === '' || text.endsWith('\n') ? '' : '\n';
    await file.appendFile(`${separator}${missing.join('\n')}\n`);
  } finally {
    await file.close();
  }
}
