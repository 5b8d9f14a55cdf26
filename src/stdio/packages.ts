// The packages that `npx` and `uvx` download before they run them: which package a command names, whether it names one
// exact version, and what the package manager's own client says of it. The client is asked, and no registry, so that its
// settings, credentials and mirrors apply. docs/guides/stdio-servers.md#packages.

import { execFile } from 'node:child_process';
import { basename, dirname, join } from 'node:path';
import { isObject, type Json } from '../protocol/jsonrpc.js';
import { cleanForeign } from '../text/escaping.js';
import { systemErrorCode } from '../text/wording.js';
import type { ServerCommand } from './server-process.js';

type Manager = 'npm' | 'uv';

/** A package as a command names it. */
export type PackageUse = {
  readonly manager: Manager;
  /** The place of the word in the command, and what of it stands before the package (`--package=`). */
  readonly at: number;
  readonly before: string;
  /** What the command says: `NAME`, `NAME@latest`, a URL. */
  readonly spec: string;
  /** Absent for what is in no registry, such as a URL. */
  readonly name?: string;
  /** The one version that it names; absent if it leaves the choice to the moment of the start. */
  readonly version?: string;
};

/** Options of `npx` and `uvx` that take the next word as their value. */
const VALUED: Readonly<Record<Manager, ReadonlySet<string>>> = {
  npm: new Set(['-c', '--call', '-w', '--workspace', '--registry', '--cache', '--userconfig', '--loglevel']),
  uv: new Set([
    ...['--with', '-w', '--with-editable', '--with-requirements', '-p', '--python', '--index', '--index-url', '-i'],
    ...['--default-index', '--extra-index-url', '-f', '--find-links', '--env-file', '--directory', '--project'],
    ...['--config-file', '--cache-dir', '-c', '--constraints', '--index-strategy', '--color', '--refresh-package'],
  ]),
};
/** Options that name the package, apart from the program that it has. */
const NAMING: Readonly<Record<Manager, readonly string[]>> = { npm: ['-p', '--package'], uv: ['--from'] };

/** The packages that a command downloads; none for any other program, or for a folder of this machine. */
export function packagesOf(command: readonly string[]): readonly PackageUse[] {
  const start = startOf(command);
  if (start === undefined) return [];
  const { manager, from } = start;
  const named: PackageUse[] = [];
  let at = from;
  for (let word = command[at]; word?.startsWith('-') === true && word !== '--'; word = command[at]) {
    const { isNaming, takesNext, before } = optionOf(manager, word);
    if (takesNext) at += 1;
    if (isNaming) named.push(...useAt(manager, command, at, before));
    at += 1;
  }
  // Then comes the program; without an option that names the package, it is the package.
  return named.length > 0 ? named : useAt(manager, command, command[at] === '--' ? at + 1 : at);
}

/** An option of a package manager; `before` is what of the word stands before its value. */
function optionOf(manager: Manager, word: string) {
  const equals = word.indexOf('=');
  const option = equals < 0 ? word : word.slice(0, equals);
  const isNaming = NAMING[manager].includes(option);
  const takesNext = equals < 0 && (isNaming || VALUED[manager].has(option));
  return { isNaming, takesNext, before: equals < 0 ? '' : word.slice(0, equals + 1) };
}

/** Where the options of the package manager begin. */
function startOf(command: readonly string[]): { readonly manager: Manager; readonly from: number } | undefined {
  const [program = '', first, second] = command;
  const name = basename(program).replace(/\.(?:cmd|exe)$/i, '');
  if (name === 'npx') return { manager: 'npm', from: 1 };
  if (name === 'npm' && (first === 'exec' || first === 'x')) return { manager: 'npm', from: 2 };
  if (name === 'uvx') return { manager: 'uv', from: 1 };
  return name === 'uv' && first === 'tool' && second === 'run' ? { manager: 'uv', from: 3 } : undefined;
}

const NPM_NAME = /^((?:@[\w.~-]+\/)?[\w.~-]+)(?:@(.*))?$/;
const NPM_VERSION = /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;
/** A requirement without markers (PEP 508), or the form `NAME@VERSION` of uv. */
const PYTHON_NAME = /^([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?(?:\[[\w., -]*\])?)(.*)$/;
const PYTHON_VERSION = /^(?:==|@)\s*(\d[\w.!+-]*)$/;

/** What lies on this machine is no package of a registry. */
const LOCAL = /^(?:[.~]{0,2}\/|\.{1,2}$|file:|$)/;

function useAt(manager: Manager, command: readonly string[], at: number, before = ''): readonly PackageUse[] {
  const spec = command[at]?.slice(before.length) ?? '';
  if (LOCAL.test(spec)) return [];
  return [{ manager, at, before, spec, ...(manager === 'npm' ? npmPackage(spec) : pythonPackage(spec)) }];
}

type Named = Pick<PackageUse, 'name' | 'version'>;

function npmPackage(spec: string): Named {
  const [, name, version = ''] = NPM_NAME.exec(spec) ?? [];
  if (name === undefined || version.includes(':')) return {};
  return { name, ...(NPM_VERSION.test(version) ? { version } : {}) };
}

function pythonPackage(spec: string): Named {
  const [, name, rest = ''] = PYTHON_NAME.exec(spec) ?? [];
  if (name === undefined || rest.includes(':')) return {};
  const [, version] = PYTHON_VERSION.exec(rest.trim()) ?? [];
  return { name, ...(version === undefined ? {} : { version }) };
}

/** What is wrong with the packages of a command, in one sentence each; none if every version is exact. */
export function unpinnedIn(command: readonly string[]): readonly string[] {
  return packagesOf(command).flatMap(({ manager, spec, name, version }) => {
    if (version !== undefined) return [];
    const example = exactSpec({ manager, name: name ?? 'NAME' }, 'VERSION');
    return [
      `${JSON.stringify(spec)} names no exact version, so that each start may run another program: write ${example}`,
    ];
  });
}

function exactSpec({ manager, name }: { readonly manager: Manager; readonly name: string }, version: string): string {
  return manager === 'npm' ? `${name}@${version}` : `${name}==${version}`;
}

export type PackageState = {
  readonly version: string /** Subresource integrity (`sha512-…`). */;
  readonly integrity?: string;
};

/** What the client of the package manager says, in the folder and environment of the command; never rejects. */
export type AskRegistry = (
  use: PackageUse,
  command: Pick<ServerCommand, 'command' | 'cwd' | 'env'>,
) => Promise<PackageState | { readonly error: string }>;

const CLIENT_TIMEOUT_MS = 60_000;
const MAX_CLIENT_BYTES = 1024 * 1024;

export const askRegistry: AskRegistry = async ({ manager, name = '', spec, version }, command) => {
  const { program, args, input } =
    manager === 'npm'
      ? { program: 'npm', args: ['view', spec, 'version', 'dist.integrity', '--json'], input: '' }
      : {
          program: 'uv',
          args: ['pip', 'compile', '-', '--no-deps', '--no-header', '--no-annotate', '--quiet'],
          input: `${version === undefined ? spec : exactSpec({ manager, name }, version)}\n`,
        };
  // Beside the program of the command, if that has a path.
  const at = command.command.includes('/') ? join(dirname(command.command), program) : program;
  const printed = await runClient(at, args, input, command);
  const read = manager === 'npm' ? readNpmView(printed.stdout) : readUvCompile(printed.stdout, name);
  if (read !== undefined) return read;
  const why = npmErrorIn(printed.stdout) ?? printed.why ?? 'it answered something else';
  return { error: `${program} does not tell the version of ${spec}: ${cleanForeign(why)}` };
};

/** The newest that fits stands last. */
function readNpmView(text: string): PackageState | undefined {
  const json = parse(text);
  const found = Array.isArray(json) ? json.at(-1) : json;
  if (!isObject(found)) return undefined;
  const { version, 'dist.integrity': integrity } = found;
  if (typeof version !== 'string' || !NPM_VERSION.test(version)) return undefined;
  return { version, ...(typeof integrity === 'string' && INTEGRITY.test(integrity) ? { integrity } : {}) };
}

const INTEGRITY = /^sha(?:256|384|512)-[A-Za-z0-9+/]+={0,2}$/;

function npmErrorIn(text: string): string | undefined {
  const json = parse(text);
  const error = isObject(json) ? json['error'] : undefined;
  return isObject(error) && typeof error['summary'] === 'string' ? error['summary'] : undefined;
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function readUvCompile(text: string, name: string): PackageState | undefined {
  const [bare = ''] = name.split('[');
  const version = text
    .split('\n')
    .map((line) => /^([\w.-]+)(?:\[[^\]]*\])?==(\d[\w.!+-]*)/.exec(line.trim()))
    .find((found) => normalize(found?.[1]) === normalize(bare))?.[2];
  return version === undefined ? undefined : { version };
}

/** The form in which names of Python packages are compared (PEP 503). */
function normalize(name = ''): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}

type Printed = { readonly stdout: string; readonly why?: string };

function runClient(
  program: string,
  args: readonly string[],
  input: string,
  { cwd, env }: Pick<ServerCommand, 'cwd' | 'env'>,
): Promise<Printed> {
  return new Promise((done) => {
    const options = { cwd, env, timeout: CLIENT_TIMEOUT_MS, maxBuffer: MAX_CLIENT_BYTES };
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      if (error === null) return done({ stdout });
      const code = systemErrorCode(error);
      const why = error.killed === true ? `no answer within ${CLIENT_TIMEOUT_MS / 1000} s` : lastLineOf(stderr);
      done({ stdout, why: code === 'ENOENT' ? `${program} is not there` : (why ?? `it ended with ${error.code}`) });
    });
    child.stdin?.on('error', () => undefined).end(input);
  });
}

function lastLineOf(text: string): string | undefined {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .at(-1);
}

/** A command with every package at an exact version, and what its start is held to. */
export type PinnedCommand = {
  readonly command: readonly string[];
  readonly integrity?: string;
  /** What could not be found out, in one sentence each. */
  readonly notes?: readonly string[];
};

/** Writes the exact version of each package into a command; an error where a version is not known. */
export async function pinPackages(
  argv: readonly string[],
  where: Pick<ServerCommand, 'cwd' | 'env'>,
  ask: AskRegistry,
): Promise<PinnedCommand | { readonly error: string }> {
  const command = [...argv];
  const integrities: string[] = [];
  const notes: string[] = [];
  const named = packagesOf(argv).flatMap((use) => (use.name === undefined ? [] : [{ ...use, name: use.name }]));
  for (const use of named) {
    const stated = await ask(use, { ...where, command: argv[0] ?? '' });
    if (!('error' in stated)) {
      command[use.at] = `${use.before}${exactSpec(use, stated.version)}`;
      if (stated.integrity !== undefined) integrities.push(stated.integrity);
    } else if (use.version === undefined) return stated;
    else notes.push(`no integrity is kept for ${use.spec}: ${stated.error}`);
  }
  // One value in the file is that of one package.
  const [integrity] = named.length === 1 ? integrities : [];
  return { command, notes, ...(integrity === undefined ? {} : { integrity }) };
}

/** Why a server may not start: what is to be downloaded is not known to be what was added. */
export async function refusePackage(
  { command, args, cwd, env }: ServerCommand,
  integrity: string,
  ask: AskRegistry,
): Promise<string | undefined> {
  const [use, ...others] = packagesOf([command, ...args]);
  if (use?.version === undefined || use.manager !== 'npm' || others.length > 0)
    return 'its integrity is that of one npm package at an exact version, and its command names none; write one, or remove "integrity"';
  const stated = await ask(use, { command, cwd, env });
  if ('error' in stated) return `its integrity cannot be checked: ${stated.error}`;
  if (stated.version === use.version && stated.integrity === integrity) return undefined;
  const now = stated.integrity ?? 'none';
  return `the registry has another ${use.spec} than the one that was added (integrity ${now}, expected ${integrity}): find out why before you write the new one into the file`;
}
