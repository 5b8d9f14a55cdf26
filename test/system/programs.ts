// Runs the programs that the system tests need. A program that is missing fails the test that asks
// for it: a silent skip would be a check that cannot fail.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** What a finished program left. */
export type Finished = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** The environment without what npm adds for the scripts that it runs: settings of this package are no other's. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
  return Object.fromEntries(own);
}

/** Runs a program to its end. Rejects when it cannot be started or outlives `timeoutMs`. */
export function run(
  program: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly input?: string;
    readonly timeoutMs?: number;
    /** Added to the environment of this process. */
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...ownEnvironment(), ...options.env },
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 240_000,
    });
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    child.on('error', (error) =>
      reject(new Error(`${program} cannot be started: ${error.message}. Run .ci/run, which installs it.`)),
    );
    child.on('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
    // A program may end without reading its input; its exit code says whether it should have.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
  });
}

/** Runs a program that must succeed, and gives its output. */
export async function must(
  program: string,
  args: readonly string[],
  options: Parameters<typeof run>[2] = {},
): Promise<string> {
  const finished = await run(program, args, options);
  if (finished.code !== 0)
    throw new Error(
      `${program} ${args.join(' ')} ended with ${finished.code}:\n${finished.stdout}\n${finished.stderr}`,
    );
  return finished.stdout;
}

/** Where `.ci/run` puts what it builds for itself. */
export const TOOLS = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'sallyport-tools');

/** The pinned helm, built by `.ci/run`. */
export function helmProgram(): string {
  const path = join(TOOLS, 'helm-v3.19.0');
  if (!existsSync(path)) throw new Error(`helm is missing at ${path}; .ci/run builds it with Go`);
  return path;
}

/** The pinned podman-compose, installed by `.ci/run`: the one of Debian 12 cannot share a network namespace. */
export function podmanCompose(): {
  readonly program: string;
  readonly env: Record<string, string>;
} {
  const path = join(TOOLS, 'podman-compose-1.6.0');
  if (!existsSync(path)) throw new Error(`podman-compose is missing at ${path}; .ci/run installs it`);
  return { program: join(path, 'bin/podman-compose'), env: { PYTHONPATH: path } };
}
