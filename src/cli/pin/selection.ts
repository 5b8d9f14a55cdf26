// Which definitions of a lock file a `pin approve` means: those that are pending under the given names, all of them,
// or the one with the given digest. Pure. docs/contract.md §5.

import {
  digestsOffered,
  isSamePin,
  type NamedPin,
  namedPins,
  type PinDigest,
  type PinName,
  pendingOf,
  pinOf,
} from '../../pins/approval.js';
import type { PinnedKind } from '../../pins/digest.js';
import type { Observed } from '../../pins/last-seen.js';
import { type Lock, PIN_KINDS, versionsOf } from '../../pins/lock.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { didYouMean, EXIT_FAILED, EXIT_UNCHECKED } from '../program.js';
import { digestText, pinLabel } from './lock-files.js';

/** Kinds by which a command may name an item. */
export const KINDS: readonly PinnedKind[] = [...PIN_KINDS, 'instructions'];

export type Selection =
  | { readonly ok: true; readonly pins: readonly PinDigest[]; readonly notes: readonly string[] }
  | { readonly ok: false; readonly error: string; readonly code: number };

type Wanted = {
  readonly names: readonly string[];
  readonly all?: boolean;
  readonly kind?: PinnedKind;
  readonly digest?: string;
};

/** Digits of a digest that name it where no other begins with them. */
const DIGEST = /^(?:sha256:)?([0-9a-f]{16,64})$/;

export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

const DIGEST_DIGITS = 64;

/** All digits of a digest; `undefined` if some are left out. */
export function completeDigest(text = ''): string | undefined {
  const [, digits = ''] = DIGEST.exec(text) ?? [];
  return digits.length === DIGEST_DIGITS ? digits : undefined;
}

/**
 * What the upstream offers under a name with exactly this digest, whether the lock file holds it or not: whoever gives
 * the whole digest has reviewed that definition.
 */
function selectOffered(
  name: string,
  { kind, digest }: Wanted,
  observed: Observed | undefined,
): PinDigest | undefined {
  const complete = completeDigest(digest);
  if (complete === undefined) return undefined;
  const offering = KINDS.filter((one) => one === (kind ?? one)).find((one) =>
    digestsOffered(observed, { kind: one, name })?.includes(complete),
  );
  return offering && { kind: offering, name, digest: complete };
}

export function isBlocked(lock: Lock | undefined, pin: PinName): boolean {
  return pinOf(lock, pin)?.status === 'blocked';
}

/** Finds what is meant, or says why nothing is. `fetchLine` is the command that reads the upstream again. */
export function selectPins(
  wanted: Wanted,
  lock: Lock,
  observed: Observed | undefined,
  fetchLine: string,
): Selection {
  const isKind = ({ kind }: PinName): boolean => (wanted.kind ?? kind) === kind;
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
    if (items.length === 0) return failed(unknownName(name, wanted.kind, lock), EXIT_FAILED);
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
    return failed(`${pinLabel(blocked)} ${why}`, EXIT_FAILED);
  }
  const isOne = (pending: PinDigest): boolean => items.some((item) => isSamePin(item, pending));
  const pins = pendingOf(lock).filter(isOne);
  const kinds = [...new Set(pins.map(({ kind }) => kind))];
  const [item] = items;
  if (kinds.length > 1) {
    const message = `${escapeForTerminal(item?.name ?? '')} is pending as ${kinds.join(' and ')}`;
    return failed(`${message}; say which is meant with --kind`, EXIT_UNCHECKED);
  }
  const isNone = item !== undefined && pins.length === 0;
  return { ok: true, pins, notes: isNone ? [`${pinLabel(item)} is not pending`] : [] };
}

function failed(error: string, code: number): Selection {
  return { ok: false, error, code };
}

function unknownName(name: string, kind: PinnedKind | undefined, lock: Lock): string {
  const known = namedPins(lock);
  const ofKind = known.filter((item) => (kind ?? item.kind) === item.kind);
  const other = known.find((item) => item.name === name);
  const message = `the lock file has no ${kind ?? 'item'} named "${escapeForTerminal(name)}"`;
  if (other !== undefined)
    return `${message}, but a ${other.kind}; did you mean --kind ${other.kind}?`;
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
    return failed(`${label}: these digits begin ${digests}; give more of them`, EXIT_UNCHECKED);
  }
  const isOffered = items.some((one) =>
    digestsOffered(observed, one)?.some((offered) => offered.startsWith(prefix)),
  );
  if (isOffered) {
    const why = 'is offered with this digest, but the lock file does not hold it yet';
    return failed(`${label} ${why}; run: ${fetchLine}`, EXIT_FAILED);
  }
  const digests = held.map((one) => digestText(one.digest)).join(' and ');
  const why = 'has no definition with this digest in the lock file, which holds';
  return failed(`${label} ${why} ${digests}`, EXIT_FAILED);
}
