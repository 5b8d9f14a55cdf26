// Cards, IBANs and social security numbers: every spelling that a reader understands, and the numbers that
// only look like them.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasLuhnDigit, isCardNumber } from '../../../../src/inspection/detectors/pii.js';
import { findSensitive } from '../../../../src/inspection/detectors/text-sanitizer.js';
import { cardNumber, iban, ssn } from '../../../support/seeded-values.js';

const PERSONAL = { secrets: false, pii: ['card', 'iban', 'ssn'] } as const;

function kinds(text: string, name?: string): string[] {
  return findSensitive(text, PERSONAL, name).map((hit) => hit.kind);
}

function grouped(digits: string, separator: string): string {
  return digits.replace(/(\d{4})(?=\d)/g, `$1${separator}`);
}

const fullWidth = (digits: string): string =>
  [...digits].map((digit) => String.fromCodePoint(0xff10 + Number(digit))).join('');

describe('payment cards', () => {
  const card = cardNumber('card');

  it.each([
    ['together', card],
    ['with blanks', grouped(card, ' ')],
    ['with dashes', grouped(card, '-')],
    ['with no-break blanks', grouped(card, '\u00a0')],
    ['in full-width digits', fullWidth(card)],
    ['with zero-width characters', [...card].join('\u200b')],
    ['digit by digit', [...card].join(' ')],
    ['as character references', [...card].map((digit) => `&#${digit.charCodeAt(0)};`).join('')],
    ['as escapes', [...card].map((digit) => `\\u00${digit.charCodeAt(0).toString(16)}`).join('')],
    ['as percent triplets', [...card].map((digit) => `%${digit.charCodeAt(0).toString(16)}`).join('')],
    ['in base64', Buffer.from(`the card is ${card}, thanks`).toString('base64')],
    ['in hex', Buffer.from(`the card is ${card}, thanks`).toString('hex')],
    ['in base64 twice', Buffer.from(Buffer.from(`card ${card} of`).toString('base64')).toString('base64')],
  ])('[I-05] %s are found', (_how, text) => {
    expect(kinds(`Pay with ${text} today.`)).toEqual(['card']);
  });

  it('[I-05] of every issued range are found, and one wrong digit is enough to pass', () => {
    const issued = [cardNumber('a', '34', 15), cardNumber('b', '54'), cardNumber('c', '2720'), cardNumber('d', '6011')];
    for (const number of issued) {
      expect(kinds(number)).toEqual(['card']);
      const last = Number(number.at(-1));
      expect(kinds(`${number.slice(0, -1)}${(last + 1) % 10}`)).toEqual([]);
    }
  });

  it('[I-06] are not seen in numbers of other ranges, in longer numbers, or in times', () => {
    const other = cardNumber('e', '9');
    expect(hasLuhnDigit(other)).toBe(true);
    expect(kinds(other)).toEqual([]);
    expect(kinds(`${card}${card}`)).toEqual([]);
    expect(kinds('1732098765432 1732098765433')).toEqual([]);
    expect(kinds('2026-11-20 10:15:17.123456')).toEqual([]);
  });

  it('[I-05] law: a card in one of its usual spellings is found wherever it stands', () => {
    const separator = fc.constantFrom('', ' ', '-');
    const surroundings = fc.constantFrom('', 'Total: ', 'x ', '12 items, ', '\u00e9 ', '\n');
    fc.assert(
      fc.property(fc.string(), separator, surroundings, surroundings, (seed, between, before, after) => {
        const number = cardNumber(seed);
        fc.pre(isCardNumber(number));
        expect(kinds(`${before}${grouped(number, between)} ${after}`)).toContain('card');
      }),
    );
  });
});

describe('IBANs', () => {
  const account = iban('DE', '370400440532013000');

  it.each([
    ['together', account],
    ['in groups', account.replace(/(.{4})(?=.)/g, '$1 ')],
    ['in lower case', account.toLowerCase()],
    ['of another country', iban('GB', 'WEST12345698765432')],
  ])('[I-07] %s are found', (_how, text) => {
    expect(kinds(`Account ${text}.`)).toEqual(['iban']);
  });

  it('[I-07] with a wrong check, a wrong length or an unknown country pass', () => {
    expect(kinds(account.replace(/.$/, '9'))).toEqual([]);
    expect(kinds(account.slice(0, -1))).toEqual([]);
    expect(kinds(iban('ZZ', '370400440532013000'))).toEqual([]);
  });
});

describe('US social security numbers', () => {
  const number = ssn('someone');

  it('[I-08] are found with separators, and bare beside a cue or behind a name that says so', () => {
    const bare = number.replaceAll('-', '');
    expect(kinds(`It is ${number}.`)).toEqual(['ssn']);
    expect(kinds(`It is ${number.replaceAll('-', ' ')}.`)).toEqual(['ssn']);
    expect(kinds(`SSN: ${bare}`)).toEqual(['ssn']);
    expect(kinds(bare, 'ssn')).toEqual(['ssn']);
    expect(kinds(`It is ${bare}.`)).toEqual([]);
  });

  it('[I-08] that were never issued, or were printed in advertisements, pass', () => {
    const printed = ['078', '05', '1120'].join('-');
    for (const text of ['000-12-3456', '666-12-3456', '912-34-5678', '123-00-4567', '123-45-0000', printed]) {
      expect(kinds(text)).toEqual([]);
    }
  });
});
