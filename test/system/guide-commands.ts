// Runs the command blocks of a guide that are marked with an HTML comment, in one shell and in their order, as a
// reader would: `<!-- try -->` runs to its end and must succeed; `<!-- try: serve -->` is left running until the next
// one or the end, and the commands behind it wait for the line that it prints when it listens.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './programs.js';

const GUIDES = join(import.meta.dirname, '../../docs/guides');
const MARKED = /^<!-- try(: serve)? -->\n```sh\n([\s\S]*?)^```$/gm;

export type GuideBlock = { readonly isServing: boolean; readonly text: string };

/** The marked blocks of a page. */
export async function readGuide(page: string): Promise<readonly GuideBlock[]> {
  const text = await readFile(join(GUIDES, page), 'utf8');
  return [...text.matchAll(MARKED)].map(([, serve, block = '']) => ({
    isServing: serve !== undefined,
    text: block,
  }));
}

const PREAMBLE = `set -euo pipefail
served=
finish() { if [ -n "$served" ]; then kill -TERM -- "-$served" 2>/dev/null || true; wait "$served" || true; served=; fi; }
trap finish EXIT
serve() {
  finish
  : >served.log
  set -m
  bash -euo pipefail -c "$1" >served.log 2>&1 &
  served=$!
  set +m
  until grep -Eq 'https?://127\\.0\\.0\\.1:[0-9]+' served.log; do
    kill -0 "$served" || { cat served.log >&2; exit 1; }
    sleep 0.2
  done
}
`;

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The script of some blocks. `between` gives commands of the test that follow a block. */
export function scriptOf(
  blocks: readonly GuideBlock[],
  between: (block: GuideBlock) => string = () => '',
): string {
  const commands = blocks.map((block) => {
    const line = block.isServing ? `serve ${quote(block.text)}` : block.text.trimEnd();
    return `${line}\n${between(block)}\n`;
  });
  return PREAMBLE + commands.join('');
}

export type GuideRun = {
  readonly cwd: string;
  /** Folder that holds the program as `bin/sallyport`. */
  readonly prefix: string;
  readonly env: Readonly<Record<string, string>>;
};

/** Runs a script in a folder, with the installed program first on the path. Resolves with what it printed. */
export async function runScript(script: string, { cwd, prefix, env }: GuideRun): Promise<string> {
  const settings = { ...env, PATH: `${join(prefix, 'bin')}:${process.env['PATH'] ?? ''}` };
  const assignments = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const args = ['-i', `HOME=${cwd}`, ...assignments, 'bash', '-c', script];
  const finished = await run('env', args, { cwd, timeoutMs: 240_000 });
  if (finished.code !== 0) {
    throw new Error(
      `the guide ended with ${finished.code}:\n${finished.stdout}\n${finished.stderr}`,
    );
  }
  return finished.stdout;
}
