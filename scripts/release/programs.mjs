// Runs the programs of which a release is made. The environment is without what npm adds for the scripts that it runs:
// settings of this package are no other's.

import { spawnSync } from 'node:child_process';

export function ownEnvironment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')));
}

/** Runs a program to its end: `{code, stdout, stderr}`. Throws if it cannot be started. */
export function run(program, args, { env, ...options } = {}) {
  const { error, status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: Number.POSITIVE_INFINITY,
    env: { ...ownEnvironment(), ...env },
    ...options,
  });
  if (error !== undefined) throw new Error(`${program} cannot be started: ${error.message}`);
  return { code: status ?? -1, stdout, stderr };
}

/** Runs a program that must succeed, and gives its output. */
export function must(program, args, options) {
  const { code, stdout, stderr } = run(program, args, options);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${stdout}\n${stderr}`);
  return stdout;
}
