// The types of a lock file (definitions that were seen, approved and blocked) with the common accessors of
// pins, and the server identity that it records. lock-reader.ts reads lock files, lock-yaml.ts writes them.
// docs/contract.md §5; MCP 2025-11-25 lifecycle (`serverInfo`); MCP 2026-07-28 server/discover.

import type { PinKind } from '../policy/definitions.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import type { Change } from './compare.js';
import { sha256Hex } from './digest.js';

export const LOCKFILE_VERSION = 1;
export const LOCK_SUFFIX = '.lock.yaml';
export const PIN_KINDS = [
  'tool',
  'prompt',
  'template',
  'resource',
] as const satisfies readonly PinKind[];

/** `pending`: seen and not yet reviewed. Only `approved` grants anything. */
export type PinStatus = 'pending' | 'approved' | 'blocked';

/** Who approved or blocked this digest, when (RFC 3339, UTC) and why. */
export type Approval = {
  readonly by: string;
  readonly at: string;
  readonly note?: string;
  /** The findings of the scan that were accepted with an approval. */
  readonly accepted?: readonly string[];
};

/** One definition with its review status. */
export type PinVersion<Definition> = {
  readonly status: PinStatus;
  /** Lower-case hex, recomputed from the definition when the file is read. */
  readonly sha256: string;
  readonly approval: Approval | undefined;
  /** Who blocked it; absent if it is not blocked, or if that was not recorded. */
  readonly block?: Approval | undefined;
  readonly definition: Definition;
};

/** The entry of one name in the lock file. If the first version is blocked, the name is blocked. */
export type Pin<Definition = JsonObject> = PinVersion<Definition> & {
  readonly variants: readonly PinVersion<Definition>[];
};

export type Pins = ReadonlyMap<string, Pin>;

export type Lock = {
  readonly upstream: string;
  /** The identity that the server states; absent in files written without it. */
  readonly server: ServerIdentity | undefined;
  readonly instructions: Pin<string> | undefined;
  /** By name; templates by their `uriTemplate`, resources by their `uri`. */
  readonly pins: { readonly [kind in PinKind]: Pins };
};

/** A value for each kind. */
export function byKind<Value>(of: (kind: PinKind) => Value): { readonly [kind in PinKind]: Value } {
  return {
    tool: of('tool'),
    prompt: of('prompt'),
    template: of('template'),
    resource: of('resource'),
  };
}

/** The sections of a lock file. */
export const SECTIONS = {
  tool: 'tools',
  prompt: 'prompts',
  template: 'resourceTemplates',
  resource: 'resources',
} as const satisfies { readonly [kind in PinKind]: string };

/** An empty lock file, which is equivalent to a missing one. */
export function emptyLock(upstream: string): Lock {
  const pins = byKind(() => new Map());
  return { upstream, server: undefined, instructions: undefined, pins };
}

/** The member of a definition that holds its name. */
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

/** The name of a definition, or `undefined` if it has none. */
export function nameOf(kind: PinKind, definition: JsonObject): string | undefined {
  const name = definition[nameMember(kind)];
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** The versions of a pin in order: the first, then the variants. */
export function versionsOf<Definition>(
  pin: Pin<Definition> | undefined,
): readonly PinVersion<Definition>[] {
  return pin === undefined ? [] : [pin, ...pin.variants];
}

/** The approved definitions of a pin; none if the name is blocked. */
export function approvedVersions<Definition>(
  pin: Pin<Definition> | undefined,
): readonly PinVersion<Definition>[] {
  if (pin === undefined || pin.status === 'blocked') return [];
  return versionsOf(pin).filter((version) => version.status === 'approved');
}

/** The recorded members of `serverInfo`, in the order in which they are written. */
export const SERVER_MEMBERS = ['name', 'title', 'version', 'websiteUrl'] as const;

/**
 * The identity that a server states, truncated at `MAX_MEMBER_LENGTH`. Upstream text: escape it. It hides
 * nothing: a stated name proves nothing, and the server is authenticated by its certificate. A change is
 * nevertheless worth a review.
 */
export type ServerIdentity = { readonly name: string } & {
  readonly [member in (typeof SERVER_MEMBERS)[number]]?: string | undefined;
};

const MAX_MEMBER_LENGTH = 256;
/** An unpaired surrogate, which cannot be written as UTF-8. */
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const DOMAIN = 'sallyport.server/1\n';

/** Reads `serverInfo`; `undefined` if it has no name. */
export function readServer(serverInfo: JsonObject | undefined): ServerIdentity | undefined {
  const name = memberOf(serverInfo, 'name');
  if (name === undefined) return undefined;
  const stated = SERVER_MEMBERS.flatMap((member) => {
    const text = memberOf(serverInfo, member);
    return text === undefined ? [] : [[member, text] as const];
  });
  return { name, ...Object.fromEntries(stated) };
}

function memberOf(info: JsonObject | undefined, member: string): string | undefined {
  const value = info?.[member];
  if (typeof value !== 'string' || value === '') return undefined;
  return value.slice(0, MAX_MEMBER_LENGTH).replace(LONE_SURROGATE, '\ufffd');
}

/** Distinguishes identities in records. */
export function digestServer(server: ServerIdentity): string {
  return sha256Hex(DOMAIN + JSON.stringify(SERVER_MEMBERS.map((member) => server[member] ?? null)));
}

/** The change between two identities: `server-version` if only the version differs. */
export function compareServers(before: ServerIdentity, after: ServerIdentity): readonly Change[] {
  const differing = SERVER_MEMBERS.filter((member) => before[member] !== after[member]);
  if (differing.length === 0) return [];
  return differing.every((member) => member === 'version') ? ['server-version'] : ['server'];
}
