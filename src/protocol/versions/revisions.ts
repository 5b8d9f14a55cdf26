// The protocol revisions that are carried, and the eras they belong to. A revision that is not named
// here is refused, never passed on.
// Source: MCP 2026-07-28, versioning.

/** Revisions of the session era, oldest first. */
export const SESSION_VERSIONS: readonly string[] = ['2025-03-26', '2025-06-18', '2025-11-25'];

/** The one revision of HTTP+SSE, where a session lives on one stream: its channel. */
export const LEGACY_SSE_VERSION = '2024-11-05';

/** The era of a session, by its revision. */
export function sessionEra(version: string): '2024' | '2025' {
  return version === LEGACY_SSE_VERSION ? '2024' : '2025';
}

/** Revisions of the stateless era. */
export const STATELESS_VERSIONS: readonly string[] = ['2026-07-28'];

/** What is offered to a client that asks for a session revision that is not carried. */
export const LATEST_SESSION_VERSION = '2025-11-25';

/** From this session revision on, MCP-Protocol-Version names the version of the session. */
export const FIRST_VERSION_WITH_HEADER = '2025-06-18';
