// Events are taken one at a time and in order, at once where nothing waits; whatever ends the taking, the
// upstream's socket is let go.

import { describe, expect, it, vi } from 'vitest';
import type { SseEvent } from '../../../src/mcp/sse.js';
import type { UpstreamAnswer } from '../../../src/mcp/transport.js';
import { type PumpTerms, pumpEvents } from '../../../src/relay/events.js';
import { FREE_TURNS } from '../../support/turns.js';

const TERMS: PumpTerms = {
  maxEventBytes: 1024,
  count: () => undefined,
  upstream: 'one',
  turns: FREE_TURNS,
};

/** An answer of these readings, each there at once. */
function answerOf(...readings: string[]) {
  const answer = {
    kind: 'answer',
    status: 200,
    headers: {},
    whole: () => 'upstream-protocol',
    next: () => {
      const text = readings.shift();
      return text === undefined ? undefined : new TextEncoder().encode(text);
    },
    release: vi.fn(),
    abort: vi.fn(),
  } satisfies UpstreamAnswer;
  return answer;
}

const events = (first: number, count: number): string =>
  Array.from({ length: count }, (_, at) => `data: ${first + at}\n\n`).join('');
const dataOf = (event: SseEvent): string => (event.kind === 'message' ? event.data : event.kind);
const numbers = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at));

/** Steps of the microtask queue until `isDone`. */
async function countSteps(isDone: () => boolean): Promise<number> {
  let steps = 0;
  for (; !isDone() && steps < 1_000_000; steps += 1) await undefined;
  return steps;
}

describe('the events of an upstream', () => {
  it('are taken in order, whichever of them have to wait', async () => {
    const taken: string[] = [];
    const answer = answerOf(events(0, 5), events(5, 5));
    const end = await pumpEvents(answer, TERMS, (event) => {
      const data = dataOf(event);
      if (Number(data) % 3 !== 1) {
        taken.push(data);
        return undefined;
      }
      return new Promise((resolve) => {
        setImmediate(() => {
          taken.push(data);
          resolve(undefined);
        });
      });
    });
    expect([end, taken]).toEqual(['ended', numbers(10)]);
  });

  it.each([
    ['at once', () => 'stop' as const],
    ['late', () => Promise.resolve('stop' as const)],
  ])('are taken no further than to a stop that is said %s', async (_when, stop) => {
    const taken: string[] = [];
    const rest = vi.fn();
    const answer = answerOf(events(0, 5), events(5, 5));
    const end = await pumpEvents(
      answer,
      TERMS,
      (event) => {
        taken.push(dataOf(event));
        return taken.length === 3 ? stop() : undefined;
      },
      rest,
    );
    expect([end, taken]).toEqual(['stopped', numbers(3)]);
    expect([answer.release, answer.abort, rest].map((one) => one.mock.calls.length)).toEqual([
      1, 0, 1,
    ]);
  });

  it.each([
    ['at once', false, false],
    ['late', true, false],
    ['after another that waited', false, true],
  ])('close the socket when their taker fails %s', async (_when, isLate, waitsFirst) => {
    const answer = answerOf(events(0, 5));
    const pumped = pumpEvents(answer, TERMS, (event) => {
      if (dataOf(event) !== '2') return waitsFirst ? Promise.resolve(undefined) : undefined;
      if (isLate) return Promise.reject(new Error('broken'));
      throw new Error('broken');
    });
    await expect(pumped).rejects.toThrow('broken');
    expect(answer.abort).toHaveBeenCalledOnce();
  });

  it('that all wait leave nothing to be undone behind the last', async () => {
    const count = 10_000;
    let taken = 0;
    let isOver = false;
    const pumped = pumpEvents(answerOf(events(0, count)), TERMS, () => {
      taken += 1;
      return Promise.resolve(undefined);
    }).then(() => {
      isOver = true;
    });
    await countSteps(() => taken === count);
    expect(await countSteps(() => isOver)).toBeLessThan(20);
    await pumped;
  });
});
