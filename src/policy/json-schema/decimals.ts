// Compares numbers by the decimals that are written, not by their doubles: 4.35 is a multiple of 0.01, and a literal of
// thirty digits keeps them all. A double stands for its shortest decimal, which is the text that it was read from unless
// the reader of the text says otherwise. Linear in the digits, of which there may only be so many.
// Source: JSON Schema 2020-12 core §4.2.2, validation §6.2; RFC 8259 §6.

/** A decimal: `digits` times ten to the power of `exponent`. Digits have no zeros at the end. */
type Decimal = { readonly digits: bigint; readonly exponent: number };

/** Literals with more characters, or larger exponents, are not computed with. */
const MAX_LITERAL_CHARS = 1024;
const MAX_EXPONENT = 100_000;

/** Reads a number literal of JSON; undefined if it is too long to compute with. */
function decimalOf(literal: string): Decimal | undefined {
  if (literal.length > MAX_LITERAL_CHARS) return undefined;
  const [mantissa = '', power = '0'] = literal.toLowerCase().split('e');
  const [integer = '', fraction = ''] = mantissa.split('.');
  let digits = BigInt(`${integer}${fraction}`.replace('-', '') || '0');
  let exponent = Number(power) - fraction.length;
  if (digits === 0n) return { digits, exponent: 0 };
  if (Math.abs(exponent) > MAX_EXPONENT) return undefined;
  for (; digits % 10n === 0n; exponent++) digits /= 10n;
  return { digits: mantissa.startsWith('-') ? -digits : digits, exponent };
}

/** Whether one decimal is a multiple of another, which is greater than zero; undefined if it cannot be computed. */
export function isMultipleOf(literal: string, divisor: string): boolean | undefined {
  const value = decimalOf(literal);
  const by = decimalOf(divisor);
  if (value === undefined || by === undefined || by.digits === 0n) return undefined;
  if (value.digits === 0n) return true;
  const shift = value.exponent - by.exponent;
  if (shift >= 0) return (value.digits * powerOfTen(shift, by.digits)) % by.digits === 0n;
  // A value without zeros at the end that is finer than the divisor is no multiple, unless the divisor has factors of ten.
  return -shift > MAX_LITERAL_CHARS ? false : value.digits % (by.digits * 10n ** BigInt(-shift)) === 0n;
}

/** Ten to a power, modulo a number. */
function powerOfTen(power: number, modulus: bigint): bigint {
  let result = 1n;
  let base = 10n % modulus;
  for (let left = power; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = (result * base) % modulus;
    base = (base * base) % modulus;
  }
  return result;
}

/** Negative, zero or positive as one decimal is less than, equal to or greater than another; undefined as above. */
export function compareDecimals(one: string, other: string): number | undefined {
  const left = decimalOf(one);
  const right = decimalOf(other);
  if (left === undefined || right === undefined) return undefined;
  const [a, b] = [signOf(left), signOf(right)];
  if (a !== b || a === 0) return a - b;
  const magnitudes = magnitudeOf(left) - magnitudeOf(right);
  if (magnitudes !== 0) return a * magnitudes;
  // Of equal magnitude, so that the exponents differ by no more than the number of digits.
  const shift = Math.min(left.exponent, right.exponent);
  const [x, y] = [left, right].map(({ digits, exponent }) => digits * 10n ** BigInt(exponent - shift));
  return x === y ? 0 : (x ?? 0n) < (y ?? 0n) ? -1 : 1;
}

function signOf({ digits }: Decimal): number {
  return digits < 0n ? -1 : digits > 0n ? 1 : 0;
}

/** The power of ten of the first digit. */
function magnitudeOf({ digits, exponent }: Decimal): number {
  return String(digits < 0n ? -digits : digits).length + exponent;
}

/** Whether a literal is a whole number; undefined as above. */
export function isIntegerText(literal: string): boolean | undefined {
  const value = decimalOf(literal);
  return value && value.exponent >= 0;
}

/** One text for all literals of a number; undefined as above. */
export function canonicalDecimal(literal: string): string | undefined {
  const value = decimalOf(literal);
  return value && `${value.digits}e${value.exponent}`;
}
