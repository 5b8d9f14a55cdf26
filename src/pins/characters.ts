// Which characters a reader cannot see, and how they are written so that a reader can.
// Used for lock files, differences and cues; never changes a definition that is hashed.
// Unicode 16: general category Cf and the fillers, selectors and tags that render as nothing.

/** Controls other than tab and line ends, format characters, bidi controls, fillers, selectors, tags. */
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

/** The selector that follows an emoji in honest text. */
const EMOJI_SELECTOR = '\ufe0f';

/**
 * A YAML double-quoted scalar, which for most text is a JSON string: what cannot be seen is written
 * as `\uXXXX` or, beyond the basic plane, `\UXXXXXXXX` (YAML 1.2.2 §5.7).
 */
export function quoteVisibly(text: string): string {
  return JSON.stringify(text).replace(ESCAPED, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff
      ? `\\U${code.toString(16).padStart(8, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** One line that a terminal shows as it is: controls, escapes and unseen characters as `\u{…}`. */
export function escapeForTerminal(text: string): string {
  return text.replace(TERMINAL, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\r') return '\\r';
    if (character === '\t') return '\\t';
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** The unseen characters of a text, each once; the emoji selector does not count. */
export function unseenCharacters(text: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [character] of text.matchAll(UNSEEN_RUN)) {
    if (character !== EMOJI_SELECTOR) found.add(character);
  }
  return found;
}
