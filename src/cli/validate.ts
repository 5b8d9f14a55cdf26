// `sallyport validate`: checks gateway file, policies and lock files as far as possible without starting, and
// reports every mistake of shape in one run, and then every mistake of meaning. Changes nothing. And `sallyport schema NAME`, which prints the published JSON Schema
// of one kind of file, for example for editor modelines. docs/reference/commands.md#validate;
// docs/reference/configuration.md; docs/contract.md, law 4.

import { resolve } from 'node:path';
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
import type { PolicyContext, PolicyDiagnostic, PolicyDocument } from '../policy/compile/documents.js';
import type { Catalog } from '../policy/definitions.js';
import { nearestCandidate } from '../text/wording.js';
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
};

export type ValidateOptions = {
  readonly config: string;
  /** Warnings count as errors. */
  readonly strict?: boolean;
  readonly format?: ReportFormat;
  /** `false`: secret references are checked for their form only, and no secret is read. */
  readonly secrets?: boolean;
};

/** Lines for a person; formats for programs have them all. */
const MAX_PRINTED = 500;

/** Prints the diagnostics. Exit 0: no errors; 1: errors; 2: a file could not be read. */
export async function runValidate(options: ValidateOptions, io: CliIo, ports: ValidatePorts): Promise<number> {
  const found = await findDiagnostics(options, io, ports);
  const diagnostics = options.strict
    ? found.map(
        (diagnostic): Diagnostic =>
          diagnostic.severity === 'warning' ? { ...diagnostic, severity: 'error' } : diagnostic,
      )
    : found;
  const { format = 'text' } = options;
  const sorted = sortDiagnostics(diagnostics);
  const shown = format === 'text' ? sorted.slice(0, MAX_PRINTED) : sorted;
  io.stdout(renderDiagnostics(shown, format, io.cwd));
  if (shown.length < sorted.length) {
    io.stderr(`and ${sorted.length - shown.length} more, all of them with --format json\n`);
  }
  const errors = errorsOf(diagnostics);
  io.stderr(`${countDiagnostics(diagnostics)}\n`);
  if (errors.some((diagnostic) => diagnostic.rule === 'unreadable')) return EXIT_UNCHECKED;
  return errors.length === 0 ? EXIT_FINE : EXIT_FAILED;
}

/** What is wrong with the files, notes included. Prints nothing. */
export async function findDiagnostics(
  options: ValidateOptions,
  io: CliIo,
  ports: ValidatePorts,
): Promise<readonly Diagnostic[]> {
  const file = resolve(io.cwd, options.config);
  const {
    diagnostics,
    notes = [],
    outline,
    policiesDir,
  } = loadGateway(file, {
    ...ports.files,
    env: io.env,
    secrets: options.secrets === false ? 'skip' : 'read',
  });
  if (outline === undefined) return [...diagnostics, ...policyShapes(policiesDir, ports)];
  const locks = await readLocks(outline, ports);
  const found = [...diagnostics, ...locks.diagnostics, ...policyDiagnostics(outline, locks, options, ports)];
  return hasErrors(found) ? found : [...found, ...notes, ...(locks.notes ?? [])];
}

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
      const context = { ...outline, hash, pins, invalidLocks, mode, isStrict: strict === true };
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
    ],
    configure(command, finish) {
      withConfigOption(command, io)
        .option('--strict', 'treat warnings as errors')
        .option('--no-secrets', 'check only the form of references to secrets, and read none')
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
    summary: 'Print a JSON Schema: gateway, policy, policy-test, lock or audit.',
    examples: ['sallyport schema gateway > gateway.schema.json', 'sallyport schema policy'],
    configure(command, finish) {
      command.argument('<name>', [...SCHEMAS.keys()].join(', ')).action((name: string) => finish(runSchema(name, io)));
    },
  };
}
