// A client that leaves is told as an AbortSignal would tell it, to whoever still listens.

import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { ClientDisconnect } from '../../../src/http/request.js';

function response(state: { destroyed?: boolean; writableFinished?: boolean } = {}) {
  const emitter = Object.assign(new EventEmitter(), {
    destroyed: false,
    writableFinished: false,
    ...state,
  });
  return emitter as EventEmitter & typeof emitter & ServerResponse;
}

describe('a client that leaves', () => {
  it('[PRF-04] is told once, to each listener that is still there', () => {
    const socket = response();
    const leave = new ClientDisconnect(socket);
    const notified: string[] = [];
    const first = (): void => void notified.push('first');
    const second = (): void => void notified.push('second');
    leave.addEventListener('abort', first);
    leave.addEventListener('abort', first);
    leave.addEventListener('abort', second);
    leave.addEventListener('abort', () => void notified.push('third'));
    leave.removeEventListener('abort', second);
    expect(leave.aborted).toBe(false);
    leave.addEventListener('abort', { handleEvent: () => void notified.push('object') });
    socket.emit('close');
    socket.emit('close');
    expect(leave.aborted).toBe(true);
    expect(notified).toEqual(['first', 'third', 'object']);
  });

  it('[PRF-04] has not left where its answer was written to the end', () => {
    const socket = response({ writableFinished: true });
    const leave = new ClientDisconnect(socket);
    leave.addEventListener('abort', () => expect.unreachable());
    socket.emit('close');
    expect(leave.aborted).toBe(false);
  });

  it('[PRF-04] has left where the connection was gone before anyone asked', () => {
    const leave = new ClientDisconnect(response({ destroyed: true }));
    expect(leave.aborted).toBe(true);
    leave.addEventListener('abort', () => expect.unreachable());
    const unheard = response();
    const left = new ClientDisconnect(unheard);
    unheard.destroyed = true;
    expect(left.aborted).toBe(true);
  });

  it.each([
    ['at once', (work: () => void) => work()],
    ['in promises', (work: () => void) => void Promise.resolve().then(work)],
  ])(
    '[PRF-14] is told of at once, and after other events where those before take long %s',
    async (_when, take) => {
      const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
      // A turn of its own: what the tests before took does not count.
      await nextTurn();
      let nowMs = 0;
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
      const notified: string[] = [];
      for (const name of ['first', 'second', 'third']) {
        const socket = response();
        new ClientDisconnect(socket).addEventListener('abort', () => {
          notified.push(name);
          take(() => {
            nowMs += 10;
          });
        });
        socket.emit('close');
        // Each connection closes in an event of its own, after which promises settle.
        await Promise.resolve();
      }
      expect(notified).toEqual(['first']);
      await nextTurn();
      expect(notified).toEqual(['first', 'second']);
      await vi.waitFor(() => expect(notified).toEqual(['first', 'second', 'third']));
      clock.mockRestore();
    },
  );
});
