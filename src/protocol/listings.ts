// Types of one complete listing of an upstream: all pages of what it offers, as the gateway itself listed
// them with one client profile. upstream/ makes listings and pins/ compares them; neither imports the other.

import type { Era, JsonObject } from './jsonrpc.js';

/** The eras in which the gateway lists an upstream for itself. */
export type ListedEra = '2025' | '2026';

/** The era whose listing applies to a client: a legacy SSE server is listed in a session. */
export function listedEra(era: Era): ListedEra {
  return era === '2026' ? '2026' : '2025';
}

/**
 * The profile that the gateway lists with: what an upstream offers may depend on the era in which it is
 * asked, and on whether the Apps extension was declared.
 */
export type ClientProfile = { readonly era: ListedEra; readonly apps: boolean };

export function isSameProfile(one: ClientProfile, other: ClientProfile): boolean {
  return one.era === other.era && one.apps === other.apps;
}

/** A client of the session era that shows no apps. */
export const PLAIN_SESSION: ClientProfile = Object.freeze({ era: '2025', apps: false });

/** One definition of a list, as it appeared on its page. */
export type ListedItem = {
  readonly definition: JsonObject;
  /** False if a number in its text loses precision as a double. */
  readonly isExact: boolean;
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
