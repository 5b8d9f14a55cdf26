// Writes the files of a setup (`init`, `add`, `remove`, `dev --save`) into a folder that may be somebody else's checkout:
// never over a file that the command has not read, and never through a link that the folder contains, because it may
// lead to a shell profile or a place that others can read. Only the folder that the user named is taken as it is. All
// changes are made, or none. docs/reference/commands.md.

import { constants } from 'node:fs';
import { lstat, mkdir, open, readFile, rm, rmdir, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { updateFile } from '../pins/file-update.js';
import { systemErrorCode } from '../text/wording.js';

/** `path` is relative to the folder, with slashes. */
export type NewFile = {
  readonly path: string;
  readonly text: string;
  /** Only its owner can read the file and list the folders that are made for it. */
  readonly isSecret: boolean;
};

/** A file that exists, with the text that the command has read in it. `text`: what is to be in it; absent to remove it. */
export type ChangedFile = { readonly path: string; readonly before: string; readonly text?: string | undefined };

/** Takes back one thing that was done. */
type Undo = () => Promise<unknown>;

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
 * Creates the files and makes the changes, all or none: what was done is taken back, folders and entries of .gitignore
 * too. What must not be committed is in .gitignore before it exists. Resolves with why that failed: a link or a file may
 * have come since `findObstacles`, and a file may have been edited.
 */
export async function writeNewFiles(
  folder: string,
  files: readonly NewFile[],
  ignored: readonly string[],
  changed: readonly ChangedFile[] = [],
): Promise<string | undefined> {
  const done: Undo[] = [];
  try {
    await makeFolder(folder, done);
    await addIgnored(folder, ignored, done);
    for (const { path, text, isSecret } of files) {
      await makeFolders(folder, path, isSecret, done);
      const file = join(folder, path);
      // With `wx` the system follows no link in place of the file (O_EXCL).
      await writeFile(file, text, { flag: 'wx', ...(isSecret ? { mode: OWNER_ONLY_FILE } : {}) });
      done.push(() => rm(file, { force: true }));
    }
    for (const one of changed) await changeFile(folder, one, done);
    return undefined;
  } catch (error) {
    for (const undo of done.reverse()) await undo().catch(() => undefined);
    return error instanceof Error ? error.message : 'unknown failure';
  }
}

/** Replaces a file, or removes it, if it still holds what was read. */
async function changeFile(folder: string, { path, before, text }: ChangedFile, done: Undo[]): Promise<void> {
  const file = join(folder, path);
  if (await isLink(file)) throw new Error(`${file} is a link`);
  if ((await readFile(file, 'utf8')) !== before) throw new Error(`${file} was changed meanwhile`);
  if (text === undefined) {
    const { mode } = await lstat(file);
    await rm(file);
    done.push(() => writeFile(file, before, { flag: 'wx', mode }));
    return;
  }
  const other = await updateFile(file, () => text);
  if (other !== undefined) throw new Error(`${other} exists: another process is writing, or has ended in the middle`);
  done.push(() => updateFile(file, () => before));
}

/** The folder that the user named, with those above it. */
async function makeFolder(folder: string, done: Undo[]): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) done.unshift(() => rmdir(made));
}

/** One after the other: making them all at once would follow the links among them. */
async function makeFolders(folder: string, path: string, isSecret: boolean, done: Undo[]): Promise<void> {
  const names = path.split('/').slice(0, -1);
  for (const at of names.keys()) {
    const made = join(folder, ...names.slice(0, at + 1));
    try {
      await mkdir(made, isSecret ? { mode: OWNER_ONLY_FOLDER } : {});
      done.push(() => rmdir(made));
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
      if ((await lstat(made)).isSymbolicLink()) throw new Error(`${made} is a link`);
    }
  }
}

/** Appends the entries that are missing; creates the file if there is none. */
export async function addIgnored(folder: string, entries: readonly string[], done: Undo[] = []): Promise<void> {
  if (entries.length === 0) return;
  const path = join(folder, IGNORE_FILE);
  if (await isLink(path)) throw new Error(`${path} is a link`);
  const before = await statusOf(path);
  // A system without this flag has the check above alone.
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o666);
  try {
    const text = await file.readFile('utf8');
    const lines = text.split('\n').map((line) => line.trim());
    // The last line that fits decides: an exception may take an entry back.
    const lastException = lines.findLastIndex((line) => line.startsWith('!'));
    const missing = entries.filter((entry) => lines.lastIndexOf(entry) <= lastException);
    if (missing.length === 0) return;
    const separator = text === '' || text.endsWith('\n') ? '' : '\n';
    done.push(() => (before === undefined ? rm(path, { force: true }) : truncate(path, before.size)));
    await file.appendFile(`${separator}${missing.join('\n')}\n`);
  } finally {
    await file.close();
  }
}
