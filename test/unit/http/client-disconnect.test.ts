// A client that leaves is told as an abort, unless its response was written to the end.

import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { disconnectSignal } from '../../../src/http/request.js';

function response(state: { destroyed?: boolean; writableFinished?: boolean } = {}) {
  const emitter = Object.assign(new EventEmitter(), {
    destroyed: false,
    writableFinished: false,
    ...state,
  });
  return emitter as EventEmitter & typeof emitter & ServerResponse;
}

describe('a client that leaves', () => {
  it('[PRF-04] is told once', () => {
    const socket = response();
    const signal = disconnectSignal(socket);
    let notified = 0;
    signal.addEventListener('abort', () => {
      notified += 1;
    });
    expect(signal.aborted).toBe(false);
    socket.emit('close');
    socket.emit('close');
    expect([signal.aborted, notified]).toEqual([true, 1]);
  });

  it('[PRF-04] has not left where its answer was written to the end', () => {
    const socket = response({ writableFinished: true });
    const signal = disconnectSignal(socket);
    socket.emit('close');
    expect(signal.aborted).toBe(false);
    expect(disconnectSignal(response({ writableFinished: true, destroyed: true })).aborted).toBe(
      false,
    );
  });

  it('[PRF-04] has left where the connection was gone before anyone asked', () => {
    expect(disconnectSignal(response({ destroyed: true })).aborted).toBe(true);
  });
});
