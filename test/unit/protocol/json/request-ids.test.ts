import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseMessage, readJsonText } from '../../../../src/protocol/json/json.js';
import { exactIdOf, isUnboundedNumber, recordedId, renderJson } from '../../../../src/protocol/json/request-ids.js';
import { isObject, isRequestId, type Json } from '../../../../src/protocol/jsonrpc.js';

const NANOSECONDS = '1732789123456789123';

/** The decimal value of a literal with its exponent written out, as a fraction of whole numbers. */
function fractionOf(literal: string): readonly [bigint, bigint] {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const [integer = '', fraction = ''] = mantissa.split('.');
  const power = Number(exponent) - fraction.length;
  const digits = BigInt(integer + fraction);
  return power >= 0 ? [digits * 10n ** BigInt(power), 1n] : [digits, 10n ** BigInt(-power)];
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = fractionOf(one);
  const [c, d] = fractionOf(other);
  return a * d === c * b;
}

const digits = (min: number, max: number) => fc.stringMatching(new RegExp(`^[0-9]{${min},${max}}$`));
const literals = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(
      fc.constant('0'),
      digits(0, 22).map((rest) => `1${rest}`),
      digits(0, 22).map((rest) => `9${rest}`),
    ),
    fc.option(digits(1, 22)),
    fc.option(fc.integer({ min: -30, max: 30 })),
  )
  .map(
    ([sign, integer, fraction, power]) =>
      `${sign}${integer}${fraction === null ? '' : `.${fraction}`}${power === null ? '' : `e${power}`}`,
  );

describe('ids that are numbers', () => {
  test.each([
    ['1', '1.0', '1e0', '10e-1', '0.1e1', '1.000000000000000000000000'],
    ['0', '-0', '0.0', '0e5', '-0e-9'],
    ['0.5', '5e-1', '0.50', '500e-3'],
    [NANOSECONDS, `${NANOSECONDS}.0`, `${NANOSECONDS}0e-1`, '1732789123456789.123e3'],
    ['1e400', '10e399', '0.1e401'],
    ['9007199254740993', '9007199254740993.000'],
  ])('are one where their values are: %s', (...spellings) => {
    const ids = new Set(spellings.map(exactIdOf));
    expect(ids.size).toBe(1);
  });

  test('differ where their values do, and whether or not a double shows it', () => {
    const values = [
      '1',
      '1.00000000000000000001',
      NANOSECONDS,
      '1732789123456789124',
      '1732789123456789100',
      '9007199254740992',
      '9007199254740993',
      '1e400',
      '2e400',
      '-1e400',
    ];
    expect(new Set(values.map(exactIdOf)).size).toBe(values.length);
    expect(exactIdOf(NANOSECONDS)).not.toBe(NANOSECONDS);
  });

  test('of any spelling are equal exactly where the values are, and are written as that value', () => {
    fc.assert(
      fc.property(literals, literals, (one, other) => {
        const id = exactIdOf(one);
        expect(id === exactIdOf(other) || Object.is(Math.abs(Number(id)), 0)).toBe(
          isEqual(one, other) || Number(id) === 0,
        );
        expect(isEqual(renderJson(id), one)).toBe(true);
        expect(exactIdOf(renderJson(id))).toBe(id === 0 ? 0 : id);
      }),
      { numRuns: 3_000 },
    );
  });

  test.each(['1e999999999', '1e-999999999', `1${'0'.repeat(4096)}`, `0.${'1'.repeat(300)}`, '1e1000'])(
    'beyond the bounds are none: %s',
    (literal) => {
      expect(isRequestId(exactIdOf(literal))).toBe(false);
      expect(isUnboundedNumber(exactIdOf(literal))).toBe(true);
    },
  );

  test('are read exactly in each place that names a request', () => {
    const places = [
      '{"jsonrpc":"2.0","id":N,"method":"ping"}',
      '{"result":{},"jsonrpc":"2.0", "id" : N }',
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":N}}',
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":N}}',
      '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":N}}}',
    ];
    for (const place of places) {
      const text = place.replace('N', NANOSECONDS);
      const reading = readJsonText(text);
      expect(reading.ok && renderJson(reading.value)).toBe(renderJson(parseMessage(text)));
      expect(renderJson(parseMessage(text))).toContain(`:${NANOSECONDS}`);
    }
  });

  test('are not taken from the place of another member', () => {
    const text = `{"jsonrpc":"2.0","x\\",\\"id":7,"id":${NANOSECONDS},"x,\\"id":1732789123456789200}`;
    const value = parseMessage(text);
    expect(isObject(value) && value['id']).toBe(exactIdOf(NANOSECONDS));
  });

  test('are recorded as numbers up to 2^53, and as text beyond', () => {
    const recorded = ['7', '1.5', '9007199254740991', '9007199254740992', NANOSECONDS, '1e21']
      .map(exactIdOf)
      .map((id) => (isRequestId(id) ? recordedId(id) : id));
    expect(recorded).toEqual([7, 1.5, 9007199254740991, '9007199254740992', NANOSECONDS, '1e+21']);
    expect(recordedId('7')).toBe('7');
  });

  test('are told from every text that a message can hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const value: Json = { id: text, at: `\\ud800${text}`, '"\\ud8001"': [text] };
        expect(JSON.parse(renderJson(value))).toEqual(value);
      }),
    );
    expect(readJsonText('{"jsonrpc":"2.0","id":"\\ud8001","method":"ping"}')).toMatchObject({
      error: 'lone-surrogate',
    });
  });
});
