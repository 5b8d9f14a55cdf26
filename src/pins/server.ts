// What a server calls itself, as the lock file remembers it. It hides nothing: a name proves nothing, and who
// the server is was settled by its certificate. A change of it is worth a look all the same.
// Contract §5; MCP 2025-11-25 lifecycle (`serverInfo`); MCP 2026-07-28 server/discover.

import type { JsonObject } from '../mcp/message.js';
import type { Change } from './compare.js';
import { sha256Hex } from './digest.js';
import type { Observed } from './observed.js';

/** The members that are remembered, in the order in which they are written. */
export const SERVER_MEMBERS = ['name', 'title', 'version', 'websiteUrl'] as const;

/** Texts of the server, cut at `MAX_MEMBER_LENGTH`. From the upstream: escape them. */
export type ServerIdentity = { readonly name: string } & {
  readonly [member in (typeof SERVER_MEMBERS)[number]]?: string | undefined;
};

export const MAX_MEMBER_LENGTH = 256;
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

/** Every identity that an upstream showed, each once: faces may differ. */
export function serversSeen(observed: Observed | undefined): readonly ServerIdentity[] {
  const seen = new Map<string, ServerIdentity>();
  for (const { serverInfo } of observed?.listings ?? []) {
    const server = readServer(serverInfo);
    if (server !== undefined) seen.set(digestServer(server), server);
  }
  return [...seen.values()];
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

/** What the lock file remembers after a listing: what is known stays until somebody approves, but its version. */
export function mergeServer(
  known: ServerIdentity | undefined,
  observed: Observed,
  isApproved: boolean,
): ServerIdentity | undefined {
  const [seen] = serversSeen(observed);
  if (known === undefined || seen === undefined) return known ?? seen;
  const [change] = compareServers(known, seen);
  return isApproved || change === 'server-version' ? seen : known;
}
