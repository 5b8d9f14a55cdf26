// What one complete listing of an upstream returned, as plain values: the gateway's own walk over
// every page, as one face of a client. Types, and which listing stands for which client. upstream/ makes it,
// pins/ judges it; neither imports the other.

import type { Era, JsonObject } from './jsonrpc.js';

/** The eras in which a gateway lists for itself. */
export type ListedEra = '2025' | '2026';

/** The listing that stands for an era: a server of HTTP+SSE is listed in a session. */
export function listedEra(era: Era): ListedEra {
  return era === '2026' ? '2026' : '2025';
}

/**
 * As whom the gateway lists: what an upstream offers may depend on the era in which it is asked, and on
 * whether the Apps extension was declared.
 */
export type ClientProfile = { readonly era: ListedEra; readonly apps: boolean };

/** True for two of one face. */
export function isSameProfile(one: ClientProfile, other: ClientProfile): boolean {
  return one.era === other.era && one.apps === other.apps;
}

/** A client of sessions that shows no apps. */
export const PLAIN_SESSION: ClientProfile = Object.freeze({ era: '2025', apps: false });

/** One definition of a list, as it stood on its page. */
export type ListedItem = {
  readonly definition: JsonObject;
  /** False where a number of its text changes on the way through a double. */
  readonly isExact: boolean;
};

/** Every page of every kind that the upstream offers to this face. */
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
  /** Versions that the upstream speaks in this era and that are carried here. */
  readonly protocolVersions: readonly string[];
};
