// Whether a path is on a file system that only the kernel of this machine can have mounted.

import { statfs } from 'node:fs/promises';

/** File systems of this machine (statfs(2)): ext, XFS, Btrfs, F2FS, ZFS, tmpfs, overlay. */
const LOCAL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

/** False too where that cannot be known. */
export async function isOnThisMachine(path: string): Promise<boolean> {
  try {
    return LOCAL_FILE_SYSTEMS.has((await statfs(path)).type);
  } catch {
    return false;
  }
}
