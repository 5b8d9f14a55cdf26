// `sallyport audit`: the command with its subcommands, and `audit hash`. read.ts reads audit files and
// verify.ts verifies them; nothing here writes one (docs/contract.md §1, §8).

import { resolve } from 'node:path';
import type { Command as Commander } from 'commander';
import { createKeyRing, DIGEST_PURPOSES } from '../../state/keys.js';
import { withConfigOption } from '../config-file.js';
import {
  type CliIo,
  type Command,
  EXIT_FINE,
  EXIT_UNCHECKED,
  type Finish,
  fail,
} from '../program.js';
import {
  type AuditFilePorts,
  type AuditQueryOptions,
  type AuditShowOptions,
  type AuditTailOptions,
  runAuditQuery,
  runAuditShow,
  runAuditTail,
} from './read.js';
import { type AuditVerifyOptions, runAuditVerify } from './verify.js';

type AuditHashOptions = {
  readonly value: string;
  readonly config: string;
  readonly json?: boolean;
};

/** Prints the keyed digests by which audit events record a value, for each key and purpose. */
async function runAuditHash(
  options: AuditHashOptions,
  io: CliIo,
  ports: AuditFilePorts,
): Promise<number> {
  const { settings, diagnostics } = await ports.loadSettings(resolve(io.cwd, options.config));
  if (settings === undefined || settings.keys.length === 0) {
    io.stderr(settings === undefined ? diagnostics : 'error: this gateway file names no key\n');
    return EXIT_UNCHECKED;
  }
  const ring = createKeyRing(settings.keys);
  const rows = DIGEST_PURPOSES.flatMap((purpose) =>
    ring.hmacAll(purpose, options.value).map((digest, index) => ({
      purpose,
      key: settings.keys[index]?.id ?? '',
      digest,
    })),
  );
  if (options.json) io.stdout(`${JSON.stringify(rows)}\n`);
  else for (const { purpose, key, digest } of rows) io.stdout(`${digest}  ${purpose}  ${key}\n`);
  return EXIT_FINE;
}

/** Adds -c, which is needed where no audit file is named after the first `named` arguments. */
function withFileOptions(command: Commander, io: CliIo, named: number): Commander {
  return withConfigOption(command, io, {
    description: 'the gateway file, for the path of its audit file',
    isNeeded: (args) => args.length <= named,
  });
}

function configureReadCommands(
  command: Commander,
  io: CliIo,
  ports: AuditFilePorts,
  finish: Finish,
): void {
  withFileOptions(command.command('tail').description('Show the last events.'), io, 0)
    .argument('[files...]', 'audit files')
    .option('-f, --follow', 'wait for further events and show them')
    .option('--json', 'print the lines unchanged')
    .action(async (files: string[], options: Omit<AuditTailOptions, 'files'>) =>
      finish(await runAuditTail({ ...options, files }, io, ports)),
    );
  withFileOptions(command.command('query').description('Print the events that match.'), io, 0)
    .argument('[files...]', 'audit files')
    .option('--type <type>', 'event type, for example mcp.decision')
    .option('--subject <subject>', 'exact subject of the caller')
    .option('--upstream <name>', 'name of the upstream')
    .option('--reason <reason>', 'reason of a refusal')
    .option('--since <time>', 'start time: RFC 3339, or a duration before now, for example 30m')
    .option('--json', 'print JSON, with all members of each event')
    .action(async (files: string[], options: Omit<AuditQueryOptions, 'files'>) =>
      finish(await runAuditQuery({ ...options, files }, io, ports)),
    );
  const show = command
    .command('show')
    .description('Print one event, or all events of one decision.');
  withFileOptions(show, io, 1)
    .argument('<id>', 'id of a decision or an event')
    .argument('[files...]', 'audit files')
    .option('--json', 'print JSON, with all members of each event')
    .action(async (id: string, files: string[], options: Omit<AuditShowOptions, 'id' | 'files'>) =>
      finish(await runAuditShow({ ...options, id, files }, io, ports)),
    );
}

function configureVerifyCommands(
  command: Commander,
  io: CliIo,
  ports: AuditFilePorts,
  finish: Finish,
): void {
  command
    .command('verify')
    .description('Verify that the files form one complete chain.')
    .argument('<files...>', 'audit files, oldest first')
    .option('--head <checkpoint>', 'checkpoint kept elsewhere: EPOCH:SEQ:HASH, JSON, or a file')
    .option(
      '--key <public...>',
      'public key that checkpoints must be signed with, or a file that contains it',
    )
    .option('--json', 'print the verdict as JSON')
    .action(async (files: string[], options: Omit<AuditVerifyOptions, 'files'>) =>
      finish(await runAuditVerify({ ...options, files }, io)),
    );
  const hash = command.command('hash').description('Print the keyed digests of a value.');
  withConfigOption(hash, io, { description: 'the gateway file, for its keys' })
    .argument('<value>', 'value to look for')
    .option('--json', 'print JSON')
    .action(async (value: string, options: Omit<AuditHashOptions, 'value'>) =>
      finish(await runAuditHash({ ...options, value }, io, ports)),
    );
  // Announced in the contract but not implemented.
  command
    .command('export')
    .description('Not available in this version.')
    .option('--format <format>', 'ocsf')
    .action(() =>
      finish(fail('audit export is not available in this version', EXIT_UNCHECKED, io)),
    );
}

/** The command `audit` with its subcommands. */
export function auditCommand(io: CliIo, ports: AuditFilePorts): Command {
  return {
    name: 'audit',
    summary: 'Read audit files and verify their chain.',
    examples: [
      'sallyport audit tail -f -c config/gateway.yaml',
      'sallyport audit query audit.jsonl --reason denied-by-rule --since 1h',
      'sallyport audit show 0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11 audit.jsonl',
      'sallyport audit verify audit.jsonl.1 audit.jsonl --key sallyport-public-1:…',
    ],
    configure(command, finish) {
      configureReadCommands(command, io, ports, finish);
      configureVerifyCommands(command, io, ports, finish);
    },
  };
}
