// Events are taken one at a time and in order, at once where nothing waits; whatever ends the taking, the
// upstream's socket is let go.

import { describe, expect, it, vi } from 'vitest';
import type { SseEvent } from '../../../src/protocol/sse.js';
import { pumpEvents, type StreamLimits } from '../../../src/protocol/sse-reader.js';
import type { UpstreamResponse } from '../../../src/protocol/transport.js';
import { eachInTurn, FREE_TURNS } from '../../support/timing.js';

const TERMS: StreamLimits = {
  maxEventBytes: 1024,
  count: () => undefined,
  upstream: 'one',
  loopScheduler: FREE_TURNS,
};

/** An answer of these readings, each there at once. */
function answerOf(...readings: string[]) {
  const answer = {
    kind: 'response',
    status: 200,
    headers: {},
    readBody: () => 'upstream-protocol',
    next: () => {
      const text = readings.shift();
      return text === undefined ? undefined : new TextEncoder().encode(text);
    },
    release: vi.fn(),
    abort: vi.fn(),
  } satisfies UpstreamResponse;
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

  it('[PRF-11] let the loop go round between two of them, once their turn is over', async () => {
    const turns = eachInTurn();
    let others = 0;
    const seen: number[] = [];
    const other = (): void => {
      others += 1;
      if (seen.length < 50) setImmediate(other);
    };
    setImmediate(other);
    const flushed: number[] = [];
    const end = await pumpEvents(
      answerOf(events(0, 50)),
      { ...TERMS, upstream: 'greedy', loopScheduler: turns },
      () => {
        seen.push(others);
        return undefined;
      },
      () => void flushed.push(seen.length),
    );
    expect(end).toBe('ended');
    // Somebody else was served between each two events, and what was taken was written meanwhile.
    expect(new Set(seen).size).toBe(50);
    expect(new Set(turns.taken)).toEqual(new Set(['greedy']));
    expect(flushed.length).toBeGreaterThanOrEqual(50);
  });

  it('[PRF-12] of a long-lived stream wait for the rate of their upstream', async () => {
    const paced: number[] = [];
    let allow = (): void => undefined;
    const pace = (bytes: number): Promise<void> => {
      paced.push(bytes);
      return new Promise((resolve) => {
        allow = resolve;
      });
    };
    const taken: string[] = [];
    const pumped = pumpEvents(answerOf(events(0, 2)), { ...TERMS, pace }, (event) => {
      taken.push(dataOf(event));
      return undefined;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect([paced, taken]).toEqual([[18], []]);
    allow();
    await pumped;
    expect(taken).toEqual(['0', '1']);
  });

  it('[PRF-11] are taken at once while there is time, without a turn of the loop', async () => {
    let rounds = 0;
    let taken = 0;
    const round = (): void => {
      rounds += 1;
      if (taken < 20) setImmediate(round);
    };
    setImmediate(round);
    await pumpEvents(answerOf(events(0, 10), events(10, 10)), TERMS, () => {
      taken += 1;
      return undefined;
    });
    expect([taken, rounds]).toEqual([20, 0]);
  });

  it.each(['too-large', 'rate-limited'] as const)(
    '[PRF-12] are %s once more bytes came than may, and the socket is closed',
    async (why) => {
      let left = events(0, 5).length;
      const taken: string[] = [];
      const answer = answerOf(events(0, 5), events(5, 5), events(0, 5));
      const count = (bytes: number): typeof why | undefined => {
        left -= bytes;
        return left < 0 ? why : undefined;
      };
      const end = await pumpEvents(answer, { ...TERMS, count }, (event) => {
        taken.push(dataOf(event));
        return undefined;
      });
      expect([end, taken]).toEqual([why, numbers(5)]);
      expect(answer.abort).toHaveBeenCalledOnce();
    },
  );

  it('[PRF-12] hold room while one of them is put together, and none once it was taken', async () => {
    const held: number[] = [];
    const half = 'x'.repeat(100);
    const answer = {
      ...answerOf(`data: ${half}`, half, '\n\ndata: 1\n\n'),
      reserveBuffer(bytes: number) {
        held.push(bytes);
        return undefined;
      },
    };
    expect(await pumpEvents(answer, TERMS, () => undefined)).toBe('ended');
    expect(held).toEqual([106, 106, 206, 206, 217, 0]);
  });

  it('[PRF-12] end as `overloaded` where there is no room for one', async () => {
    const answer = {
      ...answerOf(events(0, 5)),
      reserveBuffer: () => Promise.resolve('overloaded' as const),
    };
    const taken = vi.fn();
    expect(await pumpEvents(answer, TERMS, taken)).toBe('overloaded');
    expect(taken).not.toHaveBeenCalled();
  });
});
