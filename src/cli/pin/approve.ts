// `sallyport pin approve` and `pin block`: find the definitions of a lock file that are meant (those that are pending
// under the given names, all of them, or the one with the given digest) and record a named person's decision about
// them. An approval is of the digests that the lock file showed when the command began, and each is refused if its
// definition has changed since, in the file or at the upstream. docs/reference/lock-files.md#approvals.

import type { Outline } from '../../config/load.js';
import type { UpstreamSettings } from '../../config/settings.js';
import { type DefinitionFinding, isAbout } from '../../inspection/definitions/scan.js';
import { isAboutUpstream } from '../../inspection/definitions/shadowing.js';
import {
  addOffered,
  approvePin,
  blockPin,
  digestsOffered,
  isSamePin,
  type NamedPin,
  namedPins,
  type PinChange,
  type PinDigest,
  type PinName,
  pendingOf,
  pinOf,
} from '../../pins/approval.js';
import type { PinnedKind } from '../../pins/digest.js';
import type { Observed } from '../../pins/last-seen.js';
import { type Approval, approvedVersions, type Lock, PIN_KINDS, versionsOf } from '../../pins/lock.js';
import { reviewRow } from '../../pins/review-table.js';
import { presentationOf, shownName } from '../../policy/presentation.js';
import { escapeForTerminal, toVisibleJson } from '../../text/escaping.js';
import { type CliIo, commandLine, didYouMean, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED, fail } from '../program.js';
import {
  approvalOf,
  blockingFindings,
  changeLockFile,
  checkUpstream,
  digestText,
  NO_NAME,
  type OtherUpstreams,
  observeTarget,
  type PinFolder,
  type PinOptions,
  type PinPorts,
  pinLabel,
  printSchemaErrors,
  printSignNext,
  printWithheld,
  readGateway,
  readLockFile,
  readOthers,
  readOutline,
  scanPins,
  schemaErrorsIn,
} from './lock-files.js';
import { notesText, shownAsText } from './review-table.js';

/** Kinds by which a command may name an item. */
export const NAMED_KINDS: readonly PinnedKind[] = [...PIN_KINDS, 'instructions'];

type DecisionOptions = PinOptions & {
  readonly upstream: string;
  readonly kind?: PinnedKind;
  readonly by?: string;
  readonly note?: string;
};

export type PinApproveOptions = DecisionOptions & {
  readonly names: readonly string[];
  /** Everything that is pending, of `kind` if one is given. */
  readonly all?: boolean;
  /** The digest that was reviewed, or at least its first 16 digits; for one name. */
  readonly digest?: string;
  /** Findings that are accepted; for one name, unless they are about the whole upstream. */
  readonly accept?: readonly string[];
  /** Definitions that a person chose one by one, in place of names. */
  readonly chosen?: readonly PinDigest[];
};

/** Approves what is pending at every upstream; each prints what it leaves and why. */
export async function runPinApproveAll(
  options: Omit<PinApproveOptions, 'upstream' | 'names'>,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const { all, digest, accept } = options;
  if (all !== true || digest !== undefined || accept !== undefined)
    return fail('name the upstream, or approve everything that is pending with --all alone', EXIT_UNCHECKED, io);
  const approval = approvalOf(options, io, ports);
  const outline = readOutline(options.config, io, ports);
  if (approval === undefined) io.stderr(NO_NAME);
  if (approval === undefined || outline === undefined) return EXIT_UNCHECKED;
  const codes = new Set<number>();
  for (const upstream of outline.upstreams) {
    const read = readLockFile(outline.folder, upstream, io, ports);
    if (read === 'invalid') codes.add(EXIT_UNCHECKED);
    else if (pendingOf(read.lock).length > 0)
      codes.add(await runPinApprove({ ...options, by: approval.by, upstream, names: [] }, io, ports));
  }
  if (codes.size === 0) io.stderr('Nothing is pending in the lock files.\n');
  return Math.max(EXIT_FINE, ...codes);
}

export type PinBlockOptions = DecisionOptions & {
  readonly name: string;
};

type Refused = PinDigest & {
  readonly why: Exclude<PinChange, { ok: true }>['why'] | 'blocked-meanwhile' | 'finding';
  readonly digests: readonly string[];
  /** What the scan found, where that is why. */
  readonly findings?: readonly DefinitionFinding[];
};

type Approved = {
  readonly approved: readonly PinDigest[];
  /** What was approved before and no longer is. */
  readonly replaced: readonly PinDigest[];
  /** What was approved before and still is. */
  readonly kept: readonly PinDigest[];
  readonly refused: readonly Refused[];
  /** What is pending afterwards. */
  readonly pending: readonly PinDigest[];
};

/**
 * Approves definitions of the lock file. Exit 1: one of them was refused, because it is not in the lock file or has
 * changed since; the others are approved. If the upstream cannot be queried, that is printed and the lock file alone
 * decides.
 */
export async function runPinApprove(options: PinApproveOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const { upstream } = options;
  const usage = findUsageError(options);
  if (usage !== undefined) return fail(usage, EXIT_UNCHECKED, io);
  const approval = approvalOf(options, io, ports);
  if (approval === undefined) {
    io.stderr(NO_NAME);
    return EXIT_UNCHECKED;
  }
  const outline = readFolder(options, io, ports);
  if (outline === undefined) return EXIT_UNCHECKED;
  const { folder, signing } = outline;
  const before = readLockFile(folder, upstream, io, ports);
  if (before === 'invalid') return EXIT_UNCHECKED;
  const fetchLine = commandLine(io, ['pin', 'fetch', '-c', options.config, upstream]);
  if (before.lock === undefined) {
    return fail(`${upstream} has no lock file; run: ${fetchLine}`, EXIT_FAILED, io);
  }
  // Without the secrets, the lock file alone decides.
  const { settings: gateway, outline: shape } = readGateway(options.config, io, ports, 'read');
  const settings = gateway?.upstreams.get(upstream);
  const observed = gateway && settings && (await observeTarget({ settings, gateway }, io, ports));
  if (observed === undefined) io.stderr('note: the lock file alone was asked\n');
  const selection = selectPins(options, before.lock, observed, fetchLine);
  if (!selection.ok) return fail(selection.error, selection.code, io);
  let written: Lock | undefined;
  const approve = (lock: Lock | undefined) => {
    const change = approveSelected(lock, selection.pins, {
      ...{ before: before.lock, observed, approval },
      ...{ accept: options.accept ?? [], isNamed: options.all !== true },
      isExact: completeDigest(options.digest) !== undefined,
      others: readOthers(options.config, upstream, io, ports),
    });
    written = change.lock;
    return change;
  };
  const changed = await changeLockFile(folder, upstream, approve, io, ports);
  if (changed === undefined) return EXIT_UNCHECKED;
  printEarlier(upstream, changed.outcome, observed, io);
  printApprovedErrors(upstream, changed.outcome, written, settings, io);
  printApproved(options, selection, changed.outcome, { fetchLine, nameOf: namesAt(upstream, shape) }, io);
  printLacking(options, changed.outcome, written, io);
  if (changed.isChanged) printSignNext(upstream, signing, options.config, io);
  return changed.outcome.refused.length === 0 ? EXIT_FINE : EXIT_FAILED;
}

/** Names what was approved and cannot be used, or is checked but for a pattern. */
function printApprovedErrors(
  upstream: string,
  { approved }: Approved,
  lock: Lock | undefined,
  settings: Pick<UpstreamSettings, 'formats'> = { formats: 'annotation' },
  io: CliIo,
): void {
  const schemaErrors = schemaErrorsIn(lock, settings).filter((one) =>
    approved.some((pin) => isSamePin(pin, one) && pin.digest === one.digest),
  );
  printSchemaErrors(upstream, schemaErrors, io);
}

/** Blocks a name until one of its digests is approved again. */
export async function runPinBlock(options: PinBlockOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const { upstream, kind = 'tool', name } = options;
  // A block is not refused for want of a name: it may be urgent, and it takes rights away only.
  const block = approvalOf(options, io, ports);
  const outline = readFolder(options, io, ports);
  if (outline === undefined) return EXIT_UNCHECKED;
  const { folder, signing } = outline;
  const pin: PinName = { kind, name };
  const change = (lock: Lock | undefined) => {
    const outcome: PinChange =
      lock === undefined ? { ok: false, why: 'not-in-lock', digests: [] } : blockPin(lock, pin, block);
    const found = lock && selectPins({ names: [name], kind }, lock, undefined, '');
    const hint = found?.ok === false ? found.error : `${upstream} has no lock file`;
    return { lock: outcome.ok ? outcome.lock : undefined, outcome: { ...outcome, hint } };
  };
  const changed = await changeLockFile(folder, upstream, change, io, ports);
  if (changed === undefined) return EXIT_UNCHECKED;
  const { outcome } = changed;
  const what = { upstream, kind, name };
  if (!outcome.ok) {
    if (options.json) {
      io.stdout(`${toVisibleJson({ ...what, refused: outcome.why, digests: [] }, 0)}\n`);
    }
    const fetchLine = commandLine(io, ['pin', 'fetch', '-c', options.config, upstream]);
    return fail(`${outcome.hint}; to read it from the upstream, run: ${fetchLine}`, EXIT_FAILED, io);
  }
  const text = `blocked ${upstream} ${kind} ${escapeForTerminal(name)}\n`;
  io.stdout(options.json ? `${toVisibleJson({ ...what, done: 'blocked' }, 0)}\n` : text);
  if (changed.isChanged) printSignNext(upstream, signing, options.config, io);
  return EXIT_FINE;
}

/** The folder of lock files, if the gateway file has the upstream. */
function readFolder(options: DecisionOptions, io: CliIo, ports: PinPorts): PinFolder | undefined {
  const outline = readOutline(options.config, io, ports);
  if (outline === undefined || !checkUpstream(options.upstream, outline.upstreams, io)) {
    return undefined;
  }
  return outline;
}

function findUsageError({ names, all, digest, accept, chosen }: PinApproveOptions): string | undefined {
  if (chosen !== undefined) return undefined;
  if ((all === true) === names.length > 0) {
    return 'say what to approve: the names of what is pending, or --all';
  }
  if (names.length !== 1 && accept?.every(isAboutUpstream) === false) {
    return '--accept is for one definition: give one name with it';
  }
  if (digest === undefined) return undefined;
  if (names.length !== 1) return '--digest names one definition: give one name with it';
  return DIGEST.test(digest)
    ? undefined
    : '--digest takes a digest as the lock file shows it, or its first 16 digits or more';
}

type Selection =
  | { readonly ok: true; readonly pins: readonly PinDigest[]; readonly notes: readonly string[] }
  | { readonly ok: false; readonly error: string; readonly code: number };

type Wanted = Pick<PinApproveOptions, 'names' | 'all' | 'kind' | 'digest' | 'chosen'>;

/** Digits of a digest that name it where no other begins with them. */
const DIGEST = /^(?:sha256:)?([0-9a-f]{16,64})$/;
const DIGEST_DIGITS = 64;

/** All digits of a digest; `undefined` if some are left out. */
function completeDigest(text = ''): string | undefined {
  const [, digits = ''] = DIGEST.exec(text) ?? [];
  return digits.length === DIGEST_DIGITS ? digits : undefined;
}

/**
 * What the upstream offers under a name with exactly this digest, whether the lock file holds it or not: whoever gives
 * the whole digest has reviewed that definition.
 */
function selectOffered(name: string, { kind, digest }: Wanted, observed: Observed | undefined): PinDigest | undefined {
  const complete = completeDigest(digest);
  if (complete === undefined) return undefined;
  const offering = NAMED_KINDS.filter((one) => one === (kind ?? one)).find((one) =>
    digestsOffered(observed, { kind: one, name })?.includes(complete),
  );
  return offering && { kind: offering, name, digest: complete };
}

function isBlocked(lock: Lock | undefined, pin: PinName): boolean {
  return pinOf(lock, pin)?.status === 'blocked';
}

/** Finds what is meant, or says why nothing is. `fetchLine` is the command that reads the upstream again. */
function selectPins(wanted: Wanted, lock: Lock, observed: Observed | undefined, fetchLine: string): Selection {
  const isKind = ({ kind }: PinName): boolean => (wanted.kind ?? kind) === kind;
  if (wanted.chosen !== undefined) return { ok: true, pins: wanted.chosen, notes: [] };
  if (wanted.all === true) return { ok: true, pins: pendingOf(lock).filter(isKind), notes: [] };
  const pins: PinDigest[] = [];
  const notes: string[] = [];
  for (const name of new Set(wanted.names)) {
    const items = namedPins(lock).filter((item) => item.name === name && isKind(item));
    const offered = selectOffered(name, wanted, observed);
    if (offered !== undefined) {
      pins.push(offered);
      continue;
    }
    const selection =
      wanted.digest === undefined
        ? selectPending(items, lock)
        : selectDigest(items, wanted.digest, observed, fetchLine);
    if (items.length === 0) return selectionError(unknownName(name, wanted.kind, lock), EXIT_FAILED);
    if (!selection.ok) return selection;
    pins.push(...selection.pins);
    notes.push(...selection.notes);
  }
  return { ok: true, pins, notes };
}

/** What is pending under one name. */
function selectPending(items: readonly NamedPin[], lock: Lock): Selection {
  const blocked = items.find((item) => isBlocked(lock, item));
  if (blocked !== undefined) {
    const why = 'is blocked; to lift the block, name the reviewed definition with --digest';
    return selectionError(`${pinLabel(blocked)} ${why}`, EXIT_FAILED);
  }
  const isOne = (pending: PinDigest): boolean => items.some((item) => isSamePin(item, pending));
  const pins = pendingOf(lock).filter(isOne);
  const kinds = [...new Set(pins.map(({ kind }) => kind))];
  const [item] = items;
  if (kinds.length > 1) {
    const message = `${escapeForTerminal(item?.name ?? '')} is pending as ${kinds.join(' and ')}`;
    return selectionError(`${message}; say which is meant with --kind`, EXIT_UNCHECKED);
  }
  const isNone = item !== undefined && pins.length === 0;
  return { ok: true, pins, notes: isNone ? [`${pinLabel(item)} is not pending`] : [] };
}

function selectionError(error: string, code: number): Selection {
  return { ok: false, error, code };
}

function unknownName(name: string, kind: PinnedKind | undefined, lock: Lock): string {
  const known = namedPins(lock);
  const ofKind = known.filter((item) => (kind ?? item.kind) === item.kind);
  const other = known.find((item) => item.name === name);
  const message = `the lock file has no ${kind ?? 'item'} named "${escapeForTerminal(name)}"`;
  if (other !== undefined) return `${message}, but a ${other.kind}; did you mean --kind ${other.kind}?`;
  const names = ofKind.map((item) => item.name);
  return `${message}${escapeForTerminal(didYouMean(name, names))}`;
}

function selectDigest(
  items: readonly NamedPin[],
  digest: string,
  observed: Observed | undefined,
  fetchLine: string,
): Selection {
  const prefix = DIGEST.exec(digest)?.[1] ?? '';
  const held = items.flatMap(({ kind, name, pin }) =>
    versionsOf(pin).map(({ sha256 }) => ({ kind, name, digest: sha256 })),
  );
  const matching = held.filter((one) => one.digest.startsWith(prefix));
  if (matching.length === 1) return { ok: true, pins: matching, notes: [] };
  const [item] = items;
  const label = item === undefined ? '' : pinLabel(item);
  if (matching.length > 1) {
    const digests = matching.map((one) => digestText(one.digest)).join(' and ');
    return selectionError(`${label}: these digits begin ${digests}; give more of them`, EXIT_UNCHECKED);
  }
  const isOffered = items.some((one) => digestsOffered(observed, one)?.some((offered) => offered.startsWith(prefix)));
  if (isOffered) {
    const why = 'is offered with this digest, but the lock file does not hold it yet';
    return selectionError(`${label} ${why}; run: ${fetchLine}`, EXIT_FAILED);
  }
  const digests = held.map((one) => digestText(one.digest)).join(' and ');
  const why = 'has no definition with this digest in the lock file, which holds';
  return selectionError(`${label} ${why} ${digests}`, EXIT_FAILED);
}

type Given = {
  readonly before: Lock | undefined;
  readonly observed: Observed | undefined;
  readonly approval: Approval;
  readonly accept: readonly string[];
  /** Each definition is named, by a person who has looked at it. */
  readonly isNamed: boolean;
  /** The whole digest was given: the lock file need not hold the definition yet. */
  readonly isExact: boolean;
  readonly others: OtherUpstreams;
};

/** Approves each definition in the lock file as it is now, or says why not. */
function approveSelected(
  now: Lock | undefined,
  pins: readonly PinDigest[],
  given: Given,
): { readonly lock: Lock | undefined; readonly outcome: Approved } {
  let lock = addSelected(now, pins, given);
  const found = lock === undefined ? [] : scanPins(lock, pins, given.others);
  const approved: PinDigest[] = [];
  const refused: Refused[] = [];
  for (const pin of pins) {
    // The approval was given without knowing of a block that came since, so it does not lift it.
    const isBlockedSince = isBlocked(now, pin) && !isBlocked(given.before, pin);
    const change = isBlockedSince ? undefined : approveOne(lock, pin, found, pins, given);
    if (change === undefined) refused.push({ ...pin, why: 'blocked-meanwhile', digests: [] });
    else if (!change.ok) {
      const { ok: _, ...why } = change;
      refused.push({ ...pin, ...why });
    } else {
      lock = change.lock;
      approved.push(pin);
    }
  }
  const written = approved.length === 0 ? undefined : lock;
  const after = written ?? now;
  const outcome = { approved, ...earlierIn(now, after), refused, pending: pendingOf(after) };
  return { lock: written, outcome };
}

/** Which of the earlier approvals end, and which stay. */
function earlierIn(before: Lock | undefined, after: Lock | undefined): Pick<Approved, 'replaced' | 'kept'> {
  const left = new Set(approvedDigests(after).map(({ digest }) => digest));
  const earlier = approvedDigests(before);
  return {
    replaced: earlier.filter(({ digest }) => !left.has(digest)),
    kept: earlier.filter(({ digest }) => left.has(digest)),
  };
}

function approvedDigests(lock: Lock | undefined): readonly PinDigest[] {
  return namedPins(lock).flatMap(({ kind, name, pin }) =>
    approvedVersions(pin).map(({ sha256: digest }) => ({ kind, name, digest })),
  );
}

/** The lock file with the selected definitions that the upstream offers and the lock file does not hold yet. */
function addSelected(
  lock: Lock | undefined,
  pins: readonly PinDigest[],
  { observed, isExact }: Given,
): Lock | undefined {
  if (lock === undefined || observed === undefined || !isExact) return lock;
  const isHeld = (pin: PinDigest): boolean => versionsOf(pinOf(lock, pin)).some(({ sha256 }) => sha256 === pin.digest);
  const missing = pins.filter((pin) => !isHeld(pin) && digestsOffered(observed, pin)?.includes(pin.digest) === true);
  return missing.reduce((added, pin) => addOffered(added, observed, pin), lock);
}

type RefusedOne = { readonly ok: false } & Pick<Refused, 'why' | 'digests' | 'findings'>;

/** Approves one definition, unless it has moved on or the scan found what is not accepted. */
function approveOne(
  lock: Lock | undefined,
  pin: PinDigest,
  found: readonly DefinitionFinding[],
  pins: readonly PinDigest[],
  { observed, approval, accept: accepted, isNamed }: Given,
): Extract<PinChange, { ok: true }> | RefusedOne {
  if (lock === undefined) return { ok: false, why: 'not-in-lock', digests: [] };
  const recorded = withAccepted(approval, found, pin, accepted);
  const together = pins.filter((one) => isSamePin(one, pin)).map(({ digest }) => digest);
  const order = { lock, pin, digest: pin.digest, approval: recorded, observed, together };
  const change = approvePin(order);
  const findings = blockingFindings(found, pin, { accepted, isNamed });
  if (!change.ok || findings.length === 0) return change;
  return { ok: false, why: 'finding', digests: [], findings };
}

/** The approval with the findings that were accepted for this definition: who accepted them, and when. */
function withAccepted(
  approval: Approval,
  found: readonly DefinitionFinding[],
  pin: PinName,
  accept: readonly string[],
): Approval {
  const own = found.filter((finding) => accept.includes(finding.id) && isAbout(finding, pin));
  return own.length === 0 ? approval : { ...approval, accepted: own.map(({ id }) => id) };
}

/** Names that a summary lists; the rest is counted. */
const MAX_LISTED = 10;

function printApproved(
  { upstream, json, config }: PinApproveOptions,
  { notes }: Extract<Selection, { ok: true }>,
  outcome: Approved,
  { fetchLine, nameOf }: { readonly fetchLine: string; readonly nameOf: (pin: PinName) => string },
  io: CliIo,
): void {
  const { kept: _, ...shown } = outcome;
  const { approved, refused, pending } = shown;
  for (const note of notes) io.stderr(`note: ${note}\n`);
  const withheld = refused.flatMap(({ findings, ...pin }) => (findings === undefined ? [] : { pin, findings }));
  printWithheld(upstream, config, withheld, io);
  for (const one of refused) {
    if (one.findings === undefined) io.stderr(`error: ${upstream} ${pinLabel(one)} ${refusalText(one, fetchLine)}\n`);
  }
  if (json) {
    io.stdout(`${toVisibleJson({ upstream, ...shown }, 0)}\n`);
    return;
  }
  for (const one of approved) {
    io.stdout(`approved ${upstream} ${pinLabel(one)} ${digestText(one.digest)}\n`);
    io.stdout(shownAsText(one.name, nameOf(one)));
  }
  const listed = pending.slice(0, MAX_LISTED).map(pinLabel).join(', ');
  const more = pending.length > MAX_LISTED ? `, and ${pending.length - MAX_LISTED} more` : '';
  const left = pending.length === 0 ? 'none' : `${pending.length}`;
  io.stdout(`${upstream}: ${approved.length} approved, ${left} left pending${listed && `: ${listed}${more}`}\n`);
}

/** By which name clients know an item. */
function namesAt(upstream: string, outline: Outline | undefined): (pin: PinName) => string {
  const presentation = presentationOf(outline?.upstreams.find(({ name }) => name === upstream)?.tools ?? {});
  return ({ kind, name }) => (kind === 'tool' ? shownName(presentation, name) : name);
}

/** What is now approved and lacks something that a reader of it would want: by name where they are few. */
function printLacking({ json }: PinOptions, { approved }: Approved, lock: Lock | undefined, io: CliIo): void {
  if (json === true) return;
  const rows = approved.flatMap((pin) => {
    const version = versionsOf(pinOf(lock, pin)).find(({ sha256 }) => sha256 === pin.digest);
    const subject = { ...pin, isChanged: false, changes: [], findings: [] };
    return version === undefined ? [] : [reviewRow({ ...subject, definition: version.definition })];
  });
  const lacking = rows.filter(({ notes }) => notes.length > 0);
  if (lacking.length > MAX_LISTED) io.stderr(`${notesText(lacking).join('\n')}\n`);
  else for (const row of lacking) io.stderr(`note: ${pinLabel(row)}: ${row.notes.join('; ')}\n`);
}

/** Notes which of several earlier approvals end, and which stay because the upstream could not be asked. */
function printEarlier(
  upstream: string,
  { approved, replaced, kept }: Approved,
  observed: Given['observed'],
  io: CliIo,
): void {
  for (const one of replaced) {
    const isGone = digestsOffered(observed, one)?.includes(one.digest) === false;
    const forms = [...replaced, ...kept].filter((other) => isSamePin(one, other));
    if (isGone && forms.length === 1) continue;
    const why = isGone ? 'the upstream does not offer it' : 'the block was lifted for another definition of the name';
    const label = `${upstream} ${pinLabel(one)}`;
    io.stderr(`note: ${label}: ${digestText(one.digest)} is no longer approved, because ${why}\n`);
  }
  if (observed !== undefined) return;
  const isNew = ({ digest }: PinDigest): boolean => approved.some((one) => one.digest === digest);
  for (const one of kept) {
    if (isNew(one) || !approved.some((pin) => isSamePin(pin, one))) continue;
    const label = `${upstream} ${pinLabel(one)}`;
    io.stderr(
      `note: ${label}: ${digestText(one.digest)} remains approved too, because it is not known whether the upstream still offers it; the same command ends the approval once the upstream can be reached and does not offer it\n`,
    );
  }
}

function refusalText({ why, digests }: Refused, fetchLine: string): string {
  const listed = digests.length === 0 ? 'nothing' : digests.map(digestText).join(' and ');
  switch (why) {
    case 'not-in-lock':
      return `is no longer in the lock file; run: ${fetchLine}`;
    case 'not-fetched':
      return `is offered with this digest, but the lock file does not hold it yet; run: ${fetchLine}`;
    case 'not-offered':
      return `has changed since: the upstream now offers ${listed}; run: ${fetchLine}`;
    case 'unknown-digest':
      return `has no definition with this digest in the lock file, which holds ${listed}`;
    case 'finding':
      return 'is not approved because of what the scan found in it';
    case 'blocked-meanwhile':
      return 'was blocked since this command began; approve it again to lift the block';
  }
}
