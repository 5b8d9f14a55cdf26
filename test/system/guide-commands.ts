// Runs the shell blocks of the guides, of the reference pages, of README.md and CONTRIBUTING.md, in one shell and in their order, as a
// reader would. An HTML comment before a block says how: `<!-- try -->` runs to its end and must succeed, `fails` must
// not succeed, `clone` is run in the clone of the repository, `stand-in` needs a program that something stands in for;
// `serve` is left running until the next one or the end, `background` until the end, and the commands behind either wait
// until it listens. A block that is not run here, or with a stand-in alone, says so to the reader in the paragraph after
// it.

import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { run } from './programs.js';

const ROOT = join(import.meta.dirname, '../..');
/** The folders of the pages, and the pages that a visitor of the repository sees first. */
const FOLDERS = ['docs/guides', 'docs/reference'];
const ROOT_PAGES = ['README.md', 'CONTRIBUTING.md'];
const FENCE =
  /(?:^<!-- try(?:: ([a-z -]+))? -->\n)?^( *)(`{3,})(\w*)\n([\s\S]*?)^\2\3\n(?:\n(\*Not run in our tests[^*]*\*)\n)?/gm;
const SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'shell', 'console', 'zsh']);
/** What begins a command, in a block that names no language. */
const COMMAND = /^\s*(?:\$ |(?:npm|npx|node|git|curl|docker|helm|kubectl|sallyport|export) )/m;
const WAYS: ReadonlySet<string> = new Set([...['serve', 'background', 'fails', 'clone', 'stand-in']]);

export type GuideBlock = {
  /** The page and the number of the block among its shell blocks, from 1. */
  readonly id: string;
  readonly text: string;
  /** How it is run; `undefined` if it is not. */
  readonly ways: ReadonlySet<string> | undefined;
  /** What the reader is told of a block that is not run as it stands. */
  readonly marker: string | undefined;
};

/** Every page by its name, with its text; one of the reference by its folder too, where a guide has the same name. */
export async function readPages(): Promise<ReadonlyMap<string, string>> {
  const named = await Promise.all(
    FOLDERS.map(async (folder) => (await readdir(join(ROOT, folder))).map((name) => join(folder, name))),
  );
  const files = [
    ...ROOT_PAGES,
    ...named
      .flat()
      .filter((name) => name.endsWith('.md'))
      .sort(),
  ];
  const guides = new Set(files.filter((file) => !file.startsWith('docs/reference/')).map((file) => basename(file)));
  const nameOf = (file: string): string =>
    file.startsWith('docs/reference/') && guides.has(basename(file)) ? `reference/${basename(file)}` : basename(file);
  const texts = files.map(async (file) => [nameOf(file), await readFile(join(ROOT, file), 'utf8')] as const);
  return new Map(await Promise.all(texts));
}

/** The shell blocks of a page; of a block without a language, one that looks like commands. */
export function shellBlocks(page: string, text: string): readonly GuideBlock[] {
  const blocks = [...text.matchAll(FENCE)].flatMap((found) => {
    const [matched, named = '', , , language = '', content = '', marker] = found;
    const isShell = SHELLS.has(language) || (language === '' && COMMAND.test(content));
    const isTried = matched.startsWith('<!-- try');
    return isShell ? [{ content, marker, isTried, ways: named.split(' ').filter(Boolean) }] : [];
  });
  return blocks.map(({ content, marker, isTried, ways }, index) => ({
    id: `${page} ${index + 1}`,
    text: content,
    ways: isTried ? new Set(ways) : undefined,
    marker,
  }));
}

/** What is wrong with how a block is marked. */
export function markingError({ id, ways, marker }: GuideBlock): string | undefined {
  const unknown = [...(ways ?? [])].find((way) => !WAYS.has(way));
  if (unknown !== undefined) return `${id}: "${unknown}" is no way to try a block`;
  const isMarked = marker !== undefined;
  if (ways === undefined) return isMarked ? undefined : `${id}: neither tried nor marked as not run`;
  if (ways.has('stand-in') === isMarked) return undefined;
  return isMarked ? `${id}: tried, and marked as not run` : `${id}: run with a stand-in, unmarked`;
}

const NOT_RUN_PAGE = 'docs/reference/not-run.md';
const MAX_COMMAND = 70;

/** The file of a page that `readPages` names, as a path of the repository. */
function fileOf(page: string): string {
  const found = ['docs/guides', 'docs', '.']
    .map((folder) => join(folder, page))
    .find((file) => existsSync(join(ROOT, file)));
  return found ?? join('docs/reference', page);
}

/** The first command of a block, shortened, as code. */
function commandOf({ text }: GuideBlock): string {
  const first = text.split('\n').find((line) => line.trim() !== '' && !line.trim().startsWith('#')) ?? '';
  const command = first.trim().replace(/ \\$/, ' …').replaceAll('|', '\\|');
  return `\`${command.length > MAX_COMMAND ? `${command.slice(0, MAX_COMMAND)}…` : command}\``;
}

function whyOf(marker: string, page: string): string {
  const text = marker.replace(/^\*Not run in our tests(?: as it stands| here)?:? ?|\*$/g, '').replace(/\s+/g, ' ');
  const rebased = text.replace(/\]\((?![a-z]+:)([^)#]*)/g, (_, path: string) =>
    path === '' ? `](${page}` : `](${join(dirname(page), path)}`,
  );
  const reason = rebased.replaceAll('|', '\\|');
  return reason.charAt(0).toUpperCase() + reason.slice(1);
}

/** The reference page of the blocks that are not run as they stand. */
export function renderNotRunPage(pages: ReadonlyMap<string, string>): string {
  const rows = [...pages].flatMap(([name, text]) => {
    const page = relative('docs/reference', fileOf(name));
    return shellBlocks(name, text).flatMap((block) =>
      block.marker === undefined
        ? []
        : [`| [${basename(name, '.md')}](${page}) | ${commandOf(block)} | ${whyOf(block.marker, page)} |`],
    );
  });
  return `# What is not run in our tests

<!-- Rendered from the marks behind the blocks of the pages. Change those, then run the tests with UPDATE_REFERENCE=1. -->

The tests run the shell commands of these pages as written, in an empty folder, with the packed program. The
blocks that are not run as they stand say so, and are listed here with the reason and with what is run instead.

| page | block | why, and what is run instead |
|---|---|---|
${rows.join('\n')}

What was tried with clients and servers of others is in [compatibility](compatibility.md) and [clients](clients.md).
`;
}

/** Writes the page, or says whether it is the one that is there. */
export async function isNotRunPageFresh(shouldWrite: boolean): Promise<boolean> {
  const text = renderNotRunPage(await readPages());
  if (shouldWrite) await writeFile(join(ROOT, NOT_RUN_PAGE), text);
  return (await readFile(join(ROOT, NOT_RUN_PAGE), 'utf8')) === text;
}

/** What is served ends as by Ctrl-C: nobody who is there waits for balancers to send no more. */
const PREAMBLE = `set -euo pipefail
served=
kept=
end() { for pid in "$@"; do kill -INT -- "-$pid" 2>/dev/null || true; wait "$pid" || true; done; }
finish() { end $served; served=; }
trap 'finish; end $kept' EXIT
start() {
  log=$(mktemp ./log.XXXXXX)
  set -m
  bash -euo pipefail -c "$1" >"$log" 2>&1 &
  started=$!
  set +m
  until grep -Eq 'https?://127\\.0\\.0\\.1:[0-9]+|[Ll]istening on' "$log"; do
    kill -0 "$started" || { cat "$log" >&2; exit 1; }
    sleep 0.2
  done
}
serve() { finish; start "$1"; served=$started; }
background() { start "$1"; kept="$kept $started"; }
`;

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const triedIds = new Set<string>();

/** The blocks that some script contained. */
export function tried(): ReadonlySet<string> {
  return triedIds;
}

function commandsOf({ id, text, ways = new Set() }: GuideBlock): string {
  triedIds.add(id);
  const body = ways.has('clone') ? `cd "$CLONE"\n${text}` : text;
  if (ways.has('serve')) return `serve ${quote(body)}`;
  if (ways.has('background')) return `background ${quote(body)}`;
  if (ways.has('fails')) return `if ( ${text} ); then echo 'this should fail' >&2; exit 1; fi`;
  // The variables and functions of a block are those of the next ones, as in the shell of a reader.
  return ways.has('clone') ? `( ${body} )` : text.trimEnd();
}

/** The script of blocks, and of commands of the test between them. */
export function scriptOf(parts: readonly (GuideBlock | string)[]): string {
  const commands = parts.map((part) =>
    typeof part === 'string' ? part : `echo '## ${part.id}' >&2\n${commandsOf(part)}`,
  );
  return `${PREAMBLE}${commands.join('\n\n')}\n`;
}

export type GuideRun = {
  readonly cwd: string;
  /** Folders of programs: the installed one, and stand-ins. */
  readonly programs: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

/** Runs a script in a folder. Resolves with what it printed. */
export async function runScript(script: string, { cwd, programs, env }: GuideRun): Promise<string> {
  const path = [...programs, process.env['PATH'] ?? ''].join(':');
  const settings = { ...env, PATH: path };
  const assignments = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const args = ['-i', `HOME=${cwd}`, ...assignments, 'bash', '-c', script];
  const finished = await run('env', args, { cwd, timeoutMs: 280_000 });
  if (finished.code !== 0) {
    throw new Error(`the guide ended with ${finished.code}:\n${finished.stdout}\n${finished.stderr}`);
  }
  return finished.stdout;
}
