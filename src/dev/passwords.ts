// Passwords of the users of the development issuer: hashed by scrypt, with the parameters in the text of the hash, so
// that they can be raised later. A name that nobody has costs as much time as a wrong password. Pure but for random
// salts. RFC 7914; RFC 8265 §4 (the same password, typed on different keyboards); OWASP's minimum for scrypt.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

type Parameters = { readonly logCost: number; readonly blockSize: number; readonly parallel: number };
type Hash = Parameters & { readonly salt: Buffer; readonly digest: Buffer };

const CURRENT: Parameters = { logCost: 15, blockSize: 8, parallel: 3 };
/** What a hash in the file may cost: 128 MiB at most, so that no line of it ends the process. */
const BOUNDS = { logCost: [10, 17], blockSize: [1, 8], parallel: [1, 8] } as const;
const SALT_BYTES = 16;
const DIGEST_BYTES = 32;
const GENERATED_BYTES = 15;
/** The form of the Password Hashing Competition: base64 without padding. */
const FORM = /^\$scrypt\$ln=(\d{1,2}),r=(\d),p=(\d)\$([A-Za-z0-9+/]{22,64})\$([A-Za-z0-9+/]{43})$/;

/** A line for the users file. */
export async function hashPassword(password: string, parameters = CURRENT): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const digest = await derive(password, { ...parameters, salt });
  const { logCost, blockSize, parallel } = parameters;
  return `$scrypt$ln=${logCost},r=${blockSize},p=${parallel}$${unpadded(salt)}$${unpadded(digest)}`;
}

/** A password that nobody has to invent. */
export function newPassword(): string {
  return randomBytes(GENERATED_BYTES).toString('base64url');
}

/** The hash of a line; `undefined` if it is none, or one that would cost too much. */
export function readHash(text: string): Hash | undefined {
  const [, ln, r, p, salt = '', digest = ''] = FORM.exec(text) ?? [];
  const parameters = { logCost: Number(ln), blockSize: Number(r), parallel: Number(p) };
  const isWithin = (['logCost', 'blockSize', 'parallel'] as const).every((name) => {
    const [least, most] = BOUNDS[name];
    return parameters[name] >= least && parameters[name] <= most;
  });
  if (!isWithin) return undefined;
  return { ...parameters, salt: Buffer.from(salt, 'base64'), digest: Buffer.from(digest, 'base64') };
}

/** Of a password that nobody knows, for names that nobody has. */
const NOBODY: Hash = { ...CURRENT, salt: randomBytes(SALT_BYTES), digest: randomBytes(DIGEST_BYTES) };

/** Whether a password is the one of a hash. Without a hash it is wrong, after the same work. */
export async function isPassword(password: string, hash: Hash | undefined): Promise<boolean> {
  const expected = hash ?? NOBODY;
  const given = await derive(password, expected);
  return timingSafeEqual(given, expected.digest) && hash !== undefined;
}

function derive(password: string, { logCost, blockSize, parallel, salt }: Parameters & { readonly salt: Buffer }) {
  const options = { N: 2 ** logCost, r: blockSize, p: parallel };
  // Node wants to be told that so much memory is meant.
  const maxmem = 256 * options.N * options.r;
  return new Promise<Buffer>((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, DIGEST_BYTES, { ...options, maxmem }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
