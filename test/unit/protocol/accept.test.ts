// Which types an Accept header takes.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { acceptsType } from '../../../src/protocol/headers.js';

const STREAM = 'text/event-stream';

describe('[LEG-12] an Accept header', () => {
  it.each([
    [undefined, true],
    ['', true],
    ['*/*', true],
    ['text/*', true],
    ['application/json, text/event-stream', true],
    ['TEXT/Event-Stream; charset=utf-8', true],
    ['text/event-stream;q=0.1', true],
    ['application/json', false],
    ['text/html', false],
    ['text/event-stream;q=0', false],
    ['text/event-stream;q=0.000, */*', false],
    ['*/*, text/*;q=0', false],
    ['text/*;q=0, text/event-stream', true],
  ])('%j takes a stream: %j', (accept, isTaken) => {
    expect(acceptsType(accept, STREAM)).toBe(isTaken);
  });

  it('takes what it names, whatever else it says (property)', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 8 }), (others) => {
        const ranges = others
          .map((one) => one.replace(/,/g, ''))
          .filter((one) => !/event/i.test(one));
        expect(acceptsType([STREAM, ...ranges].join(','), STREAM)).toBe(true);
      }),
    );
  });
});
