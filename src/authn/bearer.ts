// Finds the one bearer token of a request, in its one canonical spelling, or says why there is none.
// A token in a query, two headers, padding, whitespace or spare bits make it malformed, so that one
// token has one spelling wherever it is hashed. It decodes and verifies nothing.
// RFC 6750 §2.1; RFC 7515 §3.1 and Appendix C; RFC 4648 §3.5.

const MAX_TOKEN_BYTES = 8 * 1024;
const SCHEME = 'bearer';

/** Three parts: unsecured tokens have an empty third, encrypted ones have five (RFC 7516 §3.1). */
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Last characters that leave no spare bit set, by the length of the part modulo 4. */
const CANONICAL_ENDS: readonly (string | undefined)[] = [
  'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
  undefined,
  'AQgw',
  'AEIMQUYcgkosw048',
];

export type Bearer = { readonly token: string } | 'missing' | 'malformed';

function isCanonicalPart(part: string): boolean {
  return CANONICAL_ENDS[part.length % 4]?.includes(part.slice(-1)) === true;
}

/** Some frameworks read names without regard to case, so every spelling counts. */
function carriesToken(query: string): boolean {
  if (query === '') return false;
  for (const name of new URLSearchParams(query).keys()) {
    if (name.toLowerCase() === 'access_token') return true;
  }
  return false;
}

/**
 * Reads the token of a request. `headers` has lower-case names, `repeated` those that came more than
 * once, `query` no `?`. `missing`: no bearer credential was sent. `malformed`: one was, but not as a
 * single canonical compact JWS of at most 8 KiB in a single header.
 */
export function readBearer(
  headers: { readonly [name: string]: string | undefined },
  repeated: ReadonlySet<string>,
  query: string,
): Bearer {
  if (carriesToken(query) || repeated.has('authorization')) return 'malformed';
  const header = headers['authorization'];
  // Another scheme is no bearer credential, and gets the challenge without an error (RFC 6750 §3.1).
  if (header?.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return 'missing';
  const tokenStart = SCHEME.length + 1;
  if (header.length > tokenStart + MAX_TOKEN_BYTES) return 'malformed';
  if (header[SCHEME.length] !== ' ') return 'malformed';
  const token = header.slice(tokenStart);
  if (!COMPACT_JWS.test(token) || !token.split('.').every(isCanonicalPart)) return 'malformed';
  return { token };
}
