// The command line of `sallyport pin`: subcommands, arguments and options. fetch.ts, diff.ts and approve.ts
// implement them. docs/contract.md §1.

import { type Command as Commander, Option } from 'commander';
import type { CliIo, Command, Finish } from '../program.js';
import { type PinApproveOptions, runPinApprove, runPinBlock } from './approve.js';
import { runPinDiff, runPinVerify } from './diff.js';
import { type PinFetchOptions, runPinFetch } from './fetch.js';
import type { PinPorts } from './lock-files.js';

export function pinCommand(io: CliIo, ports: PinPorts): Command {
  return {
    name: 'pin',
    summary: 'Read definitions into lock files, show and check drift, approve and block.',
    examples: [
      'sallyport pin fetch -c config/gateway.yaml github --approve --by alex --note "first review"',
      'sallyport pin diff -c config/gateway.yaml',
      'sallyport pin verify -c config/gateway.yaml --json    # in CI: exit 1 on drift',
      'sallyport pin approve -c config/gateway.yaml github get_issue --digest sha256:… --by alex',
      'sallyport pin block -c config/gateway.yaml github delete_repo',
    ],
    configure(command, finish) {
      addFetch(command, finish, io, ports);
      addChecks(command, finish, io, ports);
      addDecisions(command, finish, io, ports);
    },
  };
}

function addFetch(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  withSharedOptions(
    command.command('fetch').argument('[upstream]', 'all of them unless one is named'),
  )
    .description('Write what upstreams offer into their lock files, pending until approved.')
    .option('--approve', 'approve exactly what is offered now')
    .option('--by <name>', 'who approves')
    .option('--note <text>', 'why')
    .action(async (upstream: string | undefined, options: PinFetchOptions) =>
      finish(await runPinFetch({ ...options, ...withNameOptions(upstream) }, io, ports)),
    );
}

function addChecks(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  const checks = [
    { name: 'diff', text: 'Show what upstreams offer otherwise than pinned.', run: runPinDiff },
    { name: 'verify', text: 'Check that upstreams offer what is pinned.', run: runPinVerify },
  ];
  for (const { name, text, run } of checks) {
    withSharedOptions(
      command.command(name).argument('[upstream]', 'all strict ones unless one is named'),
    )
      .description(text)
      .action(async (upstream: string | undefined, options: PinFetchOptions) =>
        finish(await run({ ...options, ...withNameOptions(upstream) }, io, ports)),
      );
  }
}

function addDecisions(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  decisionCommand(command, 'approve')
    .description('Approve the definition with this digest.')
    .requiredOption('--digest <sha256:hex>', 'digest of the definition that was reviewed')
    .requiredOption('--by <name>', 'who approves')
    .option('--note <text>', 'why')
    .action(async (upstream: string, name: string, options: PinApproveOptions) =>
      finish(await runPinApprove({ ...options, upstream, name }, io, ports)),
    );
  decisionCommand(command, 'block')
    .description('Block a name, whatever it offers, until a digest of it is approved.')
    .action(async (upstream: string, name: string, options: PinApproveOptions) =>
      finish(await runPinBlock({ ...options, upstream, name }, io, ports)),
    );
}

function decisionCommand(command: Commander, word: string): Commander {
  const added = command
    .command(word)
    .argument('<upstream>', 'name of the upstream')
    .argument('<tool>', 'name of the tool; of a template, its uriTemplate');
  return withSharedOptions(added).addOption(
    new Option('--kind <kind>', 'kind of item that the name refers to')
      .choices(['tool', 'prompt', 'template', 'resource', 'instructions'])
      .default('tool'),
  );
}

function withSharedOptions(command: Commander): Commander {
  return command
    .requiredOption('-c, --config <file>', 'the gateway file')
    .option('--json', 'print JSON');
}

function withNameOptions(upstream: string | undefined): { readonly upstream?: string } {
  return upstream === undefined ? {} : { upstream };
}
