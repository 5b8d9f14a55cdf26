// Calls that wait in mid-call for an answer of their client, each under a handle that is hard to guess and
// that leaves the gateway only sealed to its caller and request. Bounded in number and in time.
// Source: MCP 2026-07-28, multi-round-trip requests (requestState).

import { randomUUID } from 'node:crypto';
import type { RequestId } from '../../mcp/message.js';
import type { Heard } from './messages.js';
import type { SessionCall } from './session-call.js';

/** A call whose server has asked something: the rest of its answer, and the id of the question. */
export type Parked = {
  readonly call: SessionCall;
  readonly rest: AsyncIterator<Heard, unknown>;
  readonly question: RequestId;
  /** Under this key the client's answer comes. */
  readonly key: string;
};

export type Parking = {
  /** The handle of the call; `undefined` where no more may wait. */
  enter(parked: Parked): string | undefined;
  /** Takes the call of this handle, once. */
  leave(handle: string): Parked | undefined;
  close(): void;
};

const MAX_PARKED = 256;
/** How long a client may think. */
const WAIT_MS = 10 * 60 * 1000;

/** Empty. */
export function createParking(): Parking {
  const waiting = new Map<string, { readonly parked: Parked; readonly timer: NodeJS.Timeout }>();

  function leave(handle: string): Parked | undefined {
    const found = waiting.get(handle);
    waiting.delete(handle);
    clearTimeout(found?.timer);
    return found?.parked;
  }

  return {
    enter(parked) {
      if (waiting.size >= MAX_PARKED) return undefined;
      const handle = randomUUID();
      const timer = setTimeout(() => leave(handle)?.call.cancel(), WAIT_MS);
      timer.unref();
      waiting.set(handle, { parked, timer });
      return handle;
    },
    leave,
    close() {
      for (const handle of [...waiting.keys()]) leave(handle)?.call.cancel();
    },
  };
}
