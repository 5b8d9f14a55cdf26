// Every configuration that the package ships passes `validate --strict` as it is shipped, and its policy tests pass and
// exercise every rule. The files are found by listing the folders, so that a new one is checked too.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { supposePrincipal } from '../../../src/auth/principal.js';
import { accessCommand } from '../../../src/cli/policy/access.js';
import { explainCommand } from '../../../src/cli/policy/explain.js';
import { runTest, testCommand } from '../../../src/cli/policy/test.js';
import { buildProgram, type CliIo } from '../../../src/cli/program.js';
import { runValidate, validateCommand } from '../../../src/cli/validate.js';
import { DISK_FILES } from '../../../src/config/files.js';
import { loadGateway } from '../../../src/config/load.js';
import { readLocksForPolicies } from '../../../src/gateway/config-version.js';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import { copyShipped, gatewayFiles, shippedFiles } from '../../support/shipped-files.js';
import { shared } from '../../support/with-gateway.js';
import { terminal } from '../cli/console.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FILES = await gatewayFiles();
const TESTS = await shippedFiles('config', '.policy.test.yaml');
const WITH_MODELINES = [
  ...(await shippedFiles('config', '.yaml')),
  ...(await shippedFiles('policies', '.policy.yaml')),
];

const EXAMPLES = readdirSync(join(ROOT, 'config/examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `config/examples/${name}`);

const copy = shared(copyShipped);

function commandsOf(io: CliIo) {
  const loadLocks = readLocksForPolicies;
  const ports = { files: DISK_FILES, compilePolicies, loadLocks, supposePrincipal };
  return [validateCommand(io, ports), testCommand(io, ports), explainCommand(io, ports), accessCommand(io, ports)];
}

/** The schema of a file by its name; `undefined` where it is a file of another program, or has none for people. */
function kindOf(file: string): string | undefined {
  if (FILES.includes(file)) return 'gateway';
  if (file.endsWith('.policy.yaml')) return 'policy';
  if (file.endsWith('.policy.test.yaml')) return 'policy-test';
  return basename(file) === 'stdio.yaml' ? 'stdio' : undefined;
}

describe('[C-19] the shipped configurations', () => {
  it('are those of every folder: the production file, that of one person, compose, and the examples', () => {
    const examples = EXAMPLES.map((folder) => `${folder}/gateway.yaml`);
    expect(examples.length).toBeGreaterThanOrEqual(10);
    const others = ['config/compose/gateway/gateway.yaml', 'config/gateway.yaml', 'config/loopback.yaml'];
    expect(FILES).toEqual([...others, ...examples].sort());
  });

  it.each(FILES)('%s passes validate --strict', async (file) => {
    const io = terminal({ cwd: copy.root, env: copy.env });
    const loadLocks = (folder: string, outline: Parameters<typeof readLocksForPolicies>[1]) =>
      readLocksForPolicies(folder, outline, copy.root);
    const code = await runValidate({ config: file, strict: true }, io, {
      files: DISK_FILES,
      compilePolicies,
      loadLocks,
    });
    expect([io.out().replaceAll(/^.* note .*\n/gm, ''), io.err()]).toEqual(['', expect.stringMatching(/^0 errors/)]);
    expect(code).toBe(0);
  });

  it.each(TESTS.map((file) => dirname(file)))('the policy tests of %s exercise every rule', async (folder) => {
    const io = terminal({ cwd: copy.root, env: copy.env });
    const options = { config: join(dirname(folder), 'gateway.yaml'), folder, minCoverage: 100 };
    const ports = { files: DISK_FILES, loadLocks: readLocksForPolicies, supposePrincipal };
    expect([await runTest(options, io, ports), io.out()]).toEqual([0, '']);
  });

  it.each(EXAMPLES)('%s: the commands of its README that need nothing else succeed', async (example) => {
    const readme = readFileSync(join(ROOT, example, 'README.md'), 'utf8');
    expect(readme.trimEnd().split('\n').length).toBeLessThan(20);
    const lines = [...readme.matchAll(/^sallyport ((?:validate|test|explain|access) .*)$/gm)].map(
      ([, line = '']) => line,
    );
    for (const line of lines) {
      const argv = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain = '']) => quoted ?? plain);
      const io = terminal({ cwd: join(copy.root, example), env: copy.env });
      const code = await buildProgram(io, commandsOf(io)).run(argv);
      expect([line, code, code === 0 ? '' : io.out() + io.err()]).toEqual([line, 0, '']);
    }
    // The file of the chart has the paths of a pod.
    if (basename(example) !== 'kubernetes') expect(lines).not.toEqual([]);
  });

  it.each(WITH_MODELINES.filter((file) => kindOf(file) !== undefined))('%s names its schema in a modeline', (file) => {
    const text = readFileSync(resolve(ROOT, file), 'utf8');
    const modeline = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1] ?? '';
    const schema = JSON.parse(readFileSync(resolve(ROOT, dirname(file), modeline), 'utf8'));
    expect(schema.$id).toBe(`urn:sallyport:schema:${kindOf(file)}:1`);
  });

  it('have a gateway without authentication on loopback only', () => {
    for (const file of FILES) {
      const { settings } = loadGateway(join(copy.root, file), { ...DISK_FILES, env: copy.env });
      const open = [...(settings?.upstreams.values() ?? [])].filter(({ authentication }) => authentication === 'none');
      if (open.length > 0) expect([file, settings?.publicUrl.hostname]).toEqual([file, '127.0.0.1']);
    }
  });
});
