// One hash over the content of files and folders: equal as long as nothing that is read has changed.
// Reads only files whose inode, size or times moved, so that looking every second costs little.
// Never fails: what cannot be read is part of the hash too.

import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** What is watched: files by name, and in folders every file that ends so. */
export type WatchTargets = {
  readonly files: readonly string[];
  readonly folders: readonly { readonly path: string; readonly suffix: string }[];
  /** Files that the gateway writes itself: where they stand among what is watched, no look is due for them. */
  readonly own?: readonly string[];
};

/** A file changed this recently may change again within the grain of its times: it is read anew. */
const STABLE_AFTER_MS = 2000;

type Known = { readonly stamp: string; readonly digest: string };

/** `content` is equal as long as the content is; `stamp` only as long as nothing was written at all. */
export type Fingerprint = { readonly content: string; readonly stamp: string };

/** A function that hashes what targets hold now. Remembers the digests of files that stand still. */
export function createFingerprint(): (targets: WatchTargets) => Promise<Fingerprint> {
  let known = new Map<string, Known>();
  return async (targets) => {
    const seen = new Map<string, Known>();
    const hash = createHash('sha256');
    const listed = await Promise.all(targets.folders.map(listFolder));
    for (const file of [...targets.files, ...listed.flat()]) {
      hash.update(`${JSON.stringify(file)} ${await digestOf(file, known, seen)}\n`);
    }
    known = seen;
    const stamp = JSON.stringify([...seen].map(([file, one]) => [file, one.stamp]));
    return { content: hash.digest('hex'), stamp };
  };
}

async function listFolder({ path, suffix }: WatchTargets['folders'][number]): Promise<string[]> {
  try {
    const names = await readdir(path);
    return names
      .filter((name) => name.endsWith(suffix) && !name.startsWith('.'))
      .sort()
      .map((name) => join(path, name));
  } catch {
    return [];
  }
}

async function digestOf(
  file: string,
  known: ReadonlyMap<string, Known>,
  seen: Map<string, Known>,
): Promise<string> {
  try {
    // Follows links: a swapped ConfigMap shows as another inode.
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = await stat(file, { bigint: true });
    const stamp = `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    const before = known.get(file);
    const isStable = BigInt(Date.now()) - ctimeMs > BigInt(STABLE_AFTER_MS);
    const digest = isStable && before?.stamp === stamp ? before.digest : await hashFile(file);
    seen.set(file, { stamp, digest });
    return digest;
  } catch {
    return 'unreadable';
  }
}

async function hashFile(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}
