// Calls that wait in mid-call for an answer of their client, each under a handle that is hard to guess and
// that leaves the gateway only sealed to its caller and request. It names this replica, which alone holds
// the connection of the call. Bounded in number and in time.
// Source: MCP 2026-07-28, multi-round-trip requests (requestState).

import type { RequestId } from '../../mcp/message.js';
import type { Principal } from '../../policy/principal.js';
import type { InboundItem } from './messages.js';
import type { SessionCall } from './session-call.js';
import { nameHere, type SessionBus } from './session-words.js';

/** A call whose server has asked something: the rest of its answer, and the id of the question. */
export type SuspendedCall = {
  readonly call: SessionCall;
  readonly rest: AsyncIterator<InboundItem, unknown>;
  readonly requestId: RequestId;
  /** Under this key the client's answer comes. */
  readonly key: string;
};

export type SuspendedCalls = {
  /** The handle of the call; `undefined` where no more may wait, of this caller or of all. */
  enter(suspended: SuspendedCall, caller: Caller): string | undefined;
  /** The call of this handle, which waits on. */
  find(handle: string): SuspendedCall | undefined;
  /** Takes the call of this handle, once. */
  leave(handle: string): SuspendedCall | undefined;
  close(): void;
};

type Caller = Pick<Principal, 'issuerUrl' | 'subject' | 'client'>;

export const MAX_SUSPENDED_CALLS = 256;
/** So that no caller keeps all others from being asked. */
export const MAX_SUSPENDED_CALLS_PER_CALLER = 32;
/** How long a client may think. */
const WAIT_MS = 10 * 60 * 1000;

type Waiting = {
  readonly suspended: SuspendedCall;
  readonly timer: NodeJS.Timeout;
  readonly owner: string;
};

/** Empty. */
export function createSuspendedCalls(sessionBus: Pick<SessionBus, 'self'>): SuspendedCalls {
  const waiting = new Map<string, Waiting>();
  const usageByOwner = new Map<string, number>();

  function leave(handle: string): SuspendedCall | undefined {
    const found = waiting.get(handle);
    waiting.delete(handle);
    if (found === undefined) return undefined;
    clearTimeout(found.timer);
    const left = (usageByOwner.get(found.owner) ?? 1) - 1;
    if (left === 0) usageByOwner.delete(found.owner);
    else usageByOwner.set(found.owner, left);
    return found.suspended;
  }

  return {
    enter(suspended, { issuerUrl, subject, client }) {
      const owner = JSON.stringify([issuerUrl, subject, client]);
      const held = usageByOwner.get(owner) ?? 0;
      if (waiting.size >= MAX_SUSPENDED_CALLS || held >= MAX_SUSPENDED_CALLS_PER_CALLER)
        return undefined;
      usageByOwner.set(owner, held + 1);
      const handle = nameHere(sessionBus);
      const timer = setTimeout(() => leave(handle)?.call.cancel(), WAIT_MS);
      timer.unref();
      waiting.set(handle, { suspended, timer, owner });
      return handle;
    },
    find: (handle) => waiting.get(handle)?.suspended,
    leave,
    close() {
      for (const handle of [...waiting.keys()]) leave(handle)?.call.cancel();
    },
  };
}
