// The member `detail` of an audit event: what an event that is not of an exchange has to say besides. Names
// are our own; values are quoted as what they are, ours or others' words. Contract §8.

import { type MaskText, quoteForeign, quoteNumber, quoteVerified } from './quoting.js';

/** A detail of our own words and numbers; what is `undefined` is left out. */
export function detailText(detail: Readonly<Record<string, string | number | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(detail)) {
    if (value === undefined) continue;
    const quoted = typeof value === 'number' ? quoteNumber(value) : quoteVerified(value);
    text += `${text === '' ? '' : ','}${quoteVerified(name)}:${quoted}`;
  }
  return `{${text}}`;
}

/** Further members of a detail, whose values others wrote. */
export function foreignDetail(
  detail: Readonly<Record<string, string>> | undefined,
  mask: MaskText | undefined,
): string {
  return Object.entries(detail ?? {})
    .map(([name, value]) => `,${quoteVerified(name)}:${quoteForeign(value, mask)}`)
    .join('');
}
