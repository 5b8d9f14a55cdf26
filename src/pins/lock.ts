// A lock file as values: what was seen, what a human approved, what is blocked. Types only, with the
// few questions that everybody asks of a pin. Reading is lock-reader.ts, writing lock-writer.ts.
// Contract §5.

import type { JsonObject } from '../mcp/message.js';
import type { PinKind } from '../policy/definition.js';
import type { ServerIdentity } from './server.js';

export const LOCKFILE_VERSION = 1;
export const LOCK_SUFFIX = '.lock.yaml';
export const PIN_KINDS = [
  'tool',
  'prompt',
  'template',
  'resource',
] as const satisfies readonly PinKind[];

/** `pending`: seen, not yet judged. Nothing but `approved` grants anything. */
export type PinStatus = 'pending' | 'approved' | 'blocked';

/** Who approved this very digest, when (RFC 3339, UTC) and why. */
export type Approval = { readonly by: string; readonly at: string; readonly note?: string };

/** One definition with its judgement. */
export type PinVersion<Definition> = {
  readonly status: PinStatus;
  /** Lower-case hex, recomputed from the definition when the file is read. */
  readonly sha256: string;
  readonly approval: Approval | undefined;
  readonly definition: Definition;
};

/** All that the lock file says of one name. A block of the first version blocks the name. */
export type Pin<Definition = JsonObject> = PinVersion<Definition> & {
  readonly variants: readonly PinVersion<Definition>[];
};

export type Pins = ReadonlyMap<string, Pin>;

export type Lock = {
  readonly upstream: string;
  /** What the server calls itself; absent in files that were written without it. */
  readonly server: ServerIdentity | undefined;
  readonly instructions: Pin<string> | undefined;
  /** By name; templates by their `uriTemplate`, resources by their `uri`. */
  readonly pins: { readonly [kind in PinKind]: Pins };
};

/** A lock file with nothing in it, which is also what a missing file means. */
export function emptyLock(upstream: string): Lock {
  const pins = { tool: new Map(), prompt: new Map(), template: new Map(), resource: new Map() };
  return { upstream, server: undefined, instructions: undefined, pins };
}

/** The member of a definition that names it. */
export function nameMember(kind: PinKind): 'name' | 'uriTemplate' | 'uri' {
  switch (kind) {
    case 'tool':
    case 'prompt':
      return 'name';
    case 'template':
      return 'uriTemplate';
    case 'resource':
      return 'uri';
  }
}

/** The name of a definition, or `undefined` where it has none. */
export function nameOf(kind: PinKind, definition: JsonObject): string | undefined {
  const name = definition[nameMember(kind)];
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** The definitions of a pin in their order: the first, then the variants. */
export function versionsOf<Definition>(
  pin: Pin<Definition> | undefined,
): readonly PinVersion<Definition>[] {
  return pin === undefined ? [] : [pin, ...pin.variants];
}

/** The approved definitions of a pin; none where the name is blocked. */
export function approvedVersions<Definition>(
  pin: Pin<Definition> | undefined,
): readonly PinVersion<Definition>[] {
  if (pin === undefined || pin.status === 'blocked') return [];
  return versionsOf(pin).filter((version) => version.status === 'approved');
}
