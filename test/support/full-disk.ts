// A full disk for files that this process has open: nothing more can be written to them, as nobody can make it happen
// on a disk that tests share.

import { type FileHandle, open } from 'node:fs/promises';
import { devNull } from 'node:os';
import { vi } from 'vitest';

/** Lets every write to a file fail with ENOSPC until the function that it resolves with is called. */
export async function fillDisk(): Promise<() => void> {
  const any = await open(devNull, 'w');
  const prototype = Object.getPrototypeOf(any) as FileHandle;
  await any.close();
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  const spy = vi.spyOn(prototype, 'write').mockRejectedValue(full);
  return () => spy.mockRestore();
}
