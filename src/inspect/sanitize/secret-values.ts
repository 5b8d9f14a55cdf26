// Whether a value that stands where a secret belongs is one, or a sample from documentation.
// Judges single values; finding them is secrets.ts.
// Source: the ways in which code, configuration and documentation write such values.

import { countUnexplained, hasRandomWindow, isPublishedSample } from './sample-values.js';

/** Names that say their value is a secret: the end of a member name, a variable or a label. */
const SECRET_NAME =
  /(?:^|[^a-z])(?:password|passwd|passphrase|pwd|secret|api[_\- ]?key|apikey|access[_\- ]?key|private[_\- ]?key|secret[_\- ]?key|client[_\- ]?secret|auth[_\- ]?token|access[_\- ]?token|refresh[_\- ]?token|bearer[_\- ]?token|api[_\- ]?token|token|credentials?)$/i;

/** Tokens that only continue a list or guard a form. */
const HARMLESS_NAME =
  /(?:next|page|pagination|continuation|cursor|sync|delta|csrf|xsrf|progress|max|count|public)[_\- ]?(?:page)?[_\- ]?(?:token|key|secret)$/i;

/** True where the name of a member, variable or label says that a secret follows. */
export function isSecretName(name: string): boolean {
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2');
  return SECRET_NAME.test(spaced) && !HARMLESS_NAME.test(spaced);
}

/** True for a value that is no path, URL or time, which is cheap to tell. */
export function mayBeSecretValue(value: string): boolean {
  if (value.length < MIN_NAMED_CHARS) return false;
  return !/^(?:https?:\/\/|\/|\.\/|~\/)/.test(value) && !/^\d{4}-\d\d-\d\dT/.test(value);
}

/**
 * True where a value that stands behind a secret's name looks like a secret, not like a word, a type or a
 * sample. `next` is the character behind it.
 */
export function isSecretValue(value: string, next = ''): boolean {
  if (!mayBeSecretValue(value) || /\s/.test(value)) return false;
  if (!/\d/.test(value) || !/[A-Za-z]/.test(value)) return false;
  const unexplained = { vocabulary: 'sample', unexplained: MIN_NAMED_UNEXPLAINED } as const;
  if (!hasRandomWindow(value, MIN_NAMED_CHARS, unexplained)) return false;
  return !isReference(value, next) && !isPublishedSample(value);
}

const MIN_NAMED_CHARS = 8;
/** So many characters in a row of that many are no word of samples. */
const MIN_NAMED_UNEXPLAINED = 3;

const CALLED = /^[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*$/;
const VARIABLE =
  /^(?:\$\{{1,2}[^{}]*\}{1,2}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|<[^<>]*>|%\([^()]*\)s|\[redacted:[a-z-]+\])$/;
const ENVIRONMENT_REFERENCE =
  /^(?:process\.env|import\.meta\.env|os\.environ|os\.getenv|env|secrets|vars|config|settings|self|this|args|options)\.[A-Za-z_]/;

/** Code that stands for a value: a call, a variable, a member. Its parts are words, else it hides a value. */
function isReference(value: string, next: string): boolean {
  const isCall =
    (next === '(' || next === '[') && CALLED.test(value) && /[._]|::|->|[a-z][A-Z]/.test(value);
  if (!isCall && !VARIABLE.test(value) && !ENVIRONMENT_REFERENCE.test(value)) return false;
  const letters = value.replace(/\d{1,3}/g, '');
  return !hasRandomWindow(letters, MIN_NAMED_CHARS, {
    vocabulary: 'any',
    unexplained: MIN_NAMED_UNEXPLAINED + 1,
  });
}

/** Too short for a secret of its own, and the usual words in place of one. */
const USUAL_PASSWORD = /^(?:pass|pwd|pw|user|admin|root|postgres|guest|test|xxx|abc|foo|bar)$/i;
const SHORT_PASSWORD = 6;

/** True for a password in a URL or a connection string that is none of the usual samples. */
export function isRealPassword(value: string): boolean {
  if (USUAL_PASSWORD.test(value) || isReference(value, '')) return false;
  const unexplained = countUnexplained(value);
  return unexplained > 2 || (unexplained > 0 && value.length < SHORT_PASSWORD);
}
