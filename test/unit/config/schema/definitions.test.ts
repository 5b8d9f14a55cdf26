import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  readDurationMs,
  readRate,
  readSizeBytes,
  suggestQuantity,
} from '../../../../src/config/schema/definitions.js';

describe('[C-05] durations, sizes and rates', () => {
  it.each([
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['2d', 172_800_000],
    ['24d', 2_073_600_000],
  ])('reads the duration %s', (text, ms) => expect(readDurationMs(text)).toBe(ms));

  it.each(['', '0s', '30', '-1s', '1.5h', '30S', '30 s', '30sec', '1w', ' 30s', '30s\n', '25d'])(
    'takes %j for no duration',
    (text) => expect(readDurationMs(text)).toBeUndefined(),
  );

  it.each([
    ['512B', 512],
    ['64KiB', 65_536],
    ['1MiB', 1_048_576],
    ['256MiB', 268_435_456],
  ])('reads the size %s', (text, bytes) => expect(readSizeBytes(text)).toBe(bytes));

  it.each(['1MB', '1M', '1024', '0B', '1.5MiB', '1GiB', '1mib'])('takes %j for no size', (text) =>
    expect(readSizeBytes(text)).toBeUndefined(),
  );

  it('reads rates', () => {
    expect(readRate('60/min')).toEqual({ count: 60, windowMs: 60_000 });
    expect(readRate('5/s')).toEqual({ count: 5, windowMs: 1000 });
    expect(readRate('1000/d')).toEqual({ count: 1000, windowMs: 86_400_000 });
    for (const text of ['60', '60/m', '0/min', '60/minute', '60 / min', '/min']) {
      expect(readRate(text)).toBeUndefined();
    }
  });

  it.each([
    ['duration', 30, '30s'],
    ['duration', '30sec', '30s'],
    ['duration', '5 minutes', '5m'],
    ['size', '1MB', '1MiB'],
    ['size', 1024, '1024B'],
    ['rate', '60/m', '60/min'],
    ['rate', '60 per minute', '60/min'],
    ['rate', '5/second', '5/s'],
    ['duration', 'soon', undefined],
    ['rate', '5/ms', undefined],
  ] as const)('suggests for the %s %j the spelling %s', (kind, written, suggestion) => {
    expect(suggestQuantity(kind, written)).toBe(suggestion);
  });

  it('suggests only what it would read itself', () => {
    const readers = { duration: readDurationMs, size: readSizeBytes, rate: readRate };
    const kind = fc.constantFrom('duration', 'size', 'rate' as const);
    const unit = fc.constantFrom('', 's', 'sec', 'minutes', 'h', 'KB', 'mb', 'b', 'd', 'xyz');
    const count = fc.integer({ min: 1, max: 20 });
    fc.assert(
      fc.property(kind, count, unit, fc.constantFrom('', ' ', '/'), (which, n, word, gap) => {
        const suggestion = suggestQuantity(which, `${n}${gap}${word}`);
        return suggestion === undefined || readers[which](suggestion) !== undefined;
      }),
    );
  });
});
