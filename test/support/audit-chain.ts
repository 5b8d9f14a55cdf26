// Verifies an audit file that a test has read.

import { type ChainVerdict, ChainVerifier, type VerifyOptions } from '../../src/audit/verify.js';

/** Verifies the lines of one file (Latin-1 text, without line feeds). */
export function verifyChain(lines: Iterable<string>, options: VerifyOptions = {}, file = 'audit'): ChainVerdict {
  const verifier = new ChainVerifier(options);
  let number = 0;
  for (const line of lines) {
    number += 1;
    verifier.push(line, file, number);
  }
  return verifier.end();
}
