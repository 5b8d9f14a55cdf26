// Compiles JSON Schemas of upstreams and of policies into checks that are bounded: no fetch, no
// backtracking, a budget of steps for each check. Decides whether a value satisfies a schema; never
// changes the value, and a check that cannot finish is a fault.
// Source: JSON Schema 2020-12 and draft-07; MCP, JSON Schema usage.

import type { Json, JsonObject } from '../mcp/message.js';
import type { CompiledSchema, SchemaError } from './definition.js';
import { compileLinear, type LinearRegex, toRe2Syntax } from './linear-regex.js';
import { copySchema, type SchemaCopy } from './schema-copy.js';
import { describeErrors } from './schema-faults.js';
import { findUndescribed } from './schema-members.js';
import { findUnboundedReach } from './schema-reach.js';
import { compileValidator } from './schema-validator.js';

export type SchemaResult =
  | { readonly ok: true; readonly schema: CompiledSchema }
  | { readonly ok: false; readonly why: string };

const NO_ERRORS: readonly SchemaError[] = Object.freeze([]);
const UNCHECKABLE: readonly SchemaError[] = Object.freeze([
  Object.freeze({ pointer: '', message: 'takes too much work to check' }),
]);

/**
 * Compiles a schema, or says in a sentence that quotes nothing of it why it cannot be used.
 * Compilation costs milliseconds for each hundred properties: keep it off the request path.
 */
export function compileSchema(schema: JsonObject | boolean): SchemaResult {
  const copied = copySchema(schema);
  if (!copied.ok) return copied;
  const { copy } = copied;
  const unbounded = findUnboundedReach(copy);
  if (unbounded !== undefined) return { ok: false, why: unbounded };
  const patterns = compilePatterns(copy);
  if (typeof patterns === 'string') return { ok: false, why: patterns };
  const validator = compileValidator(copy, patterns);
  if (validator === undefined) return { ok: false, why: 'the schema is not a valid JSON Schema' };
  return {
    ok: true,
    schema: {
      check(value: Json): readonly SchemaError[] {
        const outcome = validator(value);
        if (outcome === 'valid') return NO_ERRORS;
        return outcome === 'exhausted' ? UNCHECKABLE : describeErrors(outcome, copy.names);
      },
      firstUndescribed: (value, reads) => findUndescribed(copy, patterns, value, reads),
    },
  };
}

function compilePatterns(copy: SchemaCopy): ReadonlyMap<string, LinearRegex> | string {
  const patterns = new Map<string, LinearRegex>();
  for (const pattern of copy.patterns) {
    const compiled = compileLinear(toRe2Syntax(pattern));
    if (!compiled.ok) return `in a pattern of the schema, ${compiled.why}`;
    patterns.set(pattern, compiled.regex);
  }
  return patterns;
}
