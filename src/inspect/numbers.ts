// Whether a JSON number is a card, a social security number or a secret: what was a string before someone
// forgot the quotes. Judged by its digits and the member name that it stands behind.

import type { Wanted } from './sanitize/detect.js';
import { findOwn, OWN_CREDENTIAL } from './sanitize/own-credentials.js';
import { findSsns, isCardNumber } from './sanitize/personal.js';
import { isSecretNumber } from './sanitize/secrets.js';

const MIN_DIGITS = 8;

/** The kind of a number literal that is to be removed; undefined for every other number. */
export function numberKind(
  literal: string,
  name: string | undefined,
  wanted: Wanted,
): string | undefined {
  if (findOwn(literal, wanted.own).length > 0) return OWN_CREDENTIAL;
  const digits = digitsOf(literal);
  if (digits === undefined || digits.length < MIN_DIGITS) return undefined;
  if (wanted.pii.includes('card') && isCardNumber(digits)) return 'card';
  if (wanted.pii.includes('ssn') && findSsns(digits, name).length > 0) return 'ssn';
  return wanted.secrets && isSecretNumber(digits, name) ? 'secret' : undefined;
}

/** The digits of a whole number, also where it is written with a point or an exponent. */
function digitsOf(literal: string): string | undefined {
  if (/^-?\d+$/.test(literal)) return literal.replace('-', '');
  const value = Math.abs(Number(literal));
  return Number.isInteger(value) && value < 1e19 ? BigInt(value).toString() : undefined;
}
