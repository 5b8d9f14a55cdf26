// Secrets and personal data that are made at run time: none stands in the tree.

import { randomBytes, randomInt } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// A secret that looks real and is made anew in every run: none stands in the tree.

/** 43 characters of base64url. */
export function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}

// A folder for what a gateway file refers to: secrets, keys, certificates. Everything in it is made at run
// time and goes with it.

export type SecretFiles = {
  /** Writes a file and returns its path, quoted as YAML takes it. */
  write(name: string, text: string): Promise<string>;
  close(): Promise<void>;
};

export async function makeSecretFiles(): Promise<SecretFiles> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-secrets-'));
  return {
    async write(name, text) {
      const path = join(folder, name);
      await writeFile(path, text);
      return JSON.stringify(path);
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

// Values made at random from the pattern of a secret's format: of every repeat as many as it asks for at least,
// or some more.

type Part = () => string;

const PRINTABLE = Array.from({ length: 0x5f }, (_, at) => String.fromCharCode(0x20 + at));
const DIGITS = [...'0123456789'];

/** Randomness that a test can repeat: a number below `bound`. */
export type Pick = (bound: number) => number;

/** Makes values that a pattern of secret-formats.ts takes. Knows what stands in those patterns, and no more. */
export function randomValues(pattern: RegExp, pick: Pick = (bound) => randomInt(bound)): Part {
  const { source } = pattern;
  let at = 0;

  function alternatives(): Part {
    const choices: Part[] = [sequence()];
    while (source[at] === '|') {
      at++;
      choices.push(sequence());
    }
    return () => choices[choices.length === 1 ? 0 : pick(choices.length)]?.() ?? '';
  }

  function sequence(): Part {
    const parts: Part[] = [];
    while (at < source.length && source[at] !== '|' && source[at] !== ')') parts.push(repeated());
    return () => parts.map((part) => part()).join('');
  }

  function repeated(): Part {
    const part = atom();
    const [bounds, least = '1', , most] = /^\{(\d+)(,(\d+))?\}/.exec(source.slice(at)) ?? [];
    if (bounds !== undefined) {
      at += bounds.length;
      const min = Number(least);
      const span = Math.min(Number(most ?? least) - min, 4);
      return () => {
        let text = '';
        for (let left = min + pick(span + 1); left > 0; left--) text += part();
        return text;
      };
    }
    if (source[at] !== '?') return part;
    at++;
    return () => (pick(2) === 0 ? '' : part());
  }

  function atom(): Part {
    const unit = source[at++];
    if (unit === '(') return group();
    if (unit === '[') return set();
    if (unit === '\\') return escaped(source[at++] ?? '');
    return () => unit ?? '';
  }

  function group(): Part {
    const looks = /^\?<?[=!]/.exec(source.slice(at));
    const mark = looks ?? /^\?:/.exec(source.slice(at));
    at += mark?.[0].length ?? 0;
    const inner = alternatives();
    at++;
    return looks === null ? inner : () => '';
  }

  function set(): Part {
    const end = /^(?:[^\]\\]|\\.)*/.exec(source.slice(at))?.[0].length ?? 0;
    const members = new RegExp(`[${source.slice(at, at + end)}]`);
    at += end + 1;
    const units = PRINTABLE.filter((unit) => members.test(unit));
    return () => units[pick(units.length)] ?? '';
  }

  function escaped(unit: string): Part {
    if (unit === 'd') return () => DIGITS[pick(10)] ?? '';
    return () => (unit === 's' ? ' ' : unit);
  }

  return alternatives();
}

// Secrets and personal data that look real and are made anew in every run: none stands in the tree.

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

export function luhnDigit(digits: string): number {
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
