// Reads what a verified token is bound to. A member that is not known here is a binding that nobody would
// check, so it makes the token useless instead of free. Proves nothing: see binding.ts.
// RFC 7800 §3.1; RFC 9449 §6.1; RFC 8705 §3.1.

import { isObject, type Json } from '../mcp/message.js';
import type { Confirmation } from '../policy/principal.js';

/** SHA-256 in its one base64url spelling: 43 characters, the last without spare bits. */
const THUMBPRINT = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** `undefined` where there is no confirmation, `unknown` where there is one that cannot be checked. */
export function readConfirmation(value: Json | undefined): Confirmation | undefined | 'unknown' {
  if (value === undefined) return undefined;
  if (!isObject(value)) return 'unknown';
  const names = Object.keys(value);
  const isKnown = names.every((name) => name === 'jkt' || name === 'x5t#S256');
  if (!isKnown || names.length === 0) return 'unknown';
  const proofKey = value['jkt'];
  const certificate = value['x5t#S256'];
  if (!isThumbprint(proofKey) || !isThumbprint(certificate)) return 'unknown';
  return {
    ...(proofKey === undefined ? {} : { proofKey }),
    ...(certificate === undefined ? {} : { certificate }),
  };
}

/** A thumbprint, or nothing at all. */
function isThumbprint(value: Json | undefined): value is string | undefined {
  return value === undefined || (typeof value === 'string' && THUMBPRINT.test(value));
}
