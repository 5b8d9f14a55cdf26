// Secrets and personal data that look real and are made anew in every run: none stands in the tree.

import { randomBytes, randomInt } from 'node:crypto';

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function pick(alphabet: string, length: number): string {
  return Array.from(randomBytes(length), (byte) => alphabet[byte % alphabet.length]).join('');
}

/** A personal access token of GitHub's form. */
export function makeGithubToken(): string {
  return `ghp_${pick(LETTERS_AND_DIGITS, 36)}`;
}

/** An access key id of AWS's form. */
export function makeAwsKey(): string {
  return `AKIA${pick(BASE32, 16)}`;
}

function luhnDigit(digits: string): number {
  let sum = 0;
  for (let i = 0; i < digits.length; i += 1) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 0 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return (10 - (sum % 10)) % 10;
}

/** The number of a payment card, in groups of four. */
export function makeCard(separator = ' '): string {
  const digits = `4${Array.from({ length: 14 }, () => randomInt(1, 10)).join('')}`;
  return (`${digits}${luhnDigit(digits)}`.match(/.{4}/g) ?? []).join(separator);
}

/** A US social security number in its usual spelling. */
export function makeSsn(): string {
  return `${randomInt(201, 299)}-${randomInt(10, 99)}-${randomInt(1000, 9998)}`;
}
