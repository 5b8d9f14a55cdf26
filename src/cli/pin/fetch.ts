// `sallyport pin fetch`: writes what upstreams offer to their lock files. New definitions are pending unless
// the person who runs the command approves all of them, by name. docs/contract.md §1 and §5.

import type { DefinitionFinding } from '../../inspection/definitions/scan.js';
import {
  countReviewed,
  isSamePin,
  mergeFetched,
  type PinDigest,
  type PinName,
  pendingOf,
} from '../../pins/approval.js';
import type { Observed } from '../../pins/last-seen.js';
import type { Approval, Lock } from '../../pins/lock.js';
import { escapeForTerminal, toVisibleJson } from '../../text/escaping.js';
import { type CliIo, commandLine, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import {
  blockingFindings,
  type Company,
  findingsText,
  printWithheld,
  readCompany,
  scanPins,
} from './findings.js';
import {
  approvalOf,
  changeLockFile,
  digestText,
  lockFileOf,
  NO_NAME,
  observeTarget,
  type PinOptions,
  type PinPorts,
  type PinTarget,
  pinLabel,
  printSignNext,
  readTargets,
} from './lock-files.js';

export type PinFetchOptions = PinOptions & {
  /** Approves exactly what is offered. */
  readonly approve?: boolean;
  readonly by?: string;
  readonly note?: string;
};

/** Writes what the upstreams offer to their lock files. Exit 1: something cannot be pinned. */
export async function runPinFetch(
  options: PinFetchOptions,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const approval = approvalFor(options, io, ports);
  if (approval === 'missing') return EXIT_UNCHECKED;
  const targets = readTargets(options, io, ports, () => true);
  if (targets === undefined) return EXIT_UNCHECKED;
  const fetched: FetchedUpstream[] = [];
  for (const target of targets) {
    const observed = await observeTarget(target, io, ports);
    const company = readCompany(options.config, target.settings.name, io, ports);
    const done = observed && (await fetchOne(target, { observed, approval, company }, io, ports));
    if (done !== undefined) fetched.push(done);
  }
  printFetched(options, fetched, io);
  for (const { upstream, isChanged } of fetched) {
    if (isChanged) printSignNext(upstream, targets[0]?.gateway.signing, options.config, io);
  }
  if (fetched.length < targets.length) return EXIT_UNCHECKED;
  const isComplete = fetched.every(
    ({ unusable, withheld }) => unusable.length === 0 && withheld.length === 0,
  );
  return isComplete ? EXIT_FINE : EXIT_FAILED;
}

/** The approval that comes with the listing, if one is asked for; `missing`, with the mistake printed, if it is not whole. */
function approvalFor(
  options: PinFetchOptions,
  io: CliIo,
  ports: PinPorts,
): Approval | undefined | 'missing' {
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
  /** What was to be approved, and was not because of a finding. */
  readonly withheld: readonly PinDigest[];
};

type FetchInput = {
  readonly observed: Observed;
  readonly approval: Approval | undefined;
  readonly company: Company;
};

async function fetchOne(
  { settings, gateway }: PinTarget,
  { observed, approval, company }: FetchInput,
  io: CliIo,
  ports: PinPorts,
): Promise<FetchedUpstream | undefined> {
  const upstream = settings.name;
  const { pinsDir } = gateway;
  const merge = (before: Lock | undefined) => {
    const fetched = mergeFetched({ upstream, lock: before, observed, approval: undefined });
    const offered = pendingOf(fetched.lock);
    const findings = scanPins(fetched.lock, offered, company);
    const isWithheld = (pin: PinName): boolean => blockingFindings(findings, pin).length > 0;
    const withheld = approval === undefined ? [] : offered.filter(isWithheld);
    const isLeftOut = (pin: PinName): boolean => withheld.some((one) => isSamePin(one, pin));
    const merged = mergeFetched({ upstream, lock: before, observed, approval, isLeftOut });
    return { lock: merged.lock, outcome: { ...merged, findings, withheld } };
  };
  const changed = await changeLockFile(pinsDir, upstream, merge, io, ports);
  if (changed === undefined) return undefined;
  const { isChanged } = changed;
  const { lock, unusable, findings, withheld } = changed.outcome;
  const file = lockFileOf(pinsDir, upstream);
  const pending = pendingOf(lock);
  const left = findings.filter(({ item }) => pending.some((one) => isSamePin(one, item)));
  const counts = countReviewed(lock);
  return { upstream, file, isChanged, ...counts, pending, unusable, findings: left, withheld };
}

function printFetched(options: PinOptions, fetched: readonly FetchedUpstream[], io: CliIo): void {
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
  for (const pin of one.withheld) {
    printWithheld(upstream, options.config, pin, blockingFindings(findings, pin), io);
  }
  if (pending.length > 0) {
    const review = commandLine(io, ['pin', 'diff', '-c', options.config, upstream]);
    io.stderr(`To review what is pending, run: ${review}\n`);
  }
}
