// Types of one complete listing of an upstream: all pages of what it offers, as the gateway itself listed
// them with one client profile. upstream/ makes listings and pins/ compares them; neither imports the other.

import type { JsonObject } from './jsonrpc.js';
import type { ListedEra, ProtocolVersion } from './versions/revisions.js';
import { SESSION } from './versions/session.js';

/**
 * The profile that the gateway lists with: what an upstream offers may depend on the era in which it is
 * asked, and on whether the Apps extension was declared.
 */
export type ClientProfile = { readonly era: ListedEra; readonly apps: boolean };

/** Equal for equal profiles. */
export function profileKey({ era, apps }: ClientProfile): string {
  return `${era} ${apps}`;
}

export function isSameProfile(one: ClientProfile, other: ClientProfile): boolean {
  return profileKey(one) === profileKey(other);
}

/** What of a client decides which definitions it is offered. */
export type ClientTraits = { readonly protocol: ProtocolVersion; readonly apps: boolean };

/** A client of the session era that shows no apps. */
export const PLAIN_SESSION: ClientTraits = Object.freeze({ protocol: SESSION, apps: false });

/** One definition of a list, as it appeared on its page. */
export type ListedItem = {
  readonly definition: JsonObject;
  /** False if a number in its text loses precision as a double. */
  readonly isExact: boolean;
};

/** One page of the resources that a backend of an aggregate listed. Without `nextCursor` it is the last page. */
export type ListedPage = {
  readonly upstream: string;
  readonly uris: readonly string[];
  /** The cursor that the page was requested with. */
  readonly cursor: string | undefined;
  readonly nextCursor: string | undefined;
};

/** Every page of every kind that the upstream offers to this profile. */
export type Listing = ClientProfile & {
  /** When the listing began, in milliseconds since the epoch: nothing in it was verified earlier. */
  readonly verifiedAtMs: number;
  readonly tools: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
  readonly templates: readonly ListedItem[];
  /** Content of the `ui://` resources that tools refer to, as `{uri, contents}`. */
  readonly resources: readonly ListedItem[];
  readonly instructions: string | undefined;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject | undefined;
  /** Versions of this era that both the upstream and the gateway support. */
  readonly protocolVersions: readonly string[];
};
