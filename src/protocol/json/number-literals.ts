// The decimal values of number literals of JSON, which are exact where a double is not.
// Source: RFC 8259 §6; RFC 7493 §2.2.

/** Whether a number literal has another decimal value after a round trip through a double. */
export function isInexact(literal: string): boolean {
  const value = Number(literal);
  return !Number.isFinite(value) || decimalForm(literal) !== decimalForm(String(value));
}

/** Writes a number literal as its significant digits and the power of ten of the last of them. */
export function decimalForm(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [integer = '', fraction = ''] = mantissa.slice(sign.length).split('.');
  const digits = integer + fraction;
  let first = 0;
  while (digits.charCodeAt(first) === 0x30) first++;
  let last = digits.length;
  while (last > first && digits.charCodeAt(last - 1) === 0x30) last--;
  if (first === last) return '0';
  const power = Number(exponent) - fraction.length + (digits.length - last);
  return `${sign}${digits.slice(first, last)}e${power}`;
}
