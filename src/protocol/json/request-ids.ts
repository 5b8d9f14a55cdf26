// Request ids and progress tokens that are numbers of JSON: any number, compared by its exact decimal value. A number
// that a double holds exactly is a number. Any other, such as a time in nanoseconds, is kept as text behind half of a
// surrogate pair, which no text that was read contains: so ids stay values that are compared, sealed and stored as
// before, and `renderJson` writes the number again. The bytes of a message are not touched.
// Source: JSON-RPC 2.0 §4; RFC 8259 §6.

import type { Json, RequestId } from '../jsonrpc.js';
import { decimalForm, isInexact } from './number-literals.js';

/** Begins the text that stands for a number. As UTF-8 does not have it and an escape of it is refused, nobody sends it. */
const MARK = '\ud800';
const MARKED_IN_JSON = /"\\ud800([^"]*)"/g;

/** Longest number that can be an id: enough for 128 bits many times over, and cheap to compare. */
export const MAX_ID_NUMBER_CHARACTERS = 256;
/** Largest exponent, positive or negative, of a number that can be an id. */
export const MAX_ID_EXPONENT = 999;

/** In place of a number beyond the bounds: no id, and no absent one either. */
const NO_ID = false;

/** Whether a member that holds an id was a number beyond the bounds. */
export function isUnboundedNumber(id: Json | undefined): boolean {
  return id === NO_ID;
}

/** Whether an id is a number of JSON, and not a text. */
export function isNumberId(id: RequestId): boolean {
  return typeof id === 'number' || id.startsWith(MARK);
}

/** The id that a number literal writes; {@link NO_ID} beyond the bounds. */
export function exactIdOf(literal: string): RequestId | typeof NO_ID {
  if (!isWithinBounds(literal)) return NO_ID;
  return isInexact(literal) ? MARK + decimalText(literal) : Number(literal);
}

function isWithinBounds(literal: string): boolean {
  if (literal.length > MAX_ID_NUMBER_CHARACTERS) return false;
  const [, exponent = '0'] = literal.toLowerCase().split('e');
  return Math.abs(Number(exponent)) <= MAX_ID_EXPONENT;
}

/** One text for each decimal value; a whole number has neither point nor exponent unless it is very long. */
function decimalText(literal: string): string {
  const [coefficient = '', exponent = '0'] = decimalForm(literal).split('e');
  const power = Number(exponent);
  const sign = coefficient.startsWith('-') ? '-' : '';
  const digits = coefficient.slice(sign.length);
  if (power >= 0 && digits.length + power <= MAX_ID_NUMBER_CHARACTERS) return `${sign}${digits}${'0'.repeat(power)}`;
  if (power < 0 && digits.length > -power) return `${sign}${digits.slice(0, power)}.${digits.slice(power)}`;
  return `${coefficient}e${power}`;
}

/** JSON of a message or id that the gateway writes: like JSON.stringify, with every id as the number that it is. */
export function renderJson(value: unknown): string {
  const text = JSON.stringify(value);
  return text.includes('"\\ud800') ? text.replace(MARKED_IN_JSON, '$1') : text;
}

/** An id for records: a number where every reader of JSON reads the same one, otherwise its decimal text. */
export function recordedId(id: RequestId | undefined): RequestId | undefined {
  if (typeof id === 'string') return id.startsWith(MARK) ? id.slice(MARK.length) : id;
  return id === undefined || Math.abs(id) <= Number.MAX_SAFE_INTEGER ? id : String(id);
}
