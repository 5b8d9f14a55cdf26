// Computes the new content of a lock file after a listing, an approval or a block, and what trust on first use adds
// to it. A listing by itself never approves or unblocks anything, and an approval names the digest that it applies
// to. Trust on first use treats as approved what an upstream offered when it was listed first, unless the lock file
// decides about its name; what is added or changed later needs an approval. docs/reference/lock-files.md#approvals.

import type { PinKind } from '../policy/definitions.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { NO_DIGEST, type PinnedKind } from './digest.js';
import { isKindRead, mergeServer, type Observed, observedNames } from './last-seen.js';
import {
  type Approval,
  approvedVersions,
  byKind,
  emptyLock,
  type Lock,
  PIN_KINDS,
  type Pin,
  type Pins,
  type PinVersion,
  versionsOf,
} from './lock.js';

type Content = JsonObject | string;
type OfferedItems<Definition> = { readonly digest: string; readonly definition: Definition };

const INSTRUCTIONS: PinName = { kind: 'instructions', name: 'instructions' };

type FetchedLock = {
  readonly lock: Lock;
  /** Definitions that cannot be pinned: repeated names, or definitions without a canonical form. */
  readonly unusable: readonly { readonly kind: PinnedKind; readonly name: string }[];
};

/**
 * The lock file after a listing. New definitions are added as pending, and a changed one as a pending
 * variant of the approved one. Pending definitions that are no longer offered are removed; approved and
 * blocked ones stay. With an approval, exactly what is offered is approved, except blocked names. Of a kind whose list
 * could not be read, everything stays.
 */
export function mergeFetched(input: {
  readonly upstream: string;
  readonly lock: Lock | undefined;
  readonly observed: Observed;
  readonly approval: Approval | undefined;
  /** What the approval leaves out, so that it stays pending. */
  readonly isLeftOut?: (pin: PinName) => boolean;
}): FetchedLock {
  const { observed, approval, isLeftOut } = input;
  const approvalFor = (pin: PinName): Approval | undefined => (isLeftOut?.(pin) === true ? undefined : approval);
  const before = input.lock ?? emptyLock(input.upstream);
  const unusable: { kind: PinnedKind; name: string }[] = [];
  const merged = (kind: PinKind): ReadonlyMap<string, Pin> => {
    const pins = new Map<string, Pin>();
    const isRead = isKindRead(observed, kind);
    const names = new Set([...before.pins[kind].keys(), ...observedNames(observed, kind)]);
    for (const name of names) {
      const offered = observedItemsIn(observed, kind, name);
      const known = before.pins[kind].get(name);
      if (offered === undefined) unusable.push({ kind, name });
      const pin = offered === undefined ? known : mergePin(known, offered, approvalFor({ kind, name }), isRead);
      if (pin !== undefined) pins.set(name, pin);
    }
    return pins;
  };
  const pins = byKind(merged);
  const texts = observed.listings.flatMap(({ instructions }) => instructions ?? []);
  const offered = texts.map(({ digest, text }) => ({ digest, definition: text }));
  const isUnusable = texts.some(({ digest }) => digest === NO_DIGEST);
  if (isUnusable) unusable.push({ kind: 'instructions', name: 'instructions' });
  const instructions = isUnusable
    ? before.instructions
    : mergePin(before.instructions, offered, approvalFor(INSTRUCTIONS));
  const server = mergeServer(before.server, observed, approval !== undefined);
  return { lock: { upstream: input.upstream, server, instructions, pins }, unusable };
}

/** The lock file with what is offered under one name, as pending, and nothing else of the listing. */
export function addOffered(lock: Lock, observed: Observed, { kind, name }: PinName): Lock {
  const { upstream } = lock;
  const { lock: merged } = mergeFetched({ upstream, lock, observed, approval: undefined });
  if (kind === 'instructions') return { ...lock, instructions: merged.instructions };
  const pin = merged.pins[kind].get(name);
  return pin === undefined ? lock : withPin(lock, kind, name, pin);
}

/** What is offered under a name to any client profile; `undefined` if one definition cannot be pinned. */
function observedItemsIn(
  observed: Observed,
  kind: PinKind,
  name: string,
): readonly OfferedItems<JsonObject>[] | undefined {
  const observedItems = observed.listings.flatMap((listing) => listing.seen[kind].get(name) ?? []);
  const isUnusable = observedItems.some((seen) => seen.isRepeated || seen.digest === NO_DIGEST);
  return isUnusable ? undefined : observedItems;
}

function mergePin<Definition extends Content>(
  pin: Pin<Definition> | undefined,
  offered: readonly OfferedItems<Definition>[],
  approval: Approval | undefined,
  isRead = true,
): Pin<Definition> | undefined {
  if (pin?.status === 'blocked') return pin;
  const isOffered = (version: PinVersion<Definition>): boolean =>
    offered.some(({ digest }) => digest === version.sha256);
  const kept = versionsOf(pin).filter((version) => !isRead || keepsVersion(version, isOffered, approval));
  const versions = kept.map((version) =>
    approval !== undefined && version.status === 'pending' && isOffered(version)
      ? { ...version, status: 'approved' as const, approval }
      : version,
  );
  for (const { digest, definition } of offered) {
    if (versions.some((version) => version.sha256 === digest)) continue;
    const status = approval === undefined ? 'pending' : 'approved';
    versions.push({ status, sha256: digest, approval, definition });
  }
  return toPin(versions);
}

function keepsVersion<Definition>(
  version: PinVersion<Definition>,
  isOffered: (version: PinVersion<Definition>) => boolean,
  approval: Approval | undefined,
): boolean {
  if (version.status === 'blocked' || isOffered(version)) return true;
  return version.status === 'approved' && approval === undefined;
}

const STATUS_ORDER = { blocked: 0, approved: 1, pending: 2 } as const;

/** Puts approved versions first, so that the definition in use leads even if a variant is blocked. */
function toPin<Definition extends Content>(versions: readonly PinVersion<Definition>[]): Pin<Definition> | undefined {
  const isApproved = versions.some((version) => version.status === 'approved');
  const ordered = isApproved
    ? [...versions].sort((a, b) => rank(a) - rank(b))
    : [...versions].sort((a, b) => STATUS_ORDER[b.status] - STATUS_ORDER[a.status]);
  const [first, ...variants] = ordered.map(withoutVariants);
  return first === undefined ? undefined : { ...first, variants };
}

function rank(version: PinVersion<unknown>): number {
  return version.status === 'approved' ? 0 : 1;
}

function withoutVariants<Definition>(version: PinVersion<Definition>): PinVersion<Definition> {
  const { status, sha256, approval, block, definition } = version;
  const blocked = status === 'blocked' && block !== undefined ? { block } : {};
  return { status, sha256, approval, ...blocked, definition };
}

/** The pin that a command refers to. */
export type PinName = { readonly kind: PinnedKind; readonly name: string };

export function isSamePin(one: PinName, other: PinName): boolean {
  return one.kind === other.kind && one.name === other.name;
}

/**
 * Why nothing was changed: the lock file does not have the name; it does not hold the digest, which the upstream
 * offers (`not-fetched`) or which is unknown; or it holds the digest, but the upstream offers another one now.
 * `digests` are those offered now, or those in the lock file if the digest is unknown.
 */
type PinRefusal = {
  readonly ok: false;
  readonly why: 'not-in-lock' | 'not-fetched' | 'not-offered' | 'unknown-digest';
  readonly digests: readonly string[];
};

export type PinChange = { readonly ok: true; readonly lock: Lock } | PinRefusal;

/**
 * Approves the definition with this digest. Refused if the lock file does not hold it, or if the upstream was queried
 * and does not offer it. An earlier approval of the name ends if the upstream was queried and no longer offers its
 * definition, because any approved form may be shown to a caller. It also ends where a block is lifted.
 */
export function approvePin(input: {
  readonly lock: Lock;
  readonly pin: PinName;
  readonly digest: string;
  readonly approval: Approval;
  /** What the upstream offers now; `undefined` if it could not be queried. */
  readonly observed: Observed | undefined;
  /** The digests of the name that are approved together; only this one if absent. */
  readonly together?: readonly string[];
}): PinChange {
  return changePin(input.lock, input.pin, (pin) => {
    const offered = digestsOffered(input.observed, input.pin);
    const versions = versionsOf(pin);
    const held = versions.map((version) => version.sha256);
    const isHeld = held.includes(input.digest);
    const isOffered = offered?.includes(input.digest);
    if (!isHeld && isOffered) return { ok: false, why: 'not-fetched', digests: offered ?? [] };
    if (!isHeld) return { ok: false, why: 'unknown-digest', digests: held };
    if (isOffered === false) return { ok: false, why: 'not-offered', digests: offered ?? [] };
    const { together = [input.digest] } = input;
    // A block covers all versions, and lifting it for one version does not lift it for the others.
    const staying = pin.status === 'blocked' ? together : offered;
    const kept = versions.filter(({ sha256, status }) => status !== 'approved' || staying?.includes(sha256) !== false);
    const approved = kept.map((version) =>
      version.sha256 === input.digest ? { ...version, status: 'approved' as const, approval: input.approval } : version,
    );
    return { ok: true, versions: approved };
  });
}

/** Blocks a name with all its versions. Approving a digest lifts the block. */
export function blockPin(lock: Lock, pin: PinName, block: Approval | undefined): PinChange {
  return changePin(lock, pin, (current) => {
    const [first, ...variants] = versionsOf(current);
    if (first === undefined) return { ok: false, why: 'not-in-lock', digests: [] };
    const blocked = { ...first, status: 'blocked' as const, block };
    return { ok: true, versions: [blocked, ...variants], isBlock: true };
  });
}

/** The digests that are offered under a name to any client profile, each once; `undefined` if that is not known. */
export function digestsOffered(observed: Observed | undefined, { kind, name }: PinName): readonly string[] | undefined {
  if (observed === undefined) return undefined;
  if (kind !== 'instructions' && !isKindRead(observed, kind)) return undefined;
  const digests = observed.listings.flatMap((listing) =>
    kind === 'instructions' ? (listing.instructions?.digest ?? []) : (listing.seen[kind].get(name)?.digest ?? []),
  );
  return [...new Set(digests)];
}

type EditedPin<Definition> = { ok: true; versions: readonly PinVersion<Definition>[]; isBlock?: true } | PinRefusal;

function changePin(
  lock: Lock,
  { kind, name }: PinName,
  edit: <Definition extends Content>(pin: Pin<Definition>) => EditedPin<Definition>,
): PinChange {
  if (kind === 'instructions') {
    const edited = editPin(lock.instructions, edit);
    return edited.ok ? { ok: true, lock: { ...lock, instructions: edited.pin } } : edited;
  }
  const edited = editPin(lock.pins[kind].get(name), edit);
  return edited.ok ? { ok: true, lock: withPin(lock, kind, name, edited.pin) } : edited;
}

function editPin<Definition extends Content>(
  pin: Pin<Definition> | undefined,
  edit: (pin: Pin<Definition>) => EditedPin<Definition>,
): { readonly ok: true; readonly pin: Pin<Definition> } | PinRefusal {
  if (pin === undefined) return { ok: false, why: 'not-in-lock', digests: [] };
  const edited = edit(pin);
  if (!edited.ok) return edited;
  const [first, ...variants] = edited.versions.map(withoutVariants);
  const changed = edited.isBlock && first !== undefined ? { ...first, variants } : undefined;
  const ordered = changed ?? toPin(edited.versions);
  if (ordered === undefined) return { ok: false, why: 'not-in-lock', digests: [] };
  return { ok: true, pin: ordered };
}

/** One definition of a lock file by its digest. */
export type PinDigest = PinName & { readonly digest: string };

export type NamedPin = PinName & { readonly pin: Pin<Content> };

/** The pin of a name. */
export function pinOf(lock: Lock | undefined, { kind, name }: PinName): Pin<Content> | undefined {
  return kind === 'instructions' ? lock?.instructions : lock?.pins[kind].get(name);
}

/** The lock file with this pin under a name. */
export function withPin(lock: Lock, kind: PinKind, name: string, pin: Pin): Lock {
  return { ...lock, pins: { ...lock.pins, [kind]: new Map([...lock.pins[kind], [name, pin]]) } };
}

/** Every pin of a lock file, in the order of the file; none without one. */
export function namedPins(lock: Lock | undefined): readonly NamedPin[] {
  if (lock === undefined) return [];
  const named = PIN_KINDS.flatMap((kind) => [...lock.pins[kind]].map(([name, pin]): NamedPin => ({ kind, name, pin })));
  if (lock.instructions === undefined) return named;
  return [...named, { kind: 'instructions', name: 'instructions', pin: lock.instructions }];
}

/** Every definition of a lock file that is approved or pending. */
export function definitionsOf(lock: Lock) {
  return namedPins(lock).flatMap(({ kind, name, pin }) =>
    pin.status === 'blocked'
      ? []
      : versionsOf<JsonObject | string>(pin).map(({ sha256: digest, definition }) => {
          return { kind, name, definition, digest };
        }),
  );
}

/** What a scan reads together: the given definitions of a lock file, and of every other name the first one. */
export function definitionsToScan(lock: Lock, pins: readonly PinDigest[]) {
  const digests = new Set(pins.map(({ digest }) => digest));
  return namedPins(lock).flatMap(({ kind, name, pin }) => {
    const versions = versionsOf(pin);
    const chosen = versions.filter(({ sha256 }) => digests.has(sha256));
    return (chosen.length > 0 ? chosen : versions.slice(0, 1)).map(({ definition }) => {
      return { kind, name, definition };
    });
  });
}

/** The digests that are pending approval. A blocked name has none: it is blocked whatever it offers. */
export function pendingOf(lock: Lock | undefined): readonly PinDigest[] {
  return namedPins(lock).flatMap(({ kind, name, pin }) =>
    pin.status === 'blocked'
      ? []
      : versionsOf(pin).flatMap((version) =>
          version.status === 'pending' ? [{ kind, name, digest: version.sha256 }] : [],
        ),
  );
}

/** How many definitions are approved, and how many names are blocked; what is pending comes on top. */
export function countReviewed(lock: Lock): { readonly approved: number; readonly blocked: number } {
  const pins = namedPins(lock).map(({ pin }) => pin);
  return {
    approved: pins.reduce((sum, pin) => sum + approvedVersions(pin).length, 0),
    blocked: pins.filter((pin) => pin.status === 'blocked').length,
  };
}

/** A definition whose review status differs between two versions of a lock file. */
export type PinDecision = PinDigest & {
  readonly decision: 'approved' | 'blocked';
  /** Who decided and why, as the lock file says it. */
  readonly record: Approval | undefined;
};

/** The definitions that are approved or blocked in `after` and were not in `before`. */
export function findDecisions(before: Lock | undefined, after: Lock): readonly PinDecision[] {
  return namedPins(after).flatMap(({ kind, name, pin }) => {
    const earlier = pinOf(before, { kind, name });
    const isNew = (of: typeof approvedVersions, { sha256 }: PinVersion<Content>): boolean =>
      !of(earlier).some((version) => version.sha256 === sha256);
    const approved = approvedVersions(pin).filter((version) => isNew(approvedVersions, version));
    const blocked = blockedVersions(pin).filter((version) => isNew(blockedVersions, version));
    return [
      ...approved.map((version): PinDecision => {
        const { sha256: digest, approval: record } = version;
        return { kind, name, digest, decision: 'approved', record };
      }),
      ...blocked.map((version): PinDecision => {
        const { sha256: digest, block: record } = version;
        return { kind, name, digest, decision: 'blocked', record };
      }),
    ];
  });
}

function blockedVersions<Definition>(pin: Pin<Definition> | undefined): readonly PinVersion<Definition>[] {
  return versionsOf(pin).filter(({ status }) => status === 'blocked');
}

/** Stands in `approval.by` of what nobody approved. */
export const FIRST_USE = 'trust-on-first-use';

/**
 * Ends the name of the file beside the lock files that records what was trusted. It is not a lock file, because
 * nobody reviewed it.
 */
export const FIRST_USE_SUFFIX = '.first-use.yaml';

/**
 * What is trusted of a first listing, with its time (RFC 3339). A name that is left out, or offered in a form that
 * cannot be pinned, is not trusted in any form. `undefined` if nothing but instructions is offered: such a listing is
 * not the first use of anything.
 */
export function trustObserved(
  upstream: string,
  observed: Observed,
  at: string,
  isLeftOut: (pin: PinName) => boolean,
): Lock | undefined {
  const isEmpty = observed.listings.every(({ seen }) => PIN_KINDS.every((kind) => seen[kind].size === 0));
  if (isEmpty) return undefined;
  const approval = { by: FIRST_USE, at };
  const { lock } = mergeFetched({ upstream, lock: undefined, observed, approval, isLeftOut });
  const isTrusted = (pin: Pin<unknown>): boolean => approvedVersions(pin).length > 0;
  const { instructions } = lock;
  return {
    ...lock,
    instructions: instructions !== undefined && isTrusted(instructions) ? instructions : undefined,
    pins: byKind((kind) => new Map([...lock.pins[kind]].filter(([, pin]) => isTrusted(pin)))),
  };
}

/** The lock file merged with what is trusted. About a name that was approved or blocked, the lock file alone decides. */
export function withTrusted(lock: Lock | undefined, trusted: Lock): Lock {
  const { upstream, server, instructions, pins } = lock ?? emptyLock(trusted.upstream);
  const merged = (of: Pins, known: Pins): Pins => {
    const all = new Map(of);
    for (const [name, pin] of known) all.set(name, withTrustedForms(of.get(name), pin));
    return all;
  };
  return {
    upstream,
    server: server ?? trusted.server,
    instructions:
      trusted.instructions === undefined ? instructions : withTrustedForms(instructions, trusted.instructions),
    pins: byKind((kind) => merged(pins[kind], trusted.pins[kind])),
  };
}

function withTrustedForms<Definition>(written: Pin<Definition> | undefined, trusted: Pin<Definition>): Pin<Definition> {
  if (written === undefined) return trusted;
  if (isReviewed(written)) return written;
  const known = new Set(versionsOf(trusted).map(({ sha256 }) => sha256));
  const pending = versionsOf(written).filter(({ sha256 }) => !known.has(sha256));
  return { ...trusted, variants: [...trusted.variants, ...pending] };
}

/** A definition that is treated as approved because it was offered first. */
export type TrustedPin = PinDigest & {
  readonly definition: JsonObject | string;
  /** When it was trusted, RFC 3339. */
  readonly at: string | undefined;
};

/** What is trusted of names about which the lock file does not decide. */
export function trustedPins(lock: Lock | undefined, trusted: Lock): readonly TrustedPin[] {
  return namedPins(trusted).flatMap(({ kind, name, pin }) => {
    if (isReviewed(pinOf(lock, { kind, name }))) return [];
    return approvedVersions(pin).map(({ sha256: digest, definition, approval }) => {
      return { kind, name, digest, definition, at: approval?.at };
    });
  });
}

/** When the oldest form that may be used was approved, in milliseconds since the epoch; `undefined` if none has a time. */
export function oldestApprovalMs(lock: Lock): number | undefined {
  const times = namedPins(lock).flatMap(({ pin }) =>
    approvedVersions(pin).flatMap(({ approval }) => (approval === undefined ? [] : Date.parse(approval.at))),
  );
  const oldest = times.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
  return Number.isFinite(oldest) ? oldest : undefined;
}

function isReviewed(pin: Pin<unknown> | undefined): boolean {
  return versionsOf(pin).some(({ status }) => status !== 'pending');
}
