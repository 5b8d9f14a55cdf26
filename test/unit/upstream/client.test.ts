import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { UpstreamResponse } from '../../../src/protocol/transport.js';
import { awaitEndpoint } from '../../../src/upstream/client.js';

const BASE = new URL('https://old.example/events');
const PATIENCE_MS = 10_000;

/** An answer whose body is these chunks; it then ends, or stays open until it is aborted. */
function answerOf(chunks: readonly Uint8Array[], ending: 'end' | 'hold' = 'end', more = {}) {
  const left = [...chunks];
  let wake: ((error: 'upstream-unavailable') => void) | undefined;
  const state = { aborted: 0, released: 0 };
  const response: UpstreamResponse = {
    kind: 'response',
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8' },
    readBody: () => Promise.reject(new Error('read as a whole')),
    next() {
      const chunk = left.shift();
      if (chunk !== undefined || ending === 'end') return Promise.resolve(chunk);
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    release() {
      state.released += 1;
    },
    abort() {
      state.aborted += 1;
      wake?.('upstream-unavailable');
    },
    ...more,
  };
  return { answer: response, state };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What a channel still says after its first event. */
async function restOf(response: UpstreamResponse): Promise<string> {
  let text = '';
  for (;;) {
    const chunk = await response.next();
    if (!(chunk instanceof Uint8Array)) return text;
    text += new TextDecoder().decode(chunk);
  }
}

describe('the first event of a channel', () => {
  it('[V-07] is found however the bytes are cut, and all that follows it is handed on', async () => {
    const first = ': hello\nretry: 5\n\nevent: endpoint\ndata: /post?s=1\n\n';
    const rest = 'event: message\ndata: {"jsonrpc":"2.0"}\n\n';
    const complete = bytes(first + rest);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(complete.length)), async (cuts) => {
        const at = [0, ...cuts.sort((one, other) => one - other), complete.length];
        const chunks = at.slice(1).map((end, index) => complete.subarray(at[index], end));
        const outcome = await awaitEndpoint(answerOf(chunks).answer, BASE, PATIENCE_MS);
        if (outcome.kind !== 'opened') throw new Error(outcome.reason);
        expect(outcome.messageEndpoint).toBe('/post?s=1');
        expect(await restOf(outcome.response)).toBe(rest);
      }),
    );
  });

  it('[V-07] is awaited no longer than allowed, whatever else comes', async () => {
    const { answer, state } = answerOf([bytes(': alive\n\n')], 'hold');
    expect(await awaitEndpoint(answer, BASE, 5)).toEqual({
      kind: 'error',
      reason: 'upstream-timeout',
    });
    expect(state.aborted).toBe(1);
  });

  it.each([
    [{ status: 401 }, 'upstream-credentials'],
    [{ status: 403 }, 'upstream-credentials'],
    [{ status: 503 }, 'upstream-unavailable'],
    [{ status: 404 }, 'upstream-protocol'],
    [{ headers: { 'content-type': 'application/json' } }, 'upstream-protocol'],
  ])('[V-07] needs a stream: %j', async (more, reason) => {
    const { answer, state } = answerOf([], 'end', more);
    expect(await awaitEndpoint(answer, BASE, PATIENCE_MS)).toMatchObject({ kind: 'error', reason });
    expect(state.released).toBe(1);
  });

  it('[V-07] comes within a bound, whatever comments come first', async () => {
    const comment = bytes(`: ${'x'.repeat(4_000)}\n`);
    const chunks = Array.from({ length: 20 }, () => comment);
    const { answer, state } = answerOf([...chunks, bytes('event: endpoint\ndata: /post\n\n')]);
    expect(await awaitEndpoint(answer, BASE, PATIENCE_MS)).toEqual({
      kind: 'error',
      reason: 'upstream-protocol',
    });
    expect(state.aborted).toBe(1);
  });

  it('[V-07] must come before the stream ends', async () => {
    const { answer } = answerOf([bytes('event: endpoint\ndata: /post\n')]);
    expect(await awaitEndpoint(answer, BASE, PATIENCE_MS)).toEqual({
      kind: 'error',
      reason: 'upstream-protocol',
    });
  });
});
