// `sallyport validate`: checks gateway file, policies and lock files as far as possible without starting, and
// reports every mistake of shape in one run, and then every mistake of meaning. Changes nothing. And `sallyport schema NAME`, which prints the published JSON Schema
// of one kind of file, for example for editor modelines. With --online it then tries what the files name. docs/reference/commands.md#validate;
// docs/reference/configuration.md; docs/contract.md, law 4.

import { dirname, join, resolve } from 'node:path';
import { Option } from 'commander';
import {
  countDiagnostics,
  type Diagnostic,
  errorsOf,
  fileDiagnostic,
  hasErrors,
  REPORT_FORMATS,
  type ReportFormat,
  renderDiagnostics,
  sortDiagnostics,
} from '../config/diagnostics.js';
import type { Files } from '../config/files.js';
import { loadGateway, loadPolicies, type Outline } from '../config/load.js';
import type { Schema } from '../config/schema/declarations.js';
import { GATEWAY_SCHEMA } from '../config/schema/gateway.js';
import { AUDIT_SCHEMA, LOCK_SCHEMA } from '../config/schema/outputs.js';
import { POLICY_SCHEMA, POLICY_TEST_SCHEMA } from '../config/schema/policy.js';
import { STDIO_SCHEMA } from '../config/schema/stdio.js';
import type { Settings } from '../config/settings.js';
import type { PolicyContext, PolicyDiagnostic, PolicyDocument } from '../policy/compile/documents.js';
import type { Catalog } from '../policy/definitions.js';
import { describeReadError, nearestCandidate, systemErrorCode } from '../text/wording.js';
import { countTries, renderTries, type Try, triesAsDiagnostics } from './online/tries.js';
import {
  type CliIo,
  type Command,
  didYouMean,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  withConfigOption,
} from './program.js';
import { checkStdioFile, STDIO_FILE } from './servers/stdio-file.js';

export type ReadLocks = {
  /** The upstreams that have a lock file. */
  readonly upstreams: Iterable<string>;
  readonly diagnostics: readonly Diagnostic[];
  /** What settings mean for the pinned definitions: of interest only once there is no error. */
  readonly notes?: readonly Diagnostic[];
  /** The upstreams whose lock file has mistakes. */
  readonly invalid?: ReadonlySet<string>;
  /** The pinned definitions of an upstream, for the check of policies. */
  readonly pins?: (upstream: string) => Catalog | undefined;
};

export type ValidatePorts = {
  readonly files: Files;
  readonly compilePolicies: (
    documents: readonly PolicyDocument[],
    context: PolicyContext,
  ) => { readonly diagnostics: readonly PolicyDiagnostic[] };
  /** Reads the lock files of a folder. `outline` says which upstreams require pins. */
  readonly loadLocks: (folder: string, outline: Outline) => Promise<ReadLocks>;
  /** Tries what the settings name. Never rejects. */
  readonly tryOnline?: (settings: Settings) => Promise<readonly Try[]>;
};

export type ValidateOptions = {
  readonly config: string;
  /** Warnings count as errors. */
  readonly strict?: boolean;
  readonly format?: ReportFormat;
  /** `false`: secret references are checked for their form only, and no secret is read. */
  readonly secrets?: boolean;
  /** Also tries what the files name, over the network. */
  readonly online?: boolean;
};

/** Lines for a person; formats for programs have them all. */
const MAX_PRINTED = 500;

/** Prints the diagnostics, and what was tried. Exit 0: no errors; 1: errors; 2: a file could not be read. */
export async function runValidate(options: ValidateOptions, io: CliIo, ports: ValidatePorts): Promise<number> {
  if (options.online === true && options.secrets === false)
    return fail('--online needs the secrets, which --no-secrets leaves unread', EXIT_UNCHECKED, io);
  const { diagnostics: found, settings } = await readFiles(options, io, ports);
  const diagnostics = options.strict === true ? found.map(asError) : found;
  const tried = options.online === true ? await tryWhat(settings, diagnostics, ports) : undefined;
  const tries = options.strict === true ? tried?.map(asFailed) : tried;
  printFound(diagnostics, tries, options, io);
  const errors = errorsOf(diagnostics);
  io.stderr(`${countDiagnostics(diagnostics)}\n`);
  if (tries !== undefined) io.stderr(`online: ${countTries(tries)}\n`);
  else if (options.online === true) io.stderr('online: nothing was tried, because the files have errors\n');
  if (errors.some((diagnostic) => diagnostic.rule === 'unreadable')) return EXIT_UNCHECKED;
  const hasFailed = errors.length > 0 || tries?.some(({ state }) => state === 'failed') === true;
  return hasFailed ? EXIT_FAILED : EXIT_FINE;
}

function asError(diagnostic: Diagnostic): Diagnostic {
  return diagnostic.severity === 'warning' ? { ...diagnostic, severity: 'error' } : diagnostic;
}

function asFailed(one: Try): Try {
  return one.state === 'warning' ? { ...one, state: 'failed' } : one;
}

/** `undefined` where the files have errors. */
async function tryWhat(
  settings: Settings | undefined,
  diagnostics: readonly Diagnostic[],
  { tryOnline }: ValidatePorts,
): Promise<readonly Try[] | undefined> {
  return settings === undefined || hasErrors(diagnostics) ? undefined : tryOnline?.(settings);
}

function printFound(
  diagnostics: readonly Diagnostic[],
  tries: readonly Try[] | undefined,
  { config, format = 'text' }: ValidateOptions,
  io: CliIo,
): void {
  const sorted = sortDiagnostics(diagnostics);
  const shown = format === 'text' ? sorted.slice(0, MAX_PRINTED) : sorted;
  const file = resolve(io.cwd, config);
  const all = format === 'sarif' ? [...shown, ...triesAsDiagnostics(tries ?? [], file)] : shown;
  io.stdout(renderDiagnostics(all, format, io.cwd, tries === undefined ? {} : { tries }));
  if (shown.length < sorted.length) {
    io.stderr(`and ${sorted.length - shown.length} more, all of them with --format json\n`);
  }
  if (format === 'text' && tries !== undefined) io.stdout(renderTries(tries));
}

/** What is wrong with the files, notes included. Prints nothing. */
export async function findDiagnostics(
  options: ValidateOptions,
  io: CliIo,
  ports: ValidatePorts,
): Promise<readonly Diagnostic[]> {
  return (await readFiles(options, io, ports)).diagnostics;
}

type FilesRead = { readonly diagnostics: readonly Diagnostic[]; readonly settings: Settings | undefined };

async function readFiles(options: ValidateOptions, io: CliIo, ports: ValidatePorts): Promise<FilesRead> {
  const file = resolve(io.cwd, options.config);
  const {
    settings,
    diagnostics,
    notes = [],
    outline,
    policiesDir,
  } = loadGateway(file, {
    ...ports.files,
    env: io.env,
    secrets: options.secrets === false ? 'skip' : 'read',
  });
  if (outline === undefined) return { diagnostics: [...diagnostics, ...policyShapes(policiesDir, ports)], settings };
  const locks = await readLocks(outline, ports);
  const beside = [...policyDiagnostics(outline, locks, options, ports), ...stdioDiagnostics(file, ports)];
  const found = [...diagnostics, ...locks.diagnostics, ...beside];
  return { diagnostics: hasErrors(found) ? found : [...found, ...notes, ...(locks.notes ?? [])], settings };
}

/** Of the file of stdio servers beside the gateway file, where there is one. */
function stdioDiagnostics(config: string, { files }: ValidatePorts): readonly Diagnostic[] {
  const file = join(dirname(config), STDIO_FILE);
  try {
    return checkStdioFile(file, files.readFile(file));
  } catch (error) {
    if (!UNREADABLE.has(systemErrorCode(error))) return [];
    const message = `the file of the stdio servers ${describeReadError(error)}, so that it was not checked`;
    return [{ ...fileDiagnostic(file, 'unreadable', message), severity: 'warning' }];
  }
}

const UNREADABLE: ReadonlySet<string | undefined> = new Set(['EACCES', 'EPERM', 'EISDIR']);

async function readLocks(outline: Outline, ports: ValidatePorts): Promise<ReadLocks> {
  const locks = await ports.loadLocks(outline.pinsDir, outline);
  const known = outline.upstreams.map(({ name }) => name);
  const unknownLocks = [...locks.upstreams].filter((upstream) => !known.includes(upstream)).map(reportUnknownLock);
  function reportUnknownLock(upstream: string): Diagnostic {
    const file = resolve(outline.pinsDir, `${upstream}.lock.yaml`);
    const message = `the gateway file has no upstream named "${upstream}"`;
    const suggestion = nearestCandidate(upstream, known);
    return { ...fileDiagnostic(file, 'lock', message), severity: 'warning', suggestion };
  }
  return { ...locks, diagnostics: [...locks.diagnostics, ...unknownLocks] };
}

/** Only the mistakes of shape: what policies mean depends on the gateway file. */
function policyShapes(folder: string | undefined, { files }: ValidatePorts): readonly Diagnostic[] {
  const compile = () => ({ policies: undefined, diagnostics: [] });
  return folder === undefined ? [] : loadPolicies(folder, { files, compile }).diagnostics;
}

function policyDiagnostics(
  outline: Outline,
  locks: ReadLocks,
  { strict }: ValidateOptions,
  ports: ValidatePorts,
): readonly Diagnostic[] {
  const { pins, invalid: invalidLocks } = locks;
  return loadPolicies(outline.policiesDir, {
    files: ports.files,
    compile(documents, hash) {
      const { policiesMode: mode } = outline;
      const context = { ...outline, hash, pins, invalidLocks, mode, isStrict: strict === true, areGrantsChecked: true };
      const { diagnostics } = ports.compilePolicies(documents, context);
      return { policies: undefined, diagnostics };
    },
  }).diagnostics;
}

export function validateCommand(io: CliIo, ports: ValidatePorts): Command {
  return {
    name: 'validate',
    summary: 'Check the gateway file, policies and lock files, and report every error.',
    examples: [
      'sallyport validate -c config/gateway.yaml',
      'sallyport validate -c config/gateway.yaml --strict --format sarif > mistakes.sarif',
      'sallyport validate -c config/gateway.yaml --no-secrets    # on a machine without the secrets',
      'sallyport validate -c config/gateway.yaml --online        # where the gateway will run',
    ],
    configure(command, finish) {
      withConfigOption(command, io)
        .option('--strict', 'treat warnings as errors')
        .option('--no-secrets', 'check only the form of references to secrets, and read none')
        .option('--online', 'then try issuers, upstreams, pins, store, receivers, certificates and clocks')
        .addOption(new Option('--format <format>', 'output format').choices([...REPORT_FORMATS]).default('text'))
        .action(async (options: ValidateOptions) => finish(await runValidate(options, io, ports)));
    },
  };
}

/** Every published schema by name, in the order of the reference page. */
export const SCHEMAS: ReadonlyMap<string, Schema> = new Map([
  ['gateway', GATEWAY_SCHEMA],
  ['policy', POLICY_SCHEMA],
  ['policy-test', POLICY_TEST_SCHEMA],
  ['lock', LOCK_SCHEMA],
  ['stdio', STDIO_SCHEMA],
  ['audit', AUDIT_SCHEMA],
]);

/** Prints one schema as JSON. An unknown name is a usage error. */
function runSchema(name: string, io: CliIo): number {
  const schema = SCHEMAS.get(name);
  if (schema === undefined) {
    const names = [...SCHEMAS.keys()];
    const known = `Known: ${names.join(', ')}.`;
    return fail(`unknown schema${didYouMean(name, names)} ${known}`, EXIT_UNCHECKED, io);
  }
  io.stdout(`${JSON.stringify(schema, null, 2)}\n`);
  return EXIT_FINE;
}

export function schemaCommand(io: CliIo): Command {
  return {
    name: 'schema',
    summary: 'Print a JSON Schema: gateway, policy, policy-test, lock, stdio or audit.',
    examples: ['sallyport schema gateway > gateway.schema.json', 'sallyport schema policy'],
    configure(command, finish) {
      command.argument('<name>', [...SCHEMAS.keys()].join(', ')).action((name: string) => finish(runSchema(name, io)));
    },
  };
}
