// The image of the release, built once for every test; and how to run containers where namespaces and limits are those of the machine.

import { fileURLToPath } from 'node:url';
import { buildImage as buildImageOf } from '../../scripts/release/image.mjs';
import { must, run } from './programs.js';

export { IMAGE } from '../../scripts/release/image.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What `podman run` needs besides, on a machine whose sandbox has no network namespaces of its own. */
export const MACHINE_FLAGS = [
  '--pull=never',
  '--runtime=/usr/sbin/runc',
  '--ulimit=nofile=1024:1024',
  '--ulimit=nproc=1024:1024',
  '--no-healthcheck',
] as const;

/** Builds the image unless it is there, of these very sources. `folder` is for the Node binary of the stand-ins. */
export function buildImage(folder: string): Promise<void> {
  return buildImageOf(ROOT, folder, { run, must: (program, args) => must(program, args, { timeoutMs: 500_000 }) });
}
