// Removes secrets and personal data from a text that goes into a record, with the detectors that look at
// results, all of them, whatever the profile of the upstream says. Never throws: what cannot be read is
// not recorded. Contract §8.

import { isSurelyClean } from './sanitize/gate.js';
import { isSsnName } from './sanitize/personal.js';
import { placeholder, type ResultRules, redactText } from './sanitize/sanitize.js';
import { isSecretName } from './sanitize/secret-values.js';

const RULES: ResultRules = {
  secrets: 'redact',
  pii: { action: 'redact', kinds: ['card', 'iban', 'ssn'] },
  activeContent: 'off',
  invisible: 'off',
  injection: 'off',
};

/** The text with a placeholder for each finding. `name` is the member name that it stands behind. */
export function redactForRecord(text: string, name?: string): string {
  try {
    const isNamed = name !== undefined && (isSecretName(name) || isSsnName(name));
    return !isNamed && isSurelyClean(text) ? text : redactText(text, RULES, [], name);
  } catch {
    return placeholder('unread');
  }
}
