// Whether a value that stands where a secret belongs is one, or a sample from documentation.
// Judges single values; finding them is secrets.ts.
// Source: Shannon entropy; the sample credentials that vendors print in their documentation.

const PLACEHOLDER =
  /x{4}|\*{3}|\.{3}|\u2026|<|>|\$\{|\$\(|\{\{|%s|\[redacted|redacted\]|example|your[_-]|[_-]your|^your|my[_-]|placeholder|changeme|change[_-]me|insert|replace|dummy|sample|fake|todo|abcdefgh|123456789|password|passw0rd|^secret|^token|undefined|null|process\.env|os\.environ|getenv|secrets\./i;

const MIN_ENTROPY_BITS = 2.8;
const MIN_MIXED_CHARS = 8;

/** Names that say their value is a secret: the end of a member name, a variable or a label. */
const SECRET_NAME =
  /(?:^|[^a-z])(?:password|passwd|passphrase|pwd|secret|api[_\- ]?key|apikey|access[_\- ]?key|private[_\- ]?key|secret[_\- ]?key|client[_\- ]?secret|auth[_\- ]?token|access[_\- ]?token|refresh[_\- ]?token|bearer[_\- ]?token|api[_\- ]?token|token|credentials?)$/i;

/** Tokens that only continue a list or guard a form. */
const HARMLESS_NAME =
  /(?:next|page|pagination|continuation|cursor|sync|delta|csrf|xsrf|progress|max|count|public)[_\- ]?(?:page)?[_\- ]?(?:token|key|secret)$/i;

const MAX_ASCII = 0x7f;
/** All zero between two calls. */
const counts = new Uint32Array(MAX_ASCII + 1);

/** Bits per character of the value's own distribution. */
export function entropyBits(value: string): number {
  const distinct: number[] = [];
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code > MAX_ASCII) {
      for (const known of distinct) counts[known] = 0;
      return entropyOfCharacters(value);
    }
    const count = counts[code] ?? 0;
    if (count === 0) distinct.push(code);
    counts[code] = count + 1;
  }
  let bits = 0;
  for (const code of distinct) {
    const share = (counts[code] ?? 0) / value.length;
    counts[code] = 0;
    bits -= share * Math.log2(share);
  }
  return bits;
}

/** The same for characters that no table holds. */
function entropyOfCharacters(value: string): number {
  const known = new Map<string, number>();
  for (const unit of value) known.set(unit, (known.get(unit) ?? 0) + 1);
  let bits = 0;
  for (const count of known.values()) {
    const share = count / value.length;
    bits -= share * Math.log2(share);
  }
  return bits;
}

/** True for what documentation prints in place of a secret. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value) || new Set(value).size <= 4;
}

/**
 * True for a value with the entropy of something made at random, and with a digit or letters that no word
 * has: of the tokens that are made of letters and digits, some have no digit.
 */
export function isMixed(value: string): boolean {
  if (!/\d/.test(value) && !isScrambled(value)) return false;
  return entropyBits(value) >= MIN_ENTROPY_BITS && !isPlaceholder(value);
}

const MIN_CASE_TURNS = 4;

/** True for a long run of capitals, or of letters whose case turns without order. */
function isScrambled(value: string): boolean {
  const [run] = /[A-Za-z]{16,}/.exec(value) ?? [];
  if (run === undefined) return false;
  return !/[a-z]/.test(run) || (run.match(/[a-z](?=[A-Z])/g)?.length ?? 0) >= MIN_CASE_TURNS;
}

/** True where the name of a member, variable or label says that a secret follows. */
export function isSecretName(name: string): boolean {
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2');
  return SECRET_NAME.test(spaced) && !HARMLESS_NAME.test(spaced);
}

/** True where a value that stands behind a secret's name looks like a secret, not like a word or a type. */
export function isSecretValue(value: string): boolean {
  if (value.length < MIN_MIXED_CHARS || value.length > 512 || /\s/.test(value)) return false;
  if (!/\d/.test(value) || !/[A-Za-z]/.test(value)) return false;
  if (/^(?:https?:\/\/|\/|\.\/|~\/)/.test(value) || /^\d{4}-\d\d-\d\dT/.test(value)) return false;
  // The dearest last: a text may hold a name before every fifth character, each with a long value behind it.
  return entropyBits(value) >= MIN_ENTROPY_BITS && !isPlaceholder(value);
}

/** True for a password in a URL or a connection string that is none of the usual samples. */
export function isRealPassword(value: string): boolean {
  return (
    !isPlaceholder(value) && !/^(?:pass|pwd|pw|user|admin|root|postgres|guest|test)$/i.test(value)
  );
}

/** True where three parts of base64url open with a header that names an algorithm (RFC 7515 §4.1.1). */
export function isJwt(value: string): boolean {
  try {
    const head = value.slice(0, value.indexOf('.')).replaceAll('-', '+').replaceAll('_', '/');
    const header: unknown = JSON.parse(atob(head));
    return typeof header === 'object' && header !== null && 'alg' in header;
  } catch {
    return false;
  }
}
