// `sallyport pin diff` and `pin verify`: show and check the drift of upstreams from their lock files, and say what
// is pending. Write nothing. docs/reference/commands.md: in CI, exit 1 on drift and 2 if it could not be checked.

import { basename, join } from 'node:path';
import { type DefinitionFinding, isAbout } from '../../inspection/definitions/scan.js';
import {
  digestsOffered,
  FIRST_USE_SUFFIX,
  mergeFetched,
  namedPins,
  type PinDigest,
  pendingOf,
  pinOf,
  trustedPins,
  withTrusted,
} from '../../pins/approval.js';
import { NO_DIGEST } from '../../pins/digest.js';
import { isKindRead, type Observed } from '../../pins/last-seen.js';
import { approvedVersions, type Lock, PIN_KINDS, versionsOf } from '../../pins/lock.js';
import { findDifferences, formsNotOffered, type ItemDifference, isInformational } from '../../pins/lock-differences.js';
import { readLock } from '../../pins/lock-reader.js';
import { type ReviewRow, reviewRow, sortForReview } from '../../pins/review-table.js';
import { checkSignatures, type SignatureCheck, signatureFileOf } from '../../pins/signature.js';
import { presentationOf, shownName } from '../../policy/presentation.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import { escapeForTerminal, isPasteable } from '../../text/escaping.js';
import { type CliIo, commandLine, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import {
  differencesJson,
  differencesSarif,
  differenceText,
  type FirstUseItem,
  firstUseText,
  notOfferedText,
  pendingText,
  type UpstreamDifferences,
} from './differences.js';
import {
  blockingFindings,
  findingsText,
  lockFileOf,
  type OtherUpstreams,
  observeTarget,
  type PinOptions,
  type PinPorts,
  type PinTarget,
  pinLabel,
  printSchemaErrors,
  readContent,
  readOthers,
  readTargets,
  scanPins,
  schemaErrorsIn,
} from './lock-files.js';
import { reviewTableText, shownAsText } from './review-table.js';

export type PinDiffOptions = PinOptions & {
  /** Every definition and field in full in place of the table. */
  readonly details?: boolean;
};

/** Prints the differences between what upstreams offer and their lock files, what is pending, and what to run next. */
export async function runPinDiff(options: PinDiffOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const print = (one: Found): void => {
    if (options.details === true) printDetails(one, io);
    else printTable(one, options.config, io);
    printForReview(one, options.config, io, ports);
  };
  const found = await reportDrift(options, print, true, io, ports);
  return found?.isComplete === true ? EXIT_FINE : EXIT_UNCHECKED;
}

/**
 * Prints the same as a check. Exit 1: there is a difference other than a new server version, or a lock file is not signed
 * as it must be. Exit 2: no difference was found, but not everything could be checked.
 */
export async function runPinVerify(options: PinOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const print = (one: Found): void => {
    for (const difference of one.differences) {
      io.stdout(differenceText(one.upstream, difference, false));
    }
    printNotOffered(one, io);
    printFirstUse(one, false, io);
    printFindings(one, io);
    printSignatures(one, io);
    printStatus(one, io);
  };
  const found = await reportDrift(options, print, false, io, ports);
  const isFailed = found?.upstreams.some(
    ({ signatures, differences }) =>
      signatures?.ok === false || differences.some((difference) => !isInformational(difference)),
  );
  if (isFailed === true) return EXIT_FAILED;
  return found?.isComplete === true ? EXIT_FINE : EXIT_UNCHECKED;
}

/** What was found at an upstream, with what it was compared with. */
type Found = UpstreamDifferences & {
  readonly observed: Observed;
};

type FoundDrift = { readonly upstreams: readonly Found[]; readonly isComplete: boolean };

/** Finds the drift and prints it in the format asked for; `print` writes one upstream as text. */
async function reportDrift(
  options: PinOptions,
  print: (found: Found) => void,
  withLines: boolean,
  io: CliIo,
  ports: PinPorts,
): Promise<FoundDrift | undefined> {
  const found = await findDrift(options, io, ports);
  if (found === undefined) return undefined;
  const { upstreams } = found;
  const format = options.format ?? (options.json ? 'json' : 'text');
  if (format === 'text') for (const one of upstreams) print(one);
  else if (format === 'json') io.stdout(differencesJson(upstreams, withLines));
  else io.stdout(differencesSarif(upstreams, io.cwd));
  return found;
}

/** Whether the lock file is signed as it must be; `undefined` if it need not be. */
function checkTarget(
  { settings: { name: upstream }, gateway, locked }: PinTarget,
  ports: PinPorts,
): SignatureCheck | undefined {
  const { pinsDir, signing } = gateway;
  if (signing === undefined || locked.lock === undefined) return undefined;
  const file = lockFileOf(pinsDir, upstream);
  const content = readContent(signatureFileOf(file), ports);
  if (content === 'unreadable') return { ok: false, why: 'is not signed: its signatures cannot be read' };
  const lock = { file: basename(file), upstream, text: locked.text };
  return checkSignatures(lock, content === 'missing' ? undefined : content.text, signing);
}

function printSignatures({ upstream, signatures }: Found, io: CliIo): void {
  if (signatures === undefined) return;
  const text = signatures.ok
    ? `signed by ${signatures.signers.join(', ')}, counter ${signatures.statement.counter}`
    : `the lock file ${signatures.why}`;
  io.stdout(`${upstream}: ${escapeForTerminal(text)}\n`);
}

async function findDrift(options: PinOptions, io: CliIo, ports: PinPorts): Promise<FoundDrift | undefined> {
  const targets = readTargets(options, io, ports, ({ pinning }) => pinning.mode !== 'off');
  if (targets === undefined) return undefined;
  const upstreams: Found[] = [];
  const others = readOthers(options.config, options.upstream, io, ports);
  for (const target of targets) {
    const observed = await observeTarget(target, io, ports);
    const compared = observed && compareTarget(target, observed, io, ports);
    if (observed === undefined || compared === undefined) continue;
    const { lock, text } = target.locked;
    const signatures = checkTarget(target, ports);
    const pending = pendingOf(lock);
    const upstream = target.settings.name;
    const findings = scanOffered(upstream, lock, observed, others);
    const file = lockFileOf(target.gateway.pinsDir, upstream);
    printSchemaErrors(upstream, schemaErrorsIn(lock, target.settings), io);
    const notOffered = formsNotOffered(lock, observed, compared.differences);
    const locked = { lock, text, file };
    const reviewed = { pending, notOffered, findings, signatures };
    const presentation = presentationOf(target.settings.tools);
    const found = { upstream, ...compared, ...reviewed, ...locked, observed };
    upstreams.push({ ...found, review: reviewRows(found, presentation) });
  }
  const isComplete =
    upstreams.length === targets.length && upstreams.every(({ lock, observed }) => unreadPins(lock, observed) === 0);
  return { upstreams, isComplete };
}

/** How many pinned names could not be compared, because the lists of their kinds are not available. */
function unreadPins(lock: Lock | undefined, observed: Observed): number {
  const unread = PIN_KINDS.filter((kind) => !isKindRead(observed, kind));
  return unread.reduce((sum, kind) => sum + (lock?.pins[kind].size ?? 0), 0);
}

type Compared = Pick<UpstreamDifferences, 'differences' | 'firstUse'>;

/**
 * What differs from the lock file and, listed apart, what is trusted on first use; `undefined` if that cannot be read.
 */
export function compareTarget(
  { settings: { name, pinning }, gateway, locked: { lock } }: PinTarget,
  observed: Observed,
  io: CliIo,
  ports: PinPorts,
): Compared | undefined {
  if (pinning.mode !== 'trust-on-first-use') return { differences: findDifferences(lock, observed), firstUse: [] };
  const file = join(gateway.pinsDir, `${name}${FIRST_USE_SUFFIX}`);
  const content = readContent(file, ports);
  if (content === 'missing') return withoutRecord(name, findDifferences(lock, observed), io);
  const trusted = content === 'unreadable' ? undefined : readLock(file, content.text).lock;
  if (trusted?.upstream !== name) {
    io.stderr(
      `error: ${escapeForTerminal(file)} cannot be read as the record of what was trusted on first use for ${name}; restore the file, because the gateway trusts nothing of ${name} until it can be read\n`,
    );
    return undefined;
  }
  const recorded = trustedPins(lock, trusted).map((item) => ({ ...item, isRecorded: true }));
  return { differences: findDifferences(withTrusted(lock, trusted), observed), firstUse: recorded };
}

/**
 * The gateway may keep its record elsewhere, so everything that is new may have been trusted and is not reported as
 * drift.
 */
function withoutRecord(upstream: string, differences: readonly ItemDifference[], io: CliIo): Compared {
  const firstUse = differences.flatMap((difference): FirstUseItem[] => {
    const { kind, name, change, after, afterDefinition } = difference;
    if (kind === 'server' || change !== 'new-tool' || after === undefined) return [];
    if (afterDefinition === undefined || after === NO_DIGEST) return [];
    const item = { kind, name, digest: after, definition: afterDefinition, at: undefined };
    return [{ ...item, isRecorded: false }];
  });
  if (firstUse.length > 0)
    io.stderr(
      `note: there is no ${upstream}${FIRST_USE_SUFFIX} beside the lock files, so it is not known here what the gateway trusted on first use; with "state.type: memory", run the command where the gateway keeps this file\n`,
    );
  const isApart = ({ kind, name, after }: ItemDifference): boolean =>
    firstUse.some((one) => one.kind === kind && one.name === name && one.digest === after);
  return { differences: differences.filter((one) => !isApart(one)), firstUse };
}

/** What the scan finds in what the upstream offers and nobody has approved. */
function scanOffered(
  upstream: string,
  lock: Lock | undefined,
  observed: Observed,
  others: OtherUpstreams,
): readonly DefinitionFinding[] {
  const offered = mergeFetched({ upstream, lock, observed, approval: undefined }).lock;
  return scanPins(offered, pendingOf(offered), others);
}

function printFindings({ upstream, findings }: Found, io: CliIo): void {
  const items = new Map(findings.map(({ item }) => [`${item.kind} ${item.name}`, item]));
  for (const item of items.values()) {
    const text = findingsText(findings, item);
    if (text !== '') io.stdout(`${upstream} ${pinLabel(item)}: found by the scan\n${text}`);
  }
}

function printNotOffered({ upstream, notOffered }: Found, io: CliIo): void {
  for (const pin of notOffered) io.stdout(notOfferedText(upstream, pin));
}

function printFirstUse({ upstream, firstUse }: Found, withContent: boolean, io: CliIo): void {
  for (const item of firstUse) io.stdout(firstUseText(upstream, item, withContent));
}

function printStatus(found: Found, io: CliIo): void {
  const { upstream, differences, pending, firstUse, lock, observed } = found;
  const isSame = differences.length === 0;
  const unread = unreadPins(lock, observed);
  const open = [
    ...(unread > 0 ? [`${unread} not compared, because their list is not available`] : []),
    ...(pending.length > 0 ? [`${pending.length} pending approval`] : []),
    ...(firstUse.length > 0 ? [`${firstUse.length} not reviewed (trust on first use)`] : []),
  ];
  if (open.length > 0) io.stdout(`${upstream}: ${[...(isSame ? ['no drift'] : []), ...open].join(', ')}\n`);
  else if (isSame) io.stdout(`${upstream}: as pinned\n`);
}

const HOW_TO_ACCEPT =
  'note: pin approve --all leaves out what has a finding of the tiers block and review; a name approves one with a finding of the tier review, and --accept FINDING any\n';

/** A definition that a person has to read, with what it replaces. */
type Subject = PinDigest & Pick<ReviewRow, 'isChanged' | 'changes'> & { readonly definition: JsonObject | string };

/** What nobody has approved: what differs, what is pending, and what is trusted because it was offered first. */
function subjectsOf({ differences, pending, firstUse, lock }: Omit<Found, 'review'>): readonly Subject[] {
  const differing = differences.flatMap(({ kind, name, before, after, afterDefinition, changes }): Subject[] => {
    if (kind === 'server' || after === undefined || afterDefinition === undefined) return [];
    return [{ kind, name, digest: after, definition: afterDefinition, isChanged: before !== undefined, changes }];
  });
  const isKnown = (one: PinDigest) => differing.some(({ digest, name }) => digest === one.digest && name === one.name);
  const waiting = pending.flatMap((one): Subject[] => {
    const pin = pinOf(lock, one);
    const definition = versionsOf(pin).find(({ sha256 }) => sha256 === one.digest)?.definition;
    if (definition === undefined || isKnown(one)) return [];
    return [{ ...one, definition, isChanged: approvedVersions(pin).length > 0, changes: [] }];
  });
  const trusted = firstUse.map(
    ({ kind, name, digest, definition }): Subject => ({
      kind,
      name,
      digest,
      definition,
      isChanged: false,
      changes: [],
    }),
  );
  return [...differing, ...waiting, ...trusted];
}

function reviewRows(found: Omit<Found, 'review'>, presentation: ReturnType<typeof presentationOf>): Found['review'] {
  const rows = subjectsOf(found).map((subject) => {
    const findings = found.findings.filter((one) => isAbout(one, subject));
    const shownAs = subject.kind === 'tool' ? shownName(presentation, subject.name) : undefined;
    return reviewRow({ ...subject, findings, shownAs });
  });
  return sortForReview(rows);
}

/** The table, and a line for what has no row because nothing of it is offered. */
function printTable(found: Found, config: string, io: CliIo): void {
  const { upstream, review, differences } = found;
  if (review.length > 0) io.stdout(`${upstream}\n${reviewTableText(review)}`);
  for (const { kind, name, changes, after } of differences)
    if (kind === 'server' || after === undefined || after === NO_DIGEST)
      io.stdout(`${upstream} ${pinLabel({ kind, name })}: ${changes.join(', ')}\n`);
  printNotOffered(found, io);
  if (review.length === 0) return;
  const line = commandLine(io, ['pin', 'diff', '-c', config, upstream, '--details']);
  io.stderr(`Every definition in full: ${line}\n`);
}

/** The name by which clients know what has a row, where that is another. */
function nameIn({ review }: Found, { kind, name }: Pick<ReviewRow, 'kind' | 'name'>): string | undefined {
  return review.find((row) => row.kind === kind && row.name === name)?.shownAs;
}

/** Every difference and every pending definition in full. */
function printDetails(found: Found, io: CliIo): void {
  const { upstream, differences, pending, lock } = found;
  const isPending = (digest: string | undefined) => pending.some((one) => one.digest === digest);
  for (const difference of differences) {
    io.stdout(differenceText(upstream, difference, isPending(difference.after)));
    io.stdout(shownAsText(difference.name, nameIn(found, difference)));
  }
  const isShown = (one: PinDigest) => differences.some(({ after }) => after === one.digest);
  for (const one of pending.filter((candidate) => !isShown(candidate))) {
    const pin = pinOf(lock, one);
    const after = versionsOf(pin).find(({ sha256 }) => sha256 === one.digest);
    const [before] = approvedVersions(pin);
    if (after === undefined) continue;
    io.stdout(pendingText(upstream, one, before, after));
    io.stdout(shownAsText(one.name, nameIn(found, one)));
  }
  printNotOffered(found, io);
  printFirstUse(found, true, io);
}

/** What the scan found, how many definitions wait, and the next command. */
function printForReview(found: Found, config: string, io: CliIo, ports: PinPorts): void {
  printFindings(found, io);
  printStatus(found, io);
  if (found.findings.some(({ tier }) => tier !== 'note')) io.stderr(HOW_TO_ACCEPT);
  const next = nextCommand(found, config, io, ports);
  if (next !== undefined) io.stderr(`After this review, run: ${next}\n`);
}

/** The command by which the differences are read into the lock file, or what is pending is approved. */
function nextCommand(
  { upstream, differences, pending, findings, firstUse, lock, observed }: Found,
  config: string,
  io: CliIo,
  ports: PinPorts,
): string | undefined {
  const held = new Set(namedPins(lock).flatMap(({ pin }) => versionsOf(pin).map(({ sha256 }) => sha256)));
  const pinnable = differences.filter(({ kind, after }) => kind !== 'server' && after !== NO_DIGEST);
  const unread = pinnable.flatMap(({ kind, name, after }) =>
    kind === 'server' || after === undefined || held.has(after) ? [] : [{ kind, name, digest: after }],
  );
  const isStale = pending.some((one) => !digestsOffered(observed, one)?.includes(one.digest));
  const target = ['-c', config, upstream];
  // Without an identity in git, the shell fills in who runs the command.
  const by = ports.gitIdentity?.() === undefined ? ' --by "$(id -un)"' : '';
  const isClean = (one: PinDigest): boolean => blockingFindings(findings, one).length === 0;
  const isApprovable = (one: PinDigest): boolean =>
    isPasteable(one.name) && blockingFindings(findings, one, { isNamed: true }).length === 0;
  const [only] = unread.filter(isApprovable);
  if (only !== undefined && lock !== undefined && unread.length === 1 && pending.length === 0) {
    return commandLine(io, ['pin', 'approve', ...target, ...argumentsFor([only])]) + by;
  }
  const isUnreviewed = firstUse.some(({ digest }) => !held.has(digest));
  if (unread.length > 0 || isStale || isUnreviewed) return commandLine(io, ['pin', 'fetch', ...target]);
  // One is approved by its name, which is a decision about it.
  const clean = pending.filter((one) => isClean(one) || (pending.length === 1 && isApprovable(one)));
  if (pending.length > 0 && clean.length === 0) return undefined;
  if (pending.length > 0) {
    return commandLine(io, ['pin', 'approve', ...target, ...argumentsFor(clean)]) + by;
  }
  const isServerChanged = differences.some((one) => one.kind === 'server' && !isInformational(one));
  return isServerChanged ? commandLine(io, ['pin', 'fetch', ...target, '--approve']) + by : undefined;
}

/** One definition is named with its digest, several are approved as they stand in the lock file. */
function argumentsFor(pending: readonly PinDigest[]): readonly string[] {
  const [first] = pending;
  if (first === undefined || pending.length > 1) return ['--all'];
  if (!isPasteable(first.name)) return ['--all'];
  const { kind, name, digest } = first;
  return [name, '--kind', kind, '--digest', `sha256:${digest}`];
}
