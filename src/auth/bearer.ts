// Reads the one token of a request in canonical encoding, or says why there is none. A token in the query, in two
// headers, with whitespace or, in compact form, with padding or spare bits is malformed, so that a token has one
// encoding wherever it is hashed. Nothing is decoded or verified here.
// RFC 6750 §2.1; RFC 9449 §7.1; RFC 7515 §3.1 and Appendix C; RFC 7516 §3.1; RFC 4648 §3.5.

const MAX_TOKEN_BYTES = 8 * 1024;
const SCHEMES = ['bearer', 'dpop'] as const;

/** Shorter tokens could be guessed (RFC 6749 §10.10), and could occur by chance in the text of a message. */
const MIN_OPAQUE_LENGTH = 16;

/** RFC 6750 §2.1, with padding characters at the end only. */
const OPAQUE = /^[A-Za-z0-9._~+/-]+={0,2}$/;

/** Three parts or five: it can be read as a JWS or a JWE, whatever else it may be. */
const COMPACT = /^[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*){2}(?:(?:\.[A-Za-z0-9_-]*){2})?$/;

/** Three parts: unsecured tokens have an empty third, encrypted ones have five (RFC 7516 §3.1). */
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Last characters that leave no spare bit set, by the length of the part modulo 4. */
const CANONICAL_ENDS: readonly (string | undefined)[] = [
  'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
  undefined,
  'AQgw',
  'AEIMQUYcgkosw048',
];

/** How a token is presented: as a bearer, or with a DPoP proof of the key that it is bound to. */
export type TokenScheme = (typeof SCHEMES)[number];

export type Bearer = { readonly token: string; readonly scheme: TokenScheme };

/** Whether no part between dots has a spare bit set. */
function hasCanonicalParts(text: string): boolean {
  for (let start = 0; start <= text.length; ) {
    const dot = text.indexOf('.', start);
    const end = dot === -1 ? text.length : dot;
    const isCanonical = CANONICAL_ENDS[(end - start) % 4]?.includes(text.charAt(end - 1));
    if (end > start && isCanonical !== true) return false;
    start = end + 1;
  }
  return true;
}

/** Names are compared without case, because some frameworks read them so. */
function carriesToken(query: string): boolean {
  if (query === '') return false;
  for (const name of new URLSearchParams(query).keys()) {
    if (name.toLowerCase() === 'access_token') return true;
  }
  return false;
}

/** The scheme of a credential, compared without case (RFC 9110 §11.1); `undefined` for every other scheme. */
export function schemeOf(header: string | undefined): TokenScheme | undefined {
  if (header === undefined) return undefined;
  return SCHEMES.find((scheme) => header.slice(0, scheme.length).toLowerCase() === scheme);
}

/** True for a compact JWS in canonical encoding. */
export function isCompactJws(text: string): boolean {
  return COMPACT_JWS.test(text) && hasCanonicalParts(text);
}

/** A token that only its issuer can read; one in compact form must still be canonical. */
function isOpaque(token: string): boolean {
  if (token.length < MIN_OPAQUE_LENGTH || !OPAQUE.test(token)) return false;
  return !COMPACT.test(token) || hasCanonicalParts(token);
}

/**
 * Reads the token of a request. `headers` has lower-case names, `repeated` holds those sent more than once, `query` has
 * no `?`. `missing`: no token was sent. `malformed`: not a single canonical compact JWS of at most 8 KiB in a single
 * header, or with two proofs; with `mayBeOpaque` other tokens of that size are accepted too, for their issuer to read.
 */
export function readBearer(
  headers: { readonly [name: string]: string | undefined },
  repeated: ReadonlySet<string>,
  query: string,
  mayBeOpaque = false,
): Bearer | 'missing' | 'malformed' {
  if (carriesToken(query) || repeated.has('authorization') || repeated.has('dpop')) {
    return 'malformed';
  }
  const header = headers['authorization'];
  const scheme = schemeOf(header);
  // Another scheme carries no token, and gets the challenge without an error (RFC 6750 §3.1).
  if (header === undefined || scheme === undefined) return 'missing';
  const tokenStart = scheme.length + 1;
  if (header.length > tokenStart + MAX_TOKEN_BYTES) return 'malformed';
  if (header[scheme.length] !== ' ') return 'malformed';
  const token = header.slice(tokenStart);
  return isCompactJws(token) || (mayBeOpaque && isOpaque(token)) ? { token, scheme } : 'malformed';
}
