// A lock file as values: what was seen, what a human approved, what is blocked. Types only, with the
// few questions that everybody asks of a pin. Reading is lock-reader.ts, writing lock-writer.ts.
// docs/contract.md §5.

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

// What a server calls itself, as the lock file remembers it. It hides nothing: a name proves nothing, and who
// the server is was settled by its certificate. A change of it is worth a look all the same.
// docs/contract.md §5; MCP 2025-11-25 lifecycle (`serverInfo`); MCP 2026-07-28 server/discover.

/** The members that are remembered, in the order in which they are written. */
export const SERVER_MEMBERS = ['name', 'title', 'version', 'websiteUrl'] as const;

/** Texts of the server, cut at `MAX_MEMBER_LENGTH`. From the upstream: escape them. */
export type ServerIdentity = { readonly name: string } & {
  readonly [member in (typeof SERVER_MEMBERS)[number]]?: string | undefined;
};

const MAX_MEMBER_LENGTH = 256;
/** Half of a surrogate pair, which could not be written. */
const HALF_PAIR = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const DOMAIN = 'sallyport.server/1\n';

/** What `serverInfo` says; `undefined` where it names nobody. */
export function readServer(serverInfo: JsonObject | undefined): ServerIdentity | undefined {
  const name = memberOf(serverInfo, 'name');
  if (name === undefined) return undefined;
  const title = memberOf(serverInfo, 'title');
  const version = memberOf(serverInfo, 'version');
  const websiteUrl = memberOf(serverInfo, 'websiteUrl');
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(version === undefined ? {} : { version }),
    ...(websiteUrl === undefined ? {} : { websiteUrl }),
  };
}

function memberOf(info: JsonObject | undefined, member: string): string | undefined {
  const value = info?.[member];
  if (typeof value !== 'string' || value === '') return undefined;
  return value.slice(0, MAX_MEMBER_LENGTH).replace(HALF_PAIR, '\ufffd');
}

/** For telling identities apart in records. */
export function digestServer(server: ServerIdentity): string {
  return sha256Hex(DOMAIN + JSON.stringify(SERVER_MEMBERS.map((member) => server[member] ?? null)));
}

/** `server-version` where nothing but the version differs. */
export function compareServers(before: ServerIdentity, after: ServerIdentity): readonly Change[] {
  const differing = SERVER_MEMBERS.filter((member) => before[member] !== after[member]);
  if (differing.length === 0) return [];
  return differing.every((member) => member === 'version') ? ['server-version'] : ['server'];
}
