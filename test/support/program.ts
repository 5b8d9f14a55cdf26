// The built program as a user runs it: built when it is older than its source, run as a child process,
// ended by its own process object.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { canary } from './canary.js';

const ROOT = join(import.meta.dirname, '../..');
const MAIN = join(ROOT, 'dist/main.js');
/** So that one that hangs ends; what takes its time on a busy machine is no fault. */
const RUN_TIMEOUT_MS = 120_000;

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type Served = {
  /** Everything printed so far. */
  stdout(): string;
  stderr(): string;
  signal(name: 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): void;
  /** Resolves with the exit code. */
  readonly ended: Promise<number>;
};

type Running = { readonly child: ChildProcess; readonly out: { stdout: string; stderr: string } };

function newestSource(): number {
  const entries = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .reduce((newest, { parentPath, name }) => {
      return Math.max(newest, statSync(join(parentPath, name)).mtimeMs);
    }, 0);
}

function start(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): Running {
  const child = spawn(process.execPath, [...args], {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const out = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out.stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    out.stderr += text;
  });
  return { child, out };
}

async function end({ child, out }: Running): Promise<Ended> {
  const timer = setTimeout(() => child.kill('SIGKILL'), RUN_TIMEOUT_MS);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(timer);
  canary.recordSeen('the output of the program', `${out.stdout}\n${out.stderr}`);
  if (code === null) throw new Error(`ended by ${signal}: ${out.stderr}`);
  return { code, ...out };
}

/** Builds `dist/` unless it is newer than every source. */
export async function buildProgram(): Promise<void> {
  if (existsSync(MAIN) && statSync(MAIN).mtimeMs >= newestSource()) return;
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const built = await end(start([compiler], {}, ROOT));
  if (built.code !== 0) throw new Error(`the build failed: ${built.stdout}${built.stderr}`);
}

/** Runs `sallyport ARGS` to its end, in the folder of the project unless told otherwise. */
export function runSallyport(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  return end(start([MAIN, ...args], options.env ?? {}, options.cwd ?? ROOT));
}

/** Starts `sallyport ARGS` and leaves it running. */
export function startSallyport(args: readonly string[], cwd: string): Served {
  const running = start([MAIN, ...args], {}, cwd);
  const { child, out } = running;
  const ended = end(running).then(({ code }) => code);
  ended.catch(() => undefined);
  return {
    stdout: () => out.stdout,
    stderr: () => out.stderr,
    signal: (name) => void child.kill(name),
    ended,
  };
}
