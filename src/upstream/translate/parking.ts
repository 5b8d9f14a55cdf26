// Calls that wait in mid-call for an answer of their client, each under a handle that is hard to guess and
// that leaves the gateway only sealed to its caller and request. It names this replica, which alone holds
// the connection of the call. Bounded in number and in time.
// Source: MCP 2026-07-28, multi-round-trip requests (requestState).

import type { RequestId } from '../../mcp/message.js';
import type { Principal } from '../../policy/principal.js';
import type { Heard } from './messages.js';
import type { SessionCall } from './session-call.js';
import { nameHere, type SessionWords } from './session-words.js';

/** A call whose server has asked something: the rest of its answer, and the id of the question. */
export type Parked = {
  readonly call: SessionCall;
  readonly rest: AsyncIterator<Heard, unknown>;
  readonly question: RequestId;
  /** Under this key the client's answer comes. */
  readonly key: string;
};

export type Parking = {
  /** The handle of the call; `undefined` where no more may wait, of this caller or of all. */
  enter(parked: Parked, caller: Caller): string | undefined;
  /** The call of this handle, which waits on. */
  find(handle: string): Parked | undefined;
  /** Takes the call of this handle, once. */
  leave(handle: string): Parked | undefined;
  close(): void;
};

type Caller = Pick<Principal, 'issuerUrl' | 'subject' | 'client'>;

export const MAX_PARKED = 256;
/** So that no caller keeps all others from being asked. */
export const MAX_PARKED_A_CALLER = 32;
/** How long a client may think. */
const WAIT_MS = 10 * 60 * 1000;

type Waiting = {
  readonly parked: Parked;
  readonly timer: NodeJS.Timeout;
  readonly owner: string;
};

/** Empty. */
export function createParking(words: Pick<SessionWords, 'self'>): Parking {
  const waiting = new Map<string, Waiting>();
  const shares = new Map<string, number>();

  function leave(handle: string): Parked | undefined {
    const found = waiting.get(handle);
    waiting.delete(handle);
    if (found === undefined) return undefined;
    clearTimeout(found.timer);
    const left = (shares.get(found.owner) ?? 1) - 1;
    if (left === 0) shares.delete(found.owner);
    else shares.set(found.owner, left);
    return found.parked;
  }

  return {
    enter(parked, { issuerUrl, subject, client }) {
      const owner = JSON.stringify([issuerUrl, subject, client]);
      const held = shares.get(owner) ?? 0;
      if (waiting.size >= MAX_PARKED || held >= MAX_PARKED_A_CALLER) return undefined;
      shares.set(owner, held + 1);
      const handle = nameHere(words);
      const timer = setTimeout(() => leave(handle)?.call.cancel(), WAIT_MS);
      timer.unref();
      waiting.set(handle, { parked, timer, owner });
      return handle;
    },
    find: (handle) => waiting.get(handle)?.parked,
    leave,
    close() {
      for (const handle of [...waiting.keys()]) leave(handle)?.call.cancel();
    },
  };
}
