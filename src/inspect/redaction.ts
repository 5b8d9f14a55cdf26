// Removes secrets and personal data from a text that goes into a record, with the detectors that look at
// results, all of them, whatever the profile of the upstream says. Never throws: what cannot be read is
// not recorded. Contract §8.

import { isSurelyClean } from './sanitize/gate.js';
import { isSsnName } from './sanitize/personal.js';
import { placeholder, type ResultRules, redactText } from './sanitize/sanitize.js';
import { isSecretName } from './sanitize/secret-values.js';
import { NAMED_SECRET } from './sanitize/secrets.js';

const RULES: ResultRules = {
  secrets: 'redact',
  pii: { action: 'redact', kinds: ['card', 'iban', 'ssn'] },
  activeContent: 'off',
  invisible: 'off',
  injection: 'off',
};

/**
 * The text with a placeholder for each finding. `name` is the member name that it stands behind: where that
 * says "secret", nothing is kept, whatever the value looks like. A result would be spoilt by that, a record is not.
 */
export function redactForRecord(text: string, name?: string): string {
  try {
    if (name !== undefined && text !== '' && isSecretName(name)) return placeholder(NAMED_SECRET);
    const isNamed = name !== undefined && isSsnName(name);
    return !isNamed && isSurelyClean(text) ? text : redactText(text, RULES, [], name);
  } catch {
    return placeholder('unread');
  }
}
