// Sentences that a model can act on when its call is refused. Built from positions and names of schemas
// and rules; never from values or names that came over the wire.

import type { Call } from './conditions.js';
import type { SchemaError } from './definition.js';
import type { AllowRule } from './rules.js';

/** For arguments that do not satisfy the approved schema. */
export function adviseErrors(errors: readonly SchemaError[]): string {
  const sentences = errors.map(({ pointer, message }) =>
    pointer === '' ? `The arguments: ${message}.` : `The argument at ${pointer}: ${message}.`,
  );
  return sentences.join(' ');
}

export const UNDESCRIBED_ADVICE =
  'The arguments have a member that the definition does not describe. Send only members that it lists.';

const NOT_ALLOWED_ADVICE = 'A rule of this gateway does not allow these arguments.';

/** For arguments that no alternative allows: the first argument of the first alternative that fails. */
export function adviseAlternatives(rules: readonly AllowRule[], call: Call): string {
  const rule = rules[0];
  for (const { name, schema } of rule?.args ?? []) {
    const value = Object.hasOwn(call.args, name) ? call.args[name] : undefined;
    if (value === undefined) return `The argument "${name}" is required by a rule of this gateway.`;
    const error = schema.check(value)[0];
    if (error !== undefined) {
      const where = error.pointer === '' ? '' : ` at ${error.pointer}`;
      return `The argument "${name}"${where} is not allowed by a rule of this gateway: ${error.message}.`;
    }
  }
  return NOT_ALLOWED_ADVICE;
}
