// Lock files as a reviewer of a test changes them by hand, where no command of the program does it.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { countReviewed } from '../../src/pins/approval.js';
import { digestDefinition, digestListed } from '../../src/pins/digest.js';
import { type Lock, writeLock } from '../../src/pins/lock.js';
import { readLock } from '../../src/pins/lock-reader.js';
import type { JsonObject } from './json.js';

export type { Lock };

/** The path of the lock file of an upstream in the folder of a gateway. */
export function lockPath(folder: string, upstream = 'target'): string {
  return join(folder, `policies/pins/${upstream}.lock.yaml`);
}

export async function readLockOf(folder: string, upstream?: string): Promise<Lock> {
  const path = lockPath(folder, upstream);
  return parseLock(await readFile(path, 'utf8'), path);
}

export function parseLock(text: string, path = 'target.lock.yaml'): Lock {
  const { lock } = readLock(path, text);
  if (lock === undefined) throw new Error(`${path} cannot be read`);
  return lock;
}

/** The text of the lock with this in place of what it has for a tool. */
export function withTool(lock: Lock, name: string, change: (pin: Pin) => Pin): string {
  const pin = lock.pins.tool.get(name);
  if (pin === undefined) throw new Error(`${name} is not pinned`);
  const tool = new Map(lock.pins.tool).set(name, change(pin));
  return writeLock({ ...lock, pins: { ...lock.pins, tool } });
}

type Pin = NonNullable<ReturnType<Lock['pins']['tool']['get']>>;

export async function changeTool(folder: string, name: string, change: (pin: Pin) => Pin): Promise<void> {
  await writeFile(lockPath(folder), withTool(await readLockOf(folder), name, change));
}

/** How many definitions and instructions of a lock file are approved. */
export function countApproved(lock: Lock): number {
  return countReviewed(lock).approved;
}

/** The digest by which lock files name a tool. */
export function digestOfTool(definition: JsonObject): string {
  const digest = digestDefinition('tool', definition);
  if (!digest.ok) throw new Error(digest.why);
  return digest.digest;
}

/** The digest by which settings name a tool that nobody pins. */
export function digestOfListedTool(definition: JsonObject): string {
  return digestListed('tool', definition, true);
}
