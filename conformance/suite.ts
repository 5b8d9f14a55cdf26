// Runs the official suite as a child process, on the Node of this process, and reads what it wrote. Its
// exit code is not asked: it tells nothing of checks that were skipped or warned of on the way.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { CheckOutcomes, RunOutcomes } from './expected.ts';

const PACKAGE = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/conformance');
const FOLDER = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/;
const RUN_TIMEOUT_MS = 600_000;

type Check = { readonly id: string; readonly status: string };

/** Runs every server scenario of a revision against an endpoint, scored and not scored. */
export async function runSuite(url: string, revision: string): Promise<RunOutcomes> {
  const output = await mkdtemp(join(tmpdir(), 'sallyport-conformance-'));
  try {
    await runProgram(['server', '--url', url, '--requirements', revision, '-o', output]);
    const run = await readRun(output);
    if (run.size === 0) throw new Error(`the suite wrote no results for ${revision}`);
    return run;
  } finally {
    await rm(output, { recursive: true, force: true });
  }
}

async function runProgram(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [join(PACKAGE, 'dist/index.js'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: RUN_TIMEOUT_MS,
  });
  child.stdout.resume();
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  if (code === null) throw new Error(`the suite was ended by ${signal}`);
}

async function readRun(output: string): Promise<RunOutcomes> {
  const run = new Map<string, CheckOutcomes>();
  for (const folder of (await readdir(output)).sort()) {
    const scenario = FOLDER.exec(folder)?.[1];
    if (scenario === undefined) continue;
    const text = await readFile(join(output, folder, 'checks.json'), 'utf8');
    run.set(scenario, countOutcomes(JSON.parse(text) as readonly Check[]));
  }
  return run;
}

function countOutcomes(checks: readonly Check[]): CheckOutcomes {
  const outcomes = new Map<string, Map<string, number>>();
  for (const { id, status } of checks) {
    const statuses = outcomes.get(id) ?? new Map<string, number>();
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    outcomes.set(id, statuses);
  }
  return outcomes;
}

/** The server scenarios that the suite scores at a revision. */
export async function readScored(revision: string): Promise<ReadonlySet<string>> {
  const text = await readFile(join(PACKAGE, 'requirements', `${revision}.yaml`), 'utf8');
  const { server }: { readonly server: readonly string[] } = parse(text);
  return new Set(server);
}
