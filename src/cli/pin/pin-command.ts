// The command line of `sallyport pin` (subcommands, arguments and options), and `pin fetch`, which writes what
// upstreams offer to their lock files: new definitions are pending unless the person who runs the command approves
// all of them, by name. diff.ts, approve.ts and sign.ts have the other subcommands. docs/reference/commands.md;
// docs/reference/definitions.md.

import { type Command as Commander, InvalidArgumentError, Option } from 'commander';
import { REPORT_FORMATS } from '../../config/diagnostics.js';
import { type DefinitionFinding, isAbout } from '../../inspection/definitions/scan.js';
import {
  countReviewed,
  isSamePin,
  mergeFetched,
  type PinDigest,
  type PinName,
  pendingOf,
} from '../../pins/approval.js';
import type { UnusableDefinition } from '../../pins/catalog.js';
import type { Observed } from '../../pins/last-seen.js';
import type { Approval, Lock } from '../../pins/lock.js';
import { isCounter, MAX_COUNTER } from '../../pins/signature.js';
import { escapeForTerminal, toVisibleJson } from '../../text/escaping.js';
import {
  type CliIo,
  type Command,
  commandLine,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  type Finish,
  withConfigOption,
} from '../program.js';
import {
  NAMED_KINDS,
  type PinApproveOptions,
  type PinBlockOptions,
  runPinApprove,
  runPinApproveAll,
  runPinBlock,
} from './approve.js';
import { runPinApproveInteractive } from './approve-interactive.js';
import { runPinDiff, runPinVerify } from './diff.js';
import {
  approvalOf,
  blockingFindings,
  changeLockFile,
  digestText,
  findingsText,
  lockFileOf,
  NO_NAME,
  type OtherUpstreams,
  observeTarget,
  type PinOptions,
  type PinPorts,
  type PinTarget,
  pinLabel,
  printSchemaErrors,
  printSignNext,
  printWithheld,
  readOthers,
  readTargets,
  scanPins,
  schemaErrorsIn,
} from './lock-files.js';
import { type PinSignOptions, runPinSign } from './sign.js';

type PinFetchOptions = PinOptions & {
  /** Approves exactly what is offered. */
  readonly approve?: boolean;
  /** Approves also what a person should look at: for `dev`, which grants everything. */
  readonly acceptsReview?: boolean;
  readonly by?: string;
  readonly note?: string;
};

/** Writes what the upstreams offer to their lock files. Exit 1: something cannot be pinned. */
export async function runPinFetch(options: PinFetchOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const approval = approvalFor(options, io, ports);
  if (approval === 'missing') return EXIT_UNCHECKED;
  const targets = readTargets(options, io, ports, () => true);
  if (targets === undefined) return EXIT_UNCHECKED;
  const fetched = await fetchTargets(targets, { approval, ...options }, io, ports);
  printFetched(options, fetched, io);
  for (const { upstream, isChanged } of fetched) {
    if (isChanged) printSignNext(upstream, targets[0]?.gateway.signing, options.config, io);
  }
  if (fetched.length < targets.length) return EXIT_UNCHECKED;
  const isComplete = fetched.every(({ unusable, withheld }) => unusable.length === 0 && withheld.length === 0);
  return isComplete ? EXIT_FINE : EXIT_FAILED;
}

/** Asks all upstreams at the same time, and writes what they offer in order. */
async function fetchTargets(
  targets: readonly PinTarget[],
  { approval, config, upstream, acceptsReview }: PinFetchOptions & { readonly approval: Approval | undefined },
  io: CliIo,
  ports: PinPorts,
): Promise<readonly FetchedUpstream[]> {
  const fetched: FetchedUpstream[] = [];
  const others = readOthers(config, upstream, io, ports);
  const asked = targets.map((target) => ({ target, listing: observeAside(target, io, ports) }));
  for (const { target, listing } of asked) {
    const { observed, printed } = await listing;
    if (printed !== '') io.stderr(printed);
    const input = observed && { observed, approval, others, isNamed: acceptsReview === true };
    const done = input && (await fetchOne(target, input, io, ports));
    if (done !== undefined) fetched.push(done);
  }
  return fetched;
}

/** What an upstream offers, with what there is to say about it. */
async function observeAside(
  target: PinTarget,
  io: CliIo,
  ports: PinPorts,
): Promise<{ readonly observed: Observed | undefined; readonly printed: string }> {
  let printed = '';
  const keep = (text: string): void => {
    printed += text;
  };
  const observed = await observeTarget(target, { ...io, stderr: keep }, ports);
  return { observed, printed };
}

/**
 * The approval that comes with the listing, if one is asked for; `missing`, with the mistake printed, if it is not
 * whole.
 */
function approvalFor(options: PinFetchOptions, io: CliIo, ports: PinPorts): Approval | undefined | 'missing' {
  const { approve = false, by, note } = options;
  const approval = approve ? approvalOf(options, io, ports) : undefined;
  if (approve && approval === undefined) io.stderr(NO_NAME);
  else if (approve || (by ?? note) === undefined) return approval;
  else io.stderr('error: --by and --note belong to --approve, which is missing\n');
  return 'missing';
}

type FetchedUpstream = {
  readonly upstream: string;
  readonly file: string;
  readonly isChanged: boolean;
  readonly approved: number;
  readonly blocked: number;
  readonly pending: readonly PinDigest[];
  readonly unusable: readonly PinName[];
  /** What the scan found in what is pending. */
  readonly findings: readonly DefinitionFinding[];
  /** What cannot be used, shown or checked as it is, approved or not. */
  readonly schemaErrors: readonly UnusableDefinition[];
  /** What was to be approved, and was not because of a finding. */
  readonly withheld: readonly PinDigest[];
};

type FetchInput = {
  readonly observed: Observed;
  readonly approval: Approval | undefined;
  readonly others: OtherUpstreams;
  /** Whether what a person should look at is approved too. */
  readonly isNamed: boolean;
};

async function fetchOne(
  { settings, gateway }: PinTarget,
  { observed, approval, others, isNamed }: FetchInput,
  io: CliIo,
  ports: PinPorts,
): Promise<FetchedUpstream | undefined> {
  const upstream = settings.name;
  const { pinsDir } = gateway;
  const merge = (before: Lock | undefined) => {
    const fetched = mergeFetched({ upstream, lock: before, observed, approval: undefined });
    const offered = pendingOf(fetched.lock);
    const findings = scanPins(fetched.lock, offered, others);
    const isWithheld = (pin: PinName): boolean => blockingFindings(findings, pin, { isNamed }).length > 0;
    const withheld = approval === undefined ? [] : offered.filter(isWithheld);
    const names = new Set(withheld.map(({ kind, name }) => `${kind} ${name}`));
    const isLeftOut = ({ kind, name }: PinName): boolean => names.has(`${kind} ${name}`);
    const merged = mergeFetched({ upstream, lock: before, observed, approval, isLeftOut });
    return { lock: merged.lock, outcome: { ...merged, findings, withheld } };
  };
  const changed = await changeLockFile(pinsDir, upstream, merge, io, ports);
  if (changed === undefined) return undefined;
  const { isChanged } = changed;
  const { lock, unusable, findings, withheld } = changed.outcome;
  const file = lockFileOf(pinsDir, upstream);
  const pending = pendingOf(lock);
  const left = findings.filter((one) => pending.some((pin) => isAbout(one, pin)));
  const counts = countReviewed(lock);
  const schemaErrors = schemaErrorsIn(lock, settings, true);
  const reviewed = { pending, unusable, schemaErrors, findings: left, withheld };
  return { upstream, file, isChanged, ...counts, ...reviewed };
}

function printFetched(options: PinOptions, fetched: readonly FetchedUpstream[], io: CliIo): void {
  for (const { upstream, schemaErrors } of fetched) printSchemaErrors(upstream, schemaErrors, io);
  if (options.json) {
    io.stdout(`${toVisibleJson({ upstreams: fetched })}\n`);
    return;
  }
  for (const one of fetched) printOne(options, one, io);
}

function printOne(options: PinOptions, one: FetchedUpstream, io: CliIo): void {
  const { upstream, file, isChanged, approved, blocked, pending, unusable, findings } = one;
  const written = isChanged ? `written to ${escapeForTerminal(file)}` : 'nothing changed';
  const counts = `${approved} approved, ${pending.length} pending${blocked > 0 ? `, ${blocked} blocked` : ''}`;
  io.stdout(`${upstream}: ${counts}; ${written}\n`);
  for (const pin of pending) {
    const isWithheld = one.withheld.some((other) => isSamePin(pin, other));
    io.stdout(`  pending ${pinLabel(pin)} ${digestText(pin.digest)}\n`);
    if (!isWithheld) io.stdout(findingsText(findings, pin));
  }
  for (const pin of unusable) io.stdout(`  cannot be pinned: ${pinLabel(pin)}\n`);
  const held = one.withheld.map((pin) => ({ pin, findings: blockingFindings(findings, pin) }));
  printWithheld(upstream, options.config, held, io);
  if (pending.length > 0) {
    const review = commandLine(io, ['pin', 'diff', '-c', options.config, upstream]);
    io.stderr(`To review what is pending, run: ${review}\n`);
  }
}

export function pinCommand(io: CliIo, ports: PinPorts): Command {
  return {
    name: 'pin',
    summary: 'Read definitions into lock files, show and check drift, approve and block.',
    examples: [
      'sallyport pin fetch -c config/gateway.yaml github --approve --by alex --note "first review"',
      'sallyport pin diff',
      'sallyport pin diff github --details',
      'sallyport pin verify --format sarif > pins.sarif    # in CI: exit 1 on drift',
      'sallyport pin approve github get_issue list_issues --by alex --note "JIRA-12"',
      'sallyport pin approve github --all    # everything that is pending in the lock file',
      'sallyport pin approve github -i    # one by one, on a terminal',
      'sallyport pin approve --all    # everything that is pending at every upstream',
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
  withSharedOptions(command.command('fetch').argument('[upstream]', 'name of one upstream (default: all)'), io)
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
    const added = withSharedOptions(
      command.command(name).argument('[upstream]', 'name of one upstream (default: all with pins)'),
      io,
    )
      .description(text)
      .addOption(new Option('--format <format>', 'output format').choices([...REPORT_FORMATS]));
    if (name === 'diff') added.option('--details', 'every definition and field in full in place of the table');
    added.action(async (upstream: string | undefined, options: PinFetchOptions) =>
      finish(await run({ ...options, upstream }, io, ports)),
    );
  }
}

function addDecisions(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  decisionCommand(command, 'approve', io)
    .argument('[names...]', 'names of pending items; of a template, its uriTemplate')
    .description('Approve definitions of the lock file that are pending.')
    .option('--all', 'approve everything pending (with --kind, of that kind); without an upstream, at all')
    .option('-i, --interactive', 'step through what is pending on a terminal')
    .option('--digest <digest>', 'the digest that was reviewed, or its first 16 digits or more')
    .option('--accept <finding...>', 'approve one definition in spite of these findings of the scan')
    .action(async (upstream: string | undefined, names: string[], options: ApproveOptions) =>
      finish(await approve(upstream, names, options, io, ports)),
    );
  decisionCommand(command, 'block', io)
    .argument('<name>', 'name of the item; of a template, its uriTemplate')
    .description('Block an item by name until one of its digests is approved.')
    .action(async (upstream: string, name: string, options: PinBlockOptions) =>
      finish(await runPinBlock({ ...options, upstream, name }, io, ports)),
    );
}

type ApproveOptions = PinApproveOptions & { readonly interactive?: boolean };

function approve(
  upstream: string | undefined,
  names: readonly string[],
  { interactive, ...options }: ApproveOptions,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  if (upstream === undefined) return runPinApproveAll(options, io, ports);
  if (interactive !== true) return runPinApprove({ ...options, upstream, names }, io, ports);
  return runPinApproveInteractive({ ...options, upstream }, io, ports);
}

function addSign(command: Commander, finish: Finish, io: CliIo, ports: PinPorts): void {
  withSharedOptions(command.command('sign').argument('[upstreams...]', 'names of upstreams, or --all'), io)
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
  const upstream = word === 'approve' ? '[upstream]' : '<upstream>';
  const added = command.command(word).argument(upstream, 'name of the upstream');
  const meaning =
    word === 'approve' ? 'kind of item, if items of several kinds have the name' : 'kind of item (default: tool)';
  return withSharedOptions(added, io)
    .addOption(new Option('--kind <kind>', meaning).choices(NAMED_KINDS))
    .option('--by <name>', 'who decides (default: user.name and user.email of git)')
    .option('--note <text>', 'why');
}

function withSharedOptions(command: Commander, io: CliIo): Commander {
  return withConfigOption(command, io).option('--json', 'print JSON');
}
