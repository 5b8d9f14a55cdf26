// One upstream, for clients of an era that it does not speak: all directions together, with what they keep.
// Takes only what was cleared, and gives answers in the client's own form, unjudged.
// Source: MCP 2026-07-28, versioning; mcp-spec.md §2.3 and §2.4.

import { type BridgedSessions, createBridgedSessions } from './bridged-sessions.js';
import { createSessionClients, type SessionClients } from './for-sessions.js';
import {
  createStatelessClients,
  type StatelessClients,
  type StatelessSettings,
} from './for-stateless.js';

export type Translation = {
  /** Clients of sessions before an upstream without. */
  readonly sessions: SessionClients;
  /** Stateless clients before an upstream of sessions. */
  readonly stateless: StatelessClients;
  /** Clients of HTTP+SSE before an upstream of sessions, or of none. */
  readonly bridged: BridgedSessions;
  close(): void;
};

/** Opens nothing before the first message. */
export function createTranslation(settings: StatelessSettings): Translation {
  const stateless = createStatelessClients(settings);
  return {
    sessions: createSessionClients(settings),
    stateless,
    bridged: createBridgedSessions(settings),
    close: () => stateless.close(),
  };
}
