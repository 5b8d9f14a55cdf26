// npm run release [-- --to-publish]
// Builds the files of a release into release/, of the commit that is checked out and nothing else: docs/guides/releasing.md.
// Without --to-publish the image is built on stand-ins for its base images and labelled so. Exit 1: a release is refused or
// failed, and the sentence says why.
//   SALLYPORT_PACKAGE     the name of the npm package in the registry where it will be published (default: none, and
//                         npm refuses to publish the tarball)
//   SALLYPORT_MAINTAINER  Maintainer of the Debian package, as NAME <ADDRESS>

import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isInstalled, prepare } from '../dependencies.mjs';
import { refuseNode } from '../node-version.mjs';
import { changelogSection, findProblems } from './checks.mjs';
import { buildDebianPackage } from './debian.mjs';
import { archiveImage } from './image.mjs';
import { must, ownEnvironment, run } from './programs.mjs';
import { provenanceStatement } from './provenance.mjs';
import { billOfMaterials } from './sbom.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUTPUT = join(ROOT, 'release');
const MILLISECONDS = 1000;
const PROGRAMS = [
  ['git', '--version'],
  ['npm', '--version'],
  ['tar', '--version'],
  ['dpkg-deb', '--version'],
  ['buildah', '--version'],
];

const linesOf = (text) => text.split('\n').filter((line) => line !== '');
const git = (...args) => must('git', args, { cwd: ROOT });
const sha256 = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));

/** What is released, or the sentences that refuse it. */
function readRelease(isToPublish) {
  const { version, engines } = readJson(join(ROOT, 'package.json'));
  const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  const problems = findProblems({
    ...{ version, changelog, isToPublish },
    lockVersion: readJson(join(ROOT, 'package-lock.json')).version,
    changes: linesOf(git('status', '--porcelain')),
    tags: linesOf(git('tag', '--points-at', 'HEAD')),
  });
  const epoch = Number(git('log', '-1', '--format=%ct'));
  return {
    ...{ version, problems, epoch, isToPublish },
    commit: git('rev-parse', 'HEAD').trim(),
    createdAt: new Date(epoch * MILLISECONDS).toISOString(),
    notes: changelogSection(changelog, version),
    hasUnreleased: Boolean(changelogSection(changelog, 'Unreleased')),
    oldestNode: /\d+\.\d+/.exec(engines.node)[0],
    packageName: process.env.SALLYPORT_PACKAGE,
    maintainer: process.env.SALLYPORT_MAINTAINER || 'Sallyport, built locally <root@localhost>',
  };
}

/** The versions of the programs by which the release is made. Throws, before anything is built, if one is missing. */
function findTools() {
  const tools = PROGRAMS.map(([name, flag]) => [name, linesOf(must(name, [flag]))[0].trim()]);
  return { node: process.version, ...Object.fromEntries(tools) };
}

/**
 * A clone of the commit with the locked dependencies, built. What others will rely on is installed anew, as the lock file
 * says; a trial takes what is installed here in the locked versions, which saves minutes.
 */
async function cloneAndBuild({ commit, packageName, isToPublish }, source) {
  must('git', ['clone', '--quiet', '--no-checkout', ROOT, source]);
  must('git', ['checkout', '--quiet', '--detach', commit], { cwd: source });
  if (packageName) nameForRegistry(join(source, 'package.json'), packageName);
  if (!isToPublish && isInstalled(ROOT)) copyInstalled(realpathSync(join(ROOT, 'node_modules')), source);
  const code = await prepare(source, { env: ownEnvironment() });
  if (code !== 0) throw new Error(`The clone could not be built (exit code ${code}).`);
}

/** By links, where both are on one file system: nothing writes there. */
function copyInstalled(from, to) {
  const linked = run('cp', ['-a', '--link', from, to]);
  if (linked.code !== 0) must('cp', ['-a', from, to]);
}

function nameForRegistry(file, name) {
  const { private: _, ...manifest } = readJson(file);
  writeFileSync(file, `${JSON.stringify({ ...manifest, name }, null, 2)}\n`);
}

function pack(source) {
  const packed = must('npm', ['pack', '--json', '--pack-destination', OUTPUT], { cwd: source });
  return JSON.parse(packed.slice(packed.indexOf('[\n')))[0].filename;
}

function write(name, text) {
  writeFileSync(join(OUTPUT, name), text);
  return name;
}

function subjectsOf(names) {
  return names.sort().map((name) => ({ name, digest: { sha256: sha256(join(OUTPUT, name)) } }));
}

async function buildFiles(release, tools, scratch) {
  const { version, commit, notes, packageName, isToPublish } = release;
  const source = join(scratch, 'source');
  await cloneAndBuild(release, source);
  const tarball = pack(source);
  const folders = { scratch, output: OUTPUT };
  buildDebianPackage(source, release, { ...folders, tarball: join(OUTPUT, tarball) }, must);
  const lockFile = join(source, 'package-lock.json');
  write(`sallyport-${version}.cdx.json`, billOfMaterials(readJson(lockFile), release));
  write(`sallyport-${version}.changelog.md`, `# Sallyport ${version}\n\n${notes}\n`);
  await archiveImage(source, release, folders, { run, must });
  const lock = { name: 'package-lock.json', digest: { sha256: sha256(lockFile) } };
  const statement = provenanceStatement({
    ...{ commit, tools, materials: [lock] },
    subjects: subjectsOf(readdirSync(OUTPUT)),
    options: {
      version,
      isToPublish,
      packageName: packageName || null,
      installsAnew: isToPublish || !isInstalled(ROOT),
    },
  });
  write(`sallyport-${version}.provenance.unsigned.json`, statement);
  const sums = subjectsOf(readdirSync(OUTPUT)).map(({ name, digest }) => `${digest.sha256}  ${name}\n`);
  write('SHA256SUMS', sums.join(''));
}

async function main() {
  const { values } = parseArgs({ options: { 'to-publish': { type: 'boolean', default: false } } });
  const release = readRelease(values['to-publish']);
  if (release.problems.length > 0) throw new Error(release.problems.join('\n'));
  const tools = findTools();
  if (release.hasUnreleased)
    console.error(
      `CHANGELOG.md has entries under "## Unreleased": this build has those changes, and its notes do not.`,
    );
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT);
  const scratch = mkdtempSync(join(tmpdir(), 'sallyport-release-'));
  try {
    await buildFiles(release, tools, scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  for (const name of readdirSync(OUTPUT).sort()) console.log(`release/${name}`);
}

const refusal = refuseNode();
try {
  if (refusal !== undefined) throw new Error(refusal);
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
