import { type Static, Type } from '@sinclair/typebox';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  duration,
  named,
  readDurationMs,
  readRate,
  readSizeBytes,
  record,
  resolveMeanings,
  type SettingsOf,
  secret,
  size,
  suggestQuantity,
  tag,
  text,
  textList,
  union,
} from '../../../../src/config/schema/declarations.js';
import { GATEWAY_SCHEMA } from '../../../../src/config/schema/gateway.js';

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

const MEMBER = record('A member.', {
  url: text('Where.'),
  wait: duration('How long.', '30s'),
  most: size('How much.', '1KiB'),
  auth: union('type', 'How.', [
    record('Not at all.', { type: tag('none') }),
    record('By a key.', { type: tag('key'), key: secret('The key.', 'tls-key') }),
  ]),
  groups: Type.Optional(textList('Who.')),
});
const FILE = record('A file.', { members: named('Members.', MEMBER, { default: {} }) });

const KEY = { type: 'key', key: { env: 'KEY' } } as const;
const VALID = { members: { one: { url: 'x', wait: '5m', most: '2KiB', auth: KEY } } };

describe('[C-01] a declared key', () => {
  it('is one type in the file and another in the settings', () => {
    const settings: SettingsOf<typeof FILE> = resolveMeanings(FILE, VALID, (path) => path.join('/'));
    const auth = { type: 'key', key: 'members/one/auth/key' } as const;
    expect(settings).toEqual({ members: { one: { url: 'x', waitMs: 300_000, most: 2048, auth } } });
    const one = settings.members['one'];
    // What has a default is there; what has none may be absent. The compiler holds this test to it.
    const [waitMs, groups]: [number, readonly string[] | undefined] = [one?.waitMs ?? 0, one?.groups];
    expect([waitMs, groups]).toEqual([300_000, undefined]);
    const written: Static<typeof MEMBER>['auth'] = { type: 'none' };
    expect(written.type).toBe('none');
  });

  it('is no secret whose value the published schema says more of than its form', () => {
    expect(JSON.stringify(GATEWAY_SCHEMA)).not.toMatch(/tls-key|gateway-key|meaning/);
  });
});
