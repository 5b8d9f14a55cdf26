// The command line of `sallyport pin`: subcommands, arguments and options. fetch.ts, diff.ts, approve.ts and sign.ts
// implement them. docs/contract.md §1.

import { type Command as Commander, InvalidArgumentError, Option } from 'commander';
import { REPORT_FORMATS } from '../../config/diagnostics.js';
import { isCounter, MAX_COUNTER } from '../../pins/signature.js';
import { withConfigOption } from '../config-file.js';
import type { CliIo, Command, Finish } from '../program.js';
import {
  type PinApproveOptions,
  type PinBlockOptions,
  runPinApprove,
  runPinBlock,
} from './approve.js';
import { runPinDiff, runPinVerify } from './diff.js';
import { type PinFetchOptions, runPinFetch } from './fetch.js';
import type { PinPorts } from './lock-files.js';
import { KINDS } from './selection.js';
import { type PinSignOptions, runPinSign } from './sign.js';

export function pinCommand(io: CliIo, ports: PinPorts): Command {
  return {
    name: 'pin',
    summary: 'Read definitions into lock files, show and check drift, approve and block.',
    examples: [
      'sallyport pin fetch -c config/gateway.yaml github --approve --by alex --note "first review"',
      'sallyport pin diff',
      'sallyport pin verify --format sarif > pins.sarif    # in CI: exit 1 on drift',
      'sallyport pin approve github get_issue list_issues --by alex --note "JIRA-12"',
      'sallyport pin approve github --all    # everything that is pending in the lock file',
      'sallyport pin block github delete_repo',
      'sallyport pin sign github --key signer.pem',
    ],
    configure(command, finish) {
      addFetch(command, finish, io, ports);
      addChecks(command, finish, io, ports);
      addDecisions(command, finish, io, ports);
      addSign(command, finish, io, ports);
    },
  };
}

function addFetch(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  withSharedOptions(
    command.command('fetch').argument('[upstream]', 'name of one upstream (default: all)'),
    io,
  )
    .description('Write the definitions of upstreams into lock files, as pending.')
    .option('--approve', 'approve everything that is written')
    .option('--by <name>', 'who approves (default: user.name and user.email of git)')
    .option('--note <text>', 'why')
    .action(async (upstream: string | undefined, options: PinFetchOptions) =>
      finish(await runPinFetch({ ...options, upstream }, io, ports)),
    );
}

function addChecks(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  const checks = [
    {
      name: 'diff',
      text: 'Show how the definitions of upstreams differ from their pins.',
      run: runPinDiff,
    },
    {
      name: 'verify',
      text: 'Check that the definitions of upstreams match their pins.',
      run: runPinVerify,
    },
  ];
  for (const { name, text, run } of checks) {
    withSharedOptions(
      command.command(name).argument('[upstream]', 'name of one upstream (default: all with pins)'),
      io,
    )
      .description(text)
      .addOption(new Option('--format <format>', 'output format').choices([...REPORT_FORMATS]))
      .action(async (upstream: string | undefined, options: PinFetchOptions) =>
        finish(await run({ ...options, upstream }, io, ports)),
      );
  }
}

function addDecisions(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  decisionCommand(command, 'approve', io)
    .argument('[names...]', 'names of pending items; of a template, its uriTemplate')
    .description('Approve definitions of the lock file that are pending.')
    .option('--all', 'approve everything pending (with --kind, of that kind)')
    .option('--digest <digest>', 'the digest that was reviewed, or its first 16 digits or more')
    .option(
      '--accept <finding...>',
      'approve one definition in spite of these findings of the scan',
    )
    .action(async (upstream: string, names: string[], options: PinApproveOptions) =>
      finish(await runPinApprove({ ...options, upstream, names }, io, ports)),
    );
  decisionCommand(command, 'block', io)
    .argument('<name>', 'name of the item; of a template, its uriTemplate')
    .description('Block an item by name until one of its digests is approved.')
    .action(async (upstream: string, name: string, options: PinBlockOptions) =>
      finish(await runPinBlock({ ...options, upstream, name }, io, ports)),
    );
}

function addSign(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  withSharedOptions(
    command.command('sign').argument('[upstreams...]', 'names of upstreams, or --all'),
    io,
  )
    .description('Sign lock files, or add a signature to those that others made.')
    .option('--all', 'sign every lock file of the upstreams in the gateway file')
    .option('--key <file>', 'private key: Ed25519, or ECDSA with P-256 or P-384, PEM or JWK')
    .option('--key-env <name>', 'environment variable that holds the private key')
    .option(
      '--key-command <command>',
      'command that signs: it reads the bytes on standard input and prints the signature in base64',
    )
    .option('--public-key <file>', 'public key of --key-command')
    .option('--by <name>', 'who signs (default: the name of the key in pins.signers)')
    .option('--counter <number>', 'counter of a new statement (default: the next)', readCounter)
    .action(async (upstreams: string[], options: Omit<PinSignOptions, 'upstreams'>) =>
      finish(await runPinSign({ ...options, upstreams }, io, ports)),
    );
}

/** @throws InvalidArgumentError, which is shown as a usage error. */
function readCounter(text: string): number {
  const counter = /^[0-9]{1,10}$/.test(text) ? Number(text) : 0;
  if (isCounter(counter)) return counter;
  throw new InvalidArgumentError(`Expected a whole number from 1 to ${MAX_COUNTER}.`);
}

function decisionCommand(command: Commander, word: 'approve' | 'block', io: CliIo): Commander {
  const added = command.command(word).argument('<upstream>', 'name of the upstream');
  const meaning =
    word === 'approve'
      ? 'kind of item, if items of several kinds have the name'
      : 'kind of item (default: tool)';
  return withSharedOptions(added, io)
    .addOption(new Option('--kind <kind>', meaning).choices(KINDS))
    .option('--by <name>', 'who decides (default: user.name and user.email of git)')
    .option('--note <text>', 'why');
}

function withSharedOptions(command: Commander, io: CliIo): Commander {
  return withConfigOption(command, io).option('--json', 'print JSON');
}
