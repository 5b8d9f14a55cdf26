import fc from 'fast-check';
import { describe, expect, it, test, vi } from 'vitest';
import {
  createSseFramer,
  encodeSseComment,
  encodeSseMessage,
  pumpEvents,
  type SseEvent,
  type StreamLimits,
} from '../../../src/protocol/sse.js';
import type { UpstreamResponse } from '../../../src/protocol/transport.js';
import { eachInTurn, FREE_TURNS } from '../../support/timing.js';

const encoder = new TextEncoder();
const CAP = 1 << 20;

function frame(chunks: readonly Uint8Array[], maxEventBytes = CAP) {
  const framer = createSseFramer({ maxEventBytes });
  const events: SseEvent[] = [];
  for (const chunk of chunks) {
    const framed = framer.push(chunk);
    if ('error' in framed) return framed;
    events.push(...framed);
  }
  return events;
}

function frameText(text: string, maxEventBytes = CAP) {
  return frame([encoder.encode(text)], maxEventBytes);
}

/** The specification's algorithm, written down plainly over a whole text. */
function expectedEvents(text: string): readonly SseEvent[] {
  const events: SseEvent[] = [];
  let data: string[] = [];
  let event = '';
  let id: string | undefined;
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
  for (const line of lines.slice(0, -1)) {
    const [, name = '', value = ''] = /^([^:]*)(?:: ?([\s\S]*))?$/.exec(line) ?? [];
    if (line === '') {
      if (data.length > 0) {
        const message = {
          kind: 'message',
          event: event || 'message',
          data: data.join('\n'),
        } as const;
        events.push(id === undefined ? message : { ...message, id });
      }
      data = [];
      event = '';
      id = undefined;
    } else if (line.startsWith(':')) events.push({ kind: 'comment', text: line.slice(1) });
    else if (name === 'data') data.push(value);
    else if (name === 'event') event = value;
    else if (name === 'id' && !value.includes('\0')) id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) events.push({ kind: 'retry', ms: Number(value) });
  }
  return events;
}

const streams = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        'data',
        'data:',
        'data: ',
        'data:  x',
        'event: e',
        'id: 1',
        'id: \0',
        'id',
        'retry: 10',
        'retry: 1x',
        ': c',
        ':',
        'other: y',
        'data: {"é":"😀"}',
        '\ufeff',
        '',
      ),
      fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n', '\r\r'),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(''));

describe('framing', () => {
  test('[M-28] any text gives the events of the specification, however its bytes are cut', () => {
    fc.assert(
      fc.property(streams, fc.array(fc.nat({ max: 200 })), fc.boolean(), (text, cuts, hasMark) => {
        const stream = hasMark ? `\ufeff${text}` : text;
        const bytes = encoder.encode(stream);
        const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
        const chunks = [0, ...places].map((start, index) => bytes.subarray(start, places[index] ?? bytes.length));
        expect(frame(chunks)).toEqual(expectedEvents(stream));
        expect(frame([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expectedEvents(stream));
      }),
      { numRuns: 1000 },
    );
  });

  test.each<[string, readonly SseEvent[]]>([
    ['data: a\ndata: b\n\n', [{ kind: 'message', event: 'message', data: 'a\nb' }]],
    ['data\n\n', [{ kind: 'message', event: 'message', data: '' }]],
    ['event: x\n\n', []],
    ['event: x\n\ndata: 1\n\n', [{ kind: 'message', event: 'message', data: '1' }]],
    ['data: lost', []],
    ['data: lost\n', []],
    ['id: a\0b\ndata: 1\n\n', [{ kind: 'message', event: 'message', data: '1' }]],
    ['id: 7\ndata:\n\n', [{ kind: 'message', event: 'message', data: '', id: '7' }]],
    [
      ': ping\r\rretry: 5\r',
      [
        { kind: 'comment', text: ' ping' },
        { kind: 'retry', ms: 5 },
      ],
    ],
    ['retry: 99999999999999999999\nretry: -1\nretry\n', []],
    ['\ufeffdata: 1\n\n\ufeffdata: 2\n\n', [{ kind: 'message', event: 'message', data: '1' }]],
  ])('[M-28] %j is framed as the specification says', (text, events) => {
    expect(frameText(text)).toEqual(events);
  });

  test('[M-28] an event is given out with the byte that ends it', () => {
    const framer = createSseFramer({ maxEventBytes: CAP });
    expect(framer.push(encoder.encode('data: 1\r\n'))).toEqual([]);
    expect(framer.push(encoder.encode('\r'))).toMatchObject([{ data: '1' }]);
    expect(framer.push(encoder.encode('\n'))).toEqual([]);
    expect(framer.push(encoder.encode('data: 2\n\n'))).toMatchObject([{ data: '2' }]);
  });

  test('[M-29] invalid UTF-8 is a fault that stays', () => {
    const framer = createSseFramer({ maxEventBytes: CAP });
    expect(framer.push(Uint8Array.of(0x64, 0xff, 0x0a))).toEqual({ error: 'invalid-utf8' });
    expect(framer.push(encoder.encode('data: 1\n\n'))).toEqual({ error: 'invalid-utf8' });
  });

  test('[M-29] the cap holds for one line, for many lines of one event, and not for many events', () => {
    expect(frameText(`data:${'x'.repeat(95)}\n\n`, 100)).toHaveLength(1);
    expect(frameText(`data:${'x'.repeat(96)}\n\n`, 100)).toEqual({ error: 'too-large' });
    expect(frameText('data:xxxxx\n'.repeat(11), 100)).toEqual({ error: 'too-large' });
    expect(frameText('data:xxxxx\n\n'.repeat(100), 100)).toHaveLength(100);
    expect(frameText('x'.repeat(101), 100)).toEqual({ error: 'too-large' });
  });

  test('[M-29] a line in very many chunks is read, and refused once it passes the cap', () => {
    const framer = createSseFramer({ maxEventBytes: 300_000 });
    framer.push(encoder.encode('data:'));
    for (let count = 0; count < 250_000; count++) framer.push(Uint8Array.of(0x61));
    expect(framer.push(encoder.encode('\n\n'))).toMatchObject([{ data: 'a'.repeat(250_000) }]);
    framer.push(new Uint8Array(300_000).fill(0x61));
    expect(framer.push(Uint8Array.of(0x61))).toEqual({ error: 'too-large' });
  });

  test('[M-29] a chunk that is reused by its owner changes nothing that was pushed', () => {
    const framer = createSseFramer({ maxEventBytes: CAP });
    const chunk = encoder.encode('data: abc');
    framer.push(chunk);
    chunk.fill(0x7a);
    expect(framer.push(encoder.encode('\n\n'))).toMatchObject([{ data: 'abc' }]);
  });
});

describe('writing', () => {
  test('[M-30] what is written is read again as one event, whatever the JSON and its spacing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom('', ' ', '\t'), (value, spacing) => {
        const json = JSON.stringify(value, undefined, spacing);
        const [event, ...more] = frameText(encodeSseMessage(json)) as readonly SseEvent[];
        expect(more).toEqual([]);
        expect(event).toMatchObject({ kind: 'message', event: 'message', data: json });
      }),
    );
  });

  test('[M-30] line breaks end no event and start no field', () => {
    const json = '{\r\n"a":1,\r"data: x":2\n\n}';
    expect(frameText(encodeSseMessage(json))).toMatchObject([{ data: '{\n"a":1,\n"data: x":2\n\n}' }]);
    expect(frameText(encodeSseComment('a\n\ndata: x\n\n'))).not.toContainEqual(
      expect.objectContaining({ kind: 'message' }),
    );
  });

  test('[M-30] the bytes are fixed', () => {
    expect(encodeSseMessage('{}')).toBe('event: message\ndata: {}\n\n');
    expect(encodeSseMessage('/x', { event: 'endpoint' })).toBe('event: endpoint\ndata: /x\n\n');
    expect(encodeSseComment('')).toBe(':\n\n');
  });
});

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

// Events are taken one at a time and in order, at once where nothing waits; whatever ends the taking, the upstream's
// socket is let go.
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
    expect([answer.release, answer.abort, rest].map((one) => one.mock.calls.length)).toEqual([1, 0, 1]);
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

  it('[PRF-11] let it go round after lines that complete none', async () => {
    const recorded: number[] = [];
    const recordTime = (sinceMs: number): number => {
      recorded.push(sinceMs);
      return sinceMs;
    };
    const answer = answerOf('id: 1\n\n', ': none\nid: 2\n\n', 'id: 3\n');
    const loopScheduler = { ...FREE_TURNS, recordTime };
    expect(await pumpEvents(answer, { ...TERMS, loopScheduler }, () => undefined)).toBe('ended');
    expect(recorded.length).toBeGreaterThanOrEqual(3);
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
