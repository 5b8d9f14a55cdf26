// Secrets, card numbers and the like, made at run time from a seed: they are the same in every run, none of them stands
// in the tree, and none is anybody's.

import { createHash } from 'node:crypto';
import type { Json } from './json.js';
import { luhnDigit } from './secrets.js';

const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Letters and digits that look random and are the same in every run. */
export function noise(seed: string, length: number, alphabet = ALPHANUMERIC): string {
  let text = '';
  for (let block = 0; text.length < length; block++) {
    for (const byte of createHash('sha512').update(`${seed}/${block}`).digest()) {
      text += alphabet[byte % alphabet.length];
    }
  }
  // A digit in any case: what is made at random nearly always has one.
  return `${text.slice(0, length - 1)}7`;
}

export const HEX = '0123456789abcdef';
export const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

export function githubToken(seed: string): string {
  return `gh${'p'}_${noise(seed, 36)}`;
}

export function awsKey(seed: string): string {
  return `AK${'IA'}${noise(seed, 16, UPPER)}`;
}

/** A card number of the range and length with a right check digit. */
export function cardNumber(seed: string, prefix = '4', length = 16): string {
  const body = prefix + noise(seed, length - prefix.length - 1, '0123456789');
  return `${body}${luhnDigit(body)}`;
}

/** An IBAN of the country with right check digits (ISO 7064, mod 97-10). */
export function iban(country: string, body: string): string {
  const digits = [...`${body}${country}00`].map((unit) => Number.parseInt(unit, 36)).join('');
  const check = 98n - (BigInt(digits) % 97n);
  return `${country}${String(check).padStart(2, '0')}${body}`;
}

export function ssn(seed: string): string {
  const digits = noise(seed, 9, '123456');
  return `${digits.slice(0, 3)}-${digits.slice(3, 5)}-${digits.slice(5)}`;
}

export function base64Url(value: Json): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export function jwt(seed: string): string {
  const header = base64Url({ alg: 'ES256', typ: 'at+jwt' });
  return `${header}.${base64Url({ sub: seed, scope: 'read' })}.${noise(seed, 86)}`;
}
