// Trust on first use: what an upstream offered when it was listed first is treated as approved, unless the lock file
// decides about its name. Only the first listing is trusted: what is added or changed later needs an approval.
// docs/contract.md §5 (`trust-on-first-use`).

import type { JsonObject } from '../protocol/jsonrpc.js';
import { mergeFetched, namedPins, type PinDigest, type PinName, pinOf } from './approval.js';
import type { Observed } from './last-seen.js';
import {
  approvedVersions,
  byKind,
  emptyLock,
  type Lock,
  PIN_KINDS,
  type Pin,
  type Pins,
  versionsOf,
} from './lock.js';

/** Stands in `approval.by` of what nobody approved. */
export const FIRST_USE = 'trust-on-first-use';

/** Ends the name of the file beside the lock files that records what was trusted. It is not a lock file, because nobody reviewed it. */
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
  const isEmpty = observed.listings.every(({ seen }) =>
    PIN_KINDS.every((kind) => seen[kind].size === 0),
  );
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

/** The lock file with what is trusted besides. About a name that was approved or blocked, the lock file alone decides. */
export function withTrusted(lock: Lock | undefined, trusted: Lock): Lock {
  const { upstream, server, instructions, pins } = lock ?? emptyLock(trusted.upstream);
  const merged = (of: Pins, known: Pins): Pins => {
    const all = new Map(of);
    for (const [name, pin] of known) all.set(name, combine(of.get(name), pin));
    return all;
  };
  return {
    upstream,
    server: server ?? trusted.server,
    instructions:
      trusted.instructions === undefined
        ? instructions
        : combine(instructions, trusted.instructions),
    pins: byKind((kind) => merged(pins[kind], trusted.pins[kind])),
  };
}

function combine<Definition>(
  written: Pin<Definition> | undefined,
  trusted: Pin<Definition>,
): Pin<Definition> {
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

function isReviewed(pin: Pin<unknown> | undefined): boolean {
  return versionsOf(pin).some(({ status }) => status !== 'pending');
}
