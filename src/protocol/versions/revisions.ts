// The protocol revisions that the gateway supports, and their eras. Any other revision is refused, never
// forwarded.
// Source: MCP 2026-07-28, versioning.

/** Revisions of the session era, oldest first. */
export const SESSION_VERSIONS: readonly string[] = ['2025-03-26', '2025-06-18', '2025-11-25'];

/** The only revision of legacy SSE, where a session lives on one stream. */
export const LEGACY_SSE_VERSION = '2024-11-05';

export function sessionEra(version: string): '2024' | '2025' {
  return version === LEGACY_SSE_VERSION ? '2024' : '2025';
}

/** Revisions of the stateless era. */
export const STATELESS_VERSIONS: readonly string[] = ['2026-07-28'];

/** Offered to a client that requests a session revision that is not supported. */
export const LATEST_SESSION_VERSION = '2025-11-25';

/** From this session revision on, MCP-Protocol-Version names the version of the session. */
export const FIRST_VERSION_WITH_HEADER = '2025-06-18';
