// The protocol revisions that the gateway supports, and their eras. Any other revision is refused, never
// forwarded.
// Source: MCP 2026-07-28, versioning.

/**
 * How records, sealed values and tables name a family of revisions: `2024` is legacy SSE, `2025` the session
 * era (2025-03-26 to 2025-11-25), `2026` the stateless era. What differs between them is in protocol-version.ts.
 */
export type Era = '2024' | '2025' | '2026';

/** The eras in which the gateway lists an upstream for itself. */
export type ListedEra = Exclude<Era, '2024'>;

export const LISTED_ERAS = ['2025', '2026'] as const satisfies readonly ListedEra[];

/** A value for each of these eras. */
export function perListedEra<T>(make: (era: ListedEra) => T): { readonly [era in ListedEra]: T } {
  return { '2025': make('2025'), '2026': make('2026') };
}

/** Revisions of the session era, oldest first. */
export const SESSION_VERSIONS: readonly string[] = ['2025-03-26', '2025-06-18', '2025-11-25'];

/** The only revision of legacy SSE, where a session lives on one stream. */
export const LEGACY_SSE_VERSION = '2024-11-05';

/**
 * The revision under which a stdio server of this one is served over streamable HTTP, which came with the revision
 * after 2024-11-05: the messages of the two are the same.
 */
export function versionOverHttp(version: string): string {
  const [oldest = version] = SESSION_VERSIONS;
  return version === LEGACY_SSE_VERSION ? oldest : version;
}

/** Whether a session of this revision has arrays of messages; one revision does. */
export function hasArrays(version: string): boolean {
  return version === '2025-03-26';
}

/** The only revision with sessions that has tasks. */
export const TASK_SESSION_VERSION = '2025-11-25';

/** Revisions of the stateless era. */
export const STATELESS_VERSIONS: readonly string[] = ['2026-07-28'];

/** Offered to a client that requests a session revision that is not supported. */
export const LATEST_SESSION_VERSION = '2025-11-25';

/** From this session revision on, MCP-Protocol-Version names the version of the session. */
const FIRST_VERSION_WITH_HEADER = '2025-06-18';

/** Whether requests in a session of this revision name it in a header. Revisions are dates, so they compare as text. */
export function namesVersionInHeader(version: string): boolean {
  return version >= FIRST_VERSION_WITH_HEADER;
}
