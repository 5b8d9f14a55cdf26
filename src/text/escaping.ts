// Writes text into records as JSON strings of printable ASCII, so that one event is one line in every tool and no
// byte of it acts on a terminal. Verified text is kept exactly (JSON escapes restore it); foreign text is masked,
// made visible and cut here, whatever the caller did before. Also escapes characters that cannot be seen, for
// lock files, differences and terminals; never changes a definition that is hashed.
// Source: RFC 8259 §7; Unicode 16.

/** Foreign text is cut at this many characters. */
export const MAX_FOREIGN_CHARACTERS = 128;

/** Verified text is cut only here; no legitimate identifier is as long. */
const MAX_VERIFIED_CHARACTERS = 1024;

/** Maximum number of characters read before masking, enough to see a secret that begins before the cut. */
const MAX_MASKED_CHARACTERS = 4096;

/** Text that needs no escaping and is too short to hold a secret. */
const PLAIN = /^[\w.:/@ -]{0,19}$/;

/** Text that needs no escaping, whatever it means. */
const UNESCAPED = /^[\w.:/@ +=-]{0,1024}$/;

const NOT_PRINTABLE_ASCII = /[^\x20-\x7e]/g;

/** Characters that move, hide or end text: controls, formats, line ends, surrogates, unassigned. */
const NOT_VISIBLE = /[\p{C}\p{DI}\u2028\u2029]/gu;

/** JWS and JWE, PEM blocks, and what follows the scheme words of credentials. */
const SECRETS = /eyJ[\w-]{8,}(?:\.[\w-]*)*|-----BEGIN [A-Z ]{1,40}-----[^-]*|\b(?:bearer|basic|dpop) +[\w.~+/=-]{8,}/gi;

/** Masks secrets in foreign text. Linear, never throws, and lengthens the text by a small factor at most. */
export type MaskText = (text: string) => string;

function escapeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** JSON on one line of printable ASCII: anything else stands in strings alone, and is escaped there. */
export function toAsciiJson(value: string | object): string {
  const json = JSON.stringify(value);
  return json.replace(NOT_PRINTABLE_ASCII, escapeUnit);
}

/** A JSON string whose value is exactly `text`, for verified text and the gateway's own. */
export function quoteVerified(text: string): string {
  if (UNESCAPED.test(text)) return `"${text}"`;
  return toAsciiJson(text.length > MAX_VERIFIED_CHARACTERS ? cut(text, MAX_VERIFIED_CHARACTERS) : text);
}

/** A JSON string of an id or digest made here from letters, digits, `-`, `_`, `+`, `/`, `:` and `=`. */
export function quoteUnescaped(text: string): string {
  return `"${text}"`;
}

/** Cuts between code points. The ellipsis counts towards the maximum. */
function cut(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const last = text.charCodeAt(maxCharacters - 2);
  const isPairCut = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, maxCharacters - (isPairCut ? 2 : 1))}\u2026`;
}

/** Writes every character that is not visible as `\u{…}`. */
export function makeVisible(text: string): string {
  return text.replace(NOT_VISIBLE, (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Masks tokens and keys that are recognizable by their form alone. */
export function maskSecrets(text: string): string {
  return text.replace(SECRETS, '[redacted]');
}

/** Prepares foreign text for a record: masked, made visible and cut (by default at 128 characters). */
export function cleanForeign(
  text: string,
  mask: MaskText = maskSecrets,
  maxCharacters: number = MAX_FOREIGN_CHARACTERS,
): string {
  if (PLAIN.test(text)) return text;
  const head = text.length > MAX_MASKED_CHARACTERS ? text.slice(0, MAX_MASKED_CHARACTERS) : text;
  // What masks by form alone would leave of an interrupted secret a rest that nothing knows.
  return cut(makeVisible(maskSecrets(mask(head))), maxCharacters);
}

/** `cleanForeign` as a JSON string. */
export function quoteForeign(text: string, mask?: MaskText): string {
  return PLAIN.test(text) ? `"${text}"` : toAsciiJson(cleanForeign(text, mask));
}

/** A foreign name in quotation marks, for a sentence to its sender: masked and cut, each character escaped once. */
export function quoteForeignName(name: string, maxCharacters: number): string {
  const masked = maskSecrets(name.slice(0, MAX_MASKED_CHARACTERS));
  return makeVisible(JSON.stringify(cut(masked, maxCharacters)));
}

/** A JSON string, or `null` for undefined. */
export function quoteOptional(text: string | undefined): string {
  return text === undefined ? 'null' : quoteVerified(text);
}

const MAX_PLAIN_THOUSANDTHS = 2 ** 31 - 1;
/** By thousandths below one: the digits after the point, without trailing zeros. */
const DECIMALS = Array.from({ length: 1000 }, (_, fraction) => String(fraction).padStart(3, '0').replace(/0+$/, ''));

/** A JSON number with at most three decimals; `null` where JSON has no such number. */
export function quoteNumber(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return 'null';
  if (Number.isInteger(value)) return String(value);
  const thousandths = Math.round(value * 1000);
  if (thousandths < 0 || thousandths > MAX_PLAIN_THOUSANDTHS) return String(thousandths / 1000);
  // Integers are converted to text several times faster than fractions.
  const fraction = thousandths % 1000;
  const integer = String((thousandths - fraction) / 1000);
  return fraction === 0 ? integer : `${integer}.${DECIMALS[fraction] ?? ''}`;
}

/** A JSON array of verified strings, or of strings that are written otherwise. */
export function quoteList(
  values: readonly string[],
  maxValues: number,
  quote: (text: string) => string = quoteVerified,
): string {
  let text = '[';
  for (let index = 0; index < values.length && index < maxValues; index += 1) {
    text += (index === 0 ? '' : ',') + quote(values[index] ?? '');
  }
  return `${text}]`;
}

/** A JSON array of foreign strings. */
export function quoteForeignList(values: readonly string[], maxValues: number, mask?: MaskText): string {
  return quoteList(values, maxValues, (text) => quoteForeign(text, mask));
}

/** Controls other than tab and line ends, format characters (Cf), bidi controls, fillers, selectors, tags. */
const UNSEEN =
  '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160' +
  '\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164' +
  '\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}' +
  '\\u{e0000}-\\u{e0fff}';

/** Spaces that look like the ordinary one, private use, and halves of surrogate pairs. */
const MISTAKABLE =
  '\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ue000-\\uf8ff\\p{Surrogate}' +
  '\\u{f0000}-\\u{fffff}\\u{100000}-\\u{10ffff}';

const UNSEEN_RUN = new RegExp(`[${UNSEEN}]`, 'gu');
const ESCAPED = new RegExp(`[${UNSEEN}${MISTAKABLE}]`, 'gu');
const TERMINAL = new RegExp(`[${UNSEEN}${MISTAKABLE}\\t\\n\\r]`, 'gu');

/** The selector that follows an emoji in ordinary text. */
const EMOJI_SELECTOR = '\ufe0f';

/**
 * A YAML double-quoted scalar, which for most text is a JSON string. Characters that cannot be seen are written
 * as `\uXXXX` or, beyond the basic plane, `\UXXXXXXXX` (YAML 1.2.2 §5.7).
 */
export function quoteYaml(text: string): string {
  return JSON.stringify(text).replace(ESCAPED, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** A name in YAML, quoted where it would be read as a number or as other than text. */
export function nameInYaml(name: string): string {
  return /^(?!(?:true|false|null|yes|no|on|off|y|n)$)[a-z][a-z0-9_-]*$/.test(name) ? name : quoteYaml(name);
}

/**
 * JSON in which every character of a text that cannot be seen is written as `\uXXXX`; without indentation on one line.
 */
export function toVisibleJson(value: object, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(ESCAPED, (character) =>
    Array.from({ length: character.length }, (_, at) => escapeUnit(character.charAt(at))).join(''),
  );
}

/** A single line that is safe on a terminal: controls, escapes and unseen characters become `\u{…}`. */
export function escapeForTerminal(text: string): string {
  return text.replace(TERMINAL, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\r') return '\\r';
    if (character === '\t') return '\\t';
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/**
 * An argument as a shell has to be given it: a POSIX shell, zsh or fish. Between single quotes a backslash is only text
 * in the first two but may escape a quote in fish, and zsh replaces a word that begins with `=`.
 */
export function quoteForShell(word: string): string {
  if (/^[\w./:@%+,-][\w./:@%+=,-]*$/.test(word)) return word;
  return `'${word.replace(/['\\]/g, (mark) => (mark === "'" ? `'\\''` : `'"\\\\"'`))}'`;
}

/** A host as URLs write it: an IPv6 address in brackets. */
export function urlHost(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** Whether a terminal and a page show a line without escapes, so that a copy of it is exact. */
export function isShownAsIs(line: string): boolean {
  return makeVisible(escapeForTerminal(line)) === line;
}

/** Whether a terminal shows a name as it is, and a command does not take it for an option. */
export function isPasteable(name: string): boolean {
  return isShownAsIs(name) && !name.startsWith('-');
}

/** The unseen characters of a text, without duplicates and without the emoji selector. */
export function unseenCharacters(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [character] of text.matchAll(UNSEEN_RUN)) {
    if (character !== EMOJI_SELECTOR) found.add(character);
  }
  return found;
}
