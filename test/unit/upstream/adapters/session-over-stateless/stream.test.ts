// The stream of a session before a stateless upstream: what it leaves behind, however it ends.

import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Caller } from '../../../../../src/policy/principal.js';
import type { ForwardOutcome, UpstreamResponse } from '../../../../../src/protocol/transport.js';
import {
  bodyResponse,
  streamResponse,
} from '../../../../../src/upstream/adapters/local-response.js';
import { envelopeOf } from '../../../../../src/upstream/adapters/session-over-stateless/adapter.js';
import { createSessionStates } from '../../../../../src/upstream/adapters/session-over-stateless/session-state.js';
import { listenForSession } from '../../../../../src/upstream/adapters/session-over-stateless/stream.js';

/** A subscription that its upstream ends at once. */
function shortStream(): UpstreamResponse {
  async function* nothing(): AsyncGenerator<never, void> {}
  const source = { release: () => undefined, abort: () => undefined };
  return streamResponse(nothing(), source);
}

async function open(response: ForwardOutcome, signal = new AbortController().signal) {
  const notes = createSessionStates().getOrCreate('session', 'ann');
  const stream = await listenForSession(
    {
      maxResponseBytes: 1_000,
      requestTimeoutMs: 1_000,
      client: { subscribe: () => Promise.resolve(response) },
      caller: {} as Caller,
      envelope: envelopeOf('1.0.0', { allowedServerRequests: [], apps: false }, undefined),
    },
    notes,
    signal,
  );
  return { notes, stream };
}

async function listen(response: UpstreamResponse) {
  const { notes, stream } = await open(response);
  if (stream.kind === 'error') throw new Error(stream.reason);
  return { notes, stream };
}

describe('[Y-09] a stream', () => {
  it('is not told of news any more once its upstream has ended it', async () => {
    const { notes, stream } = await listen(shortStream());
    expect(notes.listeners.size).toBe(1);
    while ((await stream.next()) instanceof Uint8Array);
    stream.release();
    expect(notes.listeners.size).toBe(0);
  });

  it('is not told of news any more once its client has left, though it was never read', async () => {
    const { notes, stream } = await listen(shortStream());
    stream.abort();
    expect(notes.listeners.size).toBe(0);
  });

  it.each([
    ['refused', { kind: 'error', reason: 'upstream-unavailable' } as const],
    ['answered by no stream', bodyResponse(405)],
    ['ended at once', shortStream()],
  ])('leaves no listener at its client when it is %s', async (_how, response) => {
    const { signal } = new AbortController();
    const { stream } = await open(response, signal);
    if (stream.kind === 'response') while ((await stream.next()) instanceof Uint8Array);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
