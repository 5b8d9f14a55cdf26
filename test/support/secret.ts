// A secret that looks real and is made anew in every run: none stands in the tree.

import { randomBytes } from 'node:crypto';

/** 43 characters of base64url. */
export function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}
