// The open channels of one upstream of HTTP+SSE, by the id under which a session of the gateway's own names them.
// Bounded, together and by caller; what nobody uses is ended, and nothing of it stays.
// Source: MCP 2025-11-25, session management; contract §10 (never shared between principals).

import type { LegacySseSession } from './channel-session.js';

export type LegacySseSessionTable = {
  /**
   * Takes the room of one that is being opened; the returned function gives it back, whether or not one was
   * entered. `undefined` where everyone together, or this caller, may have no other. Without an owner it is
   * one of the gateway's own, each of another principal, which whoever opens it bounds.
   */
  acquire(owner: string | undefined): (() => void) | undefined;
  enter(id: string, session: LegacySseSession): void;
  /** Any other channel of this caller. */
  findOwned(owner: string | undefined): LegacySseSession | undefined;
  find(id: string | undefined): LegacySseSession | undefined;
  leave(id: string): void;
  close(): void;
  readonly size: number;
};

/** Channels of one upstream, and of one caller there. */
export const MAX_LEGACY_SSE_SESSIONS = 1_000;
export const MAX_LEGACY_SSE_SESSIONS_PER_CALLER = 64;
const SWEEPS_A_REST = 2;

/** None open. `restMs`: how long one may rest. */
export function createLegacySseSessionTable(restMs: number): LegacySseSessionTable {
  const open = new Map<string, LegacySseSession>();
  /** Whose are being opened. */
  const opening: (string | undefined)[] = [];
  const sweeping = setInterval(sweep, Math.max(restMs / SWEEPS_A_REST, 1));
  sweeping.unref();

  function sweep(): void {
    for (const [id, session] of open) if (!session.isUsed(restMs)) end(id, session);
  }

  function end(id: string, session: LegacySseSession): void {
    open.delete(id);
    session.close();
  }

  /** Of a caller with many the one that rests goes, before a new one is refused. */
  function makeCapacity(owner: string): boolean {
    const own = [...open].filter(([, session]) => session.owner === owner);
    const coming = opening.filter((one) => one === owner).length;
    if (own.length + coming < MAX_LEGACY_SSE_SESSIONS_PER_CALLER) return true;
    const resting = own.find(([, session]) => session.isResting);
    if (resting !== undefined) end(...resting);
    return resting !== undefined;
  }

  return {
    acquire(owner) {
      if (owner !== undefined && !makeCapacity(owner)) return undefined;
      if (open.size + opening.length >= MAX_LEGACY_SSE_SESSIONS) return undefined;
      opening.push(owner);
      return () => void opening.splice(opening.indexOf(owner), 1);
    },
    enter: (id, session) => void open.set(id, session),
    findOwned: (owner) =>
      owner === undefined
        ? undefined
        : [...open.values()].find((session) => session.owner === owner),
    find: (id) => (id === undefined ? undefined : open.get(id)),
    leave(id) {
      const session = open.get(id);
      if (session !== undefined) end(id, session);
    },
    close() {
      clearInterval(sweeping);
      for (const [id, session] of open) end(id, session);
    },
    get size() {
      return open.size;
    },
  };
}
