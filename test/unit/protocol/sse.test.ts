import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createSseFramer,
  encodeSseComment,
  encodeSseMessage,
  type SseEvent,
} from '../../../src/protocol/sse.js';

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
    else if (name === 'retry' && /^\d+$/.test(value))
      events.push({ kind: 'retry', ms: Number(value) });
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
        const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort(
          (a, b) => a - b,
        );
        const chunks = [0, ...places].map((start, index) =>
          bytes.subarray(start, places[index] ?? bytes.length),
        );
        expect(frame(chunks)).toEqual(expectedEvents(stream));
        expect(frame([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(
          expectedEvents(stream),
        );
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
    expect(frameText(encodeSseMessage(json))).toMatchObject([
      { data: '{\n"a":1,\n"data: x":2\n\n}' },
    ]);
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
